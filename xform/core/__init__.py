"""The kernel: avals, arrays, traces, primitives, jaxprs, dtypes, pytrees, configuration, errors.

Imports: the standard library, NumPy, ml_dtypes, optree, and (lazily) `xform.backends`.
"""
