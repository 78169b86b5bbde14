"""What vm-run does with results: --output to files and back, --expected_output with its texts and tolerances, statistics,
and the flags that other runtimes have."""
import json
import os
import struct
import tempfile
import unittest

import test_inputs
import vmrun
from npy import npy_array, read_npy
from test_inputs import SUCCESS

MODULE = vmrun.with_exports("""
vm.module @io
vm.dependency @hal 7
vm.func @view(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  vm.return %r0
}
vm.func @two(%r0: !hal.buffer_view, %i0: i32) -> (!hal.buffer_view, i32) {
  vm.return %r0, %i0
}
vm.func @number(%i0: f32) -> (f32) {
  vm.return %i0
}
vm.func @nothing() -> (!hal.buffer_view) {
  %r0 = vm.const.ref.zero
  vm.return %r0
}
""")


class WithModule(test_inputs.WithModule):
    MODULE = MODULE


class Results(WithModule):
    def refuses(self, parts, function, *flags):
        done = self.run_function(function, *flags)
        self.assertEqual(done.returncode, 1, done.stdout)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_printed_or_dropped(self):
        self.prints("hal.buffer_view\n2x2xi32=[1 2][3 4]\n", "view", "--input=2x2xi32=1,2,3,4", "--output=-")
        self.prints("", "view", "--input=2x2xi32=1,2,3,4", "--output=")
        self.prints("i32=7\n", "two", "--input=1xf32=1", "--input=7", "--output=", "--output=-")

    def test_arrays_come_back(self):
        for text, descr, shape in [("2x3xf32=1,2,3,4,5,6", "<f4", (2, 3)), ("3xsi8=1,2,3", "|i1", (3,)),
                                   ("2xui16=1,65535", "<u2", (2,)), ("2xi1=01,00", "|b1", (2,)),
                                   ("f64=2.5", "<f8", ()), ("0xf32=", "<f4", (0,)), ("2xf16=1,2", "<f2", (2,))]:
            with self.subTest(text):
                file = self.path("array.npy")
                self.prints("", "view", "--input=" + text, f"--output=@{file}")
                (found,) = read_npy(vmrun.read(file))
                self.assertEqual(found[:2], (descr, shape))
                self.prints(SUCCESS, "view", "--input=" + text, f"--expected_output=@{file}")

    def test_appends_and_overwrites(self):
        file = self.path("array.npy")
        self.prints("", "view", "--input=1xi32=1", f"--output=+{file}")
        self.prints("", "view", "--input=2xi32=2,3", f"--output=+{file}")
        with open(file, "rb") as written:
            self.assertEqual([array[2] for array in read_npy(written.read())],
                             [struct.pack("<i", 1), struct.pack("<ii", 2, 3)])
        self.prints("", "view", "--input=1xi32=9", f"--output=@{file}")
        self.assertEqual([array[2] for array in read_npy(vmrun.read(file))], [struct.pack("<i", 9)])

    def test_bytes_and_numbers(self):
        file = self.path("raw.bin")
        self.prints("", "view", "--input=2xf32=1,2", f"--output=@{file}")
        self.assertEqual(vmrun.read(file), struct.pack("<ff", 1, 2))
        self.prints("", "number", "--input=2.5", f"--output=@{self.path('n.npy')}")
        self.assertEqual(list(read_npy(vmrun.read(self.path("n.npy")))), [("<f4", (), struct.pack("<f", 2.5))])
        self.prints("", "nothing", f"--output=@{self.path('null.npy')}")
        self.assertEqual(list(read_npy(vmrun.read(self.path("null.npy")))), [("|i1", (0,), b"")])

    def test_output_errors(self):
        self.refuses(["OUT_OF_RANGE", "2 results", "1 --output"], "two", "--input=1xf32=1", "--input=7", "--output=-")
        self.refuses(["UNIMPLEMENTED", "--output=file", "@FILE"], "view", "--input=1xf32=1", "--output=file")
        self.refuses(["UNIMPLEMENTED", "i4"], "view", "--input=2xi4=@" + self.module,
                     f"--output=@{self.path('x.npy')}")
        self.refuses(["cannot write", "/no/such/folder/x"], "view", "--input=1xf32=1", "--output=@/no/such/folder/x")
        self.refuses(["cannot write '/dev/full'"], "view", "--input=1xf32=1", "--output=@/dev/full")

    def test_expected(self):
        self.prints(SUCCESS, "view", "--input=2xf32=1,2", "--expected_output=2xf32=1,2.00005")
        self.prints("[FAILED] result[0]: element at index 1 (2) does not match the expected (2.5); expected that the view is "
                    "equal to contents of a view of 2xf32\n  expected:\n2xf32=1 2.5\n  actual:\n2xf32=1 2\n",
                    "view", "--input=2xf32=1,2", "--expected_output=2xf32=1,2.5", code=1)
        self.prints("[FAILED] result[0]: metadata is 2xf32; expected that the view matches 2xi32; expected that the view is "
                    "equal to contents of a view of 2xi32\n  expected:\n2xi32=1 2\n  actual:\n2xf32=1 2\n",
                    "view", "--input=2xf32=1,2", "--expected_output=2xi32=1,2", code=1)
        self.prints("[FAILED] result[1]: i32 values differ\n  expected: 8\n  actual: 7\n",
                    "two", "--input=1xf32=1", "--input=7", "--expected_output=(ignored)", "--expected_output=8", code=1)
        self.prints("[FAILED] result[0]: variant types mismatch; expected hal.buffer_view but got empty\n",
                    "nothing", "--expected_output=1xf32=1", code=1)
        self.prints("[FAILED] expected 1 list elements but 2 provided\n",
                    "two", "--input=1xf32=1", "--input=7", "--expected_output=1xf32=1", code=1)
        self.refuses(["INVALID_ARGUMENT"], "view", "--input=1xf32=1", "--expected_output=1xf32=1", "--expected_output=2")

    def test_tolerances(self):
        def case(type_, actual, expected, same, *flags):
            with self.subTest(f"{type_} {actual} {expected} {flags}"):
                done = self.run_function("view", f"--input=1x{type_}={actual}", f"--expected_output=1x{type_}={expected}", *flags)
                self.assertEqual(done.returncode, 0 if same else 1, done.stdout + done.stderr)

        case("f16", "1", "1.001", True)
        case("f16", "1", "1.01", False)
        case("f16", "1", "1.01", True, "--expected_f16_threshold=0.1")
        case("bf16", "1", "1.0078125", True)
        case("bf16", "1", "1.0625", False)
        case("bf16", "1", "1.0625", True, "--expected_bf16_threshold=0.1")
        case("f32", "1", "1.5", True, "--expected_f32_threshold=1")
        case("f64", "1", "1.0005", False)
        case("f64", "1", "1.0005", True, "--expected_f64_threshold=0.001")
        case("f32", "100000", "100001", True)
        case("f32", "100000", "100001", False, "--equality_mode=absolute")
        case("f32", "100000", "100100", True, "--expected_rtol=0.01")
        case("f32", "0", "0.00005", False, "--equality_mode=relative")
        case("f32", "1", "1.00001", False, "--equality_mode=exact")
        case("f32", "nan", "nan", True, "--equality_mode=exact")
        case("f32", "0", "-0", True, "--equality_mode=exact")
        case("f32", "nan", "1", False)
        case("f32", "inf", "-inf", False)
        case("i32", "1", "2", False)
        self.refuses(["--equality_mode=near"], "view", "--input=1xf32=1", "--expected_output=1xf32=1", "--equality_mode=near")
        self.refuses(["--expected_rtol=-1"], "view", "--input=1xf32=1", "--expected_output=1xf32=1", "--expected_rtol=-1")

    def test_statistics(self):
        done = self.run_function("view", "--input=4xf32=1", "--print_statistics")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^Device: local-sync\n\[\[ iree_hal_allocator_t memory statistics \]\]\n"
                                      r"  HOST_LOCAL: +\d+B peak / +\d+B allocated / +\d+B freed / +\d+B live\n"
                                      r"DEVICE_LOCAL: +\d+B peak / +\d+B allocated / +\d+B freed / +\d+B live\n\n$")

    def test_task_flags(self):
        def run(*flags):
            return vmrun.run("vm-run", f"--module={self.module}", "--function=view", "--input=1xf32=1", *flags)

        for flags in [("--task_topology_group_count=3",), ("--task_topology_max_group_count=64",),
                      ("--task_worker_spin_us=5", "--task_topology_mode=physical_cores", "--task_abort_on_failure")]:
            self.assertEqual(run("--device=local-task", *flags).returncode, 0, flags)
        self.assertEqual(run("--device=local-sync", "--task_topology_group_count=3").returncode, 0)
        self.assertEqual(run("--device=local-task?workers=1", "--task_topology_group_count=0").returncode, 0)
        self.assertIn("--task_topology_group_count=x", run("--device=local-task", "--task_topology_group_count=x").stderr)
        self.assertIn("from 1 to 1024", run("--device=local-task", "--task_topology_group_count=0").stderr)

    @unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
    def test_devices_with_descriptions(self):
        done = vmrun.run("vm-run", "--dump_devices=local-task")
        self.assertIn("# Enumerated devices for driver 'local-task'\n", done.stdout)
        self.assertIn("# --device=local-task://\n#   default\n", done.stdout)
        self.assertIn("local-sync://", vmrun.run("vm-run", "--dump_devices").stdout)
        self.assertEqual(vmrun.run("vm-run", "--dump_devices=nothing").returncode, 1)


class Json(WithModule):
    def results(self, *arguments, returncode=0):
        done = vmrun.run("vm-run", "--module=" + self.module, "--device=local-sync", "--json", *arguments)
        self.assertEqual(done.returncode, returncode, done.stderr)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def test_tensors_and_numbers(self):
        self.assertEqual(self.results("--function=two", "--input=2x2xf32=1,2.5,0.1,-4", "--input=-7"), {
            "function": "two",
            "results": [{"type": "hal.buffer_view", "element_type": "f32", "shape": [2, 2], "elements": [1, 2.5, 0.1, -4]},
                        {"type": "i32", "value": -7}]})

    def test_what_json_has_no_number_for_is_a_string(self):
        (tensor,) = self.results("--function=view", "--input=3xf32=nan,inf,-inf")["results"]
        self.assertEqual(tensor["elements"], ["nan", "inf", "-inf"])
        (tensor,) = self.results("--function=view", "--input=2xi1=01,00")["results"]
        self.assertEqual(tensor["elements"], ["01", "00"])
        self.assertEqual(self.results("--function=number", "--input=nan")["results"], [{"type": "f32", "value": "nan"}])

    def test_other_types(self):
        for text, elements in (("4xsi8=-128,127,0,1", [-128, 127, 0, 1]), ("2xui64=-1,0", [2**64 - 1, 0]),
                               ("2xf64=0.1,1e300", [0.1, 1e300]), ("3xbf16=1,-2,0.5", [1, -2, 0.5]),
                               ("2xf16=65504,1e-7", [65504, 1.19209e-07]), ("0xf32", [])):
            with self.subTest(text):
                (tensor,) = self.results("--function=view", "--input=" + text)["results"]
                self.assertEqual(tensor["elements"], elements)

    def test_null_and_what_is_left_out(self):
        self.assertEqual(self.results("--function=nothing")["results"], [None])
        (tensor,) = self.results("--function=view", "--input=5xi32=7", "--output_max_element_count=2")["results"]
        self.assertEqual((tensor["elements"], tensor["elements_left_out"]), ([7, 7], 3))

    def test_not_together_with_other_forms(self):
        for other in ("--output=-", "--expected_output=1xf32=1"):
            self.assertIn(other.split("=")[0], self.results("--function=view", "--input=1xf32=1", other, returncode=1))


LISTS = vmrun.with_exports("""
vm.module @lists
// Lists around a list, %i0 times, each %i1 times in the next; with %i2 the innermost contains itself.
vm.func @nest(%i0: i32, %i1: i32, %i2: i32) -> (!vm.list<!vm.opaque>) {
  %i3 = vm.const.i32 1
  %i4 = vm.const.i32.zero
  %r0 = vm.list.alloc %i3 : !vm.list<!vm.opaque>
  vm.cond_br %i2, ^bb6, ^bb1
^bb6:
  vm.list.resize %r0, %i3
  vm.list.set.ref %r0, %i4, %r0
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
  vm.return %R0
}
// One tensor in each of 8192 elements.
vm.func @tensors(%r0: !hal.buffer_view) -> (!vm.list<!vm.opaque>) {
  %i0 = vm.const.i32 8192
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  %r1 = vm.list.alloc %i0 : !vm.list<!vm.opaque>
  vm.list.resize %r1, %i0
  vm.br ^bb1
^bb1:
  vm.list.set.ref %r1, %i1, %r0
  %i1 = vm.add.i32 %i1, %i2
  %i3 = vm.cmp.lt.i32.s %i1, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb2:
  vm.discard.refs %r0
  vm.return %R1
}
""")


class Lists(vmrun.FolderCase):
    """Lists without bounds: deep, full of one another, within themselves."""
    UNBOUNDED = [("1000000", "1", "0"), ("0", "1", "1"), ("3", "2", "1"), ("60", "2", "0"), ("250", "2", "0")]

    def setUp(self):
        super().setUp()
        self.module = self.write("lists.vmasm", LISTS)

    def nest(self, numbers, *arguments):
        return vmrun.run("vm-run", "--module=" + self.module, "--device=local-sync", "--function=nest",
                         *("--input=" + number for number in numbers), *arguments)

    def test_printed_up_to_a_depth_and_a_number(self):
        for numbers in self.UNBOUNDED:
            done = self.nest(numbers)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("\n...\n", done.stdout)
            self.assertLess(done.stdout.count("vm.list"), 2**17)

    def test_json_has_all_or_is_refused(self):
        for numbers in self.UNBOUNDED:
            done = self.nest(numbers, "--json")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("RESOURCE_EXHAUSTED; result[0]: ", done.stderr)
        value = json.loads(self.nest(("255", "1", "0"), "--json").stdout)["results"][0]
        depth = 0
        while value:
            depth += 1
            value = value["elements"][0] if value["elements"] else None
        self.assertEqual(depth, 256)
        (value,) = json.loads(self.nest(("15", "2", "0"), "--json").stdout)["results"]
        self.assertEqual(len(value["elements"]), 2)

    def test_tensors_in_json_lists_are_shown_up_to_a_number_of_elements(self):
        done = vmrun.run("vm-run", "--module=" + self.module, "--device=local-sync", "--function=tensors",
                         "--input=1000xf32=1", "--json")
        (value,) = json.loads(done.stdout)["results"]
        self.assertEqual(len(value["elements"]), 8192)
        self.assertEqual(sum(len(each["elements"]) for each in value["elements"]), 1048576)
        self.assertEqual(value["elements"][-1]["elements_left_out"], 1000)

    def test_printed_up_to_a_number_of_bytes(self):
        done = vmrun.succeeds("vm-run", "--module=" + self.module, "--device=local-sync", "--function=tensors",
                         "--input=10000x1xf32=1")
        self.assertTrue(done.stdout.endswith("\n...\n\n"), done.stdout[-100:])
        self.assertLess(len(done.stdout), 17 << 20)

    def test_large_tensors_in_json_lists_are_read_as_far_as_they_are_shown(self):
        done = vmrun.run("vm-run", "--module=" + self.module, "--device=local-sync", "--function=tensors",
                         "--input=1000000x1xi8=1", "--json", "--output_max_element_count=2")
        (value,) = json.loads(done.stdout)["results"]
        self.assertEqual(value["elements"][-1], {"type": "hal.buffer_view", "element_type": "i8", "shape": [1000000, 1],
                                                 "elements": [1, 1], "elements_left_out": 999998})

    def test_not_compared_and_not_written(self):
        for numbers in self.UNBOUNDED:
            done = self.nest(numbers, "--expected_output=1xf32=1")
            self.assertEqual(done.returncode, 1)
            self.assertIn("vm.list", done.stdout + done.stderr)
            done = self.nest(numbers, "--output=@" + self.path("list.npy"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("a vm.list cannot be written", done.stderr)


class InputsFrom(WithModule):
    def fill(self, **arrays):
        folder = self.path("inputs")
        os.mkdir(folder)
        for name, (descr, shape, data) in arrays.items():
            vmrun.write(os.path.join(folder, name + ".npy"), npy_array(descr, shape, data))
        return folder

    def run_two(self, *arguments):
        return vmrun.run("vm-run", "--module=" + self.module, "--function=two", "--device=local-sync", *arguments)

    def test_in_the_order_of_their_numbers(self):
        with open(self.module, "a") as file:
            file.write("vm.export @three\nvm.func @three(%r0: !hal.buffer_view, %r1: !hal.buffer_view, %r2: !hal.buffer_view)"
                       " -> (!hal.buffer_view, !hal.buffer_view, !hal.buffer_view) {\n  vm.return %r0, %r1, %r2\n}\n")
        folder = self.fill(in10=("<i4", (1,), struct.pack("<i", 10)), in9=("<i4", (1,), struct.pack("<i", 9)),
                           in010b=("<f4", (2,), struct.pack("<2f", 1, 2)))
        vmrun.write(os.path.join(folder, "README"), "not an array")
        done = vmrun.run("vm-run", "--module=" + self.module, "--function=three", "--device=local-sync",
                         "--inputs_from=" + folder)
        self.assertEqual(done.stdout.splitlines()[2::2], ["1xsi32=9", "1xsi32=10", "2xf32=1 2"], done.stderr)

    def test_wrong_folders(self):
        for folder, part in (("/no/such/folder", "/no/such/folder"), (self.folder, ".npy")):
            done = self.run_two("--inputs_from=" + folder)
            self.assertIsNone(vmrun.why_bad_failure(done, "NOT_FOUND", "--inputs_from", part), done.stderr)
        done = self.run_two("--inputs_from=x", "--input=1")
        self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "--inputs_from", "--input"), done.stderr)

    def test_too_many_arrays(self):
        folder = self.fill(a=("<f4", (1,), bytes(4)), b=("<f4", (1,), bytes(4)))
        done = vmrun.run("vm-run", "--module=" + self.module, "--function=view", "--device=local-sync", "--inputs_from=" + folder)
        self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT"), done.stderr)


class PrintStats(unittest.TestCase):
    def test_phases_memory_objects(self):
        done = vmrun.succeeds("vm-run", "--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3",
                         "--input=8xf32=2", "--device=local-sync", "--print_stats")
        lines = [line.split() for line in done.stderr.splitlines()]
        self.assertEqual(lines[0], ["time"])
        phases = [" ".join(line[:-2]) for line in lines[1:lines.index(["memory", "peak", "allocated", "live"])]]
        self.assertEqual(phases, ["load modules", "open devices", "make context", "inputs", "call", "results"])
        objects = {line[0]: (int(line[1]), int(line[2])) for line in lines if line[0].startswith("hal.")}
        self.assertEqual(objects["hal.allocation"], (3, 0))
        self.assertEqual({live for _, live in objects.values()}, {0})
        memory = next(line for line in lines if line[0] == "local-sync://" and len(line) > 1)
        self.assertEqual((memory[2], memory[-2]), ("96", "0"))

    def test_objects_of_modules(self):
        with tempfile.NamedTemporaryFile("w", suffix=".vmasm") as file:
            file.write("""
vm.module @made
vm.type i32
vm.type !vm.list<i32>
vm.export @lists
vm.func @lists(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  %i2:3 = vm.const.i64 64
  vm.br ^bb1()
^bb1:
  %r0 = vm.list.alloc %i1 : !vm.list<i32>
  %r1 = vm.buffer.alloc %i2:3, %i1
  %i0 = vm.sub.i32 %i0, %i1
  vm.cond_br %i0, ^bb1(), ^bb2()
^bb2:
  vm.return %i0
}
""")
            file.flush()
            done = vmrun.run("vm-run", "--module=" + file.name, "--function=lists", "--input=3", "--print_stats")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split() for line in done.stderr.splitlines()]
        self.assertNotIn("memory", [line[0] for line in lines])
        objects = lines[lines.index(["objects", "created", "remaining"]) + 1:]
        self.assertEqual(objects, [["modules"], ["vm.list", "3", "0"], ["vm.buffer", "3", "0"]])
