"""What `import xform` costs, and what it doesn't bring along."""

import os
import subprocess
import sys

import pytest


def python(code):
    """Run Python in a process of its own, warnings as errors; what it prints."""
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_ENABLE_X64")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


HEAVY = "print(sorted({m.split('.')[0] for m in sys.modules} & {'jax', 'jaxlib', 'scipy', 'opt_einsum', 'matplotlib'}))"


@pytest.mark.parametrize(
    "code",
    [
        "import xform",
        "import xform.numpy, xform.lax, xform.tree_util, xform.dtypes, xform.random, xform.test_util",
        """
import numpy as np, xform
from xform import lax
x = np.arange(3.0)
f = lambda x: lax.reduce_sum(lax.mul(lax.sin(x), x), (0,))
f(x), xform.grad(f)(x), xform.vmap(xform.grad(f))(np.ones((2, 3))), xform.hessian(f)(x)
xform.jvp(f, (x,), (x,)), xform.make_jaxpr(xform.grad(f))(x), xform.eval_shape(f, x)
lax.scan(lambda c, y: (lax.add(c, y), c), 0.0, x), lax.cond(True, lambda x: x, lambda x: x, 1.0)
lax.while_loop(lambda c: lax.lt(c, 3.0), lambda c: lax.add(c, 1.0), 0.0)
repr(lax.sin(x)), lax.sin(x).tolist()
""",
        """
import xform.numpy as xnp, xform, xform.random
x = xnp.linspace(0.0, 1.0, 5)
y = (x @ x) * xnp.ones((2, 3)).sum() + x[1:3].mean() - xnp.where(x > 0.5, x, 0.0).max()
xform.grad(lambda x: xnp.sum(xnp.sin(x) ** 2))(x)
xform.random.uniform(xform.random.key(0), (3,))
""",
    ],
    ids=["import", "submodules", "eager lax", "eager numpy"],
)
def test_eager_code_imports_neither_jax_nor_scipy(code):
    assert python(f"import sys\n{code}\n{HEAVY}") == "[]"


def test_jit_on_the_cpu_needs_jaxlib_alone():
    """jax itself takes a second to import."""
    code = "import sys, numpy as np, xform\nfrom xform import lax\n"
    code += "xform.jit(lambda x: lax.sin(x))(np.ones(100_000)).block_until_ready()\n"
    assert python(code + "print('jaxlib' in sys.modules, 'jax' in sys.modules)") == "True False"


def test_importing_starts_no_threads_and_writes_nothing():
    code = "import threading, sys, xform, xform.numpy; print(threading.active_count())"
    assert python(code) == "1"


def test_public_names_exist():
    code = """
import importlib, xform
for name in ("", ".lax", ".numpy", ".tree", ".tree_util", ".dtypes", ".test_util"):
    module = importlib.import_module("xform" + name)
    missing = [n for n in getattr(module, "__all__", ()) if not hasattr(module, n)]
    assert not missing, (name, missing)
    assert module.__doc__, name
"""
    python(code)
