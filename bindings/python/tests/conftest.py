"""The package of this build, and the programs that the tests use."""

import os
import pathlib
import sys

import pytest

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
BUILD = pathlib.Path(os.environ.get("HALYARD_BUILD", SOURCE / "build" / "release"))
sys.path.insert(0, str(BUILD / "python"))

import halyard  # noqa: E402

FIXTURES = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))


@pytest.fixture
def example():
    return lambda name: str(SOURCE / "examples" / f"{name}.vmasm")


@pytest.fixture(params=["local-sync", "local-task"])
def local_device(request):
    return request.param


@pytest.fixture
def product(example, local_device):
    """mul of two 8xf32."""
    return halyard.load(example("elementwise_mul"), device=local_device).mul


@pytest.fixture
def fixtures():
    if not (FIXTURES / "compiled").exists():
        pytest.skip("no fixtures: HALYARD_FIXTURES or ../shared/fixtures")
    return FIXTURES


def aligned(count, dtype="float32", alignment=64):
    """An array that begins at a multiple of `alignment` bytes, as devices want it."""
    import numpy as np

    raw = np.empty(count * np.dtype(dtype).itemsize + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start:start + count * np.dtype(dtype).itemsize].view(dtype)
