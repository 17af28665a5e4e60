"""The transformations that users call: pytrees in, pytrees out.

May import: everything below (`lax`, `interpreters`, `core`).
"""
