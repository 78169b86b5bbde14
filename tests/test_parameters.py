"""What vm-run and vm-bench say of parameters that are likely to give wrong numbers, and of models in several files."""
import json
import os
import struct
import unittest

import vmrun
from test_wrong_command_lines import PARAMETERS


def safetensors(*tensors):
    """(name, dtype, shape, bytes) of each."""
    header, data = {}, b""
    for name, dtype, shape, contents in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(contents)]}
        data += contents
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Parameters(unittest.TestCase):
    """The program loads 16 bytes of the parameter "weight"."""

    def setUp(self):
        self.folder = self.enterContext(vmrun.temporary_folder())
        self.write("parameters.vmasm", PARAMETERS.encode())

    def write(self, name, contents):
        path = os.path.join(self.folder, name)
        vmrun.write(path, contents)
        return path

    def run_with(self, *files, tool="vm-run", flags=()):
        return vmrun.run(tool, "--device=local-sync", f"--module={self.folder}/parameters.vmasm", "--function=main",
                         *[f"--parameters=model={file}" for file in files], *flags)

    def test_less_than_there_is(self):
        wide = self.write("wide.safetensors", safetensors(("weight", "F64", [4], bytes(32))))
        done = self.run_with(wide)
        self.assertEqual((done.returncode, done.stdout), (0, "EXEC @main\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("vm-run: warning: parameter 'weight' has 32 bytes of type F64 [4], "), done.stderr)
        self.assertIn("only the first 16", done.stderr)
        done = self.run_with(self.write("right.safetensors", safetensors(("weight", "F32", [4], bytes(16)))))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_each_warning_once(self):
        wide = self.write("wide.safetensors", safetensors(("weight", "F64", [4], bytes(32))))
        done = self.run_with(wide, tool="vm-bench", flags=("--benchmark_min_time=1x",))
        self.assertEqual((done.returncode, done.stderr.count("warning: ")), (0, 1), done.stderr)

    def test_a_name_in_two_files(self):
        one, two = (self.write(f"{name}.safetensors", safetensors(("weight", "F32", [4], bytes(16)))) for name in "ab")
        done = self.run_with(one, two)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, f"vm-run: warning: there is more than one parameter 'weight': '{one}' and '{two}' contain it; "
                                      "the first one is used\n")

    def test_shards(self):
        self.write("model-1.safetensors", safetensors(("other", "F32", [4], bytes(16))))
        self.write("model-2.safetensors", safetensors(("weight", "F32", [4], bytes(16))))
        index = {"weight_map": {"other": "model-1.safetensors", "weight": "model-2.safetensors"}}
        path = self.write("model.safetensors.index.json", json.dumps(index).encode())
        for flags in ((), ("--parameter_mode=preload",)):
            done = self.run_with(path, flags=flags)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        index["weight_map"]["weight"] = "model-1.safetensors"
        self.write("model.safetensors.index.json", json.dumps(index).encode())
        done = self.run_with(path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tensor 'weight' is assigned to 'model-1.safetensors', which does not contain it", done.stderr)
