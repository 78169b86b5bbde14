"""Functions of Python that programs import."""

import asyncio
import gc
import threading
import weakref

import pytest

import halyard

TEXT = """
vm.module @m
vm.import @host.add cconv "0iIfF_iIfF"
vm.import @host.pass cconv "0r_r"
vm.export @f
vm.func @f(%i0: i32, %i2:3: i64, %i4: f32, %i6:7: f64) -> (i32, i64, f32, f64) {
  %i0, %i2:3, %i4, %i6:7 = vm.call @host.add(%i0, %i2:3, %i4, %i6:7)
  vm.return %i0, %i2:3, %i4, %i6:7
}
vm.export @g
vm.func @g(%r0: !vm.buffer) -> (!vm.buffer) {
  %r0 = vm.call @host.pass(%r0)
  vm.return %r0
}
"""


def model_with(add, pass_=lambda thing: thing):
    functions = [halyard.function("0iIfF_iIfF", name="add")(add), halyard.function("0r_r", name="pass")(pass_)]
    return halyard.load(halyard.assemble(TEXT), functions=functions)


def test_values_go_both_ways():
    model = model_with(lambda i, j, x, y: (i + 1, j + 2, x + 0.5, y * 2))
    assert model.f(1, 2**40, 1.0, 2.0) == (2, 2**40 + 2, 1.5, 4.0)
    assert model.g(None) is None


def test_the_decorator_keeps_the_function():
    @halyard.function("0ii_i")
    def add(a, b):
        """Sum."""
        return a + b

    assert add(1, 2) == 3 and add.__doc__ == "Sum." and "host.add" in repr(add)


@pytest.mark.parametrize("returned, error, message", [
    ((1, 2, 3), ValueError, "returned 3 values"), ((2**40, 0, 0, 0), OverflowError, "does not fit"),
    (("x", 0, 0, 0), TypeError, "must be a number"), (5, TypeError, "iterable")])
def test_wrong_results(returned, error, message):
    with pytest.raises(error, match=message):
        model_with(lambda *_: returned).f(1, 2, 3, 4)


def calls(model):
    """Both ways to call the function."""
    return [lambda: model.f(1, 2, 3, 4), lambda: asyncio.run(model.f.call_async(1, 2, 3, 4))]


class Own(Exception):
    def __init__(self, one, two):
        super().__init__(one)
        self.two = two


@pytest.mark.parametrize("error", [KeyError("nothing here"), ValueError(), Own(1, 2), KeyboardInterrupt("key"), SystemExit(3),
                                   GeneratorExit(), MemoryError(), UnicodeDecodeError("utf-8", b"x", 0, 1, "no"),
                                   halyard.NotFoundError("no such key")])
def test_exceptions_of_functions_pass_through_programs(error):
    def fail(*_):
        raise error from LookupError("the reason")

    model = model_with(fail)
    for call in calls(model):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error and str(error.__cause__) == "the reason"
        assert [entry.name for entry in caught.traceback][-1] == "fail"
        assert any("host.add" in note for note in error.__notes__)
    if isinstance(error, halyard.Error):
        assert any("host.add" in line for line in error.trace)


def test_only_the_exception_of_the_call_passes():
    """What a function catches, and failures of the program itself, are not mixed up."""
    def fails(*_):
        raise KeyError("inner")

    inner = model_with(fails)

    def catches(*_):
        with pytest.raises(KeyError):
            inner.f(1, 2, 3, 4)
        raise halyard.OutOfRangeError("KeyError: 'other'")

    with pytest.raises(halyard.OutOfRangeError, match="other") as caught:
        model_with(catches).f(1, 2, 3, 4)
    assert isinstance(caught.value.__context__, (KeyError, type(None)))

    def passes_on(*_):
        return inner.f(1, 2, 3, 4)

    with pytest.raises(KeyError, match="inner") as caught:
        model_with(passes_on).f(1, 2, 3, 4)
    assert sum("host.add" in note for note in caught.value.__notes__) == 2


def test_stop_iteration_of_an_awaited_call():
    def fail(*_):
        next(iter(()))

    with pytest.raises(StopIteration):
        model_with(fail).f(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="StopIteration"):  # as from any coroutine
        asyncio.run(model_with(fail).f.call_async(1, 2, 3, 4))


def test_an_exception_of_initialization():
    text = TEXT.replace("vm.export @g", """vm.export @__init
vm.func @__init() -> () {
  %i0 = vm.const.i32.zero
  %i2:3 = vm.const.i64.zero
  %i4 = vm.const.f32.zero
  %i6:7 = vm.const.f64.zero
  %i0, %i2:3, %i4, %i6:7 = vm.call @host.add(%i0, %i2:3, %i4, %i6:7)
  vm.return
}
vm.export @g""")
    with pytest.raises(ZeroDivisionError):
        halyard.load(halyard.assemble(text), functions=[
            halyard.function("0iIfF_iIfF", name="add")(lambda *_: 1 // 0), halyard.function("0r_r", name="pass")(lambda x: x)])


def test_exceptions_are_not_kept():
    class Kept(Exception):
        pass

    def fail(*_):
        raise Kept

    for call in calls(model_with(fail)):
        with pytest.raises(Kept) as caught:
            call()
        gone = threading.Event()
        weakref.finalize(caught.value, gone.set)
        del caught
        for _ in range(1000):  # the thread of an asynchronous call may still be leaving it
            gc.collect()
            if gone.wait(0.01):
                break
        assert gone.is_set()


def test_a_failure_keeps_its_code():
    inner = halyard.load(halyard.assemble("""
vm.module @inner
vm.export @f
vm.func @f() -> () {
  %i0 = vm.const.i32 11
  vm.fail %i0, "too far"
}
"""))
    with pytest.raises(halyard.OutOfRangeError, match="too far"):
        model_with(lambda *_: inner.f()).f(1, 2, 3, 4)


def test_functions_raise_errors_of_their_choice():
    def fail(*_):
        raise halyard.NotFoundError("no such key")

    with pytest.raises(halyard.NotFoundError, match="^no such key") as caught:
        model_with(fail).f(1, 2, 3, 4)
    assert caught.value.message == "no such key" and any("host.add" in line for line in caught.value.trace)
    made = halyard.NotFoundError("no such key")
    assert (made.code, made.name, made.message, made.trace) == (5, "NOT_FOUND", "no such key", [])
    assert halyard.Error("text").name == "UNKNOWN"


def test_missing_function():
    with pytest.raises(halyard.NotFoundError, match="host"):
        halyard.load(halyard.assemble(TEXT))


def test_callables_go_with_the_model():
    class Callable:
        def __call__(self, *arguments):
            return arguments

    callable = Callable()
    gone = weakref.ref(callable)
    model = model_with(callable)
    model.f(1, 2, 3, 4)
    del callable, model
    gc.collect()
    assert gone() is None


def test_wrong_conventions():
    with pytest.raises(halyard.UnimplementedError, match="'nonsense'") as caught:
        halyard.load(halyard.assemble(TEXT), functions=[halyard.function("nonsense", name="add")(lambda: 0)])
    assert any("'add' of native module 'host'" in line for line in caught.value.trace)
    with pytest.raises(TypeError, match="@halyard.function"):
        halyard.load(halyard.assemble(TEXT), functions=[lambda: 0])
