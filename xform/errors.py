"""The library's exceptions.

May import: `xform.core`, `xform.backends`.
"""

from xform.backends.xla import XlaError
from xform.core.dtypes import TypePromotionError
from xform.core.errors import (
    ConcretizationTypeError,
    JaxprTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError",
    "JaxprTypeError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
    "XlaError",
]
