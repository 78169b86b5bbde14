"""The declarations for type checkers (__init__.pyi) say what is there, and mypy --strict accepts their use."""

import ast
import os
import shutil
import subprocess
import types

import pytest

import halyard
from conftest import BUILD

USE = """
import asyncio
import halyard

model = halyard.load("model.vmfb", device="local-task", parameters={"model": ["weights.safetensors"]}, timeout=1.0)
y = model.main([1.0], x=2, timeout=0.5)
tensor = halyard.Tensor([1, 2], "int8", device=halyard.device("local-sync", workers="1"))
shape: tuple[int, ...] = tensor.shape
device: halyard.Device = tensor.view("uint8").device
bytes_: int = halyard.load([b"", "a.vmfb"]).devices[0].memory()["host_live"]


@halyard.function("0ii_i")
def add(a: int, b: int) -> int:
    return a + b


async def main() -> None:
    await model.main.call_async(tensor, timeout=1)


asyncio.run(main())
try:
    model["main"]()
except halyard.NotFoundError as error:
    print(error.code, error.trace, error.message)
"""
WRONG = """
import halyard

halyard.load("model.vmfb", threads="many")
halyard.Tensor([1]).shape.append(1)
"""


def declared():
    """{class: names of its members}, and {name: None} for what is no class."""
    tree = ast.parse((BUILD / "python" / "halyard" / "__init__.pyi").read_text())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {item.target.id if isinstance(item, ast.AnnAssign) else item.name for item in node.body
                                if isinstance(item, (ast.AnnAssign, ast.FunctionDef))}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = None
    return found


def test_every_public_name_is_declared():
    public = {name for name, value in vars(halyard).items() if not name.startswith("_") and
              not isinstance(value, types.ModuleType)}
    assert public - declared().keys() == set()
    assert {name for name in declared() if not hasattr(halyard, name)} == set()


def test_every_member_is_declared():
    for name, members in declared().items():
        if members is None:
            continue
        there = vars(getattr(halyard, name))
        public = {member for member in there if not member.startswith("_")}
        if name == "Model":  # what __init__ sets
            public |= {"name", "instance", "devices", "program"}
        assert public - members - {"code", "name", "args", "callable"} == set(), name
        # __new__ and what the protocols of types offer is not in every __dict__.
        missing = {member for member in members if not member.startswith("__") and member not in public}
        assert missing - {"code", "name", "module", "convention"} == set(), name


def mypy(path):
    return subprocess.run([shutil.which("mypy"), "--strict", "--no-error-summary", str(path)], capture_output=True, text=True,
                          cwd=path.parent, env={**os.environ, "MYPYPATH": str(BUILD / "python")})


@pytest.mark.skipif(not shutil.which("mypy"), reason="package mypy")
def test_mypy_accepts_their_use(tmp_path):
    use, wrong = tmp_path / "use.py", tmp_path / "wrong.py"
    use.write_text(USE)
    wrong.write_text(WRONG)
    assert mypy(use).stdout == ""
    assert mypy(wrong).stdout.count("error:") == 2
