"""Calls under asyncio and from several threads."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import halyard
from conftest import BUILD


def test_gather(product):
    async def main():
        return await asyncio.gather(*[product.call_async([float(i)] * 8, [2.0] * 8) for i in range(50)])

    assert [y.tolist()[0] for y in asyncio.run(main())] == [2.0 * i for i in range(50)]
    assert product([1.0] * 8, [2.0] * 8).tolist() == [2.0] * 8


def test_failure(product):
    async def main():
        with pytest.raises(halyard.InvalidArgumentError):
            await product.call_async([1.0], [1.0] * 8)
        return await product.call_async([1.0] * 8, [1.0] * 8)

    assert asyncio.run(main()).tolist() == [1.0] * 8


def test_keywords(product):
    async def main():
        return await product.call_async(input1=[3.0] * 8, input0=[2.0] * 8)

    assert asyncio.run(main()).tolist() == [6.0] * 8


def test_several_loops_one_after_the_other(product):
    async def main():
        return (await product.call_async([1.0] * 8, [1.0] * 8)).tolist()

    for _ in range(5):
        assert asyncio.run(main()) == [1.0] * 8


def test_cancellation(example):
    model = halyard.load(example("host_loop"), device="local-task")

    async def main():
        task = asyncio.create_task(model.double.call_async([1, 2, 3, 4], 30))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await model.double.call_async([1, 2, 3, -4], 5)).tolist()

    assert asyncio.run(main()) == [32, 64, 96, -128]


def test_threads_share_a_model(example, local_device):
    model = halyard.load(example("elementwise_mul"), device=local_device)
    failures = []

    def work(number):
        for i in range(200):
            y = model.mul([float(number)] * 8, [float(i)] * 8).tolist()
            if y != [float(number * i)] * 8:
                failures.append((number, i, y))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))  # raises their errors
    assert not failures


STATEFUL = """
vm.module @counter
vm.global.i32 mutable @count = 0 : i32
vm.export @next
vm.func @next() -> (i32) {
  %i0 = vm.global.load.i32 @count
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @count
  vm.return %i0
}
"""


@pytest.mark.parametrize("threads, expected", [("lock", [1, 2, 3, 4]), ("context", [1, 1, 1, 1])])
def test_state_of_threads(threads, expected):
    model = halyard.load(halyard.assemble(STATEFUL), threads=threads)
    seen = []

    def work():
        seen.append(model.next())

    for _ in range(4):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert sorted(seen) == expected


def test_the_interpreter_goes_on_while_a_program_runs(example):
    model = halyard.load(example("fib"), timeout=0.5)
    ticks = []

    def work():
        with pytest.raises(halyard.DeadlineExceededError):
            model.recursive(60)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        ticks.append(1)
        time.sleep(0.005)
    assert len(ticks) > 5


INTERRUPTED = """
import halyard, sys
model = halyard.load(sys.argv[1])
print("ready", flush=True)
try:
    model.recursive(60)
except KeyboardInterrupt:
    print("interrupted", model.recursive(10), flush=True)
"""


def test_ctrl_c_ends_a_long_call(example):
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, example("fib")], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert output == "interrupted 55\n" and process.returncode == 0


AT_EXIT = """
import halyard, threading, sys
model = halyard.load(sys.argv[1], device="local-task")
tensor = model.mul([1.0] * 8, [2.0] * 8)
view = memoryview(tensor)
@halyard.function("0ii_i")
def add(a, b): return a + b
sys.modules["kept"] = (model, tensor, view, add)
threading.Thread(target=lambda: [model.mul(tensor, tensor) for _ in range(100000)], daemon=True).start()
"""


def test_exit_while_things_are_held(example):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", AT_EXIT, example("elementwise_mul")], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


FUNCTIONS_AT_EXIT = """
import halyard, threading, time
@halyard.function("0i_i")
def count(i):
    time.sleep(0.001)
    return i + 1
model = halyard.load(halyard.assemble('''
vm.module @m
vm.import @host.count cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  vm.br ^bb1
^bb1:
  %i0 = vm.call @host.count(%i0)
  vm.br ^bb1
^bb2:
  vm.return %i0
}
'''), functions=[count])
threading.Thread(target=model.f, args=(0,), daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.parametrize("turn", range(5))
def test_exit_while_programs_call_python(turn):
    done = subprocess.run([sys.executable, "-c", FUNCTIONS_AT_EXIT], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=120)
    # The thread may still say that its call has failed.
    assert done.returncode == 0 and (done.stderr == "" or done.stderr.startswith("Exception in thread")), done.stderr
