"""xform: composable function transformations of NumPy programs: grad, jit, vmap, pmap.

May import: everything.
"""

import gc as _gc

_collects = _gc.isenabled()
_gc.disable()  # what is imported stays: looking for garbage among it takes a tenth of the time
try:
    from xform import (
        ad,
        ad_checkpoint,
        custom_batching,
        custom_derivatives,
        dtypes,
        errors,
        lax,
        numpy,
        random,
        tree,
        tree_util,
    )
finally:
    if _collects:
        _gc.enable()
from xform.ad_checkpoint import remat
from xform.api.checkpoint import checkpoint, checkpoint_policies
from xform.api.compile import jit
from xform.api.custom import custom_jvp
from xform.api.custom_gradient import closure_convert, custom_gradient
from xform.api.custom_vjp import custom_vjp
from xform.api.derivatives import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from xform.api.devices import (
    block_until_ready,
    clear_caches,
    default_backend,
    device_count,
    device_get,
    device_put,
    device_put_replicated,
    device_put_sharded,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from xform.api.inspection import ShapeDtypeStruct, eval_shape, make_jaxpr, typeof
from xform.api.jacobians import hessian, jacfwd, jacobian, jacrev
from xform.api.mapping import vmap
from xform.api.parallel import pmap
from xform.api.passes import fwd_and_bwd
from xform.api.sparsity import jacobian_sparsity
from xform.api.taylor import jet
from xform.core.array import Array
from xform.core.config import (
    check_tracer_leaks,
    config,
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    disable_jit,
    enable_checks,
    enable_x64,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
)
from xform.numpy.assignable import array_api_function
from xform.numpy.text import visualize
from xform.numpy_functions import numpy_function

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)
