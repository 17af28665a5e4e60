"""The floors of the house: imports go down only, in one direction, and only the backend knows jaxlib."""

import ast
import pathlib

import pytest

import xform

ROOT = pathlib.Path(xform.__file__).parent
# From the ground up. A module that is in no folder of this list (xform/__init__.py, xform/tree.py, ...) is the roof.
FLOORS = [
    ["backends"],
    ["core"],
    ["interpreters"],
    ["lax"],
    ["api"],
    ["numpy"],
    ["random", "nn", "scipy", "numpy_functions"],
]
# Function-level imports that go up: what it takes is above this floor in the sense of use, not of definition.
UPWARD = {
    ("core.array", "backends.xla"): "buffers",
    ("core.trace", "interpreters.eager"): "the slow path of evaluation, for other devices and debugging",
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(p for p in parts if p != "__init__") or "xform", path


MODULES = dict(modules())


def floor(module):
    top = module.split(".")[0]
    found = [i for i, names in enumerate(FLOORS) if top in names and (ROOT / top).is_dir()]
    return found[0] if found else len(FLOORS)


def imports(path):
    """(module imported, line, whether it happens when the file is imported), of all imports in a file."""
    tree = ast.parse(path.read_text())
    inside = {
        id(n)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for n in ast.walk(f)
    }
    for node in ast.walk(tree):
        at_once = id(node) not in inside
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, at_once
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                known = whole.removeprefix("xform.") in MODULES
                yield whole if known else node.module, node.lineno, at_once


def own(name):
    """The name within the library, or None."""
    return name.removeprefix("xform.") if name == "xform" or name.startswith("xform.") else None


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    problems = []
    for name, line, at_once in imports(MODULES[module]):
        target = own(name)
        if target is None:
            continue
        if target == "xform":
            problems.append(f"{module}:{line} imports xform itself")
        elif floor(target) > floor(module) and (at_once or (module, target) not in UPWARD):
            problems.append(f"{module}:{line} imports {target}, which is above it")
    assert not problems, "\n".join(problems)


def test_no_cycles():
    """Following the imports that happen at import time never leads back."""
    edges = {
        module: {own(n) for n, _, at_once in imports(path) if at_once and own(n) in MODULES} - {module}
        for module, path in MODULES.items()
    }
    state: dict[str, int] = {}

    def visit(module, trail):
        if state.get(module) == 1:
            raise AssertionError("cycle: " + " -> ".join([*trail[trail.index(module) :], module]))
        if module not in state:
            state[module] = 1
            for target in sorted(edges[module]):
                visit(target, [*trail, module])
            state[module] = 2

    for module in edges:
        visit(module, [])


@pytest.mark.parametrize("module", MODULES)
def test_only_the_backend_imports_jax(module):
    found = [f"{n}:{line}" for n, line, _ in imports(MODULES[module]) if n.split(".")[0] in ("jax", "jaxlib")]
    if module not in ("backends.xla", "backends.xla_runtime"):
        assert not found


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_are_imported_where_they_are_used(module):
    heavy = ("jax", "jaxlib", "scipy", "opt_einsum", "matplotlib")
    found = [f"{n}:{line}" for n, line, at_once in imports(MODULES[module]) if at_once and n.split(".")[0] in heavy]
    assert not found


@pytest.mark.parametrize("module", MODULES)
def test_every_file_says_what_it_is_for(module):
    docstring = ast.get_docstring(ast.parse(MODULES[module].read_text()))
    assert docstring, f"{module} has no docstring"
    assert "import" in docstring.lower(), f"the docstring of {module} does not say what it may import"


def test_the_exceptions_are_needed():
    for module, target in UPWARD:
        assert target in {own(n) for n, _, at_once in imports(MODULES[module]) if not at_once}
