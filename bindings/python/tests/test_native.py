"""Functions of Python that programs import."""

import gc
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


@pytest.mark.parametrize("returned, error", [((1, 2, 3), "returned 3 values"), ((2**40, 0, 0, 0), "does not fit"),
                                             (("x", 0, 0, 0), "TypeError"), (5, "TypeError")])
def test_wrong_results(returned, error):
    with pytest.raises(halyard.Error, match=error):
        model_with(lambda *_: returned).f(1, 2, 3, 4)


def test_exceptions_become_failures():
    def fail(*_):
        raise KeyError("nothing here")

    with pytest.raises(halyard.UnknownError, match="KeyError: 'nothing here'") as caught:
        model_with(fail).f(1, 2, 3, 4)
    assert any("host.add" in line for line in caught.value.trace)

    def out_of_range(*_):
        raise ValueError

    with pytest.raises(halyard.Error, match="ValueError"):
        model_with(out_of_range).f(1, 2, 3, 4)


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

    with pytest.raises(halyard.NotFoundError, match="NOT_FOUND; no such key") as caught:
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
