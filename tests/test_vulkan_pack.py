"""vulkan-pack as a user types it: the file that it writes, and what it refuses. test_vulkan.py runs its executables."""
import struct
import unittest

import vmrun

vmrun.need_tool("vulkan-pack")
WORDS = struct.pack("<8I", 0x07230203, 0x00010000, 1, 2, 3, 4, 5, 6)


class VulkanPack(vmrun.FolderCase):
    def pack(self, *arguments):
        return vmrun.run("vulkan-pack", *arguments)

    def shader(self, contents=WORDS):
        path = self.path("shader.spv")
        with open(path, "wb") as file:
            file.write(contents)
        return path

    def packed(self, *arguments):
        output = self.path("out.bin")
        done = self.pack(output, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(output, "rb") as file:
            return file.read()

    def test_one_file_for_all_functions(self):
        function = f":3:1={self.shader()}"
        whole = self.packed("mul" + function, "add" + function)
        self.assertEqual(struct.unpack_from("<Q", whole, 8)[0], len(whole) - 64)  # the size, after which the header ends at 64
        self.assertEqual(whole.count(WORDS), 2)
        for name in (b"mul\0", b"add\0"):
            self.assertIn(name, whole)
        self.assertEqual(self.packed("--bare", "mul" + function, "add" + function), whole[64:])
        self.assertNotEqual(self.packed("--bda", "mul" + function, "add" + function), whole)
        self.assertNotEqual(self.packed("--subgroup=32", "mul" + function, "add" + function), whole)

    def test_what_is_wrong_is_named(self):
        shader, output = self.shader(), self.path("none.bin")
        for arguments, parts in (
                ([], ["NAME:BINDINGS:CONSTANTS=FILE.spv", "found 0"]),
                ([output], ["found 1"]),
                ([output, "mul"], ["'mul'", "NAME:BINDINGS:CONSTANTS=FILE.spv"]),
                ([output, f":1:1={shader}"], ["expected NAME"]),
                ([output, f"mul:x:1={shader}"], ["mul:x:1="]),
                ([output, f"mul:1:4294967296={shader}"], ["mul:1:4294967296="]),
                ([output, "mul:1:1=no/such.spv"], ["'no/such.spv'"]),
                ([output, f"mul:1:1={shader}", "--subgroup=5000"], ["--subgroup=5000", "1024"]),
                ([output, f"mul:1:1={shader}", "--subgroup=3"], ["--subgroup=3", "a power of two"]),
                ([output, f"mul:1:1={shader}", "--bear"], ["--bear", "--bare"]),
                (["no/such/folder/x.bin", f"mul:1:1={shader}"], ["no/such/folder/x.bin"])):
            self.assertIsNone(self.wrong(self.pack(*arguments), *parts), arguments)
        for contents in (b"", b"abc"):
            self.assertIsNone(self.wrong(self.pack(output, f"mul:1:1={self.shader(contents)}"), "no SPIR-V", f"{len(contents)} bytes"))
        for contents in (b"text", b"\x07\x23\x02\x03"):  # the second one in the other byte order
            wrong = self.wrong(self.pack(output, f"mul:1:1={self.shader(contents)}"), "no SPIR-V", f"{struct.unpack('<I', contents)[0]:#010x}", "0x07230203")
            self.assertIsNone(wrong, contents)

    def wrong(self, done, *parts):
        if done.returncode == 0 or not done.stderr.startswith("vulkan-pack: "):
            return f"{done.returncode}: {done.stderr}"
        return next((part for part in parts if part not in done.stderr), None)

