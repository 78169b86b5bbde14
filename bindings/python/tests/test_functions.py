"""What a function says about itself, where its results go, and the end of a model."""

import array
import asyncio
import gc
import inspect
import json
import os
import subprocess
import sys
import threading
import time
import types
import weakref

import pytest

import halyard
from test_values import structured

np = pytest.importorskip("numpy")

DECLARED = """
vm.module @m
vm.export @f
vm.attr @f "iree.abi.declaration" "sync func @f(%x: tensor<2x?xf32>, %n: i8, %input.1: f64, %y: tensor<bf16>) -> (%y0: tensor<?xi1>, %count: i64)"
vm.func @f(%r0: !vm.buffer, %i0: i32, %i2:3: f64, %r1: !vm.buffer) -> (!vm.buffer, i64) {
  %i2:3 = vm.const.i64.zero
  vm.return %r0, %i2:3
}
vm.export @plain
vm.func @plain(%r0: !vm.buffer, %i0: i32) -> () {
  vm.return
}
vm.export @claims
vm.attr @claims "iree.abi.declaration" "sync func @claims(%out: i32, %timeout: i32) -> (%r: i32)"
vm.func @claims(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.sub.i32 %i0, %i1
  vm.return %i0
}
"""


@pytest.fixture(params=["lock", "context"])
def declared(request):
    return halyard.load(halyard.assemble(DECLARED), threads=request.param)


def test_inputs_and_outputs(declared, product):
    f = declared.f
    assert f.inputs == (("x", "tensor", "float32", (2, None)), ("n", "number", "int8", ()), ("input.1", "number", "float64", ()),
                        ("y", "tensor", "bfloat16", ()))
    assert f.outputs == (("y0", "tensor", "bool", (None,)), ("count", "number", "int64", ()))
    assert f.inputs[0].name == "x" and f.inputs[0].shape == (2, None) and isinstance(f.inputs, tuple)
    assert [str(info) for info in f.inputs] == ["float32[2, ?]", "int8", "float64", "bfloat16[]"]
    assert declared.plain.inputs == (("arg0", "object", None, None), ("arg1", "number", "int32", ()))
    assert declared.plain.outputs == ()
    assert [info.name for info in product.inputs + product.outputs] == ["input0", "input1", "output0"]
    # Enough to make arguments of.
    assert product(**{info.name: np.ones(info.shape, info.dtype) for info in product.inputs}).tolist() == [1.0] * 8


def test_signatures(declared, product):
    assert str(inspect.signature(product)) == ("(input0: halyard.Tensor, input1: halyard.Tensor, *, timeout: float | None = None, "
                                               "out: Any = None) -> halyard.Tensor")
    bound = inspect.signature(product).bind(1, input1=2, timeout=3)
    assert bound.arguments == {"input0": 1, "input1": 2, "timeout": 3}
    found = inspect.signature(declared.f)
    assert list(found.parameters) == ["x", "n", "input_1_2", "y", "timeout", "out"]
    assert [parameter.kind.name for parameter in found.parameters.values()] == ["POSITIONAL_ONLY"] * 3 + [
        "POSITIONAL_OR_KEYWORD"] + ["KEYWORD_ONLY"] * 2
    assert found.parameters["n"].annotation is int and found.return_annotation == tuple[halyard.Tensor, int]
    assert list(inspect.signature(declared.claims).parameters) == ["out", "timeout"]
    assert inspect.signature(declared.plain).return_annotation is None


def test_docstrings(declared, product):
    assert product.__doc__.splitlines()[0] == "mul(input0, input1)"
    assert "Arguments:\n    input0  float32[8]\n    input1  float32[8]\n\nReturns:\n    output0  float32[8]" in product.__doc__
    for line in ("    x        float32[2, ?]", "    n        int8", "    y0     bool[?]", "sync func @f("):
        assert line in declared.f.__doc__
    import pydoc

    assert "float32[2, ?]" in pydoc.render_doc(declared.f)
    assert "Returns" not in declared.plain.__doc__


def test_structures_say_their_places():
    f = halyard.load(halyard.assemble(structured())).f
    assert [info.name for info in f.inputs] == ["x['a']", "x['b'][0]", "x['b'][1]", "arg1"]
    assert [info.name for info in f.outputs] == ["result0['sum']", "result0['pair'][0]", "result0['pair'][1]"]
    assert str(inspect.signature(f)).startswith("(x: dict, arg1: int, /, *")
    assert f.__doc__.splitlines()[0] == "f(x, arg1)"


def test_lists_say_what_is_in_them():
    from halyard._signature import Signature

    abi = {"a": [["py_homogeneous_list", "i64"], ["py_homogeneous_list", ["ndarray", "f32", 1, None]]], "r": [], "v": 1}
    about = Signature({"name": "f", "convention": "0rr_v", "is_async": False, "result_count": 0, "declaration": "",
                       "attributes": {"iree.abi": json.dumps(abi)}})
    assert [tuple(info) for info in about.inputs] == [("arg0", "list", "int64", ()), ("arg1", "list", "float32", (None,))]
    assert str(about.inputs[1]) == "list of float32[?]"
    assert about.python_signature.parameters["arg0"].annotation is list


def test_the_import_stays_small():
    text = "import halyard, sys; print([name for name in ('numpy', 'asyncio', 'inspect') if name in sys.modules])"
    from conftest import BUILD

    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.stdout == "[]\n", done.stderr


# ---- Results in arrays of the caller

def both(function):
    """The function, called both ways."""
    return [function, lambda *arguments, **keywords: asyncio.run(awaited(function, arguments, keywords))]


async def awaited(function, arguments, keywords):
    return await function.call_async(*arguments, **keywords)


def test_out(product):
    for call in both(product):
        for target in (np.zeros(8, np.float32), np.zeros((8, 2), np.float32)[:, 1], array.array("f", [0] * 8),
                       halyard.Tensor([0.0] * 8)):
            assert call([2.0] * 8, [3.0] * 8, out=target) is target and list(target) == [6.0] * 8
        with pytest.raises(halyard.InvalidArgumentError, match=r"mul\(\): argument 'out' has elements of type uint8"):
            call([2.0] * 8, [3.0] * 8, out=bytearray(32))
        assert call([2.0] * 8, [3.0] * 8, out=None).tolist() == [6.0] * 8
        x = np.full(8, 2, np.float32)
        assert call(x, x, timeout=60, out=x) is x and x.tolist() == [4.0] * 8
        assert call(x, x, out=[x]) is x and x.tolist() == [16.0] * 8
        with pytest.raises(halyard.InvalidArgumentError, match=r"argument 'out' has shape \(4,\), expected \(8,\)"):
            call(x, x, out=x[:4])
        with pytest.raises(halyard.InvalidArgumentError, match="'out' has elements of type float64, expected float32"):
            call(x, x, out=np.zeros(8))
        with pytest.raises(TypeError, match="out must be an array"):
            call(x, x, out=(x, x))
        with pytest.raises(TypeError, match="argument 'out' must be a writable array, not <class 'int'>"):
            call(x, x, out=5)
        for read_only in (bytes(32), np.broadcast_to(np.float32(1), (8,))):
            with pytest.raises(halyard.InvalidArgumentError, match="argument 'out' is read-only"):
                call(x, x, out=read_only)


def test_a_function_is_closed_after_its_model(example):
    model = halyard.load(example("fib"))
    function = model.iterative
    with pytest.raises(halyard.FailedPreconditionError, match="close the model"):
        function.close()
    assert function(10) == 55
    model.close()
    function.close()


SEVERAL = """
vm.module @m
vm.dependency @hal 7
vm.type !hal.buffer_view
vm.import @host.work cconv "0_rri"
vm.export @f
vm.attr @f "iree.abi" ABI
vm.func @f() -> (!hal.buffer_view, !hal.buffer_view, i32) {
  %r0, %r1, %i0 = vm.call @host.work()
  vm.return %r0, %r1, %i0
}
"""


@pytest.mark.parametrize("abi", [None, {"a": [], "r": [["stuple", ["ndarray", "f32", 1, 2], ["ndarray", "f32", 1, 2]], "i32"], "v": 1}])
def test_out_for_several_results(abi):
    text = SEVERAL.replace('vm.attr @f "iree.abi" ABI\n', "") if abi is None else SEVERAL.replace(
        "ABI", 'e"' + json.dumps(abi).replace('"', '\\"') + '"')
    work = halyard.function("0_rri", name="work")(lambda: (np.float32([1, 2]), np.float32([3, 4]), 5))
    model = halyard.load(halyard.assemble(text), functions=[work])
    x = np.zeros(2, np.float32)
    for call in both(model.f):
        given = call(out=(None, x, None))
        first, second, third = given if abi is None else (*given[0], given[1])
        assert (first.tolist(), second is x, x.tolist(), third) == ([1.0, 2.0], True, [3.0, 4.0], 5)
        with pytest.raises(TypeError, match="a tuple of arrays or None, for 3 results"):
            call(out=x)
        with pytest.raises(TypeError, match="a result that is no tensor"):
            call(out=(None, None, x))


def test_arguments_that_have_these_names(declared):
    assert declared.claims(out=9, timeout=2) == 7 and declared.claims(9, 2) == 7


# ---- The end of a model

def test_with(example, local_device):
    instance = halyard.Instance(count_objects=True)
    with halyard.load(example("elementwise_mul"), device=local_device, instance=instance) as model:
        f = model.mul
        y = f([2.0] * 8, [3.0] * 8)
        device = model.devices[0]
    assert y.tolist() == [6.0] * 8 and "closed" not in repr(y)
    model.close()  # again
    for use in (lambda: f([1.0] * 8, [1.0] * 8), lambda: asyncio.run(f.call_async([1.0] * 8, [1.0] * 8)), lambda: model.mul([1.0] * 8, [1.0] * 8)):
        with pytest.raises(halyard.FailedPreconditionError, match="the model is closed"):
            use()
    assert f.inputs[0].shape == (8,) and model.devices == []
    del y
    live = device.objects()
    assert not any(count for name, count in live.items() if name.startswith("hal.") and name != "hal.device"), live
    with pytest.raises(ZeroDivisionError):
        with halyard.load(example("elementwise_mul"), device=local_device):
            1 // 0


def test_functions_of_a_closed_model(example):
    model = halyard.load(example("fib"))
    model.close()
    for use in (lambda: model.recursive, lambda: model["recursive"]):
        with pytest.raises(halyard.FailedPreconditionError, match="the model is closed"):
            use()
    assert "recursive" in model.functions


def test_close_waits_for_the_call_under_way():
    from test_async import calling

    has_begun, results = threading.Event(), []

    def work(x):
        has_begun.set()
        time.sleep(0.1)  # close() waits meanwhile
        return x

    model = calling(work)
    thread = threading.Thread(target=lambda: results.append(model.f(7)))
    thread.start()
    has_begun.wait()
    model.close()
    thread.join()
    assert results == [7]


def test_close_within_a_call():
    from test_async import CALLS_PYTHON

    def work(x):
        with pytest.raises(halyard.FailedPreconditionError, match="already runs"):
            model.close()
        return x

    model = halyard.load(halyard.assemble(CALLS_PYTHON), functions=[halyard.function("0i_i", name="work")(work)])
    assert model.f(3) == 3

    async def main():
        waits = [asyncio.ensure_future(model.f.call_async(x)) for x in range(3)]
        await asyncio.gather(*waits)
        model.close()
        with pytest.raises(halyard.FailedPreconditionError, match="the model is closed"):
            await model.f.call_async(1)

    asyncio.run(main())


def test_close_of_every_thread(example):
    model = halyard.load(example("fib"), threads="context")
    ready, go_on, seen = threading.Event(), threading.Event(), []

    def work():
        assert model.recursive(10) == 55
        ready.set()
        go_on.wait()
        with pytest.raises(halyard.FailedPreconditionError) as caught:
            model.recursive(10)
        seen.append(caught.value)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    model.close()
    go_on.set()
    thread.join()
    assert "closed" in str(seen[0])
    other = threading.Thread(target=lambda: seen.append(pytest.raises(halyard.FailedPreconditionError, model.recursive, 10)))
    other.start()
    other.join()
    assert len(seen) == 2


def test_nothing_keeps_a_model(example):
    model = halyard.load(example("elementwise_mul"), device="local-sync")
    model.mul([1.0] * 8, [1.0] * 8)
    inspect.signature(model.mul), model.mul.__doc__
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_trace_ends_with_its_block(example, tmp_path):
    with halyard.Trace(tmp_path / "t.trace") as trace:
        halyard.load(example("fib"), instance=halyard.Instance(trace=trace)).recursive(5)
    assert (tmp_path / "t.trace").stat().st_size > 100 and isinstance(trace.totals(), dict)


def test_a_function_may_be_named_like_a_method():
    text = "vm.module @m\nvm.export @close\nvm.func @close() -> (i32) {\n  %i0 = vm.const.i32 7\n  vm.return %i0\n}\n"
    model = halyard.load(halyard.assemble(text))
    assert model["close"]() == 7 and isinstance(model.close, types.MethodType)


IDENTITY = """
vm.module @m
vm.type !hal.buffer_view
vm.export @f
vm.attr @f "KEY" VALUE
vm.func @f(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  vm.return %R0
}
"""


def described(key, value):
    return halyard.load(halyard.assemble(IDENTITY.replace("KEY", key).replace("VALUE", 'e"' + value.replace('"', '\\"') + '"'))).f


@pytest.mark.parametrize("kind", [
    5, None, [], [5], {"a": 1}, ["ndarray", "f32", "x"], ["ndarray", 5, 0], ["ndarray", "f32", 1, "x"], ["ndarray", "f32", 1, -7],
    ["ndarray", "f32", 1, 2**70], ["ndarray", "f32", 1.5, 2], ["ndarray", "f" + "9" * 5000, 0], ["named", 5, "f32"], ["named", "x"],
    ["sdict", 5], ["sdict", ["a", "b", "c"]], ["py_homogeneous_list"], ["py_homogeneous_list", 5]], ids=lambda kind: str(kind)[:30])
def test_descriptions_of_unknown_form_are_left_out(kind):
    function = described("iree.abi", json.dumps({"a": [kind], "r": [["ndarray", "f32", 0]]}))
    assert function(1.5).item() == 1.5
    assert list(inspect.signature(function).parameters) == ["arg0", "timeout", "out"] and "arg0" in function.__doc__


def test_descriptions_that_are_too_deep_are_left_out():
    for deep in ('["named","x",' * 3000 + '"f32"' + "]" * 3000, "[" * 20000 + "]" * 20000):
        assert described("iree.abi", '{"a":[' + deep + '],"r":[["ndarray","f32",0]]}')(1.5).item() == 1.5


@pytest.mark.parametrize("declared", ["tensor<" + "9" * 30 + "xf32>", "tensor<" + "9" * 5000 + "xf32>", "tensor<f999999999999>"])
def test_declared_types_that_no_tensor_has_are_unknown(declared):
    assert described("iree.abi.declaration", f"func @f(%x: {declared}) -> (tensor<f32>)")(1.5).item() == 1.5


@pytest.mark.parametrize("name, parameter", [("class", "class_0"), ("1", "arg1_0"), ("a.b", "a_b_0"), ("x", "x")])
def test_names_that_python_does_not_have(name, parameter):
    function = described("iree.abi.declaration", f"func @f(%{name}: tensor<f32>) -> (tensor<f32>)")
    assert next(iter(inspect.signature(function).parameters)) == parameter
    assert function(**{name: 1.5}).item() == 1.5
