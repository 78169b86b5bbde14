"""Loading programs, and the errors of what cannot be loaded."""

import copy
import gc
import pathlib
import pickle
import traceback

import pytest

import halyard


def test_functions_are_attributes(example):
    model = halyard.load(example("fib"))
    assert model.functions == ["recursive", "iterative"]
    assert model.recursive(20) == 6765
    assert model.iterative(90) == 2880067194370816120
    assert "iterative" in dir(model) and model.recursive is model.recursive
    assert model["recursive"](10) == 55


def test_from_bytes_and_path_objects(example):
    data = halyard.assemble(pathlib.Path(example("fib")).read_text())
    assert halyard.load(data).recursive(10) == 55
    assert halyard.load(memoryview(bytearray(data))).recursive(10) == 55
    assert halyard.load(pathlib.Path(example("fib"))).recursive(10) == 55


def test_unknown_function_suggests_one(example):
    model = halyard.load(example("fib"))
    with pytest.raises(AttributeError, match="did you mean 'recursive'") as caught:
        model.recursiv
    assert "".join(traceback.format_exception(caught.value)).lower().count("did you mean") == 1
    with pytest.raises(AttributeError, match="no function 'main'. It has: recursive, iterative"):
        model.main
    with pytest.raises(AttributeError):
        model._repr_html_


def test_missing_file():
    with pytest.raises(halyard.NotFoundError, match="nope.vmfb") as caught:
        halyard.load("/nope.vmfb")
    assert isinstance(caught.value, LookupError)
    assert caught.value.code == 5 and caught.value.name == "NOT_FOUND" and "/nope.vmfb" in caught.value.message


def test_no_module():
    with pytest.raises(halyard.InvalidArgumentError):
        halyard.load(b"not a module")
    with pytest.raises(TypeError, match="path or bytes"):
        halyard.load(17)
    with pytest.raises(ValueError, match="the list of modules is empty"):
        halyard.load([])


def test_settings_are_text():
    for wrong in (lambda: halyard.device("local-sync", validate=1), lambda: halyard.Instance().open("local-sync", {1: "1"})):
        with pytest.raises(TypeError, match="of a device must be a str"):
            wrong()


def test_missing_driver(example):
    with pytest.raises(halyard.NotFoundError, match="'cuda'.*local-sync"):
        halyard.load(example("elementwise_mul"), device="cuda")


def test_device_and_devices(example):
    with pytest.raises(TypeError, match="not both"):
        halyard.load(example("elementwise_mul"), device="local-sync", devices=["local-sync"])


def test_default_device(example):
    model = halyard.load(example("elementwise_mul"))
    assert model.devices[0].uri.startswith("local-task")
    assert halyard.load(example("fib")).devices == []


def test_program_without_devices(example):
    model = halyard.load(example("inline_mul"))
    assert model.devices == []
    assert model.mul([1.0, 2.0], [3.0, 4.0]).tolist() == [3.0, 8.0]


def test_limits(example):
    with pytest.raises(halyard.ResourceExhaustedError):
        halyard.load(example("fib"), max_stack=4096).recursive(1000)
    with pytest.raises(halyard.DeadlineExceededError) as caught:
        halyard.load(example("fib"), timeout=0.05).recursive(50)
    assert isinstance(caught.value, TimeoutError)


@pytest.mark.parametrize("timeout", [1e-10, 1e-300, 1e-9])
def test_the_shortest_time_limits(example, timeout):
    with pytest.raises(halyard.DeadlineExceededError):
        halyard.load(example("fib"), timeout=timeout).recursive(50)


@pytest.mark.parametrize("timeout", [None, 3600, 1e300, float("inf")])
def test_time_limits_that_are_not_reached(example, timeout):
    assert halyard.load(example("fib"), timeout=timeout).recursive(10) == 55


@pytest.mark.parametrize("limits, error, message", [
    ({"timeout": 0}, ValueError, "timeout must be more than 0 seconds, not 0; None is no limit"),
    ({"timeout": -0.5}, ValueError, "timeout must be more than 0 seconds, not -0.5"),
    ({"timeout": float("nan")}, ValueError, "timeout must be more than 0 seconds, not nan"),
    ({"timeout": "1"}, TypeError, "timeout must be a number of seconds or None, not <class 'str'>"),
    ({"max_memory": -1}, ValueError, "max_memory must be from 0 to 18446744073709551615, not -1"),
    ({"max_memory": 2**64 + 1000000}, ValueError, "max_memory must be from 0 to .*, not 18446744073710551616"),
    ({"max_memory": 1.5}, TypeError, "max_memory must be an int, not <class 'float'>"),
    ({"max_stack": -1}, ValueError, "max_stack must be from 0 to"),
    ({"max_stack": 2**64}, ValueError, "max_stack must be from 0 to")])
def test_limits_that_are_refused(example, limits, error, message):
    with pytest.raises(error, match=message):
        halyard.load(example("fib"), **limits)


@pytest.mark.parametrize("option", ["max_memory", "max_stack", "max_time_ns", "lead_device"])
@pytest.mark.parametrize("number", [-1, 2**64])
def test_numbers_of_a_context(example, option, number):
    model = halyard.load(example("fib"))
    with pytest.raises(ValueError, match=f"{option} must be from 0 to .*, not {number}"):
        halyard.Context(model.instance, [model.program], [], [], **{option: number})
    with pytest.raises(ValueError, match="lead_device must be from 0 to 4294967295, not 4294967296"):
        halyard.Context(model.instance, [model.program], [], [], lead_device=2**32)


@pytest.mark.parametrize("number", [2**32, 2**64, -1])
def test_numbers_are_not_cut_to_32_bits(example, number):
    program = halyard.load(example("fib")).program
    assert program.function(0)["name"] == "recursive"
    with pytest.raises(halyard.Error):
        program.function(2)
    with pytest.raises(ValueError, match=f"index must be from 0 to 4294967295, not {number}"):
        program.function(number)
    with pytest.raises(ValueError, match=f"bytecode_version must be from 0 to 4294967295, not {number}"):
        halyard.assemble(pathlib.Path(example("fib")).read_text(), bytecode_version=number)


def test_failure_of_a_program_has_its_stack(example):
    model = halyard.load(example("fib"))
    with pytest.raises(halyard.OutOfRangeError, match="the index must be 0 or more") as caught:
        model.iterative(-1)
    assert any("fib.iterative" in line for line in caught.value.trace)
    assert caught.value.__notes__ == caught.value.trace  # what a traceback prints


def test_text_of_modules(example):
    data = halyard.assemble(pathlib.Path(example("fib")).read_text())
    text = halyard.disassemble(data)
    assert "vm.func @recursive" in text and halyard.disassemble(halyard.assemble(text)) == text
    assert "recursive" in halyard.describe(data) and halyard.describe(data, json=True).startswith("{")
    with pytest.raises(halyard.InvalidArgumentError, match="<text>:1: .*'nonsense'"):
        halyard.assemble("nonsense")


def test_devices_describe_themselves(local_device):
    device = halyard.device(local_device)
    about = device.describe()
    assert about["driver"] == local_device and about["queues"] >= 1
    assert device.query("hal.nothing", "x") is None
    assert device.memory()["host_live"] >= 0
    assert any(uri.startswith(local_device) for uri, _ in halyard.devices(local_device))
    assert any(local_device in row["drivers"] for row in halyard.drivers())


def test_trace(tmp_path, example):
    trace = halyard.Trace(tmp_path / "out.trace")
    instance = halyard.Instance(trace=trace)
    halyard.load(example("elementwise_mul"), device="local-sync", instance=instance).mul([1.0] * 8, [2.0] * 8)
    trace.finish()
    assert trace.totals()["events"] > 0 and (tmp_path / "out.trace").stat().st_size > 100


def test_capture(tmp_path, example):
    model = halyard.load(example("elementwise_mul"), device="local-sync", capture=tmp_path / "c.hcap")
    model.mul([1.0] * 8, [2.0] * 8)
    del model
    gc.collect()
    assert (tmp_path / "c.hcap").stat().st_size > 100


def test_modules_that_import_from_each_other():
    first = halyard.assemble("""
vm.module @first
vm.export @twice
vm.func @twice(%i0: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i0
  vm.return %i0
}
""")
    second = halyard.assemble("""
vm.module @second
vm.import @first.twice cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.call @first.twice(%i0)
  vm.return %i0
}
""")
    assert halyard.load([first, second]).f(21) == 42


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_failures_can_be_copied(again):
    with pytest.raises(halyard.NotFoundError) as caught:
        halyard.load("/nonexistent/model.vmfb")
    error = again(caught.value)
    assert type(error) is halyard.NotFoundError
    assert (str(error), error.code, error.name, error.message, error.trace) == (
        str(caught.value), caught.value.code, "NOT_FOUND", caught.value.message, caught.value.trace)
    made = again(halyard.NotFoundError("no such key"))
    assert (made.message, made.trace, made.name) == ("no such key", [], "NOT_FOUND")
    with pytest.raises(AttributeError):
        del error.message
