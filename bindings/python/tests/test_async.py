"""Calls under asyncio and from several threads."""

import asyncio
import contextlib
import os
import pathlib
import re
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

    def work():
        with pytest.raises(halyard.DeadlineExceededError):
            model.recursive(60)

    def ticks():
        count = 0
        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            count += 1
            time.sleep(0.005)
        return count

    assert any(ticks() > 5 for _ in range(20))  # on a busy machine it may not come to so many


def after_ctrl_c(text, *arguments):
    """Runs a program that prints "ready" and then calls a model; returns what it prints after Ctrl-C."""
    for _ in range(20):
        process = subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.15)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=240)
        # On a busy machine, the signal may come before the `try` of the program.
        if process.returncode == 0 or "KeyboardInterrupt" not in errors:
            break
    assert process.returncode == 0, errors
    return output


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
    assert after_ctrl_c(INTERRUPTED, example("fib")) == "interrupted 55\n"


NESTED = """
import halyard, sys
inner = halyard.load(sys.argv[1])

@halyard.function("0i_i")
def work(x):
    WORK
    return x

outer = halyard.load(halyard.assemble(sys.argv[2]), functions=[work], timeout=60)
try:
    print("returned", outer.f(7), flush=True)
except KeyboardInterrupt:
    print("interrupted", inner.recursive(10), flush=True)
"""

CALLS_AND_COUNTS = """
vm.module @m
vm.import @host.work cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @host.work(%i0)
  %i1 = vm.const.i32 COUNT
  %i2 = vm.const.i32 STEP
  vm.br ^bb1
^bb1:
  %i1 = vm.sub.i32 %i1, %i2
  vm.cond_br %i1, ^bb1, ^bb2
^bb2:
  vm.return %i0
}
"""
ENDLESS = CALLS_AND_COUNTS.replace("COUNT", "1").replace("STEP", "0")
FINITE = CALLS_AND_COUNTS.replace("COUNT", "1000000").replace("STEP", "1")  # a cancelled call ends at a branch backwards


def test_ctrl_c_ends_a_call_after_its_function_has_made_another(example):
    text = NESTED.replace("WORK", "inner.recursive(10); print('ready', flush=True)")
    assert after_ctrl_c(text, example("fib"), ENDLESS) == "interrupted 55\n"


def test_ctrl_c_ends_only_the_innermost_call(example):
    text = NESTED.replace("WORK", """try:
        print("ready", flush=True)
        inner.recursive(60)
    except KeyboardInterrupt:
        print("caught", flush=True)""")
    for _ in range(20):  # on a busy machine, the signal may come before the inner call begins
        printed = after_ctrl_c(text, example("fib"), FINITE)
        if printed == "caught\nreturned 7\n":
            break
    assert printed == "caught\nreturned 7\n"


INTERRUPTED_LATER = """
import asyncio, halyard, signal, sys
model = halyard.load(sys.argv[1])
model.recursive(1)
WAY
print("ready", flush=True)
try:
    HOW
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("way, how", [
    # Jupyter does this for each cell.
    ("signal.signal(signal.SIGINT, signal.default_int_handler)", "model.recursive(60)"),
    ("signal.signal(signal.SIGINT, signal.default_int_handler)", "model.recursive(60, timeout=100)"),
    ("async def main(): model.recursive(60)", "asyncio.run(main())"),
    ("async def main(): await model.recursive.call_async(60)", "asyncio.run(main())"),
    ("async def main(): await model.recursive.call_async(60, timeout=100)", "asyncio.run(main())"),
    ("async def main(): await asyncio.gather(*[model.recursive.call_async(60) for _ in range(9)])", "asyncio.run(main())"),
    ("async def main(): await model.recursive.call_async(60)", "asyncio.new_event_loop().run_until_complete(main())"),
    ("import threading; threading.Thread(target=model.recursive, args=(60,), daemon=True).start()", "model.recursive(1)"),
])
def test_ctrl_c_ends_calls_everywhere(example, way, how):
    text = INTERRUPTED_LATER.replace("WAY", way).replace("HOW", how)
    assert after_ctrl_c(text, example("fib")) == "interrupted\n"


@pytest.mark.parametrize("how", ["model.never()", "model.never(timeout=100)", "asyncio.run(model.never.call_async())"])
def test_ctrl_c_ends_waits_for_devices(how):
    from test_timeout import NEVER

    text = INTERRUPTED_LATER.replace("sys.argv[1]", f"halyard.assemble({NEVER!r}), device='local-task'").replace("HOW", how)
    text = text.replace("model.recursive(1)\nWAY", "async def main(): await model.never.call_async()")
    if "asyncio" in how:
        text = text.replace(how, "asyncio.run(main())")
    assert after_ctrl_c(text) == "interrupted\n"


def test_a_handler_of_the_program_is_left_alone(example):
    text = INTERRUPTED_LATER.replace("WAY", "signal.signal(signal.SIGINT, lambda *_: print('handled', flush=True))")
    for _ in range(20):  # on a busy machine, the program may have ended before the signal comes
        printed = sorted(after_ctrl_c(text.replace("HOW", "print(model.recursive(35))"), example("fib")).split())
        if "handled" in printed:
            break
    assert printed == ["9227465", "handled"]


# ---- Calls that compute on the host: the event loop goes on, and they end when they should

def runs(coroutine, least=0):
    """Runs it while the loop counts; returns its outcome. It runs again if the loop has counted to no more than `least`, because it may
    not come to so many on a busy machine."""
    for _ in range(20):
        result, ticks = runs_once(coroutine)
        if ticks > least:
            return result
    raise AssertionError(f"the loop has counted to {ticks}, not to more than {least}")


def runs_once(coroutine):
    async def main():
        ticks = 0
        task = asyncio.ensure_future(coroutine())
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return task.exception() or task.result(), ticks

    return asyncio.run(main())


def test_the_loop_goes_on_while_a_program_computes(example):
    model = halyard.load(example("fib"))

    async def limited():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.recursive.call_async(60), 0.2)
        return await model.recursive.call_async(10)

    assert runs(limited, 10) == 55


def test_models_compute_at_the_same_time(example):
    """Each has a thread. None outlasts its use for long."""
    models = [halyard.load(example("fib")) for _ in range(3)]

    async def all_of_them():
        endless = [asyncio.ensure_future(model.recursive.call_async(60)) for model in models[1:]]
        await asyncio.sleep(0.05)
        assert sum(thread.name == "halyard" for thread in threading.enumerate()) >= 2
        result = await models[0].recursive.call_async(10)
        assert not any(task.done() for task in endless)
        for task in endless:
            task.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
        return result

    assert runs(all_of_them) == 55
    assert [model.recursive(10) for model in models] == [55] * 3


CALLS_PYTHON = """
vm.module @m
vm.import @host.work cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @host.work(%i0)
  vm.return %i0
}
"""


def calling(work):
    return halyard.load(halyard.assemble(CALLS_PYTHON), functions=[halyard.function("0i_i", name="work")(work)])


@contextlib.contextmanager
def held():
    """A model whose function another thread calls, and the thread. Its call returns when the context ends; others return at once."""
    has_begun, may_end = threading.Event(), threading.Event()

    def work(x):
        has_begun.set()
        return x if may_end.wait(240) else 0

    model = calling(work)
    thread = threading.Thread(target=model.f, args=(1,))
    thread.start()
    assert has_begun.wait(240)
    try:
        yield model, thread
    finally:
        may_end.set()
        thread.join()


@pytest.mark.parametrize("how, error", [("wait_for", TimeoutError), ("timeout", halyard.DeadlineExceededError)])
def test_a_python_function_that_sleeps_is_left_alone(how, error):
    goes_on = threading.Event()
    model = calling(lambda x: x if goes_on.wait(240) else 0)

    async def limited():
        with pytest.raises(error):
            if how == "timeout":
                await model.f.call_async(1, timeout=0.1)
            else:
                await asyncio.wait_for(model.f.call_async(1), 0.1)
        with pytest.raises(halyard.DeadlineExceededError, match="waited for another call of this model"):
            await model.f.call_async(2, timeout=0.05)
        goes_on.set()
        return await model.f.call_async(3)

    assert runs(limited) == 3


def test_cancellation_stops_kernels(example, local_device):
    """elementwise_mul with a kernel that does not end; local-sync runs it on the thread of the call."""
    text = pathlib.Path(example("elementwise_mul")).read_text()
    text = re.sub(r"(  vm\.func @mul\(%r0: !vm\.buffer.*\n)[^}]*}", r"\1    vm.br ^bb1\n  ^bb1:\n    vm.br ^bb1\n"
                  r"  ^bb2:\n    vm.return\n  }", text, count=1)
    model = halyard.load(halyard.assemble(text), device=local_device)

    async def limited():
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(model.mul.call_async([1.0] * 8, [1.0] * 8), 0.1)

    runs(limited, 5)


def test_cancellation_at_every_point(example):
    """Before the turn, before the first step, while it runs."""
    model = halyard.load(example("fib"))

    async def several():
        for delay in (None, 0, 0.001, 0.02):
            tasks = [asyncio.ensure_future(model.recursive.call_async(60)) for _ in range(3)]
            if delay is not None:
                await asyncio.sleep(delay)
            for task in reversed(tasks):
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 3
        return await model.recursive.call_async(10)

    assert runs(several) == 55
    assert model.recursive(10) == 55


def test_loops_of_two_threads_share_a_model(example):
    model = halyard.load(example("fib"))
    results = []

    def work():
        async def main():
            return await asyncio.gather(*[model.recursive.call_async(12) for _ in range(40)])

        results.extend(asyncio.run(main()))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    results.extend(model.recursive(12) for _ in range(40))
    for thread in threads:
        thread.join()
    assert results == [144] * 160


def test_the_loop_goes_on_while_another_thread_calls_the_model():
    async def waits():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.f.call_async(10), 0.2)

    with held() as (model, _):
        runs(waits, 10)
    assert asyncio.run(model.f.call_async(10)) == 10


def test_a_model_that_calls_itself_is_refused():
    def again(x):
        return asyncio.run(model.f.call_async(x)) if x > 1 else model.f(x)

    model = calling(again)
    for x in (1, 2):
        with pytest.raises(halyard.FailedPreconditionError, match="already runs another call"):
            model.f(x)
        with pytest.raises(halyard.FailedPreconditionError, match="already runs another call"):
            asyncio.run(model.f.call_async(x))

    async def blocking():
        waiting = asyncio.ensure_future(model.f.call_async(0))
        return await waiting

    model = calling(lambda x: x)
    assert asyncio.run(blocking()) == 0


def test_context_variables_reach_functions():
    import contextvars

    variable = contextvars.ContextVar("variable", default=0)
    model = calling(lambda x: variable.get())

    async def main():
        variable.set(7)
        return await model.f.call_async(1)

    assert asyncio.run(main()) == 7


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
                          text=True, env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=900)
    assert (done.returncode, done.stderr) == (0, "")


IN_A_SUBINTERPRETER = """
import _xxsubinterpreters
interpreter = _xxsubinterpreters.create(isolated=False)
_xxsubinterpreters.run_string(interpreter, '''
import asyncio, halyard, threading, time
model = halyard.load("FILE")
async def main():
    try:
        await asyncio.wait_for(model.recursive.call_async(60), 0.05)
    except TimeoutError:
        return await model.recursive.call_async(10)
print(asyncio.run(main()), flush=True)
while threading.active_count() > 1:
    time.sleep(0.01)
''')
_xxsubinterpreters.destroy(interpreter)
print("destroyed")
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="its subinterpreters are made in another way")
def test_subinterpreters_end(example):
    """They end only when they have no other thread."""
    done = subprocess.run([sys.executable, "-c", IN_A_SUBINTERPRETER.replace("FILE", example("fib"))], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=900)
    assert (done.returncode, done.stdout, done.stderr) == (0, "55\ndestroyed\n", "")


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
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=900)
    # The thread may still say that its call has failed.
    assert done.returncode == 0 and (done.stderr == "" or done.stderr.startswith("Exception in thread")), done.stderr


# ---- Steps of a call

YIELDS = """
vm.module @m
vm.dependency @hal 7
vm.import @hal.fence.signal cconv "0r_v"
vm.export @now
vm.func @now(%i0: i32) -> (i32) {
  vm.yield ^bb1
^bb1:
  vm.return %i0
}
vm.export @pause
vm.attr @pause "iree.abi.model" "coarse-fences"
vm.func @pause(%r0: !vm.ref, %r1: !vm.ref) -> () {
  vm.yield ^bb1
^bb1:
  vm.return
}
vm.export @signals
vm.attr @signals "iree.abi.model" "coarse-fences"
vm.func @signals(%i0: i32, %r0: !vm.ref, %r1: !vm.ref) -> (i32) {
  vm.yield ^bb1
^bb1:
  vm.call @hal.fence.signal(%r1)
  vm.return %i0
}
"""

YIELDED, WAITS, DONE = 1, 2, 0


def begun(name, *arguments):
    """A call that has yielded, and its model."""
    model = halyard.load(halyard.assemble(YIELDS), device="local-sync")
    call = halyard.Call(model[name], halyard.Waker(), 1)
    assert call.enter() and call.begin(*arguments) == YIELDED
    return call, model


def test_results_are_refused_until_the_call_is_done():
    call, model = begun("now", 7)
    with pytest.raises(halyard.FailedPreconditionError, match="not done"):
        call.results()
    with pytest.raises(halyard.FailedPreconditionError, match="already runs another call"):
        model.now(1)  # the call still holds the model
    assert call.resume() == DONE and call.results() == 7
    assert model.now(1) == 1


def test_results_are_refused_until_an_asynchronous_call_is_done():
    call, _ = begun("pause")
    with pytest.raises(halyard.FailedPreconditionError, match="not done"):
        call.results()
    assert call.resume() == WAITS  # nothing signals its fence
    assert call.poll() == WAITS
    call.close()


def waiting_for_results(call):
    """A thread in results(), and the list in which it leaves its exception."""
    failures = []

    def work():
        try:
            call.results()
        except halyard.Error as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive() and not is_in_results(call):
        time.sleep(0.01)
    return thread, failures


def is_in_results(call):
    try:
        call.poll()
    except halyard.FailedPreconditionError as error:
        assert "another thread runs" in str(error)
        return True
    return False


@pytest.mark.parametrize("end", ["close", "cancel"])
def test_results_end_when_another_thread_ends_the_call(end):
    for _ in range(3):
        call, model = begun("pause")
        assert call.resume() == WAITS  # nothing signals its fence
        thread, failures = waiting_for_results(call)
        for step in (call.results, call.resume):
            with pytest.raises(halyard.FailedPreconditionError, match="another thread runs"):
                step()
        getattr(call, end)()
        thread.join(240)
        assert not thread.is_alive() and isinstance(failures[0], halyard.CancelledError)
        del call
        assert model.now(1) == 1  # the call has left the model


@contextlib.contextmanager
def signalled_in_results(call, handler):
    """A signal with this handler, when the main thread is in results()."""
    before, main = signal.signal(signal.SIGALRM, handler), threading.get_ident()

    def work():
        while not is_in_results(call):
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGALRM)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(240)
        signal.signal(signal.SIGALRM, before)


def test_signals_end_results():
    call, _ = begun("pause")
    assert call.resume() == WAITS  # nothing signals its fence

    def interrupt(*_):
        raise KeyboardInterrupt

    with signalled_in_results(call, interrupt), pytest.raises(KeyboardInterrupt):
        call.results()
    assert call.poll() == WAITS
    with signalled_in_results(call, lambda *_: call.close()), pytest.raises(halyard.CancelledError, match="closed"):
        call.results()


def test_a_cancelled_call_that_waits_for_its_fence_has_ended():
    call, model = begun("pause")
    assert call.resume() == WAITS
    call.cancel()
    with pytest.raises(halyard.CancelledError):
        call.poll()
    assert model.now(1) == 1


@pytest.mark.parametrize("name", ["now", "signals"])
def test_a_call_is_not_resumed_after_its_end(name):
    call, _ = begun(name, 7)
    assert call.resume() == DONE
    with pytest.raises(halyard.FailedPreconditionError):
        call.resume()
    assert call.results() == 7
    for step in (call.results, call.resume):
        with pytest.raises(halyard.FailedPreconditionError):
            step()


def test_a_call_without_results():
    """One that was not begun, or whose time passed while it waited."""
    model = halyard.load(halyard.assemble(YIELDS), device="local-sync")
    call = halyard.Call(model.pause, halyard.Waker(), 1, time.monotonic_ns() + 100_000_000)
    assert call.enter()
    with pytest.raises(halyard.DeadlineExceededError):
        call.begin()
        call.resume()
        while call.poll() == WAITS:  # nothing signals its fence
            time.sleep(0.01)
    with pytest.raises(halyard.FailedPreconditionError, match="no results to take"):
        call.results()
    call = halyard.Call(model.now, halyard.Waker(), 1)
    assert call.enter()
    with pytest.raises(halyard.FailedPreconditionError, match="no results to take"):
        call.results()
    assert call.begin(3) == YIELDED  # the refused results() has kept the turn


def test_steps_of_a_call_run_one_at_a_time():
    has_begun, may_end = threading.Event(), threading.Event()

    def work(x):
        has_begun.set()
        return x if may_end.wait(240) else 0

    call = halyard.Call(calling(work).f, halyard.Waker(), 1)
    assert call.enter()
    thread = threading.Thread(target=call.begin, args=(5,))
    thread.start()
    assert has_begun.wait(240)
    for step in (call.results, call.resume):
        with pytest.raises(halyard.FailedPreconditionError, match="another thread runs"):
            step()
    may_end.set()
    thread.join()
    assert call.results() == 5
