"""The table of operations: each module's `OPS` lists `record.Op` records, and `tests/test_ops.py` tests them all."""
