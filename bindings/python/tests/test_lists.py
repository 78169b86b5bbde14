"""Lists of programs (vm.list): as arguments and results that a description declares, and from functions of Python."""
import asyncio
import concurrent.futures
import json

import pytest

import halyard

LISTS = """
vm.module @lists
vm.import @host.give cconv "0i_r"
vm.export @pass
vm.attr @pass "iree.abi" ABI
vm.func @pass(%r0: !vm.list<?>) -> (!vm.list<?>) {
  vm.return %r0
}
vm.export @second
vm.attr @second "iree.abi" SECOND
vm.func @second(%r0: !vm.list<?>) -> (i32) {
  %i0 = vm.const.i32 1
  %i1 = vm.list.get.i32 %r0, %i0
  vm.return %i1
}
vm.export @give
vm.func @give(%i0: i32) -> (!vm.opaque) {
  %r0 = vm.call @host.give(%i0)
  vm.return %r0
}
"""


def lists(kind, give=lambda number: None, **options):
    def quoted(abi):
        return "e" + json.dumps(json.dumps(abi))

    abi = {"a": [["py_homogeneous_list", kind]], "r": [["py_homogeneous_list", kind]], "v": 1}
    second = {"a": [["py_homogeneous_list", "i32"]], "r": ["i32"], "v": 1}
    text = LISTS.replace("ABI", quoted(abi)).replace("SECOND", quoted(second))
    return halyard.load(halyard.assemble(text), functions=[halyard.function("0i_r", name="give")(give)], **options)


@pytest.mark.parametrize("kind, value", [("i32", [1, -2, 3]), ("i64", [2**40]), ("f32", [0.5, 2.0]), ("f64", [0.1]),
                                         ("i32", []), (["py_homogeneous_list", "i32"], [[1], [], [2, 3]])])
def test_lists_come_back(kind, value):
    assert lists(kind)["pass"](value) == value
    assert lists(kind)["pass"](tuple(value)) == value


def test_lists_of_arrays():
    model = lists(["ndarray", "f32", 1, None])
    one, two = model["pass"]([[1, 2], halyard.Tensor([3.0, 4.0, 5.0])])
    assert one.dtype == two.dtype == "float32" and one.tolist() == [1.0, 2.0] and two.tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(halyard.InvalidArgumentError, match="shape"):
        model["pass"]([[[1.0]]])


def test_programs_read_them():
    assert lists("i32").second([10, 20, 30]) == 20
    assert "list of i32" in lists("i32").signature("second")


def test_what_is_no_list():
    model = lists("i32")
    with pytest.raises(TypeError, match="argument 'arg0' must be a list"):
        model.second(7)
    with pytest.raises(TypeError, match="must be an int"):
        model.second([1, "x"])
    with pytest.raises(OverflowError):
        model.second([1, 2**40])


@pytest.mark.parametrize("device", [None, "local-sync", "local-task"])
def test_functions_return_what_makes_a_tensor(device):
    np = pytest.importorskip("numpy")

    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    values = [np.arange(6, dtype=np.int32).reshape(2, 3), np.float64(2.5), 7, 1.5, bytearray(b"ab"),
              OnlyDlpack(np.ones(3, np.float32)), halyard.Tensor([1.0]), None, [1, 2.5, [None, np.zeros(2, np.uint8)]], ()]
    model = lists("i32", lambda number: values[number], device=device)
    assert model.give(0).tolist() == [[0, 1, 2], [3, 4, 5]] and model.give(0).dtype == "int32"
    assert model.give(1).item() == 2.5
    assert model.give(2).item() == 7 and model.give(2).shape == ()
    assert model.give(3).item() == 1.5
    assert model.give(4).tolist() == [97, 98]
    assert model.give(5).tolist() == [1.0, 1.0, 1.0]
    assert model.give(6).tolist() == [1.0]
    assert model.give(7) is None
    number, real, inner = model.give(8)
    assert (number, real, inner[0], inner[1].tolist()) == (1, 2.5, None, [0, 0])
    assert model.give(9) == []


def test_functions_return_what_makes_none():
    endless = []
    endless.append(endless)
    values = [object(), [2**70], endless]
    model = lists("i32", lambda number: values[number])
    for number, error in enumerate([TypeError, OverflowError, halyard.ResourceExhaustedError]):
        with pytest.raises(error):
            model.give(number)


# Lists around lists: one at each step around the last, `width` times in it; then `join` puts the last into itself.
NESTED = """
vm.module @nested
vm.import @host.take cconv "0r_v"
vm.export @nest
vm.func @nest(%i0: i32, %i1: i32, %i2: i32) -> (!vm.list<!vm.opaque>) {
  %r0 = vm.call @make(%i0, %i1, %i2)
  vm.return %R0
}
vm.export @hand_over
vm.func @hand_over(%i0: i32, %i1: i32, %i2: i32) -> () {
  %r0 = vm.call @make(%i0, %i1, %i2)
  vm.call @host.take(%r0)
  vm.discard.refs %r0
  vm.return
}
vm.func @make(%i0: i32, %i1: i32, %i2: i32) -> (!vm.list<!vm.opaque>) {
  %i3 = vm.const.i32 1
  %i4 = vm.const.i32.zero
  %r0 = vm.list.alloc %i3 : !vm.list<!vm.opaque>
  vm.br ^bb1
^bb1:
  vm.cond_br %i0, ^bb2, ^bb5
^bb2:
  %r1 = vm.list.alloc %i1 : !vm.list<!vm.opaque>
  vm.list.resize %r1, %i1
  %i5 = vm.const.i32.zero
  vm.br ^bb3
^bb3:
  vm.list.set.ref %r1, %i5, %r0
  %i5 = vm.add.i32 %i5, %i3
  %i6 = vm.cmp.lt.i32.s %i5, %i1
  vm.cond_br %i6, ^bb3, ^bb4
^bb4:
  %i0 = vm.sub.i32 %i0, %i3
  vm.br ^bb1(%R1 -> %r0)
^bb5:
  vm.cond_br %i2, ^bb6, ^bb7
^bb6:
  vm.list.resize %r0, %i3
  vm.list.set.ref %r0, %i4, %r0
  vm.br ^bb7
^bb7:
  vm.return %R0
}
"""


@pytest.fixture(scope="module")
def nested():
    def take(value):
        took.append(value)

    took = []
    model = halyard.load(halyard.assemble(NESTED), functions=[halyard.function("0r_v", name="take")(take)])
    return model, took


def depth_of(value):
    depth = 1
    while value:
        value = value[0]
        depth += 1
    return depth


# Steps, elements of each list, whether the last contains itself; what is found.
UNBOUNDED = [(256, 1, 0, "at most 256 deep"), (1_000_000, 1, 0, "at most 256 deep"), (0, 1, 1, "contains itself"),
             (3, 2, 1, "contains itself"), (20, 2, 0, "more than 1048576 elements"),
             (250, 2, 0, "more than 1048576 elements")]


@pytest.mark.parametrize("call", ["nest", "hand_over"])
@pytest.mark.parametrize("steps, width, join, message", UNBOUNDED)
def test_lists_of_a_program_that_have_no_bounds(nested, call, steps, width, join, message):
    model, _ = nested
    with pytest.raises(halyard.ResourceExhaustedError, match=message):
        model[call](steps, width, join)


def test_lists_of_a_program_within_the_bounds(nested):
    model, took = nested
    assert depth_of(model.nest(255, 1, 0)) == 256
    assert depth_of(model.nest(15, 2, 0)) == 16
    model.hand_over(255, 1, 0)
    assert depth_of(took.pop()) == 256


def test_lists_of_a_function_that_have_no_bounds():
    def doubled(steps):
        value = []
        for _ in range(steps):
            value = [value, value]
        return value

    def deep(levels):
        value = []
        for _ in range(levels - 1):
            value = [value]
        return value

    values = [deep(257), deep(100_000), doubled(20), doubled(200), deep(256), doubled(15)]
    model = lists("i32", lambda number: values[number])
    for number, message in enumerate(["256 deep", "256 deep", "1048576 elements", "1048576 elements"]):
        with pytest.raises(halyard.ResourceExhaustedError, match=message):
            model.give(number)
    assert depth_of(model.give(4)) == 256
    assert depth_of(model.give(5)) == 16
    while values[1]:  # Python frees so many levels one by one
        values[1] = values[1][0]


KEPT = """
vm.module @kept
vm.export @__init
vm.func @__init() -> () {
  %i0 = vm.const.i32.zero
  %r0 = vm.list.alloc %i0 : !vm.list<i32>
  vm.global.store.ref %r0, .refs[0] : !vm.list<i32>
  vm.return
}
vm.export @fill
vm.func @fill(%i0: i32) -> (!vm.list<i32>) {
  %r0 = vm.global.load.ref .refs[0] : !vm.list<i32>
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  vm.list.resize %r0, %i0
  vm.br ^bb1
^bb1:
  %i3 = vm.cmp.lt.i32.s %i1, %i0
  vm.cond_br %i3, ^bb2, ^bb3
^bb2:
  vm.list.set.i32 %r0, %i1, %i0
  %i1 = vm.add.i32 %i1, %i2
  vm.br ^bb1
^bb3:
  vm.return %r0
}
"""


def test_a_list_that_the_program_keeps_is_that_of_the_call():
    """Calls on several threads fill one list, each with its own size."""
    model = halyard.load(halyard.assemble(KEPT))

    def calls(size):
        for _ in range(30):
            assert model.fill(size) == [size] * size

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(calls, size) for size in (3, 3000, 5000)]:
            done.result()


def test_a_list_that_the_program_keeps_and_asyncio():
    model = halyard.load(halyard.assemble(KEPT))

    async def calls():
        sizes = [3, 3000, 5000] * 10
        for size, result in zip(sizes, await asyncio.gather(*(model.fill.call_async(size) for size in sizes))):
            assert result == [size] * size

    asyncio.run(calls())
