"""Memory is shared where it can be, lives as long as anybody uses it, and is given back."""

import ctypes
import gc
import threading
import weakref

import pytest

import halyard
from conftest import aligned

np = pytest.importorskip("numpy")


def address(tensor):
    return np.asarray(tensor).ctypes.data


def test_aligned_arrays_are_used_in_place(local_device):
    device = halyard.device(local_device)
    array = aligned(4096)
    array[:] = 1
    tensor = halyard.Tensor(array, device=device)
    assert address(tensor) == array.ctypes.data
    array[7] = 5
    assert np.asarray(tensor)[7] == 5


def test_small_and_unaligned_arrays_are_copied(local_device):
    device = halyard.device(local_device)
    for array in (aligned(16), aligned(8192)[1:]):
        array[:] = 1
        tensor = halyard.Tensor(array, device=device)
        assert address(tensor) != array.ctypes.data
        array[3] = 9
        assert np.asarray(tensor)[3] == 1


def test_results_are_used_in_place(product):
    y = product([2.0] * 8, [3.0] * 8)
    first, second = np.asarray(y), np.asarray(y)
    assert first.ctypes.data == second.ctypes.data
    first[0] = 7
    assert y.tolist()[0] == 7.0


def test_the_array_lives_as_long_as_the_tensor(local_device):
    class Array(np.ndarray):
        pass

    array = aligned(4096).view(Array)
    array[:] = 3
    gone = weakref.ref(array)
    tensor = halyard.Tensor(array, device=halyard.device(local_device))
    del array
    gc.collect()
    assert gone() is not None and np.asarray(tensor)[100] == 3
    del tensor
    gc.collect()
    assert gone() is None


def test_the_tensor_lives_as_long_as_the_array(example, local_device):
    model = halyard.load(example("elementwise_mul"), device=local_device)
    view = np.asarray(model.mul([2.0] * 8, [3.0] * 8))
    del model
    gc.collect()
    assert view.tolist() == [6.0] * 8


def test_read_only_arrays(local_device):
    array = aligned(4096)
    array[:] = 1
    array.flags.writeable = False
    tensor = halyard.Tensor(array, device=halyard.device(local_device))
    assert address(tensor) == array.ctypes.data
    assert not np.asarray(tensor).flags.writeable
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(tensor)


def test_dlpack_to_numpy(product):
    y = product([2.0] * 8, [3.0] * 8)
    array = np.from_dlpack(y)
    assert array.ctypes.data == address(y) and array.tolist() == [6.0] * 8
    del y
    gc.collect()
    assert array.tolist() == [6.0] * 8


def test_dlpack_from_numpy(product):
    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **arguments):
            return self.array.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert product(OnlyDlpack(np.full(8, 2, np.float32)), [3.0] * 8).tolist() == [6.0] * 8
    strided = np.full((8, 2), 4, np.float32)[:, 0]
    assert product(OnlyDlpack(strided), [3.0] * 8).tolist() == [12.0] * 8
    with pytest.raises(halyard.InvalidArgumentError, match="float64, expected float32"):
        product(OnlyDlpack(np.ones(8)), [3.0] * 8)
    with pytest.raises(BufferError, match="not return a DLPack capsule"):
        class Liar:
            def __dlpack__(self, **arguments):
                return 3

        product(Liar(), [3.0] * 8)


def test_dlpack_of_memory_that_must_not_be_written_to(local_device):
    array = aligned(4096)
    array[:] = 3
    array.flags.writeable = False
    tensor = halyard.Tensor(array, device=halyard.device(local_device))
    shared = halyard.Tensor(Capsule(tensor.__dlpack__(max_version=(1, 0), copy=False)))  # version 1 says so
    assert address(shared) == array.ctypes.data and memoryview(shared).readonly
    copied = halyard.Tensor(Capsule(tensor.__dlpack__()))  # a consumer of version 0 gets a copy, unless it wants none
    assert address(copied) != array.ctypes.data and copied.tolist() == [3.0] * 4096
    with pytest.raises(BufferError, match="copy is False.*read-only"):
        tensor.__dlpack__(copy=False)


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **arguments):
        return self.capsule


def test_tensors_of_others_are_let_go_with_the_interpreter(local_device):
    """Their deleters are called once, and on a thread of Python, also where a device has used them last."""
    deleter_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    gone = []
    deleter = deleter_type(lambda pointer: gone.append((pointer, threading.current_thread().name)))
    values = aligned(4096)
    shape = (ctypes.c_int64 * 1)(4096)

    class Managed(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                    ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                    ("context", ctypes.c_void_p), ("deleter", deleter_type)]

    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    managed = Managed(values.ctypes.data, 1, 0, 1, 2, 32, 1, ctypes.addressof(shape), None, 0, None, deleter)
    tensor = halyard.Tensor(Capsule(new_capsule(ctypes.addressof(managed), b"dltensor", None)),
                            device=halyard.device(local_device))
    assert address(tensor) == values.ctypes.data and gone == []
    del tensor
    gc.collect()
    assert gone == [(ctypes.addressof(managed), threading.current_thread().name)]
    managed.device_type = 2
    with pytest.raises(halyard.UnimplementedError, match="CPU"):
        halyard.Tensor(Capsule(new_capsule(ctypes.addressof(managed), b"dltensor", None)))
    assert len(gone) == 1  # the capsule still has it


def test_views(product):
    y = product([2.0] * 8, [3.0] * 8)
    bits = y.view("uint32")
    assert bits.dtype == "uint32" and address(bits) == address(y) and bits.tolist() == [0x40C00000] * 8
    with pytest.raises(ValueError, match="element type of the same size; float64 has 64 bits, float32 32"):
        y.view("float64")
    with pytest.raises(ValueError, match="not an element type"):
        y.view("nonsense")


def test_devices(product, example, local_device):
    y = product([2.0] * 8, [3.0] * 8)
    assert y.device.uri.startswith(local_device) and y.device == y.device
    device = halyard.device(local_device)
    tensor = halyard.Tensor([1.0], device=device)
    assert tensor.device == device and hash(tensor.device) == hash(device) and tensor.device != halyard.Tensor([1.0]).device
    assert halyard.Tensor([1.0]).device.uri == "host://"


def test_dlpack_between_tensors(product):
    class OnlyDlpack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **arguments):
            return self.tensor.__dlpack__(**arguments)

    y = product([2.0] * 8, [3.0] * 8)
    again = halyard.Tensor(OnlyDlpack(y))
    assert address(again) == address(y)


def test_dlpack_arguments(product):
    y = product([2.0] * 8, [3.0] * 8)
    assert y.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(y.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(y.__dlpack__()) and '"dltensor"' in repr(y.__dlpack__(max_version=(0, 8)))
    with pytest.raises(BufferError, match="stream"):
        y.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="device type 2"):
        y.__dlpack__(dl_device=(2, 0))
    capsule = y.__dlpack__(copy=True)
    assert capsule is not None
