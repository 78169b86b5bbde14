"""Tensors as numpy's users expect them: parts, iteration, shapes, types, copies."""

import array
import copy
import math
import pickle
import struct
import sys

import pytest

import halyard

np = pytest.importorskip("numpy")


@pytest.fixture(params=["host", "local-sync", "local-task"])
def device(request):
    return None if request.param == "host" else halyard.device(request.param)


CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
KEYS = [0, 1, -1, (0,), (0, 1), (1, -1), (1, 2, 3), (-1, -1, -1), slice(None), slice(1), slice(1, 2), slice(-1, None), slice(5, 9),
        slice(1, 0), (0, slice(1, 3)), (1, 2, slice(1, None)), np.int64(1), (np.uint8(1), 2)]
KEYS_OF_COPIES = [slice(None, None, -1), (slice(None), 0), (slice(None), slice(1, 2)), Ellipsis, (Ellipsis, 0), None, [1, 0], (0, [0, 2]),
                  CUBE > 3, np.array([1, 0]), (0, slice(None, None, 2)), (), True]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_parts(device, key):
    tensor, expected = halyard.Tensor(CUBE, device=device), CUBE[key]
    part = tensor[key]
    if expected.ndim == 0:
        assert type(part) is float and part == expected
        return
    assert isinstance(part, halyard.Tensor) and part.shape == expected.shape and part.dtype == "float32"
    assert part.tolist() == expected.tolist()
    if part.size:  # the same memory
        memoryview(tensor.reshape(-1))[CUBE[key].flat[0].astype(int)] = -7.0
        assert part.reshape(-1)[0] == -7.0


@pytest.mark.parametrize("key", KEYS_OF_COPIES, ids=repr)
def test_parts_that_are_copied(device, key):
    tensor, expected = halyard.Tensor(CUBE, device=device), CUBE[key]
    part = tensor[key]
    assert part.shape == expected.shape and part.tolist() == expected.tolist()
    assert part.device.uri == tensor.device.uri


def test_wrong_keys(monkeypatch):
    tensor = halyard.Tensor(CUBE)
    for key in (2, -3, (0, 3), (0, 0, 4), (0, 0, 0, 0), 2**80):
        with pytest.raises(IndexError):
            tensor[key]
    with pytest.raises(IndexError, match="index 3 is out of range for dimension 1 of size 3"):
        tensor[0, 3]
    for key in ("a", 1.5, {}):
        with pytest.raises((IndexError, TypeError)):
            tensor[key]
    with pytest.raises((IndexError, TypeError)):
        halyard.Tensor(1.0)[0]
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert tensor[0, 1].tolist() == CUBE[0, 1].tolist()
    with pytest.raises(TypeError, match="without numpy"):
        tensor[::2]


def test_parts_are_arguments(product):
    rows = halyard.Tensor(np.arange(16, dtype=np.float32).reshape(2, 8))
    assert product(rows[0], rows[1]).tolist() == (np.arange(8) * (np.arange(8) + 8)).tolist()
    assert product(rows[0], rows.reshape(16)[8:]).tolist() == product(rows[0], rows[1]).tolist()


def test_iteration():
    assert [row.tolist() for row in halyard.Tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert list(halyard.Tensor([1, 2, 3])) == [1, 2, 3] and 2 in halyard.Tensor([1, 2, 3])
    first, second = halyard.Tensor([1.5, 2.5])
    assert (first, second) == (1.5, 2.5) and list(halyard.Tensor([])) == [] and list(reversed(halyard.Tensor([1, 2]))) == [2, 1]
    with pytest.raises(TypeError):
        list(halyard.Tensor(1.0))


def test_reshape():
    tensor = halyard.Tensor(CUBE)
    for shape in ((6, 4), (24,), (4, -1), (-1,), (1, 24, 1), [2, 12], (np.int64(3), 8)):
        assert tensor.reshape(shape).tolist() == CUBE.reshape(shape).tolist()
        assert tensor.reshape(*shape).tolist() == CUBE.reshape(shape).tolist()
    assert tensor.reshape(-1).shape == (24,) and halyard.Tensor([3]).reshape(()).tolist() == 3
    assert halyard.Tensor([]).reshape(0, 5).shape == (0, 5)
    for wrong in ((5, 5), (-1, -1), (5, -1), (-2, 12), (2**40, 2**40), ()):
        with pytest.raises(ValueError, match=r"shape \(2, 3, 4\) cannot be reshaped"):
            tensor.reshape(*wrong)
    with pytest.raises(ValueError, match="32 dimensions"):
        tensor.reshape([1] * 33)
    for wrong in ("ab", 1.5, [None]):
        with pytest.raises(TypeError):
            tensor.reshape(wrong)


def test_numpy():
    tensor = halyard.Tensor(CUBE)
    assert np.array_equal(tensor.numpy(), CUBE) and tensor.numpy().dtype == np.float32
    assert np.shares_memory(tensor.numpy(), np.asarray(tensor))


@pytest.mark.parametrize("dtype, name", [(np.float32, "float32"), (np.dtype("int16"), "int16"), (np.int64, "int64"), (bool, "bool"),
                                         (np.bool_, "bool"), (float, "float64"), (int, "int64"), (np.longlong, "int64"),
                                         (np.dtype(">u4"), "uint32"), ("ui8", "uint8"), (np.float16, "float16"), (None, "int64")])
def test_types_of_the_constructor(dtype, name):
    assert halyard.Tensor([1, 0], dtype).dtype == name and halyard.Tensor([1, 0], dtype=dtype).tolist() == [1, 0]


def test_a_tensor_of_a_tensor(local_device):
    """It shares the memory, unless that is of another device; the type and the device are those that are given."""
    device, tensor = halyard.device(local_device), halyard.Tensor([[1, -1]], "int32")
    for same in (halyard.Tensor(tensor), halyard.Tensor(tensor, "int32"), halyard.Tensor(tensor, device=tensor.device)):
        assert np.shares_memory(same.numpy(), tensor.numpy()) and same.device == tensor.device
    for dtype, name, values in (("si32", "int32", [[1, -1]]), ("uint32", "uint32", [[1, 2**32 - 1]])):
        other = halyard.Tensor(tensor, dtype)
        assert (other.dtype, other.shape, other.tolist()) == (name, (1, 2), values)
        assert other.element_type == dtype.replace("uint", "ui") and np.shares_memory(other.numpy(), tensor.numpy())
    moved = halyard.Tensor(tensor, "uint32", device)
    assert (moved.device, moved.dtype, moved.shape, moved.tolist()) == (device, "uint32", (1, 2), [[1, 2**32 - 1]])
    assert not np.shares_memory(moved.numpy(), tensor.numpy())
    same = halyard.Tensor(moved, device=device)
    assert np.shares_memory(same.numpy(), moved.numpy()) and same.device == device
    empty = halyard.Tensor(halyard.Tensor([]), device=device)
    assert (empty.shape, empty.device) == ((0,), device)
    for wrong in ("int32", "si32", "int64", "float32"):
        with pytest.raises(halyard.InvalidArgumentError, match="has elements of type uint32, expected"):
            halyard.Tensor(moved, wrong)


def test_types_of_views():
    assert halyard.Tensor([1.0]).view(np.int32).tolist() == [0x3F800000]
    assert halyard.Tensor([1.0]).view(np.dtype("uint32")).tolist() == [0x3F800000]
    for wrong in (3, [], object, np.datetime64, "float99", np.longdouble):
        with pytest.raises((TypeError, ValueError), match="element type"):
            halyard.Tensor([1.0], wrong)


def value(kind, bits):
    """What the bits of a float of 16 or 8 bits mean, counted out in another way."""
    exponent_bits, mantissa_bits, bias, special = kind
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    if special == "ieee" and exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    if special == "fn" and bits & 0x7F == 0x7F or special == "fnuz" and bits == 0x80:
        return math.nan
    return sign * (mantissa / 2**mantissa_bits + (exponent > 0)) * 2.0**(max(exponent, 1) - bias)


KINDS = {"bfloat16": (8, 7, 127, "ieee"), "float16": (5, 10, 15, "ieee"), "float8_e5m2": (5, 2, 15, "ieee"),
         "float8_e4m3fn": (4, 3, 7, "fn"), "float8_e5m2fnuz": (5, 2, 16, "fnuz"), "float8_e4m3fnuz": (4, 3, 8, "fnuz")}


@pytest.mark.parametrize("dtype", KINDS)
def test_every_value_of_small_floats(dtype):
    unsigned = "uint16" if dtype.endswith("16") else "uint8"
    bits = np.arange(65536 if unsigned == "uint16" else 256).astype(unsigned)
    found = halyard.Tensor(bits).view(dtype).tolist()
    expected = [value(KINDS[dtype], int(each)) for each in bits]
    assert [struct.pack("d", x) if x == x else "nan" for x in found] == [struct.pack("d", x) if x == x else "nan" for x in expected]


def test_every_value_of_exponents():
    found = halyard.Tensor(np.arange(256, dtype=np.uint8)).view("float8_e8m0fnu").tolist()
    assert found[:255] == [2.0**(x - 127) for x in range(255)] and found[255] != found[255]


@pytest.mark.parametrize("name", halyard.element_types)
def test_lists_copies_and_pickles_of_every_type(device, name):
    dtype, bits = halyard.element_types[name]
    raw = np.arange(6 * bits // 8, dtype=np.uint8) % (2 if dtype == "bool" else 60)
    tensor = halyard.Tensor.frombytes(raw.tobytes(), name, (2, 3))
    if device is not None and dtype in np.sctypeDict:
        tensor = halyard.Tensor(tensor.numpy(), device=device)
    assert (tensor.shape, tensor.dtype, tensor.tobytes()) == ((2, 3), dtype, raw.tobytes())
    if dtype in np.sctypeDict:
        assert tensor.tolist() == raw.view(dtype).reshape(2, 3).tolist()
    assert tensor[1, 2] == tensor.tolist()[1][2] == tensor[1:, 2:].item() and type(tensor[1, 2]) is type(tensor.tolist()[1][2])
    copies = [pickle.loads(pickle.dumps(tensor, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in [*copies, copy.copy(tensor), copy.deepcopy(tensor)]:
        assert (other.shape, other.element_type, other.tobytes()) == (tensor.shape, tensor.element_type, tensor.tobytes())
        assert other is not tensor and other.device.uri == "host://"


def test_bytes_of_the_wrong_size():
    for shape in ((3,), (2, 2), (-4,)):
        with pytest.raises(halyard.InvalidArgumentError):
            halyard.Tensor.frombytes(b"12345678", "float32", shape)
    with pytest.raises(TypeError):
        halyard.Tensor.frombytes(b"12345678", "float32", ("x",))
    with pytest.raises(ValueError, match="element type"):
        halyard.Tensor.frombytes(b"12345678", "float99", (2,))


@pytest.mark.parametrize("rank", [32, 33, 64, 128])
def test_copy_to_with_many_dimensions(rank):
    """The buffer protocol of a Tensor has as many as the tensor, numpy at most 64."""
    tensor = halyard.Tensor.frombytes(b"abcd", "float32", (1,) * rank)
    target = halyard.Tensor.frombytes(bytes(4), "float32", (1,) * rank)
    tensor.copy_to(target)
    assert target.tobytes() == b"abcd"
    for other in ((1,) * (rank - 1), (1,) * (rank - 1) + (2,)):
        target = halyard.Tensor.frombytes(bytes(4 * other[-1]), "float32", other)
        with pytest.raises(halyard.InvalidArgumentError, match="the target has shape"):
            tensor.copy_to(target)
        assert target.tobytes() == bytes(4 * other[-1])


def test_a_float_of_numpy_keeps_its_type():
    assert [halyard.Tensor(each).dtype for each in (np.float64(0.1), np.float32(0.1), 0.1)] == ["float64", "float32", "float32"]
    assert halyard.Tensor(np.float64(0.1)).item() == 0.1
    assert halyard.Tensor(np.float64(0.1), dtype="float16").dtype == "float16"


def test_copy_to(device):
    tensor = halyard.Tensor(CUBE, device=device)
    for target in (np.zeros_like(CUBE), np.zeros((2, 3, 8), np.float32)[:, :, ::2], np.zeros((4, 3, 2), np.float32).T,
                   np.zeros((2, 3, 4), ">f4"), halyard.Tensor(np.zeros_like(CUBE), device=device)):
        tensor.copy_to(target)
        assert np.array_equal(np.asarray(target), CUBE)
    flat = array.array("f", [0] * 4)
    tensor[0, 0].copy_to(flat)
    assert flat.tolist() == [0, 1, 2, 3]
    with pytest.raises(halyard.InvalidArgumentError, match=r"the target has shape \(2, 3\), expected \(2, 3, 4\)"):
        tensor.copy_to(np.zeros((2, 3), np.float32))
    with pytest.raises(halyard.InvalidArgumentError, match="elements of type float64, expected float32"):
        tensor.copy_to(np.zeros((2, 3, 4)))
    for wrong in (7, "text", None, bytes(96), [0.0] * 24):
        with pytest.raises((TypeError, ValueError, halyard.Error)):
            tensor.copy_to(wrong)
    read_only = np.zeros_like(CUBE)
    read_only.flags.writeable = False
    with pytest.raises(ValueError):
        tensor.copy_to(read_only)
