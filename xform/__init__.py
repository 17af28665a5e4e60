"""xform: composable function transformations of NumPy programs: grad, jit, vmap, pmap.

May import: everything.
"""

from xform import lax
from xform.api.compile import jit
from xform.api.derivatives import grad, hessian, jacfwd, jacobian, jacrev, jvp, linear_transpose, linearize, value_and_grad, vjp
from xform.api.inspection import ShapeDtypeStruct, eval_shape, make_jaxpr
from xform.api.mapping import vmap
from xform.core.array import Array
from xform.core.config import config, debug_nans, disable_jit, enable_x64
