"""Time limits of single calls, and calls of asynchronous functions, which wait for their work."""

import asyncio
import pathlib
import re
import time

import pytest

import halyard


@pytest.fixture
def fib(example):
    return halyard.load(example("fib"))


def test_a_call_ends_at_its_limit(fib):
    begin = time.monotonic()
    with pytest.raises(halyard.DeadlineExceededError, match="deadline") as caught:
        fib.recursive(60, timeout=0.05)
    assert isinstance(caught.value, TimeoutError) and 0.05 <= time.monotonic() - begin
    assert fib.recursive(10) == 55  # without a limit again


def test_a_limit_that_is_long_enough(fib):
    assert fib.recursive(10, timeout=60) == 55
    assert fib.recursive(10, timeout=None) == 55
    assert fib.recursive(10, timeout=float("inf")) == 55
    assert fib.recursive(10, timeout=1e300) == 55


def test_no_time_at_all(fib):
    with pytest.raises(halyard.DeadlineExceededError):
        fib.recursive(60, timeout=0)
    assert fib.recursive(10) == 55


def test_the_shorter_limit_counts(example):
    model = halyard.load(example("fib"), timeout=0.05)
    with pytest.raises(halyard.DeadlineExceededError):
        model.recursive(60, timeout=60)
    with pytest.raises(halyard.DeadlineExceededError):
        halyard.load(example("fib"), timeout=60).recursive(60, timeout=0.05)


def test_the_dict_of_the_caller_is_left_alone(fib):
    keywords = {"timeout": 60}
    fib.recursive(10, **keywords)
    fib.recursive.__call__(10, **keywords)
    assert keywords == {"timeout": 60}


@pytest.mark.parametrize("wrong, error", [("1", TypeError), ([], TypeError), (-1, ValueError), (float("nan"), ValueError)])
def test_wrong_limits(fib, wrong, error):
    with pytest.raises(error, match="recursive.*timeout must be"):
        fib.recursive(10, timeout=wrong)
    with pytest.raises(error, match="recursive.*timeout must be"):
        fib.recursive.call_async(10, timeout=wrong)


def test_arguments_by_name_and_a_limit(product):
    assert product(input1=[3.0] * 8, input0=[2.0] * 8, timeout=60).tolist() == [6.0] * 8
    with pytest.raises(TypeError, match="unknown or too many arguments"):
        product([2.0] * 8, input1=[3.0] * 8, timeouts=1)


DECLARES_TIMEOUT = """
vm.module @m
vm.export @f
vm.attr @f "iree.abi.declaration" "sync func @f(%timeout: i32) -> (%output0: i32)"
vm.func @f(%i0: i32) -> (i32) {
  vm.return %i0
}
"""


def test_a_function_may_have_an_argument_of_that_name():
    model = halyard.load(halyard.assemble(DECLARES_TIMEOUT))
    assert model.f(timeout=7) == 7


def test_waiting_for_another_thread_counts():
    from test_async import held

    with held() as (model, thread):
        with pytest.raises(halyard.DeadlineExceededError, match="waited for another call of this model"):
            model.f(10, timeout=0.05)
        assert thread.is_alive()
    assert model.f(10) == 10


def test_asyncio(fib):
    async def main():
        with pytest.raises(halyard.DeadlineExceededError):
            await fib.recursive.call_async(60, timeout=0.05)
        return await fib.recursive.call_async(10, timeout=60)

    assert asyncio.run(main()) == 55


# ---- Asynchronous functions: they return before their work is done

@pytest.fixture
def asynchronous(fixtures, local_device):
    return halyard.load(fixtures / "compiled" / "simple_mul.async.vmfb", device=local_device)


NEVER = """
vm.module @never
vm.dependency @hal 7
vm.import @hal.devices.count cconv "0v_i"
vm.export @never
vm.attr @never "iree.abi.model" "coarse-fences"
vm.func @never(%r0: !hal.fence, %r1: !hal.fence) -> () {
  vm.return
}
"""


def test_work_that_is_never_done(local_device):
    model = halyard.load(halyard.assemble(NEVER), device=local_device)
    for _ in range(3):  # the handle of a call that was stopped serves the next
        with pytest.raises(halyard.DeadlineExceededError):
            model.never(timeout=0.05)

    async def main():
        for _ in range(20):  # on a busy machine it may not come to so many
            ticks = 0
            task = asyncio.create_task(model.never.call_async(timeout=0.2))
            while not task.done():
                await asyncio.sleep(0.01)
                ticks += 1
            with pytest.raises(halyard.DeadlineExceededError):
                await task
            if ticks > 5:
                break
        assert ticks > 5  # the loop goes on
        task = asyncio.create_task(model.never.call_async())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_asyncio_waiting_for_another_call_counts(local_device):
    model = halyard.load(halyard.assemble(NEVER), device=local_device)

    async def main():
        first = asyncio.create_task(model.never.call_async())
        await asyncio.sleep(0.01)
        with pytest.raises(halyard.DeadlineExceededError, match="waited for another call of this model"):
            await model.never.call_async(timeout=0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(halyard.DeadlineExceededError, match="waited for the device|fence|deadline"):
            await model.never.call_async(timeout=0.05)

    asyncio.run(main())


def test_kernels_are_stopped(example, local_device):
    """elementwise_mul with a kernel that does not end."""
    text = pathlib.Path(example("elementwise_mul")).read_text()
    text = re.sub(r"(  vm\.func @mul\(%r0: !vm\.buffer.*\n)[^}]*}", r"\1    vm.br ^bb1\n  ^bb1:\n    vm.br ^bb1\n"
                  r"  ^bb2:\n    vm.return\n  }", text, count=1)
    model = halyard.load(halyard.assemble(text), device=local_device)
    with pytest.raises(halyard.DeadlineExceededError):
        model.mul([1.0] * 8, [1.0] * 8, timeout=0.1)
    with pytest.raises(halyard.DeadlineExceededError):
        asyncio.run(model.mul.call_async([1.0] * 8, [1.0] * 8, timeout=0.1))


def test_asynchronous_functions(asynchronous):
    function = getattr(asynchronous, asynchronous.functions[0])
    assert function([2.0] * 4, [3.0] * 4, timeout=60).tolist() == [6.0] * 4

    async def main():
        return await asyncio.gather(*[function.call_async([float(i)] * 4, [3.0] * 4, timeout=60) for i in range(50)])

    assert [y.tolist() for y in asyncio.run(main())] == [[3.0 * i] * 4 for i in range(50)]
