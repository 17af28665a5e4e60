"""The tests; `tests.ops` is the table of operations that `test_ops` runs over."""
