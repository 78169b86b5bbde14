"""Scripts for iree.runtime with one line changed."""

import copy
import operator
import pathlib
import pickle

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


A = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
UNARY = [operator.neg, operator.pos, abs, operator.invert]
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul,
          divmod, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
OF_INTEGERS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def array(values=A):
    return rt.asdevicearray(rt.get_device("local-sync"), values)


def equal(found, expected):
    return np.array_equal(np.asarray(found), expected) and np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("operation", BINARY)
def test_operators(operation):
    for other in (A.T, array(A.T), np.float32(2), 3, 0.5):
        if operation is operator.matmul and np.ndim(other) == 0:
            continue
        plain = np.asarray(other) if isinstance(other, rt.DeviceArray) else other
        for found, expected in ((operation(array(), other), operation(A, plain)), (operation(other, array()), operation(plain, A))):
            assert np.allclose(found, expected, rtol=1e-6) and type(found) is type(expected)
            assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("operation", UNARY + OF_INTEGERS)
def test_operators_of_integers(operation):
    numbers = np.array([1, -2, 3], np.int32)
    if operation in UNARY:
        assert equal(operation(array(numbers)), operation(numbers))
    else:
        small = np.array([2, 3, 1], np.int32)
        assert equal(operation(array(numbers), small), operation(numbers, small))
        assert equal(operation(small, array(abs(numbers))), operation(small, abs(numbers)))


def test_in_place():
    a = kept = array(A.copy())
    a += 1
    a *= array(A)
    assert a is kept and equal(a, (A + 1) * A)
    a[0, 1] = 7
    assert a[0, 1] == 7 and equal(a[array(A > 2)], np.asarray(a)[A > 2])


def test_functions_of_numpy():
    a = array()
    assert equal(np.add(a, a), A + A) and np.sum(a) == 10 and equal(np.concatenate([a, A], axis=1), np.concatenate([A, A], axis=1))
    assert equal(np.where(a > 2, a, 0), np.where(A > 2, A, 0)) and np.allclose(a, A) and np.shape(a) == (2, 2)
    assert equal(np.add.reduce(a), A.sum(axis=0)) and equal(np.multiply.outer(a, [1]), np.multiply.outer(A, [1]))
    target = np.zeros_like(A)
    assert np.sqrt(a, out=target) is target and equal(target, np.sqrt(A))


def test_attributes_of_arrays():
    a = array()
    assert (a.sum(), a.mean(), a.ndim, a.size, a.max(axis=0).tolist()) == (10, 2.5, 2, 4, [3.0, 4.0])
    assert equal(a.reshape(4), A.reshape(4)) and equal(a.T, A.T) and a.tolist() == A.tolist() and 4.0 in a
    assert (float(array(np.float32([2]))), int(array(np.int32(3))), bool(array([0])), [1, 2, 3][array(np.int64(1))]) == (2.0, 3, False, 2)
    assert complex(array(np.complex64(1j))) == 1j
    with pytest.raises(ValueError):
        bool(a)
    with pytest.raises(AttributeError):
        a.nonsense
    with pytest.raises(TypeError):
        hash(a)
    assert equal(pickle.loads(pickle.dumps(a)), A) and equal(copy.deepcopy(a), A)


def test_save_archive_file(tmp_path):
    rt.save_archive_file({"w": A, "x": np.int8([1])}, tmp_path / "any.name")
    assert (tmp_path / "any.name").read_bytes()[:4] == b"IRPA"


def test_names_that_are_not_there_say_what_to_use():
    with pytest.raises(AttributeError, match="halyard.Tensor"):
        rt.HalBufferView
    with pytest.raises(AttributeError, match="SystemContext"):
        rt.nonsense
