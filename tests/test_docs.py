"""The code in README.md and CONTRIBUTING.md runs."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_code_blocks_run(name):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.S)
    assert len(blocks) >= 2
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": "__main__"})
