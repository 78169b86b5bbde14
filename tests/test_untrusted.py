"""--untrusted: what each tool refuses, and the limits that it sets. tools/common/tests/untrusted_test.cpp has the values of the limits."""
import os
import unittest

import serve_client
import vmrun
from test_native_executables import INPUTS, LIBRARIES, program

MUL = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
TOOLBOX = os.path.join(vmrun.BUILD, "examples", "libtoolbox.so")
LARGE = vmrun.with_exports("""
vm.module @large
vm.func @large() -> (i32) {
  %i0:1 = vm.const.i64 1073741824
  %i2 = vm.const.i32.zero
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.discard.refs %r0
  vm.return %i2
}
""")
SLOTS = vmrun.with_exports("""
vm.module @slots
vm.dependency @hal 7
vm.dependency @hal_inline 0
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal.command_buffer.create cconv "0riiIi_r"
vm.import @hal.command_buffer.fill_buffer cconv "0rrIIiIiI_v"
vm.import @hal.command_buffer.finalize cconv "0r_v"
vm.import @hal.device.queue.execute cconv "0rIrrrI_v"
vm.func @slots() -> (i32) {{
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 3
  %i3 = vm.const.i32 64
  %i4:5 = vm.const.i64 64
  %i6:7 = vm.const.i64 -1
  %i8:9 = vm.const.i64.zero
  %i10 = vm.const.i32 {capacity}
  %i12:13 = vm.const.i64 7
  %r0 = vm.call @hal.devices.get(%i0)
  %r1, %r2 = vm.call @hal_inline.buffer.allocate(%i3, %i4:5)
  %r3, %r4 = vm.call @hal_inline.buffer.allocate(%i3, %i4:5)
  %r5 = vm.call @hal.command_buffer.create(%r0, %i0, %i2, %i6:7, %i10)
  // The rest of the buffer, nothing.
  vm.call @hal.command_buffer.fill_buffer(%r5, %r1, %i4:5, %i6:7, %i0, %i8:9, %i1, %i8:9)
  vm.call @hal.command_buffer.fill_buffer(%r5, %r3, %i8:9, %i4:5, %i0, %i12:13, %i1, %i8:9)
  vm.call @hal.command_buffer.finalize(%r5)
  %r7 = vm.const.ref.zero
  vm.call @hal.device.queue.execute(%r0, %i6:7, %r7, %r7, %r5, %i8:9)
  %i0 = vm.buffer.load.i32 %r4, %i8:9
  vm.return %i0
}}
""")
KEYS = vmrun.with_exports("""
vm.module @keys
vm.dependency @hal 7
vm.dependency @io_parameters 0
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.allocator cconv "0r_r"
vm.import @hal.allocator.allocate cconv "0rIiiI_r"
vm.import @hal.allocator.import cconv "0riIiirII_r"
vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @io_parameters.gather cconv "0rIrrrrrrr_v"
vm.rodata[0] = "m"
// One span names the key at byte 0, a million others the same key at byte 1, which does not change.
vm.func @keys(%i0: i32) -> (i32) {
  %i18:19 = vm.ext.i32.i64.u %i0
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 -1
  %i6:7 = vm.const.i64 64
  %i8 = vm.const.i32 64
  %i10:11 = vm.const.i64 0x0000000100000001
  %i12:13 = vm.const.i64 0x0000000100000000
  %i14:15 = vm.const.i64 8000000
  %i16:17 = vm.const.i64 24000000
  %i20 = vm.const.i32 97
  %i22:23 = vm.const.i64 120
  %i24:25 = vm.const.i64 2
  %i26:27 = vm.const.i64 1
  %i32:33 = vm.const.i64 1000000
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.device.allocator(%r0)
  %r2 = vm.buffer.alloc %i6:7, %i8
  vm.buffer.fill.i8 %r2, %i2:3, %i24:25, %i20
  %r3 = vm.buffer.alloc %i14:15, %i8
  vm.buffer.fill.i64 %r3, %i2:3, %i32:33, %i10:11
  vm.buffer.store.i64 %i12:13, %r3, %i2:3
  %r4 = vm.buffer.alloc %i16:17, %i8
  // The first span reads a part, so it causes a warning.
  vm.buffer.store.i64 %i26:27, %r4, %i24:25
  %r5 = vm.call @hal.allocator.import(%r1, %i0, %i4:5, %i0, %i0, %r2, %i2:3, %i6:7)
  %r6 = vm.call @hal.allocator.allocate(%r1, %i4:5, %i0, %i0, %i18:19)
  %r7 = vm.call @hal.fence.create(%r0, %i2:3)
  %r8 = vm.call @hal.fence.create(%r0, %i2:3)
  %r9 = vm.const.ref.zero
  %r10 = vm.const.ref.rodata 0
  vm.call @hal.device.queue.fill(%r0, %i4:5, %r9, %r7, %r6, %i2:3, %i18:19, %i2:3, %i1, %i2:3)
  vm.call @hal.device.queue.fill(%r0, %i4:5, %r7, %r8, %r5, %i2:3, %i26:27, %i22:23, %i1, %i2:3)
  vm.call @io_parameters.gather(%r0, %i4:5, %r9, %r9, %r10, %r6, %r3, %r2, %r4)
  vm.return %i1
}
""")
TEST = """vm.module @test
vm.export @t
vm.func @t() {
  vm.return
}
"""
# Flags that ask for something native, and the words that the message has besides the flag.
REFUSED = (("--allow_native=yes", "machine code"), ("--executable_plugin=x.so", "a plugin"), ("--driver=x.so", "a driver"),
           ("--device=null", "local-sync"), ("--device=vulkan", "local-sync"), ("--device=LOCAL-SYNC", "local-sync"),
           ("--device=local-sync?native=1", "'native'"), ("--device=local-task?validate=1&plugin=x.so", "'plugin'"))


class Untrusted(vmrun.FolderCase):
    def refuses(self, tool, arguments, *parts):
        with self.subTest(tool=tool, arguments=arguments):
            vmrun.need_tool(tool)
            done = vmrun.run(tool, "--untrusted", *arguments)
            self.assertIsNone(vmrun.why_bad_failure(done, "PERMISSION_DENIED", "--untrusted", *parts), done.stderr)

    def test_portable_code_runs(self):
        done = vmrun.run("vm-run", "--untrusted", f"--module={MUL}", *INPUTS)
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "8xf32=2 4 6 8 10 12 14 16"), done.stderr)
        for uri in ("local-sync", "local-task?native=0&workers=1"):
            done = vmrun.run("vm-run", "--untrusted", "--allow_native=no", f"--device={uri}", f"--module={MUL}", *INPUTS)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_flags_that_ask_for_native_code(self):
        tests = self.write("test.vmasm", TEST)
        programs = {"vm-run": [f"--module={MUL}", *INPUTS], "vm-bench": [f"--module={MUL}", *INPUTS], "vm-check": [tests],
                    "vm-diff": [MUL, *INPUTS, "--b=--device=local-sync"],
                    "vm-serve": [f"--model=mul={MUL}", "--port=0"]}
        for tool, words in programs.items():
            for flag, part in REFUSED:
                self.refuses(tool, [*words, flag], flag, part)
        for tool in ("vm-run", "vm-bench"):
            self.refuses(tool, [*programs[tool], "--channel_provider=x.so"], "--channel_provider=x.so")

    def test_native_modules(self):
        tests = self.write("test.vmasm", TEST)
        library = self.write("library.so", "")  # refused by its name; TOOLBOX, a working one, by its content as well
        for path in (library, f"{library}@5", f"{library}.1", TOOLBOX):
            self.refuses("vm-run", [f"--module={path}", f"--module={tests}"], path.split("@")[0])
            self.refuses("vm-bench", [f"--module={path}", f"--module={tests}"], path.split("@")[0])
            self.refuses("vm-check", [f"--import={path}", tests], path.split("@")[0])

    def test_native_models(self):
        vmrun.need_tool("vm-serve")
        library = self.write("library.so", "")
        done = vmrun.run("vm-serve", "--untrusted", "--port=0", f"--model=m={library}")
        self.assertIsNone(vmrun.why_bad_failure(done, "PERMISSION_DENIED", "--untrusted", library), done.stderr)

    def test_machine_code_in_a_module(self):
        architecture = vmrun.ARCHITECTURES.get(vmrun.processor())
        code = os.path.join(LIBRARIES, "mul6.embedded.so")
        if not architecture or not os.path.exists(code):
            self.skipTest("no libraries with machine code")
        module = self.write("native.vmasm", program(f"embedded-elf-{architecture}", vmrun.read(code)))
        words = [f"--module={module}", *INPUTS]
        for device in ("local-sync", "local-task"):
            done = vmrun.run("vm-run", *words, f"--device={device}")
            self.assertEqual(done.returncode, 0, done.stderr)
            done = vmrun.run("vm-run", "--untrusted", *words, f"--device={device}")
            self.assertIsNone(vmrun.why_bad_failure(done, "no device runs"), done.stderr)

    # A buffer of the host is one of another driver for every device, and has a slot behind those of the binding table.
    def test_any_binding_capacity(self):
        for capacity in (0, 1, 65536, -2, -1):
            path = self.write("slots.vmasm", SLOTS.format(capacity=capacity))
            done = vmrun.run("vm-run", "--untrusted", f"--module={path}")
            self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ["result[0]: i32=117901063"]), (capacity, done.stderr))
        done = vmrun.run("vm-run", "--untrusted", f"--module={path}", "--max_memory=1MiB")
        self.assertIsNone(vmrun.why_bad_failure(done, "RESOURCE_EXHAUSTED", "limit is 1048576 bytes", "a command buffer"), done.stderr)

    # Work of the device changes a key while the call that has the key reads its tables.
    def test_keys_of_parameters_that_change(self):
        path = self.write("keys.vmasm", KEYS)
        content = b'{"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}}'
        parameters = self.write("p.safetensors", len(content).to_bytes(8, "little") + content + bytes(8))
        for size in (1 << 24, 1 << 25, 1 << 26, 100000000, 1 << 27):
            done = vmrun.run("vm-run", "--untrusted", "--device=local-task", f"--module={path}", f"--parameters=m={parameters}",
                             f"--input={size}")
            if done.returncode == 0:  # the key had changed later
                self.assertIn("parameter 'a' has 8 bytes", done.stderr)
            else:
                self.assertIsNone(vmrun.why_bad_failure(done, "NOT_FOUND", "no parameter 'x'"), done.stderr)

    def test_another_runner(self):
        self.refuses("vm-bench", [f"--module={MUL}", *INPUTS, "--against=true"], "--against")

    def test_memory_is_limited(self):
        path = self.write("large.vmasm", LARGE)
        done = vmrun.run("vm-run", "--untrusted", f"--module={path}")
        self.assertIsNone(vmrun.why_bad_failure(done, "RESOURCE_EXHAUSTED", "limit is 1073741824 bytes"), done.stderr)
        done = vmrun.run("vm-run", "--untrusted", f"--module={path}", "--max_memory=1MiB")
        self.assertIsNone(vmrun.why_bad_failure(done, "RESOURCE_EXHAUSTED", "limit is 1048576 bytes"), done.stderr)

    def test_time_is_limited(self):
        path = self.write("loop.vmasm", serve_client.LOOP_MODULE)
        done = vmrun.run("vm-run", "--untrusted", f"--module={path}", "--input=1", "--timeout=100ms")
        self.assertIsNone(vmrun.why_bad_failure(done, "DEADLINE_EXCEEDED"), done.stderr)

    def test_the_compiler_is_off(self):
        environment = {**os.environ, "LD_DEBUG": "files"}
        for flags, is_opened in ((["--jit=always"], True), ([], False)):
            if is_opened and not os.path.exists(vmrun.COMPILER):
                continue
            done = vmrun.run("vm-run", "--untrusted", f"--module={MUL}", *INPUTS, f"--jit_cache={self.folder}/jit", *flags, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr[-800:])
            self.assertEqual("halyard-jit-llvm" in done.stderr, is_opened, flags)
