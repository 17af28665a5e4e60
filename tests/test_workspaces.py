"""Memory that compiled programs keep between runs: `backends.workspaces`."""

import threading

import numpy as np
import pytest

import xform
import xform.numpy as jnp
from xform import lax
from xform.backends import workspaces, xla
from xform.interpreters.lowering import SMALLEST_WORKSPACE

ROWS, WIDTH = 40, SMALLEST_WORKSPACE // 8 // 40 + 1


@pytest.fixture(autouse=True)
def nothing_kept():
    """No workspaces before a test, and none after it."""
    workspaces.clear()
    yield
    workspaces.clear()


def kept():
    """Shapes of what is kept, those used last at the end."""
    return [key[0] for key, _ in workspaces._kept]


def total(x, rows=ROWS):
    """A sum whose derivative, by a loop, needs the loop's carries."""
    return jnp.sum(lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=rows)[0])


def derivative(x, rows=ROWS):
    """Of `total`, by the chain rule."""
    out = np.ones_like(x)
    for _ in range(rows):
        out, x = out * np.cos(x), np.sin(x)
    return out


@pytest.mark.parametrize("loss", [total, xform.jit(total)], ids=["inline", "jit"])
def test_what_a_loop_saves_for_its_derivative_is_kept(loss):
    gradient = xform.jit(xform.grad(loss))
    for scale in (0.5, 1.0, 2.0):
        x = scale * np.linspace(-1, 1, WIDTH)
        np.testing.assert_allclose(gradient(x), derivative(x), rtol=1e-13)
        assert kept() == [(ROWS, WIDTH)]
    xform.clear_caches()
    assert kept() == []
    np.testing.assert_allclose(gradient(x), derivative(x), rtol=1e-13)


def test_small_and_returned_arrays_are_not_kept():
    x = np.linspace(-1, 1, WIDTH)
    xform.jit(xform.grad(total))(x[:100])
    stacked = xform.jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, None, length=ROWS)[1])
    nested = xform.jit(lambda x: xform.jit(lambda y: lax.scan(lambda c, _: (c, c), y, None, length=ROWS)[1])(x))
    for f in (stacked, nested):
        first = f(x)
        before = np.array(first)
        f(2 * x)
        np.testing.assert_array_equal(first, before)
    assert kept() == []


def test_loops_that_run_more_than_once_have_none():
    """Each run of the inner loop would need the memory that the last one has filled."""
    x = np.linspace(-1, 1, WIDTH)

    def f(x):
        return lax.scan(lambda s, y: (s + xform.grad(total)(y)[0], None), 0.0, jnp.stack([x, 0.5 * x]))[0]

    assert float(xform.jit(f)(x)) == pytest.approx(derivative(x)[0] + derivative(0.5 * x)[0])
    assert kept() == []


def test_no_more_is_kept_than_the_hungriest_program_needs():
    x = np.linspace(-1, 1, WIDTH)
    few, many = (xform.jit(xform.grad(lambda x, n=n: total(x, n))) for n in (ROWS, 2 * ROWS))
    few(x)
    many(x)
    assert kept() == [(2 * ROWS, WIDTH)]
    few(x)
    assert kept() == [(ROWS, WIDTH)]
    seen = []
    workspaces.take([((2 * ROWS, WIDTH), x.dtype, None)], lambda key: seen.append(kept()))
    assert seen == [[]], "what is kept goes before the next is made"
    two = xform.jit(lambda x: xform.grad(total)(x) + xform.grad(total)(2 * x))
    np.testing.assert_allclose(two(x), derivative(x) + derivative(2 * x), rtol=1e-13)
    assert kept() == [(ROWS, WIDTH)] * 2


def test_more_memory_than_is_to_be_kept(monkeypatch):
    monkeypatch.setattr("xform.interpreters.lowering.ALL_WORKSPACES", 2 * SMALLEST_WORKSPACE)
    x = np.linspace(-1, 1, WIDTH)
    f = xform.jit(lambda x: (xform.grad(total)(x), xform.grad(lambda x: total(x, 2 * ROWS))(x)))
    for found, rows in zip(f(x), (ROWS, 2 * ROWS), strict=True):
        np.testing.assert_allclose(found, derivative(x, rows), rtol=1e-13)
    assert kept() == [(ROWS, WIDTH)]


def test_donated_arguments_beside_workspaces():
    f = xform.jit(lambda x, y: (xform.grad(total)(x), y + 1), donate_argnums=1)
    x, y = np.linspace(-1, 1, WIDTH), jnp.arange(5.0)
    gradient, z = f(x, y)
    np.testing.assert_allclose(gradient, derivative(x), rtol=1e-13)
    assert z.tolist() == [1, 2, 3, 4, 5] and y.is_deleted()


def test_threads_have_workspaces_of_their_own():
    gradient = xform.jit(xform.grad(total))
    xs = [scale * np.linspace(-1, 1, WIDTH) for scale in (0.5, 1.0, 1.5, 2.0)]
    gradient(xs[0])
    found: list[list[np.ndarray]] = [[] for _ in xs]

    def run(x, out):
        for _ in range(4):
            out.append(np.asarray(gradient(x)))

    threads = [threading.Thread(target=run, args=pair) for pair in zip(xs, found, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, out in zip(xs, found, strict=True):
        assert len(out) == 4
        for each in out:
            np.testing.assert_allclose(each, derivative(x), rtol=1e-13)


def test_a_program_that_can_not_run_loses_nothing_but_its_workspace():
    gradient = xform.jit(xform.grad(total))
    x = jnp.array(np.linspace(-1, 1, WIDTH))
    expected = np.asarray(gradient(x))
    [(key, buffer)] = workspaces._kept
    xla.delete(buffer)
    with pytest.raises(xla.XlaError, match="deleted or donated"):
        gradient(x)
    assert kept() == []
    np.testing.assert_array_equal(gradient(x), expected)
    assert [k for k, _ in workspaces._kept] == [key]
