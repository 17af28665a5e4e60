"""How fast is xform, beside NumPy, autograd and JAX? ``make bench`` or ``python -m benchmarks``.

`harness` measures and writes tables, `bounds` says what is claimed, `programs` holds the programs that are
measured, and each other file is a theme: a function ``rows(quick)`` that yields the rows of its table.
"""
