"""The table of operations: `OPS` of each module lists `record.Op` records; `test_ops.py` tests them all."""
