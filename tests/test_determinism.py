"""The promises of docs/determinism.md: every shared program and the large models give the same bits in all ways of its table."""
import json
import math
import os
import re
import struct
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import encoder
import large
import npy
import vmrun
from serve_case import ELEMENTWISE, ENCODER, start
from serve_client import binary_request, binary_response, packed

FIXTURES = vmrun.needed_fixtures()
COMPILER = os.path.exists(vmrun.COMPILER)
DEVICES = ("local-sync", "local-task", "vulkan")
VULKAN = vmrun.vulkan_device()
STEPS = "step by step (`vm-diff`)"


def swapped(devices):
    """The same devices, but each local one is the other."""
    other = {"local-sync": "local-task", "local-task": "local-sync"}
    return [other.get(name, name) for name in devices]


def with_workers(devices, count):
    return [name + f"?workers={count}" if name == "local-task" else name for name in devices]


def flags_of(way, devices, folder, traced="*"):
    """The lists of flags for vm-run that are this way on these devices; None: it is no way of vm-run. `traced` selects dispatches."""
    files = {"trace": "run.perfetto", "capture": "run.hycap"}
    lists = {
        "1 thread, 2 threads, 7 threads": [with_workers(devices, count) for count in (1, 2, 7)] if "local-task" in devices else [],
        "the other local device": [swapped(devices)] if swapped(devices) != devices else [],
    }
    if way in lists:
        return [["--device=" + name for name in chosen] for chosen in lists[way]]
    flags = {
        "again, in a new process": [[]],
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
OTHER_WAYS = {STEPS: "steps", "served alone (`vm-serve`)": "test_served",
              "served in a batch (`vm-serve --batch`)": "test_served"}
# Results that are facts about the device, each with the ways in which it differs: (program, function): (ways, reason).
MEANING = {
    ("devices_query", "concurrency"): (("the other local device", STEPS), "the number of the device's workers is one of its results"),
}


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
        if "vulkan" in case["devices"] and not VULKAN:
            continue
        yield case


def first_of_each_function(cases):
    """One case of each function and devices; other cases differ in their inputs only."""
    seen = set()
    for case in cases:
        key = (case["module"], case["function"], tuple(case["devices"]), tuple(case["flags"]))
        if key not in seen:
            seen.add(key)
            yield case


def command(case, folder):
    """What all ways of a case have in common."""
    return [*("--input=" + each for each in case["inputs"]), *(flag for flag in case["flags"] if not flag.startswith("--jit")),
            "--function=" + case["function"], "--module=" + os.path.join(folder, case["module"])]


def bits(case, folder, flags, scratch):
    """The bytes of all results, or how the call failed."""
    path = os.path.join(scratch, "results.bin")
    if os.path.exists(path):
        os.remove(path)
    device = [] if any(flag.startswith("--device=") for flag in flags) else ["--device=" + name for name in case["devices"]]
    done = vmrun.run("vm-run", *command(case, folder), *device, *flags, *["--output=+" + path] * len(case["expected"]), cwd=folder,
                     timeout=900)
    if done.returncode != 0:
        return done.returncode, re.sub(r"[0-9]+ bytes", "", done.stderr.split(";")[0])
    return vmrun.read(path) if os.path.exists(path) else b""


def steps(case, folder):
    """How two runs step by step compare, on the device and on the other local one; "same" if they do."""
    sides = [" ".join("--device=" + name for name in devices) for devices in (case["devices"], swapped(case["devices"]))]
    done = vmrun.run("vm-diff", *command(case, folder), *(f"--{side}={flags}" for side, flags in zip("ab", sides) if flags), "--json",
                     *([] if sides[0] else ["--a=--jit=off", "--b=--jit=off"]), cwd=folder, timeout=900)
    if done.returncode not in (0, 2):
        return done.stderr
    report = json.loads(done.stdout)
    return "same" if (report["outcome"], report["unstable_a"], report["unstable_b"]) == ("same", [], []) else done.stdout[:4000]


def differences(case, folder, traced="*"):
    """The number of comparisons, and those that failed: (way, flags, found, expected)."""
    # With several devices a promise holds if it holds on each; without devices, if it holds on local-sync.
    columns = [DEVICES.index(name) for name in case["devices"] or ["local-sync"]]
    differing = MEANING.get((case["module"].split(".")[0], case["function"]), ((), ""))[0]
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        plain = bits(case, folder, [], scratch)
        if isinstance(plain, tuple):
            return 0, []  # an outcome that another test checks
        for way, *promises in table():
            if way in differing or not all("same" in promises[column].split(",") for column in columns):
                continue
            found = [([], steps(case, folder), "same")] if way == STEPS else [
                (flags, bits(case, folder, flags, scratch), plain) for flags in flags_of(way, case["devices"], scratch, traced) or []]
            count += len(found)
            wrong += [(way, *each) for each in found if each[1] != each[2]]
    return count, wrong


def tensor_of(text, datatype, folder):
    """An input of vm-run as (datatype, shape, bytes)."""
    if text.startswith("@"):
        [(_, shape, data)] = npy.read_npy(vmrun.read(os.path.join(folder, text[1:])))
        return datatype, list(shape), data
    declared, equals, values = text.partition("=")
    shape = [int(each) for each in declared.split("x")[:-1]] if equals else [1]
    numbers = [(float if datatype.startswith("FP") else int)(each) for each in re.findall(r"[^\s,\[\]]+", values if equals else text)]
    return datatype, shape, packed(datatype, numbers * (math.prod(shape) // len(numbers)))


class Determinism(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def tearDown(self):
        self.scratch.cleanup()

    def run_cases(self, folder, cases, traced="*", threads=2):
        """The number of cases that were compared."""
        cases = list(cases)
        with ThreadPoolExecutor(threads) as pool:
            outcomes = list(pool.map(lambda case: differences(case, folder, traced), cases))
        for case, (_, wrong) in zip(cases, outcomes):
            for way, flags, found, expected in wrong:
                with self.subTest(case["name"], way=way, flags=flags):
                    self.assertEqual(found, expected)
        return sum(count > 0 for count, _ in outcomes)

    def test_the_table_is_complete(self):
        ways = [row[0] for row in table()]
        self.assertGreater(len(ways), 10)
        for way in ways:
            self.assertTrue(way in OTHER_WAYS or flags_of(way, ["local-task"], "") is not None, way)
        self.assertEqual(set(OTHER_WAYS) - set(ways), set())
        for _, *promises in table():
            self.assertEqual(len(promises), len(DEVICES))

    def run_folder(self, *names):
        folder = os.path.join(FIXTURES, *names)
        if not os.path.exists(os.path.join(folder, "cases.json")):
            self.skipTest(f"there is no {folder}/cases.json")
        cases = list(first_of_each_function(cases_of(folder)))
        self.assertEqual(self.run_cases(folder, cases), len(cases))

    def test_programs(self):
        self.run_folder("compiled")

    def test_programs_in_text(self):
        self.run_folder("vmasm")

    def test_programs_of_older_releases(self):
        self.run_folder("vmasm", "legacy")

    def test_programs_without_devices(self):
        self.run_folder("inline")

    def test_programs_that_write_to_constants(self):
        self.run_folder("constants")

    def test_programs_for_small_devices(self):
        self.run_folder("..", "aot")

    def test_programs_for_other_gpus(self):
        """Those that the Vulkan device here can run."""
        folder = os.path.join(FIXTURES, "compiled-gpu")
        cases = list(first_of_each_function(cases_of(folder)))
        if cases:
            self.assertGreater(self.run_cases(folder, cases), 0)

    def large_folder(self, which=large.folder):
        try:
            return which()
        except large.Missing as missing:
            self.skipTest(str(missing))

    def test_large_models(self):
        """The files of traced tensors are as large as the weights, so only dispatches without weights are traced. Two functions of the
        decoder call the other two."""
        folder = self.large_folder()
        cases = [case for case in first_of_each_function(cases_of(folder)) if case["function"] not in ("after", "generate")]
        self.assertEqual(self.run_cases(folder, cases, traced="*_reduction_*", threads=1), len(cases))

    def test_large_models_of_bytecode(self):
        """Their kernels are interpreted and compiled. Of the decoder one function is left out: its interpretation takes minutes."""
        folder = self.large_folder(large.bytecode_folder)
        cases = [case for case in first_of_each_function(cases_of(folder)) if not (case["name"].startswith("gpt2") and
                                                                                  case["function"] != "decode")]
        self.assertEqual(self.run_cases(folder, cases, traced="*_reduction_*", threads=1), len(cases))

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

    def test_served_programs(self):
        """Each compiled program, alone, on its device."""
        vmrun.need_tool("vm-serve")
        folder = os.path.join(FIXTURES, "compiled")
        cases = [case for case in first_of_each_function(cases_of(folder)) if len(case["devices"]) == 1]
        for device in sorted({case["devices"][0] for case in cases}):
            chosen = {f"m{number}": case for number, case in enumerate(cases) if case["devices"] == [device]}
            flags = [f"--model={name}:{case['function']}={os.path.join(folder, case['module'])}" for name, case in chosen.items()]
            # "--parameters=SCOPE=FILE", with the file's path from the folder.
            flags += {re.sub("=(?=[^=]+$)", f"={folder}/", flag) for case in chosen.values() for flag in case["flags"]}
            with start(*flags, f"--device={device}") as server:
                for name, case in chosen.items():
                    with self.subTest(case["name"]):
                        expected = server.get(f"/v2/models/{name}")[2]["inputs"]
                        given = [(tensor["name"], *tensor_of(text, tensor["datatype"], folder))
                                 for tensor, text in zip(expected, case["inputs"], strict=True)]
                        outputs = self.answer(server, name, given)
                        self.assertEqual(b"".join(outputs.values()), bits(case, folder, [], self.folder))

    def answer(self, server, model, request):
        body, headers = binary_request(request, parameters={"binary_data_output": True})
        status, headers, answer = server.get(f"/v2/models/{model}/infer", "POST", body, headers)
        self.assertEqual(status, 200, answer)
        return binary_response(headers, answer)[1]

    def served(self, model, path, requests, flags):
        """The tensors of each answer to requests that are sent at once, and the number of calls."""
        with start(f"--model={model}={path}", *flags) as server:
            with ThreadPoolExecutor(len(requests)) as threads:
                answers = list(threads.map(lambda request: self.answer(server, model, request), requests))
            return answers, server.metric(f'halyard_model_call_seconds_count{{model="{model}",version="1"}}')


if __name__ == "__main__":
    unittest.main()
