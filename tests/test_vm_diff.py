"""vm-diff from the command line: a planted wrong kernel is found by its name, in a small module and in BERT-tiny; tolerances,
types, kept tensors, programs of other structure, repeated runs, captures, wrong command lines."""
import json
import os
import struct
import tempfile
import unittest

import large
import vmrun

vmrun.need_tool("vm-diff")
MUL = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
INLINE = os.path.join(vmrun.SOURCE, "examples", "inline_dispatch.vmasm")
SYNC = "--device=local-sync"
INPUTS = ["--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=1.1"]

# Adds %d to the bits of element 5, in the second of two workgroups.
PLANT = """  ^bb3:
    %%i17 = vm.cmp.eq.i32 %%i0, %%i10
    vm.cond_br %%i17, ^bb4, ^bb5
  ^bb4:
    %%i18:19 = vm.const.i64 5
    %%i20 = vm.buffer.load.i32 %%r5, %%i18:19
    %%i21 = vm.const.i32 %d
    %%i20 = vm.add.i32 %%i20, %%i21
    vm.buffer.store.i32 %%i20, %%r5, %%i18:19
    vm.br ^bb5
  ^bb5:
"""


def planted(ulps):
    """The module with a kernel that is wrong by so many ulps."""
    text = vmrun.read_text(MUL)
    before, after = text.split("  ^bb3:\n    vm.discard.refs", 1)
    return before + PLANT % ulps + "    vm.discard.refs" + after


def dispatch_line(text):
    return next(line for line in text.splitlines() if "vm.call.variadic @hal.command_buffer.dispatch" in line)


# Shows its argument to the host; then fills, updates and copies a buffer with operations of a queue.
HOST_STEPS = """
vm.module @steps
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.buffer_view.buffer cconv "0r_r"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal.buffer_view.trace cconv "0rCrD_v"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"
vm.import @hal.device.queue.update cconv "0rIrrrIrIII_v"
vm.import @hal.device.queue.copy cconv "0rIrrrIrIII_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"

vm.rodata[0] = "shown"
vm.rodata[1] = 0000204200002842             // 40.0, 42.0

vm.export @main
vm.attr @main "iree.abi.declaration" "sync func @main(%input0: tensor<4xf32>) -> (%output0: tensor<8xf32>)"
vm.func @main(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  %r1 = vm.const.ref.rodata 0
  vm.call.variadic @hal.buffer_view.trace segments[65535, 1](%r1, %r0)
  %i0 = vm.const.i32.zero
  %r2 = vm.call @hal.devices.get(%i0)
  %r3 = vm.call @hal.buffer_view.buffer(%r0)
  %r4 = vm.const.ref.rodata 1
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 -1
  %i6:7 = vm.const.i64 32
  %i8:9 = vm.const.i64 8
  %i10:11 = vm.const.i64 16
  %i12 = vm.const.i32 0x30
  %i13 = vm.const.i32 0xC03
  %i14:15 = vm.const.i64 0x3F800000
  %i16 = vm.const.i32 4
  %r5 = vm.const.ref.zero
  %r6 = vm.call @hal.fence.create(%r2, %i2:3)
  %r7 = vm.call @hal.fence.create(%r2, %i2:3)
  %r8 = vm.call @hal.fence.create(%r2, %i2:3)
  %r9 = vm.call @hal.fence.create(%r2, %i2:3)
  %r10 = vm.call @hal.device.queue.alloca(%r2, %i4:5, %r5, %r6, %i2:3, %i12, %i13, %i6:7, %i2:3)
  vm.call @hal.device.queue.fill(%r2, %i4:5, %r6, %r7, %r10, %i2:3, %i6:7, %i14:15, %i16, %i2:3)
  vm.call @hal.device.queue.update(%r2, %i4:5, %r7, %r8, %r4, %i2:3, %r10, %i8:9, %i8:9, %i2:3)
  vm.call @hal.device.queue.copy(%r2, %i4:5, %r8, %r9, %r3, %i2:3, %r10, %i10:11, %i10:11, %i2:3)
  %i17 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i17, %i2:3, %r9) -> ^bb1(%i18)
^bb1:
  vm.cond_br %i18, ^bb2, ^bb3
^bb2:
  vm.fail %i18, "failed to wait"
^bb3:
  %i19 = vm.const.i32 0x21000020
  %i20 = vm.const.i32 1
  %r11 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r10, %i2:3, %i6:7, %i19, %i20, %i8:9)
  vm.return %R11
}
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name
        self.wrong = self.write("wrong.vmasm", planted(2))

    def tearDown(self):
        self.scratch.cleanup()

    def write(self, name, contents):
        path = os.path.join(self.folder, name)
        vmrun.write(path, contents)
        return path

    def diff(self, *arguments, code=0, **options):
        done = vmrun.run("vm-diff", *arguments, timeout=900, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def report(self, *arguments, code=0):
        return json.loads(self.diff(*arguments, "--json", code=code))

    def planted(self, *arguments, code=2):
        return self.report(MUL, *INPUTS, SYNC, "--b=--module=" + self.wrong, *arguments, code=code)

    def first(self, report):
        return report["differences"][report["first_beyond"]]


class Report(Case):
    def test_the_kernel_is_found_by_name(self):
        text = self.diff(MUL, *INPUTS, SYNC, "--b=--module=" + self.wrong, code=2)
        for part in ("the first step beyond tolerance is 0 of 2", "kernel      mul, workgroups 2x1x1", "1 of 8",
                     "2 ulps", "0: 7, 2: 1", "[5]", "the step itself differs", "result[0]"):
            self.assertIn(part, text)

    def test_as_json(self):
        report = self.planted()
        self.assertEqual((report["outcome"], report["steps_a"], report["compared"]), ("differs", 2, 2))
        first = self.first(report)
        self.assertEqual((first["name_a"], first["operation"], first["changed_before"]), ("mul", "dispatch", []))
        self.assertRegex(first["place_a"], r"^at elementwise_mul\.__init\+[0-9A-F]{8}")
        tensor = first["tensors"][0]
        self.assertEqual((tensor["type"], tensor["type_from"], tensor["elements"], tensor["different"], tensor["beyond"]),
                         ("f32", "a guess from the values", 8, 1, 1))
        self.assertEqual(tensor["ulps"], {"0": 7, "2": 1})
        self.assertEqual((tensor["largest_ulps"], tensor["worst"][0]["index"], tensor["nan"]), (2, [5], [0, 0]))
        wanted = struct.unpack("<f", struct.pack("<f", struct.unpack("<f", struct.pack("<f", 1.1))[0] * 6))[0]
        self.assertAlmostEqual(tensor["largest_absolute"], abs(struct.unpack("<f", struct.pack("<i", struct.unpack("<i", struct.pack("<f", wanted))[0] + 2))[0] - wanted))
        self.assertEqual([each["name_a"] for each in report["differences"]], ["mul", "result[0]"])
        self.assertEqual(report["differences"][1]["tensors"][0]["type_from"], "the program")
        self.assertEqual(report["differences"][1]["tensors"][0]["shape"], [8])

    def test_json_beside_text(self):
        path = os.path.join(self.folder, "report.json")
        text = self.diff(MUL, *INPUTS, SYNC, "--b=--module=" + self.wrong, "--json=" + path, code=2)
        self.assertIn("kernel      mul", text)
        self.assertEqual(json.loads(vmrun.read_text(path))["outcome"], "differs")

    def test_the_same(self):
        text = self.diff(MUL, *INPUTS, "--a=" + SYNC, "--b=--device=local-task")
        self.assertIn("2 steps compared: 0 differ, 0 beyond tolerance", text)
        self.assertEqual(self.report(MUL, *INPUTS, SYNC, "--b=--jit=off")["outcome"], "same")

    def test_tolerances(self):
        for flags, code in ((["--ulps=2"], 0), (["--ulps=1"], 2), (["--ulps=f32=2"], 0), (["--ulps=f16=2"], 2), (["--atol=1e-6"], 0),
                            (["--atol=1e-7"], 2), (["--rtol=1e-6"], 0), (["--rtol=1e-8"], 2), (["--atol=1", "--atol=f32=0"], 2),
                            (["--atol=0", "--atol=f32=1"], 0)):
            report = self.planted(*flags, code=code)
            self.assertEqual(report["outcome"], "differs" if code else "within tolerance", flags)
            self.assertEqual(len(report["differences"]), 2, flags)

    def test_integers_are_exact_unless_their_type_is_named(self):
        other = self.write("other.vmasm", vmrun.read_text(INLINE).replace("vm.mul.i32", "vm.add.i32"))
        arguments = [INLINE, "--function=scale", "--input=6xi32=1,2,3,4,5,6", "--input=10", "--b=--module=" + other]
        report = self.report(*arguments, "--atol=1000", code=2)
        self.assertEqual(self.first(report)["name_a"], "scale")
        self.assertEqual(self.first(report)["tensors"][0]["type"], "i32")
        self.assertEqual(self.report(*arguments, "--atol=i32=1000")["outcome"], "within tolerance")

    def test_given_types(self):
        report = self.planted("--type=m*=f16", "--type=ui8")
        tensor = self.first(report)["tensors"][0]
        self.assertEqual((tensor["type"], tensor["type_from"], tensor["elements"]), ("f16", "--type", 15))
        self.assertEqual(self.first(self.planted("--type=x*=f16"))["tensors"][0]["type"], "f32")

    def test_not_a_number(self):
        infinite = ["--function=mul", "--input=8xf32=inf,inf,1,1,nan,1,1,1", "--input=8xf32=0,1,1,1,1,1,1,1"]
        other = self.write("sum.vmasm", vmrun.read_text(MUL).replace("vm.mul.f32", "vm.add.f32"))
        report = self.report(MUL, *infinite, SYNC, "--b=--module=" + other, "--atol=10", code=2)
        tensor = self.first(report)["tensors"][0]
        self.assertEqual((tensor["nan"], tensor["infinite"], tensor["beyond"]), ([2, 1], [1, 2], 1))
        self.assertEqual(tensor["ulps"]["NaN or infinity"], 1)
        self.assertEqual((tensor["worst"][0]["index"], tensor["worst"][0]["absolute"]), ([0], "inf"))

    def test_the_worst_elements(self):
        other = self.write("sum.vmasm", vmrun.read_text(MUL).replace("vm.mul.f32", "vm.add.f32"))
        for count in (0, 3, 100):
            worst = self.first(self.report(MUL, *INPUTS, SYNC, "--b=--module=" + other, f"--worst={count}", code=2))["tensors"][0]["worst"]
            self.assertEqual(len(worst), min(count, 8))
            self.assertEqual([each["absolute"] for each in worst], sorted((each["absolute"] for each in worst), reverse=True))

    def test_kept_tensors(self):
        tensors = os.path.join(self.folder, "new", "tensors")
        self.planted("--keep=" + tensors)
        self.assertEqual(sorted(os.listdir(tensors)), ["00000_mul.2.a.npy", "00000_mul.2.b.npy", "00001_result_0_.0.a.npy",
                                                       "00001_result_0_.0.b.npy"])
        a, b = (vmrun.read(os.path.join(tensors, f"00000_mul.2.{side}.npy")) for side in "ab")
        self.assertIn(b"'descr': '<f4', 'fortran_order': False, 'shape': (8,)", a)
        ints = [struct.unpack("<8i", each[-32:]) for each in (a, b)]
        self.assertEqual([y - x for x, y in zip(*ints)], [0, 0, 0, 0, 0, 2, 0, 0])
        self.planted("--keep=" + os.path.join(self.folder, "none"), "--ulps=2", code=0)
        self.assertEqual(os.listdir(os.path.join(self.folder, "none")), [])

    def test_repeated_runs_find_the_same(self):
        once, often = self.planted(), self.planted("--hold=1")
        self.assertEqual((once["runs"], often["runs"]), (2, 3))
        self.assertEqual(once["differences"], often["differences"])

    def test_other_inputs_are_told_from_wrong_kernels(self):
        first = self.first(self.report(MUL, *INPUTS[:2], SYNC, "--a=--input=8xf32=1 --input=8xf32=2",
                                       "--b=--input=8xf32=1 '--input=8xf32=2,2,2,2,2,2,2,3'", code=2))
        self.assertEqual(first["changed_before"], [1])
        self.assertEqual(first["tensors"][0]["different"], 1)


class Structure(Case):
    def test_other_names(self):
        text = vmrun.read_text(MUL).replace("@mul ", "@main_dispatch_7_mul ").replace("export @mul\n", "export @main_dispatch_7_mul\n")
        text = text.replace("func @mul(%r0: !vm.buffer,", "func @main_dispatch_7_mul(%r0: !vm.buffer,").replace('"mul"', '"main_dispatch_7_mul"')
        text = text.replace("@main_dispatch_7_mul \"iree.abi", "@mul \"iree.abi")
        head, tail = text.rsplit("export @main_dispatch_7_mul", 1)
        report = self.report(MUL, *INPUTS, SYNC, "--b=--module=" + self.write("renamed.vmasm", head + "export @mul" + tail))
        self.assertEqual((report["outcome"], report["compared"], report["only_a"], report["only_b"]), ("same", 2, [], []))

    def test_a_step_more(self):
        text = vmrun.read_text(MUL)
        line = dispatch_line(text)
        # Multiplies the result by the second argument, in place.
        again = line.replace("%i0, %i0, %r4, %i18:19, %i20:21,", "%i0, %i15, %r4, %i18:19, %i20:21,")
        twice = self.write("twice.vmasm", text.replace(line, line + "\n" + again))
        report = self.report(MUL, *INPUTS, SYNC, "--b=--module=" + twice, code=2)
        self.assertEqual((report["steps_a"], report["steps_b"], report["compared"]), (2, 3, 2))
        self.assertEqual([each["name"] for each in report["only_b"]], ["mul"])
        self.assertEqual(self.first(report)["operation"], "result")
        self.assertIn("only in b: 1 step", self.diff(MUL, *INPUTS, SYNC, "--b=--module=" + twice, code=2))

    def test_results_of_other_sizes(self):
        half = self.write("half.vmasm", vmrun.read_text(MUL).replace("tensor<8xf32>", "tensor<4xf32>")
                          .replace("%i2:3 = vm.const.i64 8", "%i2:3 = vm.const.i64 4").replace("%i4:5 = vm.const.i64 32", "%i4:5 = vm.const.i64 16")
                          .replace("%i20:21 = vm.const.i64 32", "%i20:21 = vm.const.i64 16").replace("%i16 = vm.const.i32 4", "%i16 = vm.const.i32 2"))
        report = self.report(MUL, *INPUTS[:1], SYNC, "--a=--input=8xf32=1 --input=8xf32=2",
                             f"--b=--module={half} --input=4xf32=1 --input=4xf32=2", code=2)
        self.assertFalse(self.first(report)["tensors"][0]["comparable"])
        self.assertEqual((self.first(report)["tensors"][0]["bytes_a"], self.first(report)["tensors"][0]["bytes_b"]), (32, 16))

    def test_commands_and_operations_that_are_no_dispatches(self):
        import test_captures
        module = self.write("moves.vmasm", test_captures.MOVES_BYTES)
        arguments = [module, "--function=shuffle", "--input=8xf32=1,2,3,4,5,6,7,8"]
        other = self.write("other.vmasm", test_captures.MOVES_BYTES.replace("0000204200002842", "0000204200002844"))
        report = self.report(*arguments, SYNC, "--b=--module=" + other, code=2)
        self.assertEqual(report["steps_a"], 4)
        self.assertEqual(self.first(report)["operation"], "update")
        self.assertEqual(self.first(report)["tensors"][0]["worst"][0]["a"], "42")

    def test_operations_of_queues_and_shown_tensors(self):
        module = self.write("steps.vmasm", HOST_STEPS)
        self.assertEqual(vmrun.succeeds("vm-run", "--module=" + module, SYNC, "--input=4xf32=1,2,3,4").stdout.splitlines()[-1],
                         "8xf32=1 1 40 42 1 2 3 4")
        for device in ("local-sync", "local-task"):
            report = self.report(module, "--a=--input=4xf32=1,2,3,4", "--b='--input=4xf32=1,2,3,5'", f"--device={device}", code=2)
            self.assertEqual((report["steps_a"], report["compared"]), (5, 5))
            self.assertEqual([each["operation"] for each in report["differences"]], ["trace", "copy", "result"])
            shown = report["differences"][0]
            self.assertEqual((shown["name_a"], shown["tensors"][0]["shape"], shown["tensors"][0]["type_from"]), ("shown", [4], "the program"))
        for part, operation in (("0x3F800000", "fill"), ("0000204200002842", "update")):
            other = self.write("other.vmasm", HOST_STEPS.replace(part, part.replace("42", "43").replace("3F8", "3F9")))
            first = self.first(self.report(module, "--input=4xf32=1,2,3,4", SYNC, "--b=--module=" + other, code=2))
            self.assertEqual((first["operation"], first["changed_before"]), (operation, []))
            self.assertRegex(first["place_a"], r"^at steps\.main\+[0-9A-F]{8}")

    def test_programs_without_devices(self):
        other = self.write("other.vmasm", vmrun.read_text(INLINE).replace("vm.mul.i32", "vm.add.i32"))
        report = self.report(INLINE, "--function=scale", "--input=6xi32=1,2,3,4,5,6", "--input=10", "--b=--module=" + other, code=2)
        self.assertEqual((self.first(report)["operation"], self.first(report)["name_a"], self.first(report)["device_a"]), ("dispatch", "scale", ""))


class Captures(Case):
    def setUp(self):
        super().setUp()
        self.capture = os.path.join(self.folder, "run.hycap")
        vmrun.succeeds("vm-run", "--module=" + MUL, *INPUTS, SYNC, "--capture=" + self.capture)

    def test_against_devices(self):
        self.assertEqual(self.report(self.capture, "--b=--device=local-task")["compared"], 1)
        self.assertEqual(self.report(self.capture, "--a=recorded", "--b=--device=local-task")["outcome"], "same")
        self.assertEqual(self.report(self.capture, "--a=" + SYNC, "--b=recorded")["outcome"], "same")

    def test_a_wrong_byte(self):
        contents = bytearray(vmrun.read(self.capture))
        wanted = struct.pack("<8f", *(struct.unpack("<f", struct.pack("<f", 1.1))[0] * i for i in range(1, 9)))
        place = contents.index(wanted)
        contents[place + 20] ^= 2
        path = self.write("wrong.hycap", bytes(contents))
        report = self.report(path, "--a=recorded", "--b=--device=local-task", code=2)
        first = self.first(report)
        self.assertEqual((first["name_a"], first["execution"], first["command"]), ("mul", 0, 0))
        self.assertEqual((first["tensors"][0]["worst"][0]["index"], first["tensors"][0]["largest_ulps"]), ([5], 2))

    def test_wrong_command_lines(self):
        for arguments, parts in (([self.capture, "--a=recorded", "--b=recorded"], ["both runs are 'recorded'"]),
                                 ([self.capture, "--b=" + SYNC, "--untrusted"], ["PERMISSION_DENIED", "--untrusted with a capture"]),
                                 ([self.capture, "--b=" + SYNC, "--input=1"], ["--input has no effect on a capture"]),
                                 ([self.capture, "--b=--function=mul"], ["--function has no effect on a capture"]),
                                 ([self.capture, "--b=--device=local-sync --device=local-task"], ["a capture is replayed on one device"]),
                                 ([MUL, *INPUTS, "--a=recorded"], ["'recorded' is for captures"])):
            self.assertIsNone(vmrun.why_bad_failure(vmrun.run("vm-diff", *arguments), *parts), arguments)

    def test_a_replay_file_of_the_peer(self):
        path = self.write("run.ireereplay", b"IRRP" + struct.pack("<HHIIQ", 2, 0, 24, 0, 0))
        self.assertIsNone(vmrun.why_bad_failure(vmrun.run("vm-diff", path, "--b=" + SYNC), "a replay file of IREE", "version 2.0"))


class Errors(Case):
    def test_wrong_command_lines(self):
        b = "--b=" + SYNC
        for arguments, parts in (([MUL, *INPUTS], ["there is nothing to compare", "--a", "--b"]),
                                 ([*INPUTS, b], ["no module given"]),
                                 ([MUL, MUL, *INPUTS, b], ["expected one module"]),
                                 ([MUL, "--module=" + MUL, *INPUTS, b], ["pass one of them"]),
                                 (["missing.vmfb", b], ["missing.vmfb"]),
                                 ([MUL, *INPUTS, "--b=local-sync"], ["--b=local-sync", "expected flags"]),
                                 ([MUL, *INPUTS, "--b=--device='local-sync"], ["expected a closing '"]),
                                 ([MUL, *INPUTS, "--b=--devcie=local-sync"], ["unknown flag '--devcie'", "'--device'"]),
                                 ([MUL, *INPUTS, "--b=--device=nowhere"], ["run b: ", "nowhere"]),
                                 ([MUL, *INPUTS, b, "--a=--atol=1"], ["--atol is for both runs; pass it outside of --a"]),
                                 ([MUL, *INPUTS, "--b=--json=b.json"], ["--json is for both runs; pass it outside of --b"]),
                                 ([MUL, *INPUTS, b, "--a=--b=" + SYNC], ["--b is for both runs"]),
                                 ([MUL, *INPUTS, b, "--a=--help"], ["--help is for both runs"]),
                                 ([MUL, *INPUTS, b, "--atol=x"], ["--atol=x", "expected a number of at least 0"]),
                                 ([MUL, *INPUTS, b, "--atol=-1"], ["--atol=-1"]),
                                 ([MUL, *INPUTS, b, "--atol=nan"], ["--atol=nan"]),
                                 ([MUL, *INPUTS, b, "--rtol=f99=1"], ["--rtol=f99=1", "an element type"]),
                                 ([MUL, *INPUTS, b, "--ulps=1.5"], ["--ulps=1.5", "a whole number"]),
                                 ([MUL, *INPUTS, b, "--type=i4"], ["--type=i4", "an element type"]),
                                 ([MUL, *INPUTS, b, "--worst=100000"], ["at most 10000"]),
                                 ([MUL, *INPUTS, b, "--keep="], ["--keep needs the name of a folder"]),
                                 ([MUL, *INPUTS, b, "--keep=/proc/x"], ["--keep=/proc/x: cannot create the folder"]),
                                 ([MUL, "--function=mul", "--input=8xf32=1", b], ["expected 2 arguments, found 1"])):
            done = vmrun.run("vm-diff", *arguments)
            self.assertEqual((done.returncode, vmrun.why_bad_failure(done, *parts)), (1, None), f"{arguments}: {done.stderr}")

    def test_a_kept_tensor_that_cannot_be_written(self):
        os.mkdir(os.path.join(self.folder, "00000_mul.2.a.npy"))
        done = vmrun.run("vm-diff", MUL, *INPUTS, SYNC, "--b=--module=" + self.wrong, "--keep=" + self.folder)
        self.assertIsNone(vmrun.why_bad_failure(done, "00000_mul.2.a.npy", "Is a directory"))


class Sources(Case):
    """The line of a kernel in the source of a compiled program, which is in the executables of each device."""

    def test_each_kind_of_executable(self):
        vmrun.fixtures() or self.skipTest("the shared fixtures are not here")
        for kind, module, device, source in vmrun.programs_with_sources():
            with self.subTest(kind):
                sides = [f"--{side}=--input=4xf32=1,2,3,{last} --input=4xf32=3" for side, last in (("a", 4), ("b", 5))]
                arguments = [module, "--function=simple_mul", f"--device={device}", *sides]
                first = self.first(self.report(*arguments, code=2))
                self.assertEqual((first["source_a"], first["source_b"]), (source, source))
                # Compilers record host functions incompletely; the place is in none of the others.
                self.assertRegex(first["place_a"], r"^at module@\d\+[0-9A-F]{8}$")
                self.assertIn(f"\n  source      {source}\n", self.diff(*arguments, code=2))


class BertTiny(Case):
    """One element of one kernel in the middle is off by 2 ulps."""
    KERNEL = "encode_dispatch_10_batch_matmul_2x32x64x32_f32"

    def setUp(self):
        super().setUp()
        vmrun.fixtures() or self.skipTest("the shared fixtures are not here")
        try:
            programs = large.source()
            self.programs = os.path.join(vmrun.BUILD, "large")
            large.write_weights(self.programs, os.path.join(programs, large.SCRIPT), {"berttiny": large.PROGRAMS["berttiny"]})
        except large.Missing as missing:
            self.skipTest(str(missing))
        self.module = os.path.join(programs, "berttiny.vmvx.vmfb")
        self.arguments = [self.module, "--function=encode", f"--parameters=model={self.programs}/berttiny.irpa",
                          *(f"--input=@{programs}/berttiny.0.in{i}.npy" for i in range(3))]

    def planted_kernel(self):
        text = vmrun.succeeds("vm-dump", "--disassemble", self.module).stdout
        place = text.index("    vm.discard.refs %r0, %r3\n", text.index(f"vm.func @{self.KERNEL}("))
        plant = """    %i0:1 = vm.const.i64 8969
    %i2 = vm.buffer.load.i32 %r3, %i0:1
    %i3 = vm.const.i32 2
    %i2 = vm.add.i32 %i2, %i3
    vm.buffer.store.i32 %i2, %r3, %i0:1
"""
        return self.write("bert.vmasm", text[:place] + plant + text[place:])

    def test_the_kernel_is_found_by_name(self):
        wrong = self.planted_kernel()
        report = self.report(*self.arguments, SYNC, "--b=--module=" + wrong, code=2)
        first = self.first(report)
        self.assertEqual((first["name_a"], report["first_beyond"], report["steps_a"]), (self.KERNEL, 0, 36))
        self.assertEqual(first["changed_before"], [])
        tensor = first["tensors"][0]
        self.assertEqual((tensor["shape"], tensor["type"], tensor["type_from"]), ([2, 32, 64], "f32", "the name of the kernel"))
        self.assertEqual((tensor["different"], tensor["ulps"], tensor["worst"][0]["index"]), (1, {"0": 4095, "2": 1}, [0, 12, 9]))
        self.assertEqual(report["differences"][-1]["operation"], "result")
        # In several runs, each with a part of the tensors.
        often = self.report(*self.arguments, SYNC, "--b=--module=" + wrong, "--hold=400KB", code=2)
        self.assertGreater(often["runs"], 2)
        self.assertEqual(often["differences"], report["differences"])

    def test_the_document_shows_it(self):
        """The first step and the table, as docs/vm-diff.md has them."""
        shown = vmrun.read_text(os.path.join(vmrun.SOURCE, "docs", "vm-diff.md")).split("<!-- run by: vm_diff -->")[1].split("```")[1]
        lines = [line for line in shown.splitlines()[4:] if line != "..."]
        found = self.diff(*self.arguments, SYNC, "--b=--module=" + self.planted_kernel(), code=2)
        self.assertGreater(len(lines), 15)
        for line in lines:
            self.assertIn(line, found)

    def test_devices_agree(self):
        self.assertEqual(self.report(*self.arguments, "--a=" + SYNC, "--b=--device=local-task?workers=3")["outcome"], "same")


if __name__ == "__main__":
    unittest.main()
