"""The Vulkan driver from the view of a user: hal-cts passes, also with the validation layer; without Vulkan it
reports the reason; local and vulkan share memory without copies; the shared fixtures give the reference's results."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import vmrun
from perfetto import Trace

DRIVER = os.path.join(vmrun.DRIVERS, "halyard-driver-vulkan.so")
KERNELS = os.path.join(vmrun.BUILD, "tests", "vulkan")
PROGRAMS = [f"--executable=vulkan-spirv-fb={KERNELS}/device_code.bin",
            f"--executable=vulkan-spirv-bda-v1={KERNELS}/device_code_bda.bin",
            f"--executable=vulkan-spirv-bda-raw={KERNELS}/increment_bda.spv"]
# What Vulkan, or lavapipe, cannot do.
MAY_SKIP = {
    "semaphore.export_and_import",  # lavapipe's timeline semaphores have no file descriptors
    "semaphore.import_of_something_else",
    "semaphore.imported_waits",
    "semaphore.imported_failure",
    "semaphore.help_comes_back",    # the device runs by itself
    "queue.flush",                  # submissions are not collected
    "dispatch.stopped",             # shaders cannot be stopped
    "dispatch.into_constants",      # the host copies constants; shaders write to copies
    "transfer.files", "transfer.files_that_end_early",  # the host stages them
    "dispatch.failing",             # a kernel cannot fail
    "memory.direct_copies",         # the host maps memory
}


def info(**environment):
    return vmrun.run("hal-info", env={**os.environ, **environment})


def has_vulkan():
    return "\nvulkan://" in "\n" + info().stdout


def is_lavapipe():
    return re.search(r"vulkan://.*llvmpipe|llvmpipe", info().stdout) is not None


def sanitized():
    return re.search(r"^HALYARD_SANITIZE:\w+=\w", vmrun.read_text(os.path.join(vmrun.BUILD, "CMakeCache.txt")), re.M) is not None


@unittest.skipUnless(has_vulkan(), "no Vulkan implementation was found")
class Vulkan(vmrun.FolderCase):
    def check_cts(self, device, *flags, may_skip=frozenset(), at_least=100):
        done = vmrun.run("hal-cts", f"--driver={DRIVER}", f"--device={device}", *PROGRAMS, "--json", "--timeout=120s",
                         *flags, timeout=900)
        cases = json.loads(done.stdout[done.stdout.index("{"):])
        cases = cases if isinstance(cases, list) else cases["cases"]
        failed = [case["name"] for case in cases if case["result"] == "failed"]
        self.assertEqual(failed, [], done.stdout[-3000:] + done.stderr[-3000:])
        self.assertEqual({case["name"] for case in cases if case["result"] == "skipped"} - MAY_SKIP - may_skip, set())
        self.assertGreaterEqual(len(cases), at_least)

    def test_hal_cts(self):
        self.check_cts("vulkan://?cache=")

    def test_hal_cts_with_every_switch_turned(self):
        device = "vulkan://?cache=&inline_completion=0&push_descriptors=0"
        self.check_cts(device, "--skip_tag=slow")
        self.check_cts(device, "--filter=list.thousands_of_commands", "--filter=queue.long_chain", at_least=2)

    def test_hal_cts_as_a_gpu_with_memory_of_its_own(self):
        self.check_cts("vulkan://?cache=&separate_memory=1", "--skip_tag=slow")

    def test_results_in_memory_that_the_host_does_not_see(self):
        module = os.path.join(vmrun.BUILD, "examples", "elementwise_mul.vulkan.vmasm")
        done = vmrun.run("vm-run", "--device=vulkan?separate_memory=1", f"--module={module}", "--function=mul",
                         "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("8xf32=2 4 6 8 10 12 14 16", done.stdout)

    def test_hal_cts_validated(self):
        done = vmrun.run("hal-cts", f"--driver={DRIVER}", "--device=vulkan://?cache=&validate=1", *PROGRAMS,
                         "--filter=device.opens_twice")
        if "is not installed" in done.stdout:
            self.skipTest("the validation layer is not installed")
        # Vulkan forbids a copy whose ranges overlap, and the layer says so.
        overlap = "list.overlap_through_slots"
        known = self.path("known.txt")
        vmrun.write(known, overlap + "\n")
        self.check_cts("vulkan://?cache=&validate=1", "--skip_tag=slow", f"--expect_failures={known}", may_skip={overlap})

    def test_unknown_devices_and_options_are_named(self):
        module = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
        # "15" is a part of lavapipe's name, "LLVM 15.0.6".
        for device, parts in (("vulkan://GPU-00", ["GPU-00", "'0'"]), ("vulkan://?colour=red", ["'colour'", "'validate'"]),
                              ("vulkan://15", ["NOT_FOUND", "'vulkan://15'", "'0'"]), ("vulkan://00", ["NOT_FOUND", "'0'"]),
                              ("vulkan://.", ["NOT_FOUND", "'0'"])):
            done = vmrun.run("vm-run", f"--device={device}", f"--module={module}", "--function=mul")
            self.assertIsNone(vmrun.why_bad_failure(done, *parts), done.stderr)

    def test_the_example(self):
        module = os.path.join(vmrun.BUILD, "examples", "elementwise_mul.vulkan.vmasm")
        done = vmrun.succeeds("vm-run", "--device=vulkan", f"--module={module}", "--function=mul",
                         "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2")
        self.assertIn("8xf32=2 4 6 8 10 12 14 16", done.stdout)

    def traced(self, device, *arguments):
        """The trace, and what lies on the device's "queue 0" and "in flight"."""
        path = self.path("run.perfetto")
        done = vmrun.run("vm-run", f"--device={device}", *arguments, f"--trace={path}")
        if "is not installed" in done.stderr:
            self.skipTest("the validation layer is not installed")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        trace = Trace(path)
        tracks = {number for number, track in trace.tracks.items() if track.name == device.partition("?")[0]}
        self.assertEqual(len(tracks), 1, trace.tracks)
        on = {"queue 0": [], "in flight": []}
        for found in trace.slices():
            if trace.tracks[found.track].parent in tracks:
                on[trace.tracks[found.track].name].append(found)
        return on["queue 0"], on["in flight"]

    def test_a_trace_shows_what_the_device_did(self):
        module = os.path.join(vmrun.BUILD, "examples", "elementwise_mul.vulkan.vmasm")
        for device in ("vulkan://0", "vulkan://0?validate=1", "vulkan://0?inline_completion=0"):
            with self.subTest(device):
                did, in_flight = self.traced(device, f"--module={module}", "--function=mul", "--input=8xf32=3", "--input=8xf32=2")
                if not did:
                    self.skipTest("the device has no timestamps")
                self.assertEqual([(s.name, s.category) for s in did], [("mul", "device")])
                execute, = (s for s in in_flight if s.name == "execute")
                self.assertLessEqual(execute.begin, did[0].begin)
                self.assertLess(did[0].begin, did[0].end)
                self.assertLessEqual(did[0].end, execute.end)

    @unittest.skipUnless(vmrun.fixtures(), "the shared fixtures are not here")
    def test_a_trace_of_a_chain_of_dispatches(self):
        module = os.path.join(vmrun.fixtures(), "compiled", "pipeline_chain.vulkan.vmfb")
        did, in_flight = self.traced("vulkan://0", f"--module={module}", "--function=chain", "--input=16x16xf32=1")
        if not did:
            self.skipTest("the device has no timestamps")
        self.assertEqual(len([s for s in did if s.name == "chain_dispatch_0_matmul_16x16x16_f32"]), 40)
        did.sort(key=lambda s: s.begin)
        for before, after in zip(did, did[1:]):
            self.assertLessEqual(before.end, after.begin)
        for s in did:
            self.assertTrue(any(e.name == "execute" and e.begin <= s.begin and s.end <= e.end for e in in_flight), s)

    def test_the_share_of_the_device(self):
        module = os.path.join(vmrun.BUILD, "examples", "elementwise_mul.vulkan.vmasm")
        arguments = (f"--module={module}", "--function=mul", "--input=8xf32=3", "--input=8xf32=2", "--device=vulkan://0")
        if not self.traced("vulkan://0", *arguments[:-1])[0]:
            self.skipTest("the device has no timestamps")
        done = vmrun.succeeds("vm-bench", *arguments, "--benchmark_filter=BM_", "--benchmark_format=json", "--benchmark_min_time=0.05")
        row = json.loads(done.stdout)["benchmarks"][0]
        self.assertGreater(row["device_percent"], 0)

    def counted(self, folder, name, file, kinds):
        """Builds the counting driver before a driver of this build."""
        library = os.path.join(folder, f"halyard-driver-{name}.so")
        includes = [f"-I{vmrun.SOURCE}/{path}" for path in ("hal/include", "base/include")]
        subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", *includes,
                        f'-DCOUNTED_NAME="{name}"', f'-DCOUNTED_FILE="{file}"', f'-DCOUNTED_KINDS="{kinds}"',
                        os.path.join(vmrun.SOURCE, "tests", "counting_driver", "counting.c"), "-o", library, "-ldl"],
                       check=True)

    @unittest.skipUnless(vmrun.fixtures(), "the shared fixtures are not here")
    @unittest.skipIf(sanitized(), "the counting driver is not built with a sanitizer")
    def test_nothing_is_copied_between_local_and_vulkan(self):
        with tempfile.TemporaryDirectory() as folder:
            self.counted(folder, "a-vulkan", DRIVER, "vulkan")
            self.counted(folder, "a-local", os.path.join(vmrun.DRIVERS, "halyard-driver-local.so"), "local-sync,local-task")
            module = os.path.join(vmrun.fixtures(), "compiled", "multi_device_mul.topo.vmvx+vulkan.vmfb")
            for local in ("local-sync", "local-task"):
                done = vmrun.succeeds("vm-run", f"--device={local}", "--device=vulkan", f"--module={module}",
                                 "--function=multi_device_mul", "--input=4xf32=1,2,3,4",
                                 env={**os.environ, "HALYARD_DRIVER_PATH": f"{folder}:{vmrun.DRIVERS}"})
                self.assertIn("4xf32=0 10 36 84", done.stdout)
                counts = {name: (int(imports), int(copies)) for name, imports, copies in
                          re.findall(r"(a-\w+): (\d+) imports, (\d+) copies", done.stderr)}
                self.assertEqual(set(counts), {"a-vulkan", "a-local"}, done.stderr)
                self.assertEqual([copies for _, copies in counts.values()], [0, 0], counts)
                self.assertGreater(sum(imports for imports, _ in counts.values()), 0, counts)

    @unittest.skipUnless(vmrun.fixtures(), "the shared fixtures are not here")
    def test_fixtures(self):
        for script, folders, selection in (("run.py", ["compiled"], ["--only", ".vulkan."]),
                                           ("run.py", ["vmasm", "vmasm/legacy"], ["--only", ".vulkan"]),
                                           ("exec/check.py", ["exec/vulkan"], [])):
            folders = [os.path.join(vmrun.fixtures(), folder) for folder in folders]
            done = subprocess.run([sys.executable, os.path.join(vmrun.fixtures(), script), os.path.join(vmrun.BIN, "vm-run"),
                                   *folders, *selection], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-1000:])
            self.assertRegex(done.stdout.splitlines()[-1], r"^[1-9]\d* passed, 0 failed")

    def run_compiled_for_gpus(self, device, name, wanted=lambda case: True):
        """The last line of the runner's report on programs for real GPUs."""
        fixtures = os.path.join(vmrun.fixtures(), name)
        cases = [case for case in json.loads(vmrun.read_text(os.path.join(fixtures, "cases.json"))) if wanted(case)]
        for case in cases:
            flags = list(case["flags"])
            if case["module"].startswith("parameters."):
                flags = [f"--parameters=model={vmrun.fixtures()}/compiled/weights.irpa"]
            case.update(devices=[device], module=os.path.join(fixtures, case["module"]), flags=flags,
                        inputs=[re.sub("^@", f"@{fixtures}/", given) for given in case["inputs"]])
        with open(self.path("cases.json"), "w") as file:
            json.dump(cases, file)
        done = subprocess.run([sys.executable, os.path.join(vmrun.fixtures(), "run.py"), os.path.join(vmrun.BIN, "vm-run"),
                               self.folder], capture_output=True, text=True)
        if "is not installed" in done.stdout:
            self.skipTest("the validation layer is not installed")
        return done.stdout.splitlines()[-1], done.stdout[-2000:]

    def refusal(self, name):
        """What a tool says of one of these programs; the runner's report has the end of it alone."""
        fixtures = os.path.join(vmrun.fixtures(), name)
        case = json.loads(vmrun.read_text(os.path.join(fixtures, "cases.json")))[0]
        return vmrun.run("vm-run", f"--module={os.path.join(fixtures, case['module'])}", f"--function={case['function']}",
                         "--device=vulkan?spirv=strict").stderr

    @unittest.skipUnless(vmrun.fixtures(), "the shared fixtures are not here")
    def test_programs_for_real_gpus(self):
        # These reduce over subgroups of 32 or 64. Some calls are right on lavapipe, where no more than 8 values are there.
        def reduces(case):
            return case["module"].startswith("matmul_dynamic.") or (case["module"].startswith("reductions.") and
                                                                   case["function"] == "sum")

        for name in ("compiled-gpu", "gpu-targets"):
            for device in ("vulkan", "vulkan?spirv=off", "vulkan?validate=1"):
                with self.subTest(device, name=name):
                    last, report = self.run_compiled_for_gpus(device, name, lambda case: not reduces(case))
                    self.assertRegex(last, r"^[1-9]\d* passed, 0 failed", report)
            last, report = self.run_compiled_for_gpus("vulkan?spirv=strict", name)
            self.assertRegex(last, r"^0 passed, [1-9]", report)
            self.assertIn("compilers are known to write", self.refusal(name))
        last, report = self.run_compiled_for_gpus("vulkan", "gpu-targets", reduces)
        if is_lavapipe():
            self.assertRegex(last, r"^0 passed, [1-9]", report)
            self.assertIn("has 8; compile it for this device", report)

    @unittest.skipUnless(is_lavapipe(), "the device is not lavapipe, and may have other subgroups")
    def test_programs_that_say_for_which_subgroups_they_are(self):
        text = vmrun.read_text(os.path.join(vmrun.BUILD, "examples", "elementwise_mul.vulkan.vmasm"))
        text = re.sub(r"(?m)^vm\.rodata\[6\] = .*$", "vm.rodata[6] = " + vmrun.read(os.path.join(KERNELS, "sums.bin")).hex(), text)
        message = "no device runs vulkan-spirv-fb; give one, such as --device=vulkan"
        self.assertIn(f'"{message}"', text)
        target = (r'HAL device `d` not found: #hal.device.target<\"vulkan\", [#hal.executable.target<\"vulkan-spirv\", '
                  r'\"vulkan-spirv-fb\", {t = #iree_gpu.target<arch = \"\", wgp = <mma = []%s>>}>]>')
        for sizes, refused in ((None, ""), ("8", ""), ("8, 16", ""), ("4", "4"), ("16, 4", "4"), ("64", "64"), ("16, 32", "16")):
            with self.subTest(sizes), vmrun.temporary_folder() as folder:
                path = os.path.join(folder, "sums.vmasm")
                stated = f", subgroup_size_choices = [{sizes}]" if sizes else ""
                vmrun.write(path, text.replace(f'"{message}"', f'e"{target % stated}"'))
                for device in ("vulkan", "vulkan?spirv=off"):
                    done = vmrun.run("vm-run", f"--device={device}", f"--module={path}", "--function=mul",
                                     "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2")
                    if refused:
                        self.assertIsNone(vmrun.why_bad_failure(done, "INCOMPATIBLE", "'mul'", f"subgroups of {refused},", " 8;"),
                                          done.stderr)
                    else:
                        self.assertIn("8xf32=8 16 24 32 40 48 56 64", done.stdout, done.stderr)

    @unittest.skipUnless(vmrun.fixtures(), "the shared fixtures are not here")
    def test_what_the_device_lacks_is_named_with_the_device(self):
        name = re.search(r"llvmpipe \([^)]*\)", info().stdout)
        if not name:
            self.skipTest("the device is not lavapipe, and may have cooperative matrices")
        module = os.path.join(vmrun.fixtures(), "compiled-gpu", "matmul_i8.rdna3.vmfb")
        done = vmrun.run("vm-run", "--device=vulkan://llvmpipe", f"--module={module}", "--function=matmul_i8",
                         "--input=64x128xi8=1", "--input=128x96xi8=1")
        self.assertIsNone(vmrun.why_bad_failure(done, "INCOMPATIBLE", "VK_KHR_cooperative_matrix", name[0]), done.stderr)

    def test_robust_buffer_access_is_a_flag(self):
        module = os.path.join(vmrun.BUILD, "examples", "elementwise_mul.vulkan.vmasm")
        arguments = ("--device=vulkan", f"--module={module}", "--function=mul", "--input=8xf32=1", "--input=8xf32=2")
        question = ("vm.module @m\nvm.import @hal.devices.get cconv \"0i_r\"\n"
                    "vm.import @hal.device.query.i64 cconv \"0rrr_iI\"\n"
                    "vm.rodata[0] = \"vulkan.feature\"\nvm.rodata[1] = \"robust_buffer_access\"\nvm.export @on\n"
                    "vm.func @on() -> (i32, i64) {\n  %i0 = vm.const.i32.zero\n  %r0 = vm.call @hal.devices.get(%i0)\n"
                    "  %r1 = vm.const.ref.rodata 0\n  %r2 = vm.const.ref.rodata 1\n"
                    "  %i1, %i2:3 = vm.call @hal.device.query.i64(%r0, %r1, %r2)\n  vm.return %i1, %i2:3\n}\n")
        path = self.path("question.vmasm")
        vmrun.write(path, question)

        def is_on(*flags):
            done = vmrun.run("vm-run", *flags, f"--module={path}", "--function=on")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            known, value = re.findall(r"=(\d+)", done.stdout)
            self.assertEqual(known, "1")
            return value == "1"

        if is_on("--device=vulkan"):
            self.assertTrue(is_on("--device=vulkan", "--vulkan_robust_buffer_access"))
            self.assertTrue(is_on("--device=vulkan?robust=1", "--vulkan_robust_buffer_access=false"), "the URI has the last word")
        self.assertFalse(is_on("--device=vulkan", "--vulkan_robust_buffer_access=false"))
        self.assertFalse(is_on("--device=vulkan?robust=0"))
        done = vmrun.run("vm-run", "--vulkan_robust_buffer_access=false", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("8xf32=2 2 2 2 2 2 2 2", done.stdout)
        done = vmrun.run("vm-run", "--device=vulkan?robust=2", *arguments[1:])
        self.assertIsNone(vmrun.why_bad_failure(done, "'robust'", "0 or 1"), done.stderr)

    def test_shaders_without_the_types_of_the_tensors_get_a_warning(self):
        shaders = vmrun.read(os.path.join(KERNELS, "device_code.bin")).hex()
        text = ("vm.module @m\nvm.rodata[0] = %s\nvm.export @f\nvm.attr @f \"iree.abi.declaration\" \"sync func @f(%s)\"\n"
                "vm.func @f() -> () {\n  vm.return\n}\n")
        path = self.path("narrow.vmasm")
        for tensor, device, expected in (("tensor<5xf16>", "vulkan", 1), ("tensor<5xf32>", "vulkan", 0),
                                         ("tensor<5xf16>", "local-sync", 0)):
            vmrun.write(path, text % (shaders, tensor))
            done = vmrun.succeeds("vm-run", f"--device={device}", f"--module={path}", "--function=f")
            self.assertEqual(len(re.findall(r"^vm-run: warning: .*'f'.*f16.*--iree-vulkan-target=", done.stderr, re.M)), expected)


class NoVulkan(unittest.TestCase):
    """hal-info says why, and other drivers work."""

    def check(self, *parts, **environment):
        done = vmrun.run("hal-info", "--explain", env={**os.environ, **environment})
        text = done.stdout + done.stderr
        for part in parts:
            self.assertIn(part, text)
        done = info(**environment)
        self.assertIn("local-sync://", done.stdout)
        self.assertNotIn("\nvulkan://", done.stdout)

    def test_no_loader(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libvulkan.so.1", "libvulkan.so"):
                open(os.path.join(folder, name), "w").close()
            self.check("UNAVAILABLE", "cannot open the Vulkan loader", "libvulkan1", LD_LIBRARY_PATH=folder)

    def test_no_implementation(self):
        self.check("UNAVAILABLE", "mesa-vulkan-drivers", VK_ICD_FILENAMES="/dev/null", VK_DRIVER_FILES="/dev/null")
