"""Scripts for iree.runtime with one line changed."""

import pathlib

import pytest

import halyard
import halyard.compat.iree_runtime as rt

np = pytest.importorskip("numpy")


@pytest.fixture
def flatbuffer(example):
    return halyard.assemble(pathlib.Path(example("elementwise_mul")).read_text())


def test_the_usual_script(flatbuffer):
    config = rt.Config("local-task")
    context = rt.SystemContext(config=config)
    module = rt.VmModule.copy_buffer(context.instance, flatbuffer)
    context.add_vm_module(module)
    f = context.modules.elementwise_mul["mul"]
    result = f(np.full(8, 2, np.float32), np.full(8, 3, np.float32))
    assert result.to_host().tolist() == [6.0] * 8
    assert np.asarray(result).dtype == np.float32 and result.shape == (8,) and len(result) == 8
    assert result[0] == 6.0 and (result == np.full(8, 6, np.float32)).all()
    again = f(result, result)
    assert np.array_equal(again.to_host(), np.full(8, 36, np.float32))


def test_load_vm_flatbuffer(flatbuffer, tmp_path):
    assert rt.load_vm_flatbuffer(flatbuffer, driver="local-sync").mul([1.0] * 8, [4.0] * 8).to_host()[3] == 4.0
    path = tmp_path / "m.vmfb"
    path.write_bytes(flatbuffer)
    assert rt.load_vm_flatbuffer_file(path, backend="llvm-cpu").mul([1.0] * 8, [4.0] * 8).to_host()[3] == 4.0
    gone = []
    module = rt.VmModule.mmap(None, path, lambda: gone.append(1))
    assert module.name == "elementwise_mul" and "mul" in module.function_names
    assert rt.load_vm_module(module, rt.Config("local-sync")).mul([1.0] * 8, [4.0] * 8).to_host()[3] == 4.0
    del module
    assert gone == [1]


def test_device_arrays(flatbuffer):
    device = rt.get_device("local-task")
    assert rt.get_device("local-task") is device
    array = rt.asdevicearray(device, [1, 2, 3], dtype=np.float32)
    assert array.to_host().tolist() == [1.0, 2.0, 3.0] and array.astype(np.int32).dtype == np.int32
    assert "local-sync" in rt.query_available_drivers()


def test_names_that_are_not_there_say_what_to_use():
    with pytest.raises(AttributeError, match="halyard.Tensor"):
        rt.HalBufferView
    with pytest.raises(AttributeError, match="SystemContext"):
        rt.nonsense
