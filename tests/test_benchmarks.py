"""The benchmarks' harness: what it counts and what its table says. The figures are `make bench`'s."""

import importlib
import sys

import pytest

from benchmarks import bounds, harness


@pytest.fixture
def rows(monkeypatch):
    """Two rows, of which one has a claim that holds against NumPy and is missed against JAX."""
    monkeypatch.setitem(bounds.BOUNDS, "claimed", {"NumPy": 4, "JAX": 0.25})
    return [
        harness.Row("claimed", {"xform": 3e-6, "NumPy": 1e-6, "JAX": 4e-6}),
        harness.Row("other", {"xform": 27e-6, "JAX": 9e-3}),
    ]


def test_claims(rows):
    assert rows[0].missed() == ["JAX"]
    assert rows[1].missed() == []


def test_table(rows):
    assert harness.table(rows).splitlines() == [
        "|  | xform | NumPy | JAX | to NumPy | to JAX |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| claimed | 3.00 us | 1.00 us | 4.00 us | 3.00x (<= 4.00: ok) | 0.750x (<= 0.250: MISSED) |",
        "| other | 27.0 us |  | 9.00 ms |  | 0.00300x |",
    ]


def test_geometric_mean_is_over_what_all_rows_have(rows):
    mean = harness.geometric_mean("mean", rows)
    assert mean.seconds == pytest.approx({"xform": 9e-6, "JAX": (4e-6 * 9e-3) ** 0.5})


def test_measure_tells_fast_from_slow():
    spaces = {"fast": {"n": 10}, "slow": {"n": 10_000}}
    seconds = harness.compare("sum(range(n))", spaces, quick=True)
    assert 0 < seconds["fast"] < seconds["slow"] < 0.1


def test_setup_precedes_each_statement():
    space = {"log": []}
    harness.compare("log.append('run')", {"only": space}, "log.append('setup')", number=1, quick=True)
    assert space["log"][::2] == ["setup"] * (len(space["log"]) // 2)
    assert space["log"][1::2] == ["run"] * (len(space["log"]) // 2)


def test_program_is_loaded_with_a_peer_in_place_of_xform():
    pytest.importorskip("jax")
    ours, theirs = harness.library("xform"), harness.library("JAX")
    before = dict(sys.modules)
    programs = {each.name: each.load("benchmarks.programs") for each in (ours, theirs)}
    assert programs["xform"].xform is importlib.import_module("xform")
    assert programs["JAX"].xform is importlib.import_module("jax")
    assert sys.modules["xform"] is before["xform"]
    for function, x in (("sin_times", [0.1, 0.2]), ("pendulum", 1.0)):
        results = [float(getattr(programs[each.name], function)(each.numpy.asarray(x))) for each in (ours, theirs)]
        assert results[0] == pytest.approx(results[1], rel=1e-12)
