"""Messages name what Python's users know: arguments of Python, scopes and keys, but no options of tools and no constants of C."""

import pathlib
import re

import pytest

import halyard
from test_async import CALLS_PYTHON
from test_parameters import W, load

np = pytest.importorskip("numpy")


def message_of(wrong):
    with pytest.raises((halyard.Error, TypeError, ValueError, AttributeError, OverflowError, OSError)) as caught:
        wrong()
    return str(caught.value)


def cases(example, tmp_path):
    fib, product = halyard.load(example("fib")), halyard.load(example("elementwise_mul"), device="local-sync")
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    (tmp_path / "w.txt").write_text("x")
    (tmp_path / "m.vmfb").write_text("no module")
    return {
        "a missing module": lambda: halyard.load(tmp_path / "none.vmfb"),
        "no module": lambda: halyard.load(tmp_path / "m.vmfb"),
        "no text": lambda: halyard.assemble("vm.nonsense"),
        "a native module": lambda: halyard.load(tmp_path / "x.so"),
        "uncounted objects": lambda: halyard.device("local-sync").objects(),
        "uncounted objects of an instance": lambda: halyard.Instance().objects(),
        "an unknown device": lambda: halyard.device("vulcan://0"),
        "a wrong setting": lambda: halyard.device("local-sync", nonsense="1"),
        "a wrong URI": lambda: halyard.device("://"),
        "an unknown function": lambda: fib.iteratve,
        "too little time": lambda: fib.recursive(60, timeout=0.01),
        "too little memory": lambda: halyard.load(example("elementwise_mul"), device="local-sync", max_memory=1000).mul([1.0] * 8, [1.0] * 8),
        "too little stack": lambda: halyard.load(example("fib"), max_stack=4096).recursive(1000),
        "a wrong shape": lambda: product.mul([1.0], [1.0] * 8),
        "a wrong type": lambda: product.mul(np.zeros(8), [1.0] * 8),
        "no parameters": lambda: load(None).main(),
        "another scope": lambda: load({"modle": {"w": W}}).main(),
        "another key": lambda: load({"model": {"weights.1": W}}, key="weight.1").main(),
        "a parameter that is too short": lambda: load({"model": {"w": W[:2]}}).main(),
        "a missing file of parameters": lambda: load({"model": tmp_path / "none.irpa"}).main(),
        "a file that ends too early": lambda: load({"model": cut}).main(),
        "another file": lambda: load({"model": tmp_path / "w.txt"}).main(),
        "a missing import": lambda: halyard.load(halyard.assemble(CALLS_PYTHON)),
        "too many lists": lambda: halyard.Tensor([[1], [1, 2]]),
        "a file to save to": lambda: halyard.save_parameters(tmp_path / "a.bin", {}),
    }


def test_messages_speak_python(example, tmp_path):
    for name, wrong in cases(example, tmp_path).items():
        message = message_of(wrong)
        assert not re.search(r"(^|[\s'])--?[a-z][\w-]+", message), f"{name}: {message}"
        assert not re.search(r"HALYARD_(?!DRIVER_PATH)|halyard_\w+\(|struct_size|nullptr", message), f"{name}: {message}"


def test_remedies_are_arguments_of_python(example, tmp_path):
    found = {name: message_of(wrong) for name, wrong in cases(example, tmp_path).items()}
    assert "native=True" in found["a native module"]
    assert "count_objects=True" in found["uncounted objects"] and "count_objects=True" in found["uncounted objects of an instance"]
    assert "max_memory" in found["too little memory"]
    assert "local-sync" in found["an unknown device"] and "did you mean 'iterative'?" in found["an unknown function"]


def test_scopes_and_near_keys_are_named(example, tmp_path):
    found = {name: message_of(wrong) for name, wrong in cases(example, tmp_path).items()}
    assert "no parameters for scope 'model'" in found["no parameters"] and "`parameters`" in found["no parameters"]
    assert "scope 'model', only for 'modle'" in found["another scope"]
    assert "scope 'model' has no parameter 'weight.1'; did you mean 'weights.1'?" in found["another key"]
    assert "'w'" in found["a parameter that is too short"]


def test_the_names_of_options_exist():
    """What the extension writes for constants of the C ABI are arguments, and the constants are still in its messages."""
    source = pathlib.Path(__file__).parents[1] / "src" / "errors.c"
    table = re.findall(r'\{"(HALYARD_\w+)",\s+"(\w+)=True"\}', source.read_text())
    assert len(table) == 2
    messages = "".join(path.read_text() for path in (source.parents[2] / "c" / "src").glob("*.cpp"))
    for in_c, in_python in table:
        assert f'{in_c}"' in messages
        assert in_python in halyard.load.__doc__ + halyard.Instance.__text_signature__
