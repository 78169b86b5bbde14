"""Tensors whose shape needs another number of bytes than their buffer has: read by their shape, or refused."""

import ctypes

import pytest

import halyard

np = pytest.importorskip("numpy")

# @make: n x m elements over a buffer of 32 bytes.
TEXT = """
vm.module @views
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.export @make
vm.func @make(%i0:1: i64, %i2:3: i64, %i4: i32) -> (!hal.buffer_view) {
  %i5 = vm.const.i32 64
  %i6:7 = vm.const.i64 32
  %r0, %r1 = vm.call @hal_inline.buffer.allocate(%i5, %i6:7)
  %i8:9 = vm.const.i64.zero
  %i5 = vm.const.i32 1
  %r2 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 2](%r0, %i8:9, %i6:7, %i4, %i5, %i0:1, %i2:3)
  vm.discard.refs %r0, %r1
  vm.return %R2
}
"""
F32, BF16 = 0x21000020, 0x22000010


@pytest.fixture
def make():
    return halyard.load(halyard.assemble(TEXT)).make


READERS = [memoryview, np.asarray, np.from_dlpack, lambda y: y.tolist(), lambda y: y.tobytes(), repr, lambda y: y.nbytes,
           lambda y: y.view("int32"), lambda y: y.__dlpack__(copy=True), halyard.numpy, lambda y: bytes(y)]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("shape", [(1, 9), (3, 3), (1000, 1000), (2**40, 1)])
def test_more_than_the_buffer_has(make, read, shape):
    y = make(*shape, F32)
    assert y.shape == shape and y.size == shape[0] * shape[1]
    with pytest.raises((halyard.OutOfRangeError, BufferError), match="but its buffer has 32"):
        read(y)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("shape", [(2**62, 4), (-1, 4), (-2, -2), (2**63 - 1, 2**63 - 1)])
def test_shapes_without_a_size(make, read, shape):
    y = make(*shape, F32)
    assert y.shape == shape and y.size == shape[0] * shape[1]
    with pytest.raises((halyard.InvalidArgumentError, BufferError)):
        read(y)


def test_item_and_length(make):
    with pytest.raises(halyard.OutOfRangeError):
        make(2**20, 1, F32).view("int32").item()
    with pytest.raises(ValueError, match="one element"):
        make(2**63 - 1, 2**63 - 1, F32).item()
    with pytest.raises(ValueError, match="no length"):
        len(make(-5, 1, F32))


def test_less_than_the_buffer_has(make):
    y = make(2, 3, F32)
    assert y.nbytes == 24 and len(y.tobytes()) == 24 and memoryview(y).nbytes == 24
    assert np.asarray(y).shape == np.from_dlpack(y).shape == (2, 3) and y.tolist() == [[0.0] * 3] * 2
    assert halyard.numpy(make(3, 4, BF16)).shape == (3, 4) if hasattr(halyard, "bfloat16") else True


def test_nothing_beside_a_huge_size(make):
    y = make(0, 2**63 - 1, F32)
    assert y.nbytes == 0 and y.tobytes() == b"" and memoryview(y).nbytes == 0
    assert y.__dlpack__() is not None


class Struct(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Struct), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Foreign:
    """A tensor that says what it is told to say."""

    def __init__(self, shape, strides, size=4096, offset=0, bits=32):
        self.memory = ctypes.create_string_buffer(size)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides)
        self.managed = Managed(Struct(ctypes.addressof(self.memory), 1, 0, len(shape), 2, bits, 1, self.shape, self.strides, offset))

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.mark.parametrize("shape, strides", [((0, 100000), (200000, 2)), ((3, 0, 1000), (0, 5, 7)), ((0, 2**62, 2**62), (1, 2, 3))])
def test_foreign_tensors_without_elements(shape, strides):
    assert halyard.Tensor(Foreign(shape, strides)).shape == shape


@pytest.mark.parametrize("foreign", [dict(shape=(2, 2), strides=(2**62, 1)), dict(shape=(2, 2), strides=(-2**62, 1)),
                                     dict(shape=(2, 2), strides=(-2**63, 1)), dict(shape=(2**40, 2**40), strides=(0, 0)),
                                     dict(shape=(-1, 2), strides=(2, 1)), dict(shape=(2, 2), strides=(2, 1), offset=2**64 - 4)])
def test_foreign_tensors_outside_of_memory(foreign):
    with pytest.raises(halyard.InvalidArgumentError):
        halyard.Tensor(Foreign(**foreign))


@pytest.mark.parametrize("bits", [0, 1, 4, 12, 24, 128, 248])
def test_foreign_elements_of_other_widths(bits):
    with pytest.raises(halyard.UnimplementedError):
        halyard.Tensor(Foreign((2, 2), (2, 1), bits=bits))


def test_many_dimensions():
    """numpy has up to 64, also for types that the buffer protocol has no format for."""
    array = np.zeros((1,) * 32, np.float32)
    assert halyard.Tensor(array).ndim == 32

    class Name:
        name = "bfloat16"

    class Wide(np.ndarray):
        """As ml_dtypes' arrays: elements without a format, a dtype with a name, and a view as integers."""

        @property
        def dtype(self):
            return Name

        def view(self, name):
            return memoryview(bytes(2)).cast("H", shape=[1] * 40)

    with pytest.raises(halyard.InvalidArgumentError, match="40 dimensions"):
        halyard.Tensor(np.zeros(1, "datetime64[s]").view(Wide))
