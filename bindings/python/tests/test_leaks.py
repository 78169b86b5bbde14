"""Calls leave nothing behind: no memory of the process, no objects of Halyard, and no objects and references of Python."""

import array
import asyncio
import gc
import os
import pickle
import sys

import pytest

import halyard
from conftest import aligned

np = pytest.importorskip("numpy")

CALLS = 100_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Counts:
    """What is there: Python's blocks of memory, objects and references, the device's objects, the bytes of the process."""

    def __init__(self, device):
        gc.collect()
        self.blocks = sys.getallocatedblocks()
        self.tracked = len(gc.get_objects())
        # Of debug builds of Python only (python3-dbg): every reference there is.
        self.references = sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0
        # A type is listed with 0 once there was an object of it: a call may have to wait for the first time.
        self.objects = {kind: count for kind, count in device.objects().items() if count}
        self.resident = resident()

    def check(self, before, calls, with_numpy):
        # One object or reference for each call would be four times this; what Python keeps for itself comes and goes.
        few = calls / 4
        assert self.objects == before.objects
        assert abs(self.blocks - before.blocks) < few
        assert abs(self.tracked - before.tracked) < few
        # Debian's numpy is no debug build: what it does with references is not counted.
        assert with_numpy or abs(self.references - before.references) < few
        # Sanitizers keep freed memory for a while.
        assert "libasan" in os.environ.get("LD_PRELOAD", "") or self.resident - before.resident < 4 << 20


@pytest.fixture
def counted(example, local_device):
    instance = halyard.Instance(count_objects=True)
    device = instance.open(local_device)
    return device, halyard.load(example("elementwise_mul"), device=device, instance=instance).mul


def run(device, work, calls, with_numpy=False):
    work(calls // 10)
    before = Counts(device)
    work(calls)
    Counts(device).check(before, calls, with_numpy)


@pytest.mark.parametrize("kind", ["array", "numpy"])
def test_a_hundred_thousand_calls(counted, local_device, kind):
    device, multiply = counted
    a, b = array.array("f", [2.0] * 8), halyard.Tensor([3.0] * 8, device=device)
    if kind == "numpy":
        a = np.asarray(a)

    def work(times):
        for _ in range(times):
            multiply(a, b)

    run(device, work, CALLS if local_device == "local-sync" else CALLS // 10, with_numpy=kind == "numpy")


def test_everything_else(counted):
    """What shares memory, what is never taken, and what fails."""
    device, multiply = counted
    small = np.ones(8, np.float32)
    large = aligned(1 << 14)

    def work(times):
        for _ in range(times):
            y = multiply(small, [2.0] * 8, timeout=60)
            memoryview(y)
            np.from_dlpack(y)
            y.__dlpack__(max_version=(1, 0))  # never taken
            halyard.Tensor(large, device=device)
            for wrong in ([1.0], "text", np.ones(8)):
                with pytest.raises((halyard.InvalidArgumentError, TypeError)):
                    multiply(input0=small, input1=wrong)

    run(device, work, 5000, with_numpy=True)


def test_asyncio(counted):
    device, multiply = counted

    async def main(times):
        for _ in range(times // 10):
            await asyncio.gather(*[multiply.call_async([1.0] * 8, [2.0] * 8, timeout=60) for _ in range(8)])
            task = asyncio.create_task(multiply.call_async([1.0] * 8, [2.0] * 8))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.gather(multiply.call_async([1.0], [2.0]), return_exceptions=True)

    run(device, lambda times: asyncio.run(main(times)), 3000)


def test_models(example, local_device):
    """Loading, calling and dropping a model that imports a function of Python."""
    device = halyard.Instance(count_objects=True).open(local_device)
    text = halyard.assemble("""
vm.module @m
vm.import @host.pass cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @host.pass(%i0)
  vm.return %i0
}
""")

    def work(times):
        for i in range(times):
            assert halyard.load(text, functions=[halyard.function("0i_i", name="pass")(lambda x: x)]).f(i) == i

    run(device, work, 500)


def test_tensors(counted):
    """Parts, shapes, copies, results in arrays, and what is refused."""
    device, multiply = counted
    tensor = halyard.Tensor(np.arange(16, dtype=np.float32).reshape(2, 8), device=device)
    target = np.zeros(8, np.float32)

    def work(times):
        for _ in range(times):
            row = tensor[0]
            multiply(row, tensor[1, 0:8], out=target)
            tensor.reshape(4, 4).copy_to(np.zeros((4, 4), np.float32))
            pickle.loads(pickle.dumps(row))
            row.tolist(), row[::2], row.view(np.int32), list(row), tensor == tensor, repr(tensor)
            halyard.Tensor.frombytes(b"1234", np.dtype("int16"), (2,)).item
            halyard.Tensor(halyard.Tensor([1, 2]), "uint64", device), halyard.Tensor(row, device=device)
            for wrong in (lambda: tensor[2], lambda: tensor.reshape(3), lambda: row.copy_to(tensor), lambda: row.view("f99"),
                          lambda: halyard.Tensor.frombytes(b"1", "int16", (2,)), lambda: halyard.Tensor(row, "int32", device),
                          lambda: halyard.Tensor(np.zeros(2, np.int8), "uint8"), lambda: multiply(row, row, out=tensor)):
                with pytest.raises((halyard.Error, IndexError, ValueError)):
                    wrong()

    run(device, work, 1000, with_numpy=True)


@pytest.mark.parametrize("awaited", [False, True])
def test_exceptions_of_functions(example, local_device, awaited):
    device = halyard.Instance(count_objects=True).open(local_device)

    def fail(x):
        raise KeyError(x) from ValueError(x)

    model = halyard.load(halyard.assemble("""
vm.module @m
vm.import @host.fail cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @host.fail(%i0)
  vm.return %i0
}
"""), functions=[halyard.function("0i_i", name="fail")(fail)], device=device)

    async def main(times):
        for i in range(times):
            with pytest.raises(KeyError):
                await model.f.call_async(i)
            await asyncio.gather(asyncio.wait_for(model.f.call_async(i), 0), return_exceptions=True)

    def work(times):
        if awaited:
            asyncio.run(main(times))
            return
        for i in range(times):
            with pytest.raises(KeyError):
                model.f(i)

    run(device, work, 2000)


def test_closed_models(example, local_device):
    instance = halyard.Instance(count_objects=True)
    device = instance.open(local_device)
    path = example("elementwise_mul")

    def work(times):
        for _ in range(times):
            with halyard.load(path, device=device, instance=instance) as model:
                model.mul([1.0] * 8, [2.0] * 8), model.mul.inputs, model.mul.__doc__
            with pytest.raises(halyard.FailedPreconditionError):
                model.mul([1.0] * 8, [2.0] * 8)

    run(device, work, 200)
