"""bfloat16 and the 8-bit floats, which neither numpy nor the buffer protocol has: as types of ml_dtypes, and as DLPack."""

import sys
import types

import pytest

import halyard

np = pytest.importorskip("numpy")

NAMES = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8, "float8_e4m3fnuz": np.uint8,
         "float8_e5m2fnuz": np.uint8, "float8_e8m0fnu": np.uint8}


class Array(np.ndarray):
    """A stand-in for an array of ml_dtypes: it has no buffer, because no array of times has one, a dtype with that name,
    and view(), which gives its bits."""

    @property
    def dtype(self):
        return types.SimpleNamespace(name=self.type_name)

    def view(self, dtype):
        return self.bits.view(dtype)


def array_of(name, bits):
    made = np.zeros(bits.shape, "datetime64[s]").view(Array)
    made.type_name, made.bits = name, bits
    return made


@pytest.fixture
def stand_in(monkeypatch):
    """Where ml_dtypes is not installed (Debian 12 has no package of it): a module with its names for types of one field,
    which numpy can make of those bits."""
    try:
        import ml_dtypes
        return ml_dtypes
    except ImportError:
        pass
    module = types.ModuleType("ml_dtypes")
    for name, bits in NAMES.items():
        setattr(module, name, np.dtype([(name, bits)]))
    monkeypatch.setitem(sys.modules, "ml_dtypes", module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_results(name, stand_in, local_device):
    bits = np.arange(6, dtype=NAMES[name]).reshape(2, 3)
    tensor = halyard.Tensor(array_of(name, bits), device=halyard.device(local_device))
    assert (tensor.dtype, tensor.shape, tensor.tobytes()) == (name, (2, 3), bits.tobytes())
    for array in (halyard.numpy(tensor), np.asarray(tensor), np.array(tensor)):
        assert array.dtype == np.dtype(getattr(stand_in, name)) and array.shape == (2, 3)
        assert array.tobytes() == bits.tobytes()
    assert halyard.numpy(tensor).ctypes.data == np.asarray(tensor.view(np.dtype(NAMES[name]).name)).ctypes.data  # in place


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tensor = halyard.Tensor(np.array([0x3F80, 0x4000], np.uint16).view(ml_dtypes.bfloat16))
    assert tensor.dtype == "bfloat16" and halyard.numpy(tensor).astype(np.float32).tolist() == [1.0, 2.0]


def test_without_ml_dtypes_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    tensor = halyard.Tensor(array_of("bfloat16", np.zeros(3, np.uint16)))
    for take in (halyard.numpy, np.asarray):
        with pytest.raises(ImportError, match=r'numpy has no bfloat16: install ml_dtypes.*view\("uint16"\)'):
            take(tensor)
    assert np.asarray(tensor.view("uint16")).tolist() == [0, 0, 0]


def test_dlpack_passes_them_unchanged(local_device):
    """From one tensor to another: the same type, the same memory."""
    class OnlyDlpack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **arguments):
            return self.tensor.__dlpack__(**arguments)

    for name in NAMES:
        given = halyard.Tensor(array_of(name, np.arange(4, dtype=NAMES[name])), device=halyard.device(local_device))
        tensor = halyard.Tensor(OnlyDlpack(given))
        assert tensor.dtype == name and tensor.tobytes() == given.tobytes()
