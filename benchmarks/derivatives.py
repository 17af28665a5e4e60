"""What a compiled gradient costs: beside the program itself, and beside JAX's; and the memory it takes."""

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, compare, library


def rows(quick: bool) -> Iterator[Row]:
    """Five smooth programs: the gradient's time, the program's time, and what the gradient needs for temporaries."""
    libraries = [library(name) for name in ("xform", "JAX")]
    programs = {each.name: each.load("benchmarks.programs") for each in libraries}
    models = {each.name: each.load("demo.lotka_volterra") for each in libraries}
    rng = np.random.default_rng(0)
    grid = np.linspace(-1, 1, 256)
    bump = np.exp(-20 * (grid[:, None] ** 2 + grid**2))
    positions = 1.2 * np.stack(np.meshgrid(*[np.arange(n) for n in (8, 8, 4)]), -1).reshape(-1, 3)
    layers = [(rng.normal(size=(256, 256)) / 16, np.zeros(256)) for _ in range(4)]
    theta = np.log([mean for mean, _ in models["xform"].PUBLISHED.values()])
    for name, program, arguments in (
        ("the demo's log posterior", lambda each: models[each].log_density, [theta]),
        ("a wave equation, 200 steps", lambda each: programs[each].wave, [1 + 0.5 * bump, bump]),
        ("a heat equation, 100 steps", lambda each: programs[each].heat, [1 + 0.5 * bump, bump]),
        ("a perceptron", lambda each: programs[each].perceptron, [layers, rng.normal(size=(256, 256))]),
        (
            "Lennard-Jones, N=256",
            lambda each: programs[each].lennard_jones,
            [positions + 0.05 * rng.normal(size=(256, 3))],
        ),
    ):
        spaces = {}
        for each in libraries:
            tree = each.api.tree_util.tree_map(each.numpy.array, arguments)
            f = program(each.name)
            spaces[each.name] = {
                "args": tree,
                "f": each.api.jit(f),
                "gradient": each.api.jit(each.api.grad(f)),
                "wait": each.api.block_until_ready,
            }
        gradient = compare("wait(gradient(*args))", spaces, quick=quick)
        yield Row(f"gradient of {name}", gradient)
        alone = compare("wait(f(*args))", spaces, quick=quick)
        yield Row(f"gradient of {name}, in times of the program", {k: gradient[k] / alone[k] for k in gradient})
        if "wave" in name:
            yield Row(f"memory of the gradient of {name}", {k: temporaries(s) for k, s in spaces.items()})


def temporaries(space: dict) -> float:
    """Bytes that the compiled gradient takes beside arguments and results."""
    analysis = space["gradient"].lower(*space["args"]).compile().memory_analysis()
    return float(analysis["temp_size_in_bytes"] if isinstance(analysis, dict) else analysis.temp_size_in_bytes)
