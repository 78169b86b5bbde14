"""vm-serve keeps clients apart: no answer shows rows of another request, or what another request has left in memory."""
import json
import struct
from concurrent.futures import ThreadPoolExecutor

import vmrun
from serve_case import ELEMENTWISE, MUL, Folder, mul, start
from serve_client import binary_request, packed, tensor

# y = x of tensor<?x2xf32>, in a buffer that is rounded up to 64 bytes; its view covers all of the buffer. It takes a while, so that others wait.
PADDED = """vm.module @padded
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer.storage cconv "0r_r"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal_inline.buffer_view.buffer cconv "0r_r"
vm.import @hal_inline.buffer_view.dim cconv "0ri_I"
vm.export @f
vm.attr @f "iree.abi.declaration" "sync func @f(%x: tensor<?x2xf32>) -> (%y: tensor<?x2xf32>)"
vm.func @f(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 0x21000020
  %i4:5 = vm.call @hal_inline.buffer_view.dim(%r0, %i0)
  %r2 = vm.call @hal_inline.buffer_view.buffer(%r0)
  %r3 = vm.call @hal_inline.buffer.storage(%r2)
  %i6:7 = vm.const.i64 8
  %i8:9 = vm.mul.i64 %i4:5, %i6:7
  %i24:25 = vm.mul.i64 %i4:5, %i6:7
  %i6:7 = vm.const.i64 63
  %i8:9 = vm.add.i64 %i8:9, %i6:7
  %i6:7 = vm.const.i64 -64
  %i8:9 = vm.and.i64 %i8:9, %i6:7
  %i3 = vm.const.i32 64
  %r5, %r6 = vm.call @hal_inline.buffer.allocate(%i3, %i8:9)
  %i10:11 = vm.const.i64.zero
  vm.buffer.copy %r3, %i10:11, %r6, %i10:11, %i24:25
  %i22:23 = vm.const.i64 2
  %r7 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 2](%r5, %i10:11, %i8:9, %i2, %i1, %i4:5, %i22:23)
  vm.discard.refs %r0, %r2, %r3, %r5, %r6
  vm.return %R7
}
"""

# n floats of a buffer that nothing was written to, and a view of 100 floats over one of 4 bytes.
PEEK = vmrun.with_exports("""vm.module @peek
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.attr @f "iree.abi.declaration" "sync func @f(%n: i64) -> (%y: tensor<?xf32>)"
vm.func @f(%i0:1: i64) -> (!hal.buffer_view) {
  %i2 = vm.const.i32 64
  %i4:5 = vm.const.i64 4
  %i4:5 = vm.mul.i64 %i4:5, %i0:1
  %r1, %r2 = vm.call @hal_inline.buffer.allocate(%i2, %i4:5)
  %i6:7 = vm.const.i64.zero
  %i8 = vm.const.i32 0x21000020
  %i9 = vm.const.i32 1
  %r3 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r1, %i6:7, %i4:5, %i8, %i9, %i0:1)
  vm.discard.refs %r1, %r2
  vm.return %R3
}
vm.attr @long "iree.abi.declaration" "sync func @long(%n: i64) -> (%y: tensor<?xf32>)"
vm.func @long(%i0:1: i64) -> (!hal.buffer_view) {
  %i2 = vm.const.i32 64
  %i4:5 = vm.const.i64 4
  %r1, %r2 = vm.call @hal_inline.buffer.allocate(%i2, %i4:5)
  %i6:7 = vm.const.i64.zero
  %i8 = vm.const.i32 0x21000020
  %i9 = vm.const.i32 1
  %r3 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r1, %i6:7, %i4:5, %i8, %i9, %i0:1)
  vm.discard.refs %r1, %r2
  vm.return %R3
}
""")

# The same on a device, by alloca (n = 0) and by its allocator.
PEEK_DEVICE = """vm.module @peek
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.allocator cconv "0r_r"
vm.import @hal.allocator.allocate cconv "0rIiiI_r"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @f
vm.attr @f "iree.abi.declaration" "sync func @f(%n: i32) -> (%y: tensor<8xf32>)"
vm.func @f(%i0: i32) -> (!hal.buffer_view) {
  %i21 = vm.const.i32 1
  %i16 = vm.and.i32 %i0, %i21
  %i20 = vm.const.i32.zero
  %r2 = vm.call @hal.devices.get(%i20)
  %i0 = vm.const.i32 0x21000020
  %i1 = vm.const.i32 1
  %i2:3 = vm.const.i64 8
  %i4:5 = vm.const.i64 32
  %i7 = vm.const.i32 0x1000C03
  %i8:9 = vm.const.i64.zero
  %i10:11 = vm.const.i64 -1
  %i12 = vm.const.i32 0x30
  %r9 = vm.const.ref.zero
  vm.cond_br %i16, ^bb2, ^bb3
^bb3:
  %r10 = vm.call @hal.fence.create(%r2, %i8:9)
  %r11 = vm.call @hal.device.queue.alloca(%r2, %i10:11, %r9, %r10, %i8:9, %i12, %i7, %i4:5, %i8:9)
  %i13 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i13, %i8:9, %r10) -> ^bb1(%i14)
^bb1:
  vm.br ^bb4
^bb2:
  %r12 = vm.call @hal.device.allocator(%r2)
  %r11 = vm.call @hal.allocator.allocate(%r12, %i10:11, %i12, %i7, %i4:5)
  vm.br ^bb4
^bb4:
  %r13 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r11, %i8:9, %i4:5, %i0, %i1, %i2:3)
  vm.return %R13
}
"""


class Separation(Folder):
    """What one client can see of another."""

    def test_rows_of_a_batch_whose_buffer_is_padded(self):
        with start(f"--model=m={self.write('padded.vmasm', PADDED)}", "--threads=1", "--batch=m=8", "--batch_delay=1s") as server:
            wrong = []

            def client(number):
                rows = [[number + 0.5, number + 0.25]] * (1 + number % 3)
                status, document = server.infer("m", [tensor("x", "FP32", rows, [len(rows), 2])])
                if status != 200 or document["outputs"][0]["data"] != [value for row in rows for value in row]:
                    wrong.append((number, status, document))

            with ThreadPoolExecutor(10) as threads:
                list(threads.map(client, range(1, 11)))  # raises their errors
            self.assertEqual(wrong, [])
            self.assertLess(server.metric('halyard_model_call_seconds_count{model="m",version="1"}'), 10)

    def test_a_result_that_is_longer_than_its_buffer(self):
        path = self.write("peek.vmasm", PEEK)
        with start(f"--model=m:long={path}") as server:
            status, document = server.infer("m", [tensor("n", "INT64", [100])])
            self.assertEqual(status, 500)
            self.assertIn("400 bytes", json.dumps(document))
            self.assertEqual(server.infer("m", [tensor("n", "INT64", [1])])[0], 200)

    def test_new_buffers_of_the_host(self):
        secret = 1234.5625
        with start(f"--model=mul={MUL}", f"--model=peek:f={self.write('peek.vmasm', PEEK)}", "--threads=2") as server:
            for round_number in range(24):
                size = (8, 64, 500, 1000, 4000, 20000)[round_number % 6]
                if round_number % 2:
                    body, headers = binary_request([("input0", "FP32", [size], packed("FP32", [secret] * size)),
                                                    ("input1", "FP32", [size], packed("FP32", [1.0] * size))])
                    server.get("/v2/models/mul/infer", "POST", body, headers)
                else:
                    server.infer("mul", **mul([secret] * size, [1.0] * size, id="PASSWORD"))
                request = {"inputs": [tensor("n", "INT64", [size])], "parameters": {"binary_data_output": True}}
                status, headers, answer = server.get("/v2/models/peek/infer", "POST", json.dumps(request))
                self.assertEqual(status, 200)
                found = answer[int(headers["Inference-Header-Content-Length"]):]
                self.assertEqual(found, bytes(4 * size), (round_number, found.count(struct.pack("<f", secret)), found.count(b"PASSWORD")))

    def test_new_buffers_of_a_device(self):
        path = self.write("peek_device.vmasm", PEEK_DEVICE)
        for device in ("local-sync", "local-task"):
            with start(f"--model=mul={ELEMENTWISE}", f"--model=peek={path}", f"--device={device}", "--threads=1") as server:
                for round_number in range(8):
                    self.assertEqual(server.infer("mul", **mul([1000.5 + round_number] * 8, [2.0] * 8))[0], 200)
                    status, document = server.infer("peek", [tensor("n", "INT32", [round_number % 2])])
                    self.assertEqual((status, document["outputs"][0]["data"] if status == 200 else document), (200, [0.0] * 8), round_number)
