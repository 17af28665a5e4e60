"""Every public name of jax.lax is in xform.lax, or docs/lax.md says why not."""

import pathlib
import re

import numpy as np

import xform
import xform.lax
from xform.core.trace import Primitive

ROOT = pathlib.Path(__file__).resolve().parent
NAMES = [n for n in (ROOT / "data" / "jax_lax_names.txt").read_text().split("\n") if n and not n.startswith("#")]


def left_out():
    """Name to reason, of the tables of the section "Left out"."""
    text = (ROOT.parent / "docs" / "lax.md").read_text()
    section = text.split("## Left out")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (.+) \|$", section, flags=re.M)
    return {name: reason for names, reason in rows for name in re.findall(r"`([^`]+)`", names)}


def found(name):
    value = xform
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def test_every_name_is_there_or_its_absence_explained():
    reasons = left_out()
    missing = [n for n in NAMES if found(n) is None and n not in reasons]
    assert not missing, f"neither in xform nor in docs/lax.md: {missing}"


def test_the_explanations_are_true():
    reasons = left_out()
    assert len(reasons) > 10 and all(len(reason) > 10 for reason in reasons.values())
    assert not [n for n in reasons if n not in NAMES], "no such names in JAX"
    assert not [n for n in reasons if found(n) is not None], "they are there"


def test_primitives_are_those_that_the_functions_bind():
    x = xform.make_jaxpr(lambda x: xform.lax.sort(xform.lax.sin(x) + x))(np.ones(2))
    assert [e.primitive for e in x.jaxpr.eqns] == [xform.lax.sin_p, xform.lax.add_p, xform.lax.sort_p]
    for name in NAMES:
        if name.endswith("_p") and found(name) is not None:
            assert isinstance(found(name), Primitive), name
