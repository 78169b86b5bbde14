"""The example with a picture."""

import os
import pathlib
import subprocess
import sys

import pytest

from conftest import BUILD, SOURCE

pytest.importorskip("matplotlib", reason="package python3-matplotlib")


def test_the_example_draws_its_picture(tmp_path):
    done = subprocess.run([sys.executable, SOURCE / "examples" / "python" / "walk.py", tmp_path / "walk.svg"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=300)
    assert done.returncode == 0, done.stderr
    for line in ("func @double", "[  32   64   96 -128]", "expected int32", "local-sync: ", "local-task: "):
        assert line in done.stdout
    picture = (tmp_path / "walk.svg").read_text()
    assert picture.lstrip().startswith("<?xml") and "line2d" in picture
    assert pathlib.Path(SOURCE / "docs" / "pictures" / "walk.svg").stat().st_size < 60_000
