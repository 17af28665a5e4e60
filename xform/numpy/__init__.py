"""`xform.numpy`: NumPy's functions on arrays that can be differentiated, mapped and compiled.

The names, parameters and meanings are NumPy's, with JAX's additions for traced arrays (``size=``, ``precision=`` ...).
Arrays are immutable: there is no ``out=``, and ``x.at[i].set(y)`` instead of ``x[i] = y``. Types promote as in JAX.

May import: `xform.lax`, `xform.api` (within functions), `xform.core`.
"""

from xform.numpy import indexing, methods, protocols
from xform.numpy.creation import *
from xform.numpy.diagonals import *
from xform.numpy.elementwise import *
from xform.numpy.joining import *
from xform.numpy.manipulation import *
from xform.numpy.products import *
from xform.numpy.reductions import *
from xform.numpy.searching import *
from xform.numpy.sets import *
from xform.numpy.sorting import *
from xform.numpy.types import *
from xform.numpy.ufuncs import *
