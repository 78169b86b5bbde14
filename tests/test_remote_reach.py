"""What reaches a device of another process: traces and profiles of both sides, time limits, older and newer sides, weights
that were sent before, and hal-info."""
import json
import os
import re
import socket
import struct
import subprocess
import time
import unittest

import test_stop
import vmrun
from perfetto import Trace
from remote_case import DRIVER, INPUTS, SIMPLE, Proxy, Server

RESULT = "8xf32=10 10 10 10 10 10 10 10"


class HelloProxy(Proxy):
    """Changes the versions in the first message of each client, and counts the bytes of both directions."""

    def __init__(self, path, target, oldest, newest):
        self.versions = {0: oldest, 1: newest}
        super().__init__(path, target)

    def pass_on(self, source, sink, to_server):
        if to_server:
            head = source.recv(8, socket.MSG_WAITALL)
            message = bytearray(source.recv(struct.unpack("<II", head)[0], socket.MSG_WAITALL))
            for field, version in self.versions.items():
                at = self.place_of(message, field)
                struct.pack_into("<I", message, at, version)
            sink.sendall(head + message)
        super().pass_on(source, sink, to_server)

    @staticmethod
    def place_of(message, field):
        """Where a field of the body of the root table is: FlatBuffers, by hand."""
        def of(table, number):
            vtable = table - struct.unpack_from("<i", message, table)[0]
            return table + struct.unpack_from("<H", message, vtable + 4 + 2 * number)[0]
        root = struct.unpack_from("<I", message, 0)[0]
        body = of(root, 1)
        return of(body + struct.unpack_from("<I", message, body)[0], field)


class Case(vmrun.FolderCase):
    def setUp(self):
        super().setUp()
        self.socket = self.path("d.sock")
        self.uri = f"remote+unix://{self.socket}?digests={self.path('digests')}"

    def serve(self, *flags):
        server = Server("--device=local-task?workers=2", *flags, f"--listen=unix://{self.socket}")
        self.addCleanup(server.__exit__)
        return server

    def mul(self, *flags, device=None, **options):
        return vmrun.run("vm-run", f"--device={device or self.uri}", f"--module={SIMPLE}", *INPUTS, *flags, **options)


class Reach(Case):
    def test_traces_of_both_sides(self):
        """The clocks are matched: the kernel ran after its submission, and before its completion came. On a busy machine the messages that
        match them may take long, so there are several runs."""
        self.serve()
        for _ in range(50):
            kernel, lane = self.kernel_and_lane()
            error = 2_000_000
            if kernel.begin > lane.begin - error and kernel.end < lane.end + error:
                return
        self.fail(f"the kernel at {kernel.begin} to {kernel.end}, its submission at {lane.begin} to {lane.end}")

    def kernel_and_lane(self):
        file = self.path("run.perfetto")
        done = self.mul(f"--trace={file}")
        self.assertIn(RESULT, done.stdout, done.stderr)
        trace = Trace(file)
        slices = trace.slices()
        lanes = [each for each in slices if each.name == "execute" and each.category == "queue"]
        kernels = [each for each in slices if each.category == "device" and trace.tracks[each.track].name.startswith("queue ")]
        # Two threads may share the dispatch.
        self.assertEqual({each.name for each in kernels}, {"mul"})
        self.assertEqual(len(lanes), 1)
        device = trace.tracks[trace.tracks[kernels[0].track].parent].name
        self.assertIn("remote+unix", device)
        return kernels[0], lanes[0]

    def test_one_client_sees_nothing_of_another(self):
        self.serve()
        first, second = self.path("first.perfetto"), self.path("second.perfetto")
        # Two traced runs at once: of the connections of one client, only one has spans of the server.
        loop = test_stop.program(self.folder, "loop", test_stop.LOOP)
        other = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--device={self.uri}", f"--module={loop}", *test_stop.INPUTS,
                                  "--timeout=3s", f"--trace={first}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        done = self.mul(f"--trace={second}")
        self.assertIn(RESULT, done.stdout, done.stderr)
        other.wait(vmrun.TIMEOUT)
        kernels = [each.name for each in Trace(second).slices() if each.category == "device"]
        self.assertLessEqual(len(kernels), 1, kernels)

    def test_profiles(self):
        self.serve()
        done = self.mul("--profile", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        profile = json.loads(done.stdout)["profile"]
        self.assertIn("mul", json.dumps(profile))
        # As on a local device: operations, bytes, threads, and the step of the program.
        local = json.loads(self.mul("--profile", "--json", device="local-task").stdout)["profile"]
        kernel, same = ([row for row in each["rows"] if row["kind"] == "kernel"] for each in (profile, local))
        for fact in ("name", "calls", "workgroups", "operations", "bytes_read", "bytes_written"):
            self.assertEqual([row[fact] for row in kernel], [row[fact] for row in same], fact)
        steps, same = ([(step["name"], step["place"]) for step in each["steps"]] for each in (profile, local))
        self.assertEqual(steps, same)
        self.assertEqual([name for name, _ in steps], ["mul"])
        # Whatever ends first at the server, the dispatch belongs to its own submission.
        for _ in range(8):
            profile = json.loads(self.mul("--profile", "--json").stdout)["profile"]
            self.assertEqual([(step["name"], step["place"]) for step in profile["steps"]], same)

    def test_a_time_limit_stops_the_kernel(self):
        server = self.serve()
        loop = test_stop.program(self.folder, "loop", test_stop.LOOP)
        done = vmrun.run("vm-run", f"--device={self.uri}", f"--module={loop}", *test_stop.INPUTS, "--timeout=300ms")
        self.assertEqual(done.returncode, 1)
        self.assertIn("DEADLINE_EXCEEDED", done.stderr)
        # The server computes no longer.
        def seconds():
            return sum(map(vmrun.processor_seconds, server.processes()))
        for _ in range(200):
            before = seconds()
            time.sleep(0.5)
            if seconds() - before < 0.1:
                break
        else:
            self.fail("the kernel still runs at the server")
        self.assertIn(RESULT, self.mul().stdout)

    def test_versions(self):
        self.serve()
        for oldest, newest in ((1, 1), (1, 2), (2, 2), (1, 3), (3, 3), (1, 9), (2, 1000)):
            path = self.path(f"{oldest}-{newest}.sock")
            with HelloProxy(path, self.socket, oldest, newest):
                for more in ((), (f"--trace={self.path('old.perfetto')}",)):
                    done = self.mul(*more, device=f"remote+unix://{path}")
                    self.assertIn(RESULT, done.stdout, f"{oldest}-{newest}: {done.stderr}")
            names = {each.name for each in Trace(self.path("old.perfetto")).slices() if each.category == "device"}
            self.assertEqual(names, {"mul"} if newest >= 2 else set(), f"{oldest}-{newest}")
        for oldest, newest in ((4, 9), (0, 0), (5, 1)):
            path = self.path(f"{oldest}-{newest}.sock")
            with HelloProxy(path, self.socket, oldest, newest):
                done = self.mul(device=f"remote+unix://{path}")
                self.assertEqual(done.returncode, 1)
                self.assertIn("UNIMPLEMENTED", done.stderr)
                self.assertIn(f"versions {oldest} to {newest}", done.stderr)
                self.assertIn("the server 1 to 3", done.stderr)

    def test_hal_info(self):
        self.serve("--device=null")
        for uri in (self.uri, f"remote+unix://{self.socket}?device=null"):
            done = vmrun.run("hal-info", "devices", uri)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("operations", done.stdout)
        self.assertRegex(vmrun.run("hal-info", "formats", self.uri, "vmvx-bytecode-fb").stdout, "native|loadable")
        self.assertIn("--allow_native", vmrun.run("hal-info", "formats", self.uri, "embedded-elf-x86_64").stdout)
        self.assertRegex(vmrun.run("hal-info", "query", self.uri, "hal.device", "concurrency").stdout, r"\A\d+\n\Z")
        done = vmrun.run("hal-info", "time", self.uri)
        for name in ("opening", "answer", "to device", "from device"):
            self.assertRegex(done.stdout, rf"{name} +[\d.]+ us", done.stderr)
        times = json.loads(vmrun.run("hal-info", "time", self.uri, "--json").stdout)
        self.assertTrue(all(times[name] > 0 for name in ("opening_ns", "answer_ns", "to_device_ns", "from_device_ns")))
        done = vmrun.run("hal-info", "devices", f"remote+unix://{self.socket}?device=vulkan")
        self.assertIn("NOT_FOUND", done.stdout + done.stderr)
        self.assertIn("'null'", done.stdout + done.stderr)
        done = vmrun.run("hal-info", "time", f"remote+unix://{self.path('none.sock')}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is vm-device", done.stderr)


WEIGHTS = """vm.module @weights version 0
vm.type i32
vm.type i64
vm.type !hal.buffer
vm.type !vm.list<!hal.buffer>
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = 0000000001000000
vm.rodata[1] = 77
vm.rodata[2] = 6D6F64656C
vm.rodata[3] = 000000000000000000000000000000000000100000000000
vm.export @start
vm.func @start() -> (!vm.ref<?>) {
^bb0:
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %i2:3 = vm.const.i64.zero
  %r1 = vm.call @hal.fence.create(%r0, %i2)
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.const.ref.rodata 1
  %r4 = vm.const.ref.rodata 2
  %r5 = vm.const.ref.rodata 3
  %i4:5 = vm.const.i64 -1
  %r6 = vm.const.ref.zero
  %i6 = vm.const.i32 48
  %i7 = vm.const.i32 527363
  %r7 = vm.call @io_parameters.load(%r0, %i4, %r6, %r1, %r4, %i4, %i6, %i7, %r2, %r3, %r5)
  %i8 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i8, %i2, %r1) -> ^bb1(%i9)
^bb1:
  vm.cond_br %i9, ^bb2(), ^bb3()
^bb2:
  vm.fail %i9, "failed to load"
^bb3:
  %r8 = vm.list.get.ref %r7, %i0 : !hal.buffer
  %i10:11 = vm.const.i64 4
  %i12 = vm.const.i32 268435488
  %i13 = vm.const.i32 1
  %i14:15 = vm.const.i64 1
  %r10 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r8, %i2, %i10, %i12, %i13, %i14)
  vm.discard.refs %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8
  vm.return %R10
}
"""


class Weights(Case):
    SIZE = 1 << 20

    def write_weights(self, number, path):
        header = json.dumps({"w": {"dtype": "I32", "shape": [self.SIZE // 4], "data_offsets": [0, self.SIZE]}}).encode()
        header += b" " * (-(len(header) + 8) % 64)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + struct.pack("<i", number) * (self.SIZE // 4))

    def start(self, device, path):
        done = vmrun.run("vm-run", f"--device={device}", f"--module={self.path('weights.vmasm')}", "--function=start",
                         f"--parameters=model={path}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search(r"i32=(-?\d+)", done.stdout)[1]

    def test_second_start(self):
        self.serve()
        with open(self.path("weights.vmasm"), "w") as file:
            file.write(WEIGHTS)
        weights = self.path("w.safetensors")
        path = self.path("proxy.sock")
        with Proxy(path, self.socket) as proxy:
            uri = f"remote+unix://{path}?digests={self.path('digests')}"
            digests = self.path("digests/remote-digests")
            for number in range(30, 4, -1):  # until the file has just been written when it is read: within two seconds
                before = proxy.counts[1]
                self.write_weights(number, weights)
                self.assertEqual(self.start(uri, weights), str(number))
                self.assertGreater(proxy.counts[1] - before, self.SIZE)
                if not os.path.exists(digests):
                    break
                os.remove(digests)
            else:
                self.fail("the digest of a file was written that has just been written")
            time.sleep(2.2)
            for _ in range(3):
                before = proxy.counts[1]
                self.assertEqual(self.start(uri, weights), str(number))
                self.assertLess(proxy.counts[1] - before, 20000)
            self.assertTrue(os.path.exists(digests))
            # Other bytes with the size and the time of the file: its time of change is another one.
            times = os.stat(weights)
            self.write_weights(3, weights)
            os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.assertEqual(self.start(uri, weights), "3")
            # A damaged file of digests, and one that others may write to, count as missing.
            time.sleep(2.2)
            self.assertEqual(self.start(uri, weights), "3")
            with open(digests, "r+b") as file:
                file.seek(60)
                byte = file.read(1)
                file.seek(60)
                file.write(bytes([byte[0] ^ 1]))
            self.assertEqual(self.start(uri, weights), "3")
            os.chmod(self.path("digests"), 0o777)
            self.assertEqual(self.start(uri, weights), "3")
            self.assertEqual(self.start(f"remote+unix://{path}?digests=", weights), "3")

    def test_the_first_version_of_the_protocol(self):
        """No release speaks it alone, so both sides are told that the other one does: without traces, questions for many blobs, and
        limits of programs."""
        self.serve()
        with open(self.path("weights.vmasm"), "w") as file:
            file.write(WEIGHTS)
        weights = self.path("w.safetensors")
        self.write_weights(9, weights)
        time.sleep(2.2)
        path = self.path("old.sock")
        with HelloProxy(path, self.socket, 1, 1) as proxy:
            uri = f"remote+unix://{path}?digests={self.path('digests')}"
            self.assertEqual(self.start(uri, weights), "9")
            before = proxy.counts[1]
            self.assertEqual(self.start(uri, weights), "9")
            self.assertLess(proxy.counts[1] - before, 20000)
            self.assertIn(RESULT, self.mul("--max_memory=64MiB", device=uri).stdout)
            done = vmrun.run("hal-cts", f"--driver={DRIVER}", f"--device={uri}", "--timeout=120s", timeout=600)
            self.assertRegex(done.stdout, r"\n1[5-9]\d passed, 0 failed, \d+ skipped\n\Z")

    def test_a_server_that_has_forgotten(self):
        with open(self.path("weights.vmasm"), "w") as file:
            file.write(WEIGHTS)
        weights = self.path("w.safetensors")
        self.write_weights(7, weights)
        time.sleep(2.2)
        for _ in range(2):
            with Server("--device=local-task", f"--listen=unix://{self.socket}"):
                self.assertEqual(self.start(self.uri, weights), "7")


if __name__ == "__main__":
    unittest.main(verbosity=2)
