"""Arguments and results: what is taken, what is refused, and what comes back."""

import array
import json

import pytest

import halyard

np = pytest.importorskip("numpy")


def test_arrays(product):
    a = np.arange(8, dtype=np.float32)
    y = product(a, a)
    assert isinstance(y, halyard.Tensor)
    assert np.array_equal(np.asarray(y), a * a)
    assert (y.shape, y.dtype, y.element_type, y.ndim, y.size, y.nbytes) == ((8,), "float32", "f32", 1, 8, 32)
    assert len(y) == 8 and y.tolist() == (a * a).tolist()
    assert y.tobytes() == (a * a).tobytes()
    assert "8xf32=0 1 4" in repr(y)


def test_everything_else_that_has_numbers(product):
    expected = [2.0] * 8
    ones = [1.0] * 8
    for two in ([2] * 8, (2.0,) * 8, array.array("f", [2] * 8), memoryview(np.full(8, 2, np.float32)),
                halyard.Tensor(np.full(8, 2, np.float32)), np.full(16, 2, np.float32)[::2],
                np.full((8, 1), 2, np.float32)[:, 0]):
        assert product(two, ones).tolist() == expected


def test_results_as_arguments(product):
    y = product([2.0] * 8, [3.0] * 8)
    assert product(y, y).tolist() == [36.0] * 8


def test_keywords(product):
    assert product(input1=[3.0] * 8, input0=[2.0] * 8).tolist() == [6.0] * 8
    assert product([2.0] * 8, input1=[3.0] * 8).tolist() == [6.0] * 8
    with pytest.raises(TypeError, match="'input0' twice"):
        product([2.0] * 8, input0=[3.0] * 8)
    with pytest.raises(TypeError, match="lacks argument 'input1'"):
        product(input0=[3.0] * 8)
    with pytest.raises(TypeError, match="unknown or too many arguments"):
        product([2.0] * 8, input1=[3.0] * 8, input2=1)
    assert product.bind(input1=2, input0=1) == (1, 2)


def test_wrong_counts(product):
    with pytest.raises(TypeError, match=r"takes 2 arguments but 1 was given.*func @mul"):
        product([1.0] * 8)
    with pytest.raises(TypeError, match="3 were given"):
        product(1, 2, 3)


def test_wrong_shapes(product):
    with pytest.raises(halyard.InvalidArgumentError, match=r"'input0' has shape \(5,\), expected \(8,\)") as caught:
        product(np.ones(5, np.float32), [1.0] * 8)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(halyard.InvalidArgumentError, match="'input1' has shape"):
        product([1.0] * 8, np.ones((8, 1), np.float32))
    assert "any size" not in str(caught.value)
    with pytest.raises(halyard.InvalidArgumentError, match="rows of different"):
        halyard.Tensor([[1.0, 2.0], [3.0]])


def test_wrong_types(product):
    with pytest.raises(halyard.InvalidArgumentError, match=r"float64, expected float32.*astype\(\"float32\"\)"):
        product(np.ones(8), [1.0] * 8)
    for wrong in ("text", object(), {}, b""[:0].decode):
        with pytest.raises((TypeError, halyard.InvalidArgumentError)):
            product(wrong, [1.0] * 8)
    with pytest.raises(TypeError):
        product(["a"] * 8, [1.0] * 8)


def test_scalars_of_every_kind():
    text = """
vm.module @scalars
vm.export @f
vm.func @f(%i0: i32, %i2:3: i64, %i4: f32, %i6:7: f64) -> (i32, i64, f32, f64) {
  vm.return %i0, %i2:3, %i4, %i6:7
}
vm.export @none
vm.func @none() -> () {
  vm.return
}
"""
    model = halyard.load(halyard.assemble(text))
    assert model.f(-1, 2**63 - 1, 0.5, 1e300) == (-1, 2**63 - 1, 0.5, 1e300)
    assert model.f(2**32 - 1, 2**64 - 1, 1, 2) == (-1, -1, 1.0, 2.0)  # unsigned numbers are the same bits
    assert model.f(np.int32(7), np.uint8(8), np.float32(0.25), np.float64(3)) == (7, 8, 0.25, 3.0)
    assert model.f(True, False, True, False) == (1, 0, 1.0, 0.0)
    assert model.none() is None
    for wrong in ((2**32, 0, 0, 0), (0, 2**64, 0, 0), (-(2**31) - 1, 0, 0, 0)):
        with pytest.raises(OverflowError, match="does not fit"):
            model.f(*wrong)
    for wrong in ((1.5, 0, 0, 0), (0, "1", 0, 0), (0, 0, "x", 0), (0, 0, 0, None)):
        with pytest.raises(TypeError, match="must be a"):
            model.f(*wrong)


# A program that gives back what it gets, with a description of dicts, lists and tuples.
def structured():
    abi = {"a": [["named", "x", ["sdict", ["a", "i32"], ["b", ["slist", "i32", "i32"]]]], "i32"],
           "r": [["sdict", ["sum", "i32"], ["pair", ["stuple", "i32", "i32"]]]], "v": 1}
    text = f"""
vm.module @structured
vm.export @f
vm.attr @f "iree.abi" ABI
vm.func @f(%i0: i32, %i1: i32, %i2: i32, %i3: i32) -> (i32, i32, i32) {{
  %i4 = vm.add.i32 %i0, %i3
  vm.return %i4, %i1, %i2
}}
"""
    quoted = 'e"' + json.dumps(abi).replace('"', '\\"') + '"'
    return text.replace("ABI", quoted)


def test_structures():
    model = halyard.load(halyard.assemble(structured()))
    assert model.f({"a": 1, "b": [2, 3]}, 10) == {"sum": 11, "pair": (2, 3)}
    for wrong, message in ((({"a": 1}, 2), "keys 'a', 'b'"), (({"a": 1, "b": [1]}, 2), "list or tuple of 2"),
                           (({"a": 1, "b": [1, 2]},), "lacks")):
        with pytest.raises(TypeError, match=message):
            model.f(*wrong)


def test_arrays_of_a_description():
    """Without a declaration, the description of the frontend says what a tensor must be."""
    from halyard._signature import Signature

    abi = {"a": [["named", "x", ["sdict", ["w", ["ndarray", "f32", 2, None, 4]], ["n", "i32"]]], ["ndarray", "i64", 0]],
           "r": [["ndarray", "bf16", 1, 3]], "v": 1}
    signature = Signature({"name": "f", "convention": "0rir_r", "is_async": False, "result_count": 1, "declaration": "",
                           "attributes": {"iree.abi": json.dumps(abi)}})
    assert signature.arguments == (("arg0", "r", 0x21000020, (-1, 4)), ("arg1", "i", 0, None),
                                   ("arg2", "r", 0x10000040, ()))
    assert signature.prepare()({"w": 1, "n": 2}, 3) == (1, 2, 3) and signature.finish() is None


def test_element_types():
    for name, (numpy_name, bits) in halyard.element_types.items():
        if numpy_name.startswith(("bfloat", "float8")):
            continue
        tensor = halyard.Tensor(np.zeros((2, 3), numpy_name))
        assert (tensor.shape, np.dtype(tensor.dtype).itemsize * 8) == ((2, 3), bits), name
        assert np.asarray(tensor).dtype == np.dtype(numpy_name)


def test_literals():
    assert halyard.Tensor([[1, 2], [3, 4]]).dtype == "int64"
    assert halyard.Tensor([True, False]).dtype == "bool"
    assert halyard.Tensor([1.5]).dtype == "float32"
    assert halyard.Tensor(2.5).shape == () and float(halyard.Tensor(2.5)) == 2.5 and int(halyard.Tensor(3)) == 3
    assert halyard.Tensor([]).shape == (0,)
    assert halyard.Tensor([1, 2], "uint8").tolist() == [1, 2]
    assert halyard.Tensor([0.1], "float16").tobytes() == np.float16(0.1).tobytes()
    assert halyard.Tensor([-1], "i8").tolist() == [-1]
    with pytest.raises(halyard.InvalidArgumentError, match="300, which does not fit"):
        halyard.Tensor([300], "int8")
    with pytest.raises(ValueError, match="'float99' is not an element type"):
        halyard.Tensor([1], "float99")
    with pytest.raises(ValueError, match="one element"):
        halyard.Tensor([1, 2]).item()
    deep = [1]
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="32 deep"):
        halyard.Tensor(deep)


def test_noncontiguous_results_of_strange_formats():
    with pytest.raises(halyard.InvalidArgumentError, match="format"):
        halyard.Tensor(np.zeros(2, "datetime64[s]").view("V8"))
    assert halyard.Tensor(np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]


def gives_back(element):
    """A function that returns its argument, which it declares as one such element."""
    return halyard.load(halyard.assemble(f"""
vm.module @m
vm.export @f
vm.attr @f "iree.abi.declaration" "sync func @f(%x: tensor<1x{element}>) -> (%y: tensor<1x{element}>)"
vm.func @f(%r0: !hal.buffer_view) -> (!hal.buffer_view) {{
  vm.return %r0
}}
"""), device="local-sync").f


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()


ACCEPTED = [("i32", "int32"), ("i32", "uint32"), ("si32", "int32"), ("ui32", "uint32"), ("i8", "uint8"), ("ui64", "uint64")]
REFUSED = [("si32", "uint32", "int32"), ("ui32", "int32", "uint32"), ("ui8", "int8", "uint8"), ("si64", "uint64", "int64")]


@pytest.mark.parametrize("element, dtype", ACCEPTED)
def test_signs_of_integers_that_fit(element, dtype):
    f, value = gives_back(element), np.array([7], dtype)
    for given in (value, memoryview(value), OnlyDlpack(value), halyard.Tensor(value)):
        assert f(given).tolist() == [7]
    for target in (np.zeros(1, dtype), halyard.Tensor([0], dtype)):
        assert f([7], out=target).tolist() == [7]


@pytest.mark.parametrize("element, dtype, expected", REFUSED)
def test_signs_of_integers_that_differ(element, dtype, expected):
    f, value = gives_back(element), np.array([7], dtype)
    message = rf'elements of type {dtype}, expected {expected}; convert it .*astype\("{expected}"\), or .*view\("{expected}"\)'
    for given in (value, value.astype(value.dtype.newbyteorder(">")), memoryview(value), OnlyDlpack(value)):
        with pytest.raises(halyard.InvalidArgumentError, match=r"f\(\): argument 'x' has " + message):
            f(given)
        with pytest.raises(halyard.InvalidArgumentError, match="the tensor has " + message):
            halyard.Tensor(given, element)
        with pytest.raises(halyard.InvalidArgumentError, match="the tensor has " + message):
            halyard.Tensor(given, expected)
    assert f(value.view(expected)).tolist() == [7]
    target = np.zeros(1, dtype)
    with pytest.raises(halyard.InvalidArgumentError, match="argument 'out' has " + message):
        f([7], out=target)
    with pytest.raises(halyard.InvalidArgumentError, match="the target has " + message):
        f([7]).copy_to(target)
    assert target.tolist() == [0] and f([7], out=target.view(expected)).tolist() == [7]


def test_tensors_without_a_sign():
    """Programs create them; they fit functions and arrays of either sign."""
    tensor = halyard.Tensor([7], "i32")
    assert gives_back("si32")(tensor).tolist() == gives_back("ui32")(tensor).tolist() == [7]
    for dtype in ("int32", "uint32"):
        target = np.zeros(1, dtype)
        tensor.copy_to(target)
        assert target.tolist() == [7]
    assert gives_back("ui32")([7], out=tensor) is tensor
    with pytest.raises(halyard.InvalidArgumentError, match="type int32, expected uint32"):
        gives_back("ui32")(halyard.Tensor([7], "si32"))


def test_values_that_provide_an_array(product):
    class Provider:
        def __init__(self, give):
            self.give = give

        def __array__(self, *_, **__):
            return self.give(self)

    class OnlyDlpack:
        def __dlpack__(self, **options):
            return np.zeros(8, np.float32).__dlpack__()

    for give in (lambda self: np.zeros(8, np.float32), lambda self: halyard.Tensor([0.0] * 8), lambda self: OnlyDlpack()):
        assert product(Provider(give), [1.0] * 8).tolist() == [0.0] * 8
    for give in (lambda self: self, lambda self: Provider(self.give), lambda self: [0.0] * 8, lambda self: None):
        with pytest.raises(TypeError, match=r"__array__ of .*Provider.* must return an array"):
            halyard.Tensor(Provider(give))
        with pytest.raises(TypeError, match=r"mul\(\): argument 'input0' cannot be read: __array__ of"):
            product(Provider(give), [1.0] * 8)

    def fails(self):
        raise KeyError("its own error")

    with pytest.raises(KeyError, match="its own error"):
        halyard.Tensor(Provider(fails))


def test_arrays_in_the_other_byte_order(product):
    a = np.arange(8, dtype=np.float32)
    for other in (a.astype(">f4"), np.repeat(a, 2).astype(">f4")[::2],
                  np.array(a, ">f4")[::-1][::-1]):
        assert product(other, [1.0] * 8).tolist() == a.tolist()
    for name, (numpy_name, _) in halyard.element_types.items():
        if numpy_name.startswith(("bfloat", "float8")):
            continue
        values = np.array([1, 0, 3], numpy_name)
        tensor = halyard.Tensor(values.astype(values.dtype.newbyteorder(">")))
        assert tensor.tobytes() == values.tobytes(), name


def test_arrays_that_no_tensor_holds(product):
    a = np.zeros(8, np.float32)
    for wrong in (a.astype("datetime64[s]"), a.astype("timedelta64[s]"), a.astype(object), a.astype(str), a.astype("S"),
                  np.zeros(8, [("a", "f4")]), a.astype(np.longdouble), a.astype(np.complex64)):
        with pytest.raises(halyard.InvalidArgumentError, match=r"mul\(\): argument 'input0' has elements of"):
            product(wrong, [1.0] * 8)
    for masked in (np.ma.array(a, mask=[True] + [False] * 7), np.ma.array(a)):
        with pytest.raises(TypeError, match=r"mul\(\): argument 'input0' is a masked array"):
            product(masked, [1.0] * 8)
    assert product(a, a).tolist() == a.tolist()


def test_none_is_no_tensor(product):
    for wrong in ((None, [1.0] * 8), ([1.0] * 8, None)):
        with pytest.raises(TypeError, match=r"mul\(\): argument 'input[01]' must be an array or a tensor, not"):
            product(*wrong)


class OnlyFloat:
    def __float__(self):
        return float("inf")


def test_elements_of_lists(product):
    import decimal

    for right in (decimal.Decimal("1.5"), np.float16(1.5), np.float64(1.5), float("inf"), 3.4028234663852886e38, True):
        assert product([right] * 8, [1.0] * 8).tolist() == [float(right)] * 8
    for wrong in ("1", None, 1j, np.complex64(1j), np.timedelta64(1), np.datetime64(1, "s"), b"1", np.array([1.0, 2.0])):
        with pytest.raises(TypeError, match=r"mul\(\): argument 'input0' has the element"):
            product([wrong] * 8, [1.0] * 8)
    for large in (1e300, -1e300, 10**400, 3.4028235677973366e38):
        with pytest.raises(halyard.InvalidArgumentError, match="'input0' has the element.*does not fit float32"):
            product([large] * 8, [1.0] * 8)
    for value, dtype in ((2, "bool"), (-1, "uint8"), (255, "int8"), (256, "i8"), (-1, "ui8"), (2**63, None), (2**63, "int64"),
                         (2**64, "uint64"), (-1, "uint64"), (65520, "float16"), (2**31, "int32")):
        with pytest.raises(halyard.InvalidArgumentError, match="has the element .*, which does not fit"):
            halyard.Tensor([value], dtype)
    for value, dtype in ((1.0, "bool"), (1.5, "int32"), (1.0, "int64"), ("1", "int8")):
        with pytest.raises(TypeError, match="has the element .*, which is not a number for"):
            halyard.Tensor([value], dtype)
    for dtype in ("float64", "float32", "float16"):
        for value in (decimal.Decimal("1e400"), decimal.Decimal("-1e400"), np.longdouble("1e400"), np.longdouble("-1e400")):
            with pytest.raises(halyard.InvalidArgumentError, match=r"has the element -?1[eE]\+400, which does not fit"):
                halyard.Tensor([value], dtype)
        for value in (decimal.Decimal("inf"), np.longdouble("inf"), np.float16("inf"), np.float64("inf"), float("inf")):
            assert halyard.Tensor([value, -value], dtype).tolist() == [float("inf"), -float("inf")]
        assert halyard.Tensor([OnlyFloat()], dtype).tolist() == [float("inf")]
    assert halyard.Tensor([255], "i8").tolist() == [-1]  # the type has no sign
    assert halyard.Tensor([65519], "float16").tobytes() == np.float16(65504).tobytes()
    assert halyard.Tensor([2**64 - 1], "uint64").tolist() == [2**64 - 1]
    for item, dtype in ((np.bool_(True), "bool"), (np.float32(1.5), "float32"), (np.int8(3), "int64")):
        tensor = halyard.Tensor([item])
        assert (tensor.dtype, tensor.tolist()) == (dtype, [item])


def test_declared_scalars_have_their_range():
    text = """
vm.module @narrow
vm.export @f
vm.attr @f "iree.abi.declaration" "sync func @f(%a: i1, %b: i8, %c: ui16, %d: si16) -> (%r: i32)"
vm.func @f(%i0: i32, %i1: i32, %i2: i32, %i3: i32) -> (i32) {
  vm.return %i1
}
"""
    model = halyard.load(halyard.assemble(text))
    assert model.f(1, 255, 65535, -32768) == 255
    assert model.f(True, -128, 0, 32767) == -128
    assert model.f(np.bool_(True), np.uint8(7), 0, 0) == 7
    for wrong in ((2, 0, 0, 0), (-1, 0, 0, 0), (0, 256, 0, 0), (0, -129, 0, 0), (0, 0, -1, 0), (0, 0, 65536, 0),
                  (0, 0, 0, 32768)):
        with pytest.raises(OverflowError, match=r"f\(\): argument '[abcd]' is -?\d+, which does not fit an integer of"):
            model.f(*wrong)


def test_floats_have_their_range():
    model = halyard.load(halyard.assemble("""
vm.module @floats
vm.export @f
vm.func @f(%i0: f32, %i2:3: f64) -> (f32, f64) {
  vm.return %i0, %i2:3
}
"""))
    infinity = float("inf")
    assert model.f(infinity, -infinity) == (infinity, -infinity)
    assert model.f(np.float16(0.5), 10**300) == (0.5, 1e300)
    for wrong in ((1e39, 0.0), (-1e300, 0.0), (10**400, 0.0), (0.0, 10**400)):
        with pytest.raises(OverflowError, match="does not fit a float of"):
            model.f(*wrong)
    for wrong in ("1", b"1", 1j, np.complex64(1), np.timedelta64(1), None, [1.0]):
        with pytest.raises(TypeError, match="must be a float"):
            model.f(wrong, 0.0)


def test_truth():
    for value, dtype, truth in ((0.0, "float32", False), (-0.0, "float32", False), (float("nan"), "float64", True),
                                (5e-324, "float64", True), (False, "bool", False), (True, "bool", True), (0, "int64", False),
                                (2**32, "int64", True), (128, "uint8", True), (-0.0, "float16", False)):
        for shape in ([value], value, [[value]]):
            assert bool(halyard.Tensor(shape, dtype)) is truth, (value, dtype)
    for value, truth in ((0j, False), (complex(-0.0, -0.0), False), (1j, True), (1 + 0j, True)):
        for dtype in (np.complex64, np.complex128):
            assert bool(halyard.Tensor(np.array([value], dtype))) is truth
    for dtype, bits, truth in (("bfloat16", 0x8000, False), ("bfloat16", 0x0080, True), ("float8_e4m3fn", 0x80, False),
                               ("float8_e4m3fnuz", 0x80, True), ("float8_e8m0fnu", 0, True), ("float8_e5m2", 1, True)):
        raw = np.array([bits], np.uint16 if dtype == "bfloat16" else np.uint8)
        assert bool(halyard.Tensor(raw).view(dtype)) is truth, dtype
    for several in ([0, 0], [1, 1], [], [[1, 2]]):
        with pytest.raises(ValueError, match="neither true nor false"):
            bool(halyard.Tensor(several))


def test_equality_is_of_the_elements():
    tensor = halyard.Tensor([1, 2])
    for other in ([1, 3], np.array([1, 3]), halyard.Tensor([1, 3]), np.array([1.0, 3.0])):
        assert (tensor == other).tolist() == [True, False]
        assert (other == tensor).tolist() == [True, False]
        assert (tensor != other).tolist() == [False, True]
    assert (tensor == 2).tolist() == [False, True]
    assert bool(halyard.Tensor(2) == 2)
    with pytest.raises(ValueError):
        tensor == [1, 2, 3]
    assert len({tensor, tensor, halyard.Tensor([1, 2])}) == 2  # by which object it is


def test_equality_without_numpy(monkeypatch):
    import sys

    tensor = halyard.Tensor([1, 2])
    monkeypatch.setitem(sys.modules, "numpy", None)
    for compare in (lambda: tensor == tensor, lambda: tensor != [1, 2]):
        with pytest.raises(TypeError, match="tolist"):
            compare()
    assert bool(halyard.Tensor([1.0]))


def test_no_references_are_lost(product):
    import sys

    a = np.ones(8, np.float32)
    product(a, a)
    before = sys.getrefcount(a)
    for _ in range(1000):
        product(a, a)
        try:
            product(a, 1.0)
        except halyard.InvalidArgumentError:
            pass
    assert sys.getrefcount(a) == before
