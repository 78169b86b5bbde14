"""What is given to a call is read whole, or refused: numbers, tensors as text, npy files in all forms that numpy writes,
bytes from files and pipes; and flags that say the same in another way. What is declared is compared with what is there."""
import os
import struct
import subprocess

import vmrun
from npy import npy_array, read_npy

MODULE = vmrun.with_exports("""
vm.module @io
vm.dependency @hal 7
vm.func @view(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  vm.return %r0
}
vm.func @two(%r0: !hal.buffer_view, %r1: !hal.buffer_view) -> (!hal.buffer_view, !hal.buffer_view) {
  vm.return %r0, %r1
}
vm.func @int(%i0: i32) -> (i32) {
  vm.return %i0
}
vm.func @long(%i0:1: i64) -> (i64) {
  vm.return %i0:1
}
vm.func @float(%i0: f32) -> (f32) {
  vm.return %i0
}
vm.func @double(%i0:1: f64) -> (f64) {
  vm.return %i0:1
}
""")
SUCCESS = "[SUCCESS] all function outputs matched their expected values.\n"


def header(text):
    """An npy file of version 1 with this header, without data."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


class WithModule(vmrun.FolderCase):
    MODULE = MODULE

    def setUp(self):
        super().setUp()
        self.module = self.write("io.vmasm", self.MODULE)

    def run_function(self, function, *flags, **settings):
        return vmrun.run("vm-run", "--device=local-sync", f"--module={self.module}", f"--function={function}", *flags,
                         **settings)

    def prints(self, expected, function, *flags, code=0, **settings):
        done = self.run_function(function, *flags, **settings)
        self.assertEqual((done.stdout, done.returncode), (f"EXEC @{function}\n{expected}", code), done.stderr)

    def views(self, expected, *flags, **settings):
        """The function `view` prints the tensor `expected`."""
        self.prints(f"result[0]: hal.buffer_view\n{expected}\n", "view", *flags, **settings)

    def refuses(self, parts, function, *flags, code="INVALID_ARGUMENT", **settings):
        done = self.run_function(function, *flags, **settings)
        self.assertIsNone(vmrun.why_bad_failure(done, code, *parts), (flags, done.stdout, done.stderr))


class Numbers(WithModule):
    def test_read_whole(self):
        for function, type_, texts in (
                ("int", "i32", [("5", "5"), ("0x1F", "31"), ("017", "15"), ("-2147483648", "-2147483648"),
                                ("4294967295", "-1"), (" 7 ", "7"), ('"7"', "7")]),
                ("long", "i64", [("9223372036854775807", "9223372036854775807"), ("18446744073709551615", "-1"),
                                 ("-9223372036854775808", "-9223372036854775808"), ("0x10", "16")]),
                ("float", "f32", [("1.5", "1.5"), ("0x1p-1", "0.5"), ("nan", "nan"), ("-inf", "-inf"), ("1e39", "inf")]),
                ("double", "f64", [("1e300", "1e+300"), ("-0", "-0")])):
            for text, number in texts:
                with self.subTest(f"{function} {text}"):
                    self.prints(f"result[0]: {type_}={number}\n", function, f"--input={text}")

    def test_not_by_a_prefix(self):
        wrong = {"int": ["4294967296", "-2147483649", "99999999999999999999", "2x2xi32=1", "5.7", "1e3", "1_000", "7abc",
                         "1,2", "[5]", "08", "0x", "5 6", "i32=5", "@5"],
                 "long": ["18446744073709551616", "-9223372036854775809", "1.0", "5L", "0x1FFFFFFFFFFFFFFFF"],
                 "float": ["1,5", "1.5abc", "1.5f", "f32=1", "1e", "0x", "[1]", "1 2"],
                 "double": ["1,5", "1.5abc", "1-1"]}
        for function, texts in wrong.items():
            for text in texts:
                with self.subTest(f"{function} {text}"):
                    self.refuses([f"--input={text}", "expected", f"'{text}'"], function, f"--input={text}")
                    self.refuses([f"--expected_output={text}"], function, "--input=1", f"--expected_output={text}")

    def test_elements(self):
        self.views("4xi1=01 00 01 00", "--input=4xi1=1,0,true,false")
        self.views("2xcf64=0000803F00000040 0000404000000000", "--input=2xcf64=1+2j,3")
        self.views("2xcf64=0000803F00000040 0000404000000000", "--input=2xcf64=0000803F00000040 0000404000000000")
        self.prints(SUCCESS, "view", "--input=3xi1=01,00,01", "--expected_output=3xi1=1,0,true")
        for text in ("3xi32=010,0x10,0b10", "3xi32=1.5,2.7,3.9", "1xi32=4294967296", "1xf32=1.5abc", "1xi1=2"):
            self.refuses([f"--input={text}"], "view", f"--input={text}")

    def test_tolerances(self):
        for function, flag, other in (("float", "f32", "f64"), ("double", "f64", "f32")):
            self.prints(SUCCESS, function, "--input=1.5", "--expected_output=1.50001")
            self.prints(SUCCESS, function, "--input=1.5", "--expected_output=1.6", f"--expected_{flag}_threshold=0.2")
            for flags in ((), ("--equality_mode=exact", f"--expected_{flag}_threshold=0.2"),
                          (f"--expected_{other}_threshold=0.2",)):
                self.prints(f"[FAILED] result[0]: {flag} values differ\n  expected: 1.6\n  actual: 1.5\n", function,
                            "--input=1.5", "--expected_output=1.6", *flags, code=1)
        self.prints(SUCCESS, "float", "--input=nan", "--expected_output=nan", "--equality_mode=exact")


class Arrays(WithModule):
    def test_orders_of_elements_and_bytes(self):
        f32 = struct.pack("<6f", 0, 1, 2, 3, 4, 5)
        cases = [("<f4", "2x3xf32=[0 1 2][3 4 5]", f32, False), (">f4", "2x3xf32=[0 1 2][3 4 5]",
                                                               struct.pack(">6f", *range(6)), False),
                 ("=f4", "2x3xf32=[0 1 2][3 4 5]", f32, False), ("f4", "2x3xf32=[0 1 2][3 4 5]", f32, False),
                 ("float32", "2x3xf32=[0 1 2][3 4 5]", f32, False),
                 ("<f4", "2x3xf32=[0 2 4][1 3 5]", f32, True),
                 (">i2", "2x3xsi16=[0 256 2][1 -3 4]", struct.pack(">6h", 0, 1, 256, -3, 2, 4), True),
                 (">u8", "2x3xui64=[0 1 2][3 4 5]", struct.pack(">6Q", *range(6)), False),
                 (">f8", "2x3xf64=[0 1 2][3 4 5]", struct.pack(">6d", *range(6)), False),
                 (">f2", "2x3xf16=[0 1 2][3 4 5]", struct.pack(">6e", *range(6)), False),
                 ("|i1", "2x3xsi8=[0 2 4][1 3 5]", bytes(range(6)), True), (">u1", "2x3xui8=[0 1 2][3 4 5]", bytes(range(6)), False),
                 ("?", "2x3xi1=[00 01 00][01 00 01]", bytes([0, 1, 0, 1, 0, 1]), False),
                 ("<V2", "2x3x*16=[0001 0203 0405][0607 0809 0A0B]", bytes(range(12)), False),
                 ("|V3", "2x3x*24=[000102 060708 0C0D0E][030405 090A0B 0F1011]", bytes(range(18)), True),
                 ("bfloat16", "2x3xbf16=[1 1 1][1 1 1]", b"\x80\x3f" * 6, False),
                 ("float8_e4m3fn", "2x3xf8E4M3FN=[1 1 1][1 1 1]", b"\x38" * 6, False),
                 (">c8", "2x3xcf64=[" + " ".join(["0000803F00000040"] * 3) + "][" + " ".join(["0000803F00000040"] * 3) + "]",
                  struct.pack(">2f", 1, 2) * 6, False)]
        for descr, expected, data, fortran in cases:
            with self.subTest(f"{descr} {fortran}"):
                text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': (2, 3), }}\n"
                self.views(expected, "--input=@" + self.write("a.npy", header(text) + data))

    def test_fortran_order_of_other_ranks(self):
        for shape, expected in (("(4,)", "4xui8=0 1 2 3"), ("(1, 4, 1)", "1x4x1xui8=[[0][1][2][3]]"), ("()", "ui8=0"),
                                ("(2, 0)", "2x0xui8=[][]"), ("(2, 1, 3)", "2x1x3xui8=[[0 2 4]][[1 3 5]]"),
                                ("(2, 2, 2)", "2x2x2xui8=[[0 4][2 6]][[1 5][3 7]]")):
            with self.subTest(shape):
                text = f"{{'descr': '|u1', 'fortran_order': True, 'shape': {shape}, }}"
                self.views(expected, "--input=@" + self.write("a.npy", header(text) + bytes(range(8))))

    def test_headers_of_python_2(self):
        self.views("2x1xsi32=[1][2]", "--input=@" + self.write(
            "a.npy", header("{'shape': (2L, 1L), 'fortran_order': False, u'descr': '<i4'}") + struct.pack("<ii", 1, 2)))

    def test_wrong_headers(self):
        for text, parts in (("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } 5", ["header"]),
                            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }{}", ["header"]),
                            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,), }", ["header"]),
                            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2,), }", ["header"]),
                            ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", ["header"]),
                            ("{'descr': '<f4', 'fortran_order': Falsey, 'shape': (1,), }", ["header"]),
                            ("{'descr': '<f4', 'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", ["header"]),
                            ("{'descr': '<f4x', 'fortran_order': False, 'shape': (1,), }", ["'<f4x'", "astype"]),
                            ("{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }", ["'<f3'", "astype('<f8')"]),
                            ("{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", ["'<f16'", "astype('<f8')"]),
                            ("{'descr': '<U5', 'fortran_order': False, 'shape': (1,), }", ["'<U5'", "text"]),
                            ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", ["'|O'", "Python objects"]),
                            ("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,), }", ["times", "astype"]),
                            ("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", ["'x'", "fields"]),
                            ("{'descr': 'V32', 'fortran_order': False, 'shape': (1,), }", ["V32"])):
            with self.subTest(text):
                self.refuses(["a.npy", *parts], "view", "--input=@" + self.write("a.npy", header(text) + bytes(64)))
        whole = npy_array("<f4", (1,), bytes(4))
        self.refuses(["version 1.1"], "view", "--input=@" + self.write("a.npy", whole[:7] + b"\x01" + whole[8:]))
        for size in range(len(whole)):
            code = "INVALID_ARGUMENT" if 0 < size < 6 else "OUT_OF_RANGE"
            self.refuses([], "view", "--input=@" + self.write("a.npy", whole[:size]), code=code)

    def test_types_come_back(self):
        for text, descr in (("4xbf16=1,2,3,-4", "<V2"), ("3xf8E4M3FN=1,2,448", "|V1"), ("2xf8E5M2=1,inf", "|V1"),
                            ("2xf8E8M0FNU=1,2", "|V1"), ("3xi32=1,-2,3", "<i4"), ("2xi64=-1,5", "<i8"), ("2xi8=-1,5", "|i1"),
                            ("2xi16=-1,5", "<i2"), ("2xui32=1,5", "<u4"), ("2xcf64=1+2j,3", "<c8"), ("2x*24=010203,AABBCC", "|V3"),
                            ("2xi1=1,0", "|b1")):
            with self.subTest(text):
                file = self.path("out.npy")
                self.prints("", "view", "--input=" + text, f"--output=@{file}")
                (found,) = read_npy(vmrun.read(file))
                self.assertEqual(found[0], descr)
                self.prints(SUCCESS, "view", "--input=" + text, f"--expected_output=@{file}")
                self.prints(SUCCESS, "view", "--input=" + text, f"--expected_output={text.split('=')[0]}=@{file}")
                self.views(self.run_function("view", "--input=" + text).stdout.splitlines()[2],
                           f"--input={text.split('=')[0]}=@{file}")

    def test_expected_arrays_are_compared(self):
        file = self.write("a.npy", npy_array("<i4", (2,), struct.pack("<ii", 1, -2)))
        self.prints(SUCCESS, "view", "--input=2xi32=1,-2", f"--expected_output=@{file}")
        self.prints(SUCCESS, "two", "--input=2xi32=1,-2", f"--input=@{file}", f"--expected_output=@{file}",
                    f"--expected_output=*{file}")
        for given, metadata in (("2xui32=1,2", "2xui32"), ("2xf32=1,-2", "2xf32"), ("1x2xi32=1,-2", "1x2xi32"),
                                ("2xi16=1,-2", "2xi16"), ("2x*32=00000000", "2x*32")):
            with self.subTest(given):
                done = self.run_function("view", "--input=" + given, f"--expected_output=@{file}")
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"metadata is {metadata}; expected that the view matches 2xsi32;", done.stdout)
        # A file of several arrays is as many results; what comes after it belongs to the results after these.
        right = npy_array("<i4", (2,), struct.pack("<ii", 1, -2))
        wrong = npy_array("<i4", (2,), struct.pack("<ii", 1, 2))
        given = ("--input=2xi32=1,-2", f"--input=@{file}")
        both = self.write("both.npy", right + right)
        self.prints(SUCCESS, "two", *given, f"--expected_output=*{both}")
        with open(self.module, "a") as module:
            module.write("vm.export @three\nvm.func @three(%r0: !hal.buffer_view, %r1: !hal.buffer_view, %i0: i32)"
                         " -> (!hal.buffer_view, !hal.buffer_view, i32) {\n  vm.return %r0, %r1, %i0\n}\n")
        self.prints(SUCCESS, "three", *given, "--input=5", f"--expected_output=*{both}", "--expected_output=(ignored)")
        self.prints(SUCCESS, "three", *given, "--input=5", "--expected_output=(null)", f"--expected_output=@{file}",
                    "--expected_output=5")
        late = self.write("late.npy", right + wrong)
        done = self.run_function("three", *given, "--input=5", f"--expected_output=*{late}", "--expected_output=(ignored)")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.count("[FAILED]"), 1, done.stdout)
        self.assertIn("[FAILED] result[1]: element at index 1 (-2) does not match the expected (2)", done.stdout)
        # The type that a text declares is compared, too.
        done = self.run_function("view", "--input=2xi32=1,-2", "--expected_output=2xsi32=1,-2")
        self.assertIn("metadata is 2xi32; expected that the view matches 2xsi32", done.stdout)
        done = self.run_function("view", "--input=2xi32=1,-3", f"--expected_output=@{file}")
        self.assertIn("element at index 1 (-3) does not match the expected (-2); expected that the view is equal to contents "
                      "of a view of 2xi32\n  expected:\n2xi32=1 -2\n  actual:\n2xi32=1 -3\n", done.stdout)

    def test_a_shape_before_an_npy_file(self):
        file = self.write("a.npy", npy_array("<f4", (2, 3), struct.pack("<6f", *range(6))))
        self.views("2x3xf32=[0 1 2][3 4 5]", f"--input=2x3xf32=@{file}")
        for type_ in ("4xf32", "6xf32", "3x2xf32", "2x3xi32", "2x3x*32", "2x3xf64", "f32", "0xf32"):
            with self.subTest(type_):
                self.refuses(["2x3xf32", type_, "a.npy"], "view", f"--input={type_}=@{file}")
                self.refuses(["2x3xf32", type_, "a.npy"], "view", f"--input=@{file}", f"--expected_output={type_}=@{file}")
        # By its contents, whatever its name; and the other way.
        os.rename(file, self.path("a.bin"))
        self.refuses(["a.bin", "2x3xf32"], "view", f"--input=4xf32=@{self.path('a.bin')}")
        raw = self.write("raw.npy", struct.pack("<4f", 1, 2, 3, 4))
        self.refuses(["raw.npy", "4xf32", "another name"], "view", f"--input=4xf32=@{raw}")
        two = self.write("two.npy", npy_array("<i4", (1,), struct.pack("<i", 1)) + npy_array("<f4", (2,), struct.pack("<2f", 2, 3)))
        self.prints("result[0]: hal.buffer_view\n1xi32=1\nresult[1]: hal.buffer_view\n2xf32=2 3\n", "two",
                    f"--input=1xi32=@{two}", f"--input=2xf32=+{two}")
        self.refuses(["2xf32", "2xi32"], "two", f"--input=1xi32=@{two}", f"--input=2xi32=+{two}")


class Bytes(WithModule):
    def test_packed_elements(self):
        file = self.write("a.bin", b"\x21\x43\x05")
        other = self.write("b.bin", b"\x21\x63\xf5")  # the fourth element differs, and bits that belong to none
        out = self.path("out.bin")
        self.prints("", "view", f"--input=5xi4=@{file}", f"--output=@{out}")
        self.assertEqual(vmrun.read(out), b"\x21\x43\x05")
        self.prints(SUCCESS, "view", f"--input=5xi4=@{file}", f"--expected_output=5xi4=@{file}")
        self.prints(SUCCESS, "view", f"--input=3xi4=@{file}", f"--expected_output=3xi4=@{other}")
        done = self.run_function("view", f"--input=5xi4=@{file}", f"--expected_output=5xi4=@{other}")
        self.assertIn("element at index 3 (0100) does not match the expected (0110)", done.stdout)
        self.refuses(["i4"], "view", f"--input=5xi4=@{file}", f"--output=@{self.path('x.npy')}", code="UNIMPLEMENTED")

    def test_pipes_and_devices(self):
        def piped(*flags, data):
            return subprocess.run([os.path.join(vmrun.BIN, "vm-run"), "--device=local-sync", f"--module={self.module}", *flags],
                                  input=data, capture_output=True, check=False)

        data = struct.pack("<4f", 0, 1, 2, 3)
        for name in ("/dev/stdin", "-"):
            with self.subTest(name):
                done = piped("--function=view", f"--input=4xf32=@{name}", data=data)
                self.assertIn(b"4xf32=0 1 2 3", done.stdout, done.stderr)
                done = piped("--function=view", f"--input=@{name}", data=npy_array("<f4", (2, 2), data))
                self.assertIn(b"2x2xf32=[0 1][2 3]", done.stdout, done.stderr)
                # Nothing that follows is lost.
                for second in ("@", "+"):
                    done = piped("--function=two", f"--input=1xf32=@{name}", f"--input=3xf32={second}{name}", data=data)
                    self.assertIn(b"3xf32=1 2 3", done.stdout, done.stderr)
                done = piped("--function=view", f"--input=5xf32=@{name}", data=data)
                self.assertIn(b"OUT_OF_RANGE", done.stderr)
                self.assertIn(b"16 bytes", done.stderr)
                done = piped("--function=view", f"--input=4xf32=@{name}", data=npy_array("<f4", (2, 2), data))
                self.assertIn(b"npy file of 2x2xf32", done.stderr)
        self.views("2xf32=0 0", "--input=2xf32=@/dev/zero")
        self.views("0xf32=", "--input=0xf32=@/dev/null")
        self.refuses(["/dev/null", "0 bytes"], "view", "--input=1xf32=@/dev/null", code="OUT_OF_RANGE")
        self.refuses(["/dev/zero", "not a regular file"], "view", "--input=9999999999xf32=@/dev/zero", code="RESOURCE_EXHAUSTED")
        self.refuses(["folder"], "view", f"--input=1xf32=@{self.folder}")
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        with subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), "--device=local-sync", f"--module={self.module}",
                               "--function=view", f"--input=4xf32=@{fifo}"], stdout=subprocess.PIPE) as process:
            vmrun.write(fifo, data)
            self.assertIn(b"4xf32=0 1 2 3", process.communicate()[0])

    def test_continued(self):
        file = self.write("a.bin", struct.pack("<4f", 0, 1, 2, 3))
        self.prints("result[0]: hal.buffer_view\n1xf32=0\nresult[1]: hal.buffer_view\n3xf32=1 2 3\n", "two",
                    f"--input=1xf32=@{file}", f"--input=3xf32=+{file}")
        self.prints("result[0]: hal.buffer_view\n1xf32=0\nresult[1]: hal.buffer_view\n1xf32=0\n", "two",
                    f"--input=1xf32=+{file}", f"--input=1xf32=@{file}")
        self.refuses(["12 bytes from byte 4 on"], "two", f"--input=1xf32=@{file}", f"--input=4xf32=+{file}", code="OUT_OF_RANGE")


class FlagTexts(WithModule):
    def test_percent_signs(self):
        data = npy_array("<f4", (1,), struct.pack("<f", 7))
        for name in ("acc_90%recall.npy", "%%n.npy", "100%.npy", "%r%n%l.npy"):
            with self.subTest(name):
                self.views("1xf32=7", f"--input=@{self.write(name, data)}")
                out = self.path("out_" + name)
                self.prints("", "view", "--input=1xf32=7", f"--output=@{out}")
                self.assertTrue(os.path.exists(out), os.listdir(self.folder))
        # With a rank, two of them are one.
        self.write("r0_%r_1%x.npy", data)
        self.views("1xf32=7", "--rank=0", f"--input=@{self.path('r%r_%%r_%n%x.npy')}")

    def test_flag_files(self):
        text = f"--module={self.module}\n--function=int\n--input=7\n--device=local-sync\n".encode()
        for data in (text, b"\xef\xbb\xbf" + text, b"\xef\xbb\xbf# a remark\r\n" + text.replace(b"\n", b"\r\n")):
            done = vmrun.run("vm-run", "--flagfile=" + self.write("flags.txt", data))
            self.assertEqual(done.stdout, "EXEC @int\nresult[0]: i32=7\n", done.stderr)
        for data in (text.decode().encode("utf-16"), text + b"--input=7\x008\n"):
            done = vmrun.run("vm-run", "--flagfile=" + self.write("flags.txt", data))
            self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "flags.txt", "UTF-8"), done.stderr)

    def test_empty_function(self):
        module = self.write("one.vmasm", b"vm.module @m\nvm.export @only\nvm.func @only() -> () {\n  vm.return\n}\n")
        done = vmrun.run("vm-run", f"--module={module}", "--function=")
        self.assertEqual((done.stdout, done.returncode), ("EXEC @only\n", 0), done.stderr)

    def test_devices(self):
        for uri in (" local-sync", "local-sync ", "local-sync:", "local-sync://", "\tlocal-sync?jit=off "):
            with self.subTest(uri):
                done = vmrun.run("vm-run", f"--device={uri}", f"--module={self.module}", "--function=view", "--input=1xf32=7")
                self.assertIn("1xf32=7", done.stdout, done.stderr)
        for uri in ("local", "local-syn", "local-sync2", "local-sync local-task", "local-sync:0"):
            with self.subTest(uri):
                done = vmrun.run("vm-run", f"--device={uri}", f"--module={self.module}", "--function=view", "--input=1xf32=7")
                self.assertEqual(done.returncode, 1, done.stdout)
        # An option whose value contains the name of another is not the other.
        done = vmrun.run("vm-run", "--device=local-task?queues=workers=", f"--module={self.module}", "--function=view",
                         "--input=1xf32=7", "--task_topology_group_count=x")
        self.assertIn("--task_topology_group_count=x", done.stderr)

    def test_switches(self):
        for value, is_json in (("", True), ("=true", True), ("=1", True), ("=false", False), ("=0", False), ("=", False)):
            done = self.run_function("int", "--input=7", "--json" + value)
            self.assertEqual(done.stdout.startswith("{"), is_json, value)
        for value in ("yes", "TRUE", "maybe", "2", "truex", "no", " true"):
            self.refuses([f"--json={value}", "true, 1, false or 0"], "int", "--input=7", f"--json={value}")

    def test_numbers(self):
        for flag, wrong in (("output_max_element_count", ["1e3", "5x", "-1", "+1", " 1", "18446744073709551616", "0x10", ""]),
                            ("max_memory", ["1e", "5 MiB", "1MiBs", "-1", "0", "5mib", "1e30", "inf", "nan", ""]),
                            ("timeout", ["1sec", "5 s", "1m", "-1s", "0", "inf", "1e30", "s"]),
                            ("expected_f32_threshold", ["1x", "-1", "nan", " 1", "1e400", "0.1f", ""]),
                            ("rank", ["0x0", "0.0", "4294967296", "-1", "a"]), ("rank_count", ["1.5", "2x"])):
            for value in wrong:
                with self.subTest(f"{flag} {value}"):
                    self.refuses([f"--{flag}={value}", "expected"], "view", "--input=1xf32=1", "--expected_output=1xf32=1",
                                 f"--{flag}={value}") if flag.startswith("expected") else self.refuses(
                                     [f"--{flag}={value}", "expected"], "view", "--input=1xf32=1", f"--{flag}={value}")
