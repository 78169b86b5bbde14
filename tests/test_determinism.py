"""The promises of docs/determinism.md: every shared program and the large models give the same bits in all ways of its table."""
import json
import math
import os
import re
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import encoder
import large
import vmrun
from serve_case import ELEMENTWISE, ENCODER, start
from serve_client import binary_request, binary_response, packed

FIXTURES = vmrun.needed_fixtures()
COMPILER = os.path.exists(vmrun.COMPILER)
DEVICES = ("local-sync", "local-task", "vulkan")
VULKAN = vmrun.vulkan_device()


def flags_of(way, device, folder, traced="*"):
    """The lists of flags for vm-run that are this way on this device; None: it is no way of vm-run. `traced` selects dispatches."""
    files = {"trace": "run.perfetto", "capture": "run.hycap"}
    local = device.startswith("local-")
    flags = {
        "again, in a new process": [[]],
        "1 thread, 2 threads, 7 threads": [[f"--device=local-task?workers={count}"] for count in (1, 2, 7)] if device == "local-task" else [],
        "the other local device": [["--device=" + ("local-task" if device == "local-sync" else "local-sync")]] if local else [],
        "interpreted (`--jit=off`)": [["--jit=off"]],
        "compiled (`--jit=always`)": [["--jit=always", "--jit_cache="]] if COMPILER else [],
        "compiled, from a warm cache": [["--jit=always", f"--jit_cache={folder}/cache"]] * 2 if COMPILER else [],
        "traced (`--trace`)": [[f"--trace={folder}/{files['trace']}"]],
        "profiled (`--profile`)": [["--profile"]],
        "with tensors of dispatches (`--trace_tensors`)": [[f"--trace_tensors={traced}", f"--trace_tensors_folder={folder}/tensors"]],
        "captured (`--capture`)": [[f"--capture={folder}/{files['capture']}"]],
    }
    return flags.get(way)


# Ways that are no flags of vm-run, and the tests for them.
OTHER_WAYS = {"step by step (`vm-diff`)": "test_step_by_step", "served alone (`vm-serve`)": "test_served",
              "served in a batch (`vm-serve --batch`)": "test_served"}


def table():
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "docs", "determinism.md"))
    rows = re.findall(r"(?m)^\| (.*) \|$", text[text.index("<!-- ways"):text.index("Why it holds")])
    return [row.split(" | ") for row in rows if not row.startswith(("way ", "---", ":-"))]


def is_native(module):
    return ".llvm-cpu" in module or ".inline-" in module


def cases_of(folder):
    for case in json.loads(vmrun.read_text(os.path.join(folder, "cases.json"))):
        if case.get("error") or not case.get("expected") or (is_native(case["module"]) and vmrun.processor() != "x86_64"):
            continue
        if case["devices"] and (case["devices"][0] not in DEVICES or len(case["devices"]) > 1):
            continue
        yield case


class Determinism(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def tearDown(self):
        self.scratch.cleanup()

    def bits(self, case, folder, flags):
        """The bytes of all results."""
        path = os.path.join(self.folder, "results.bin")
        if os.path.exists(path):
            os.remove(path)
        device = [] if any(flag.startswith("--device=") for flag in flags) else ["--device=" + name for name in case["devices"]]
        own = [flag for flag in case["flags"] if not flag.startswith("--jit")]
        done = vmrun.run("vm-run", "--module=" + os.path.join(folder, case["module"]), "--function=" + case["function"],
                         *("--input=" + each for each in case["inputs"]), *own, *device, *flags,
                         *["--output=+" + path] * len(case["expected"]), cwd=folder, timeout=300)
        if done.returncode != 0:
            return done.returncode, re.sub(r"[0-9]+ bytes", "", done.stderr.split(";")[0])
        return vmrun.read(path) if os.path.exists(path) else b""

    def run_folder(self, folder, choose=lambda case: True, traced="*"):
        compared = 0
        for case in filter(choose, cases_of(folder)):
            if "vulkan" in case["devices"] and not VULKAN:
                continue
            # With several devices a promise holds if it holds on each; without devices, if it holds on local-sync.
            columns = [DEVICES.index(name) for name in case["devices"] or ["local-sync"]]
            device = case["devices"][0] if len(case["devices"]) == 1 else "several or none"
            plain = self.bits(case, folder, [])
            if isinstance(plain, tuple):
                continue  # an outcome that another test checks
            for way, *promises in table():
                if way in OTHER_WAYS or not all("same" in promises[column].split(",") for column in columns):
                    continue
                for flags in flags_of(way, device, self.folder, traced):
                    found = self.bits(case, folder, flags)
                    compared += 1
                    with self.subTest(case["name"], way=way, flags=flags):
                        self.assertEqual(found, plain)
        self.assertGreater(compared, 0)

    def test_the_table_is_complete(self):
        ways = [row[0] for row in table()]
        self.assertGreater(len(ways), 10)
        for way in ways:
            self.assertTrue(way in OTHER_WAYS or flags_of(way, "local-task", "") is not None, way)
        self.assertEqual(set(OTHER_WAYS) - set(ways), set())
        for _, *promises in table():
            self.assertEqual(len(promises), len(DEVICES))

    def test_programs(self):
        """One case of each exported function of each module; the other cases differ in their inputs only."""
        seen = set()

        def first(case):
            key = (case["module"], case["function"], tuple(case["devices"]))
            return not (key in seen or seen.add(key))
        self.run_folder(os.path.join(FIXTURES, "compiled"), first)

    def test_programs_in_text(self):
        seen = set()

        def some(case):
            key = case["module"]
            return not (key in seen or seen.add(key)) and case["devices"]
        self.run_folder(os.path.join(FIXTURES, "vmasm"), some)

    def large_folder(self):
        try:
            return large.folder()
        except large.Missing as missing:
            self.skipTest(str(missing))

    def test_large_models(self):
        """Of the decoder with weights of half a gigabyte, one call. The files of traced tensors are as large as the weights, so only
        dispatches without weights are traced."""
        self.run_folder(self.large_folder(), lambda case: not case["name"].startswith("gpt2") or ".decode." in case["name"],
                        traced="*_reduction_*")

    def test_step_by_step(self):
        """Each step of a run is the same on both local devices, or in two runs on Vulkan; results are
        steps too."""
        folder = self.large_folder()
        compared = 0
        for case in cases_of(folder):
            if case["name"].startswith("gpt2") and ".decode." not in case["name"]:
                continue
            if case["devices"] == ["local-task"] or ("vulkan" in case["devices"] and not VULKAN):
                continue
            sides = ("vulkan", "vulkan") if case["devices"] == ["vulkan"] else ("local-sync", "local-task")
            done = vmrun.run("vm-diff", os.path.join(folder, case["module"]), "--function=" + case["function"],
                             *("--input=" + each for each in case["inputs"]), *case["flags"], f"--a=--device={sides[0]}",
                             f"--b=--device={sides[1]}", "--json", cwd=folder, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual((report["outcome"], report["unstable_a"], report["unstable_b"]), ("same", [], []), case["name"])
            self.assertGreater(report["compared"], 10)
            compared += 1
        self.assertGreaterEqual(compared, 4)

    def test_served(self):
        """A request alone has the bits of vm-run, and in a batch those of the request alone."""
        vmrun.need_tool("vm-serve")
        values = [[math.sin(i * 7 + j) * 3 for j in range(encoder.FEATURES)] for i in range(6)]
        rows = [packed("FP32", row) for row in values]
        plain = []
        for row in rows:
            path = os.path.join(self.folder, "row.bin")
            vmrun.write(path, row)
            vmrun.succeeds("vm-run", "--module=" + ENCODER, f"--input=1x{encoder.FEATURES}xf32=@{path}", f"--output=@{self.folder}/found.bin",
                           "--jit=off")
            plain.append(vmrun.read(os.path.join(self.folder, "found.bin")))
        for flags, most in (([], len(rows)), (["--batch=encoder=4", "--batch_delay=300ms"], len(rows) - 1)):
            answers, calls = self.served("encoder", ENCODER, [[("tokens", "FP32", [1, encoder.FEATURES], row)] for row in rows], flags)
            self.assertEqual([answer["encoded"] for answer in answers], plain, flags)
            self.assertLessEqual(calls, most)

    def test_served_on_a_device(self):
        """A program whose kernels a device runs."""
        vmrun.need_tool("vm-serve")
        given = [packed("FP32", [math.sin(i) for i in range(8)]), packed("FP32", [math.cos(i) for i in range(8)])]
        for number, each in enumerate(given):
            vmrun.write(os.path.join(self.folder, f"{number}.bin"), each)
        vmrun.succeeds("vm-run", "--module=" + ELEMENTWISE, "--function=mul", f"--input=8xf32=@{self.folder}/0.bin",
                       f"--input=8xf32=@{self.folder}/1.bin", f"--output=@{self.folder}/found.bin", "--device=local-sync")
        request = [(f"input{number}", "FP32", [8], each) for number, each in enumerate(given)]
        for device in ("local-sync", "local-task"):
            answers, _ = self.served("mul", ELEMENTWISE, [request] * 3, ["--device=" + device])
            self.assertEqual([list(answer.values()) for answer in answers], [[vmrun.read(os.path.join(self.folder, "found.bin"))]] * 3)

    def served(self, model, path, requests, flags):
        """The tensors of each answer to requests that are sent at once, and the number of calls."""
        with start(f"--model={model}={path}", *flags) as server:
            def ask(request):
                body, headers = binary_request(request, parameters={"binary_data_output": True})
                status, headers, answer = server.get(f"/v2/models/{model}/infer", "POST", body, headers)
                self.assertEqual(status, 200)
                return binary_response(headers, answer)[1]
            with ThreadPoolExecutor(len(requests)) as threads:
                answers = list(threads.map(ask, requests))
            return answers, server.metric(f'halyard_model_call_seconds_count{{model="{model}",version="1"}}')


if __name__ == "__main__":
    unittest.main()
