"""The transformations: staging, differentiation, batching, lowering, SPMD. They know no primitive.

May import: `xform.core`.
"""
