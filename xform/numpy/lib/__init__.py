"""`xform.numpy.lib`: what NumPy has in modules of this name.

May import: the other modules of `xform.numpy`.
"""

from xform.numpy.lib import scimath, stride_tricks

__all__ = ["scimath", "stride_tricks"]
