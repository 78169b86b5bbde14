"""The gRPC service of vm-serve, as clients that protoc and Debian's python3-grpcio make see it."""
import http.client
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import http2
import serve_client
import vmrun
from grpc_case import CONTENTS, PROTO, Client, raw_mul, raw_request, reason_to_skip, start_grpc, stubs, typed, typed_mul, typed_request
from perfetto import Trace
from serve_case import ENCODER, MUL, PROGRAM, Folder, resident
from vmrun import wait_until
from serve_client import packed, tensor

if SKIPPED := reason_to_skip():
    vmrun.skip(SKIPPED)

import grpc  # noqa: E402

MEMORY = "halyard_request_memory_bytes"
CONNECTIONS = "halyard_connections"
ELEMENTS = {"BOOL": "i1", "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "UINT8": "ui8", "UINT16": "ui16",
            "UINT32": "ui32", "UINT64": "ui64", "FP16": "f16", "BF16": "bf16", "FP32": "f32", "FP64": "f64"}
EDGES = {"BOOL": [True, False, True], "INT8": [-128, 0, 127], "INT16": [-32768, 1, 32767], "INT32": [-2 ** 31, -1, 2 ** 31 - 1],
         "INT64": [-2 ** 63, -1, 2 ** 63 - 1], "UINT8": [0, 1, 255], "UINT16": [0, 300, 65535], "UINT32": [0, 1, 2 ** 32 - 1],
         "UINT64": [0, 1, 2 ** 64 - 1], "FP32": [0.5, -1.5, float("inf")], "FP64": [0.1, -1e300, float("-inf")]}


def outcome(model, name, version="1"):
    return f'halyard_model_requests_total{{model="{model}",version="{version}",outcome="{name}"}}'


def is_ended_connection(details):
    """Short of memory, gRPC may end a connection before its call is answered."""
    return "GOAWAY" in details or "Socket closed" in details


def infer_short_of_memory(client, request):
    try:
        return client.ModelInfer(request)
    except grpc.RpcError as error:
        if not is_ended_connection(error.details()):
            raise
        return client.ModelInfer(request)  # connects again


class GrpcCase(Folder):
    def refused(self, code, call, *said):
        """The call fails with this code; its text has all of `said`."""
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual(caught.exception.code(), getattr(grpc.StatusCode, code), caught.exception.details())
        for each in said:
            self.assertIn(each, caught.exception.details())
        return caught.exception.details()

    def loop(self):
        return self.write("loop.vmasm", serve_client.LOOP_MODULE)

    def loops(self, client, value=1, **options):
        return client.ModelInfer.future(typed_request("loop", typed("input0", "INT32", [value])), **options)

    def calls(self, server, model="loop"):
        return server.metric(f'halyard_model_calls{{model="{model}",version="1"}}')


class Protocol(GrpcCase):
    def test_states_and_metadata(self):
        messages = stubs()[0]
        self.write("mul/1/model.vmasm", vmrun.read_text(MUL))
        self.write("mul/3/model.vmasm", vmrun.read_text(MUL))
        with start_grpc(f"--models={self.folder}") as server, Client(server) as client:
            self.assertTrue(client.ServerLive(messages.ServerLiveRequest()).live)
            self.assertTrue(client.ServerReady(messages.ServerReadyRequest()).ready)
            about = client.ServerMetadata(messages.ServerMetadataRequest())
            document = server.get("/v2")[2]
            document["extensions"].remove("binary_tensor_data")  # of HTTP
            self.assertEqual({"name": about.name, "version": about.version, "extensions": list(about.extensions)}, document)
            for version in ("", "1", "3"):
                self.assertTrue(client.ModelReady(messages.ModelReadyRequest(name="mul", version=version)).ready)
                model = client.ModelMetadata(messages.ModelMetadataRequest(name="mul", version=version))
                document = server.get("/v2/models/mul")[2]
                self.assertEqual((model.name, list(model.versions), model.platform), ("mul", ["1", "3"], document["platform"]))
                for role in ("inputs", "outputs"):
                    self.assertEqual([{"name": each.name, "datatype": each.datatype, "shape": list(each.shape)} for each in getattr(model, role)],
                                     document[role])
            for method, request in (("ModelReady", messages.ModelReadyRequest), ("ModelMetadata", messages.ModelMetadataRequest)):
                self.refused("NOT_FOUND", lambda: getattr(client, method)(request(name="none")), "'none'")
                self.refused("NOT_FOUND", lambda: getattr(client, method)(request(name="mul", version="2")), "'2'")
                self.refused("INVALID_ARGUMENT", lambda: client.bytes_of(method, b"\x0a\x05mul"), "protocol buffers")
            self.refused("UNIMPLEMENTED", lambda: client.bytes_of("ModelTrain", b""), "ModelTrain")

    def test_raw_and_typed_contents(self):
        with start_grpc(f"--model=mul={MUL}") as server, Client(server) as client:
            answer = client.ModelInfer(raw_mul([3, 4], [10, 100], id="a1"))
            self.assertEqual((answer.model_name, answer.model_version, answer.id), ("mul", "1", "a1"))
            self.assertEqual([(each.name, each.datatype, list(each.shape)) for each in answer.outputs], [("output0", "FP32", [2])])
            self.assertEqual(list(answer.raw_output_contents), [packed("FP32", [30, 400])])
            self.assertFalse(answer.outputs[0].HasField("contents"))
            answer = client.ModelInfer(typed_mul([3, 4], [10, 100], model_version="1"))
            self.assertEqual((answer.id, list(answer.outputs[0].contents.fp32_contents), len(answer.raw_output_contents)), ("", [30, 400], 0))
            # Outputs by name; tensors without elements.
            asked = stubs()[0].ModelInferRequest.InferRequestedOutputTensor(name="output0")
            self.assertEqual(list(client.ModelInfer(typed_mul([2], [4], outputs=[asked])).outputs[0].contents.fp32_contents), [8])
            self.assertEqual(list(client.ModelInfer(raw_mul([], [])).raw_output_contents), [b""])
            self.assertEqual(list(client.ModelInfer(typed_mul([], [])).outputs[0].shape), [0])
            self.assertEqual(server.metric(outcome("mul", "success")), 5)
            self.assertEqual(server.metric('halyard_grpc_responses_total{code="OK"}'), 5)
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")

    def test_every_type(self):
        flags = [f"--model={datatype}={self.write(datatype + '.vmasm', serve_client.echo_module(text))}" for datatype, text in ELEMENTS.items()]
        with start_grpc(*flags) as server, Client(server) as client:
            for datatype in ELEMENTS:
                size = {"1": 1, "8": 1, "6": 2, "2": 4, "4": 8}.get(ELEMENTS[datatype][-1])
                data = bytes([1, 0, 1]) if datatype == "BOOL" else random.Random(datatype).randbytes(3 * size)
                answer = client.ModelInfer(raw_request(datatype, ("x", datatype, [3], data)))
                self.assertEqual((list(answer.raw_output_contents), answer.outputs[0].datatype), ([data], datatype))
                if datatype not in CONTENTS:
                    bare = typed("x", "FP32", [1])
                    bare.datatype = datatype
                    self.refused("INVALID_ARGUMENT", lambda: client.ModelInfer(typed_request(datatype, bare)), datatype, "raw_input_contents")
                    continue
                answer = client.ModelInfer(typed_request(datatype, typed("x", datatype, EDGES[datatype])))
                self.assertEqual(list(getattr(answer.outputs[0].contents, CONTENTS[datatype])), EDGES[datatype])
                answer = client.ModelInfer(typed_request(datatype, typed("x", datatype, EDGES[datatype] * 1000, [3000])))
                self.assertEqual(list(getattr(answer.outputs[0].contents, CONTENTS[datatype])), EDGES[datatype] * 1000)
            self.assertEqual(list(client.ModelInfer(raw_request("BOOL", ("x", "BOOL", [3], b"\x05\x00\xff"))).raw_output_contents), [b"\1\0\1"])

    def test_fields_in_other_orders_and_forms(self):
        """What the format allows, although no generated client writes it."""
        messages = stubs()[0]
        with start_grpc(f"--model=mul={MUL}") as server, Client(server) as client:
            infer = lambda data: list(messages.ModelInferResponse.FromString(client.bytes_of("ModelInfer", data)).raw_output_contents)  # noqa: E731
            whole = raw_mul([3, 4], [10, 100])
            name = messages.ModelInferRequest(model_name="mul").SerializeToString()
            inputs = [messages.ModelInferRequest(inputs=[each]).SerializeToString() for each in whole.inputs]
            raws = [messages.ModelInferRequest(raw_input_contents=[each]).SerializeToString() for each in whole.raw_input_contents]
            for parts in ([*raws, *inputs, name], [raws[0], inputs[0], name, inputs[1], raws[1]], [name, b"\xa2\x06\x03abc", *inputs, *raws]):
                self.assertEqual(infer(b"".join(parts)), [packed("FP32", [30, 400])])
            self.assertEqual(infer(b"".join([name, inputs[1], inputs[0], *raws])), [packed("FP32", [30, 400])])
            # An input in pieces; shapes and elements that are not packed.
            pieces = b"".join(messages.ModelInferRequest.InferInputTensor(**each).SerializeToString() for each in (
                {"contents": {"fp32_contents": [5]}}, {"datatype": "FP32"}, {"contents": {"fp32_contents": [6]}}, {"name": "input0"}))
            pieces += b"\x18\x03" + b"\x2a\x05" + b"\x35" + packed("FP32", [7])
            other = typed("input1", "FP32", [1, 2, 3]).SerializeToString()
            data = name + b"".join(b"\x2a" + bytes([len(each)]) + each for each in (pieces, other))
            answer = messages.ModelInferResponse.FromString(client.bytes_of("ModelInfer", data))
            self.assertEqual(list(answer.outputs[0].contents.fp32_contents), [5, 12, 21])

    def test_wrong_requests(self):
        messages = stubs()[0]
        with start_grpc(f"--model=mul={MUL}") as server, Client(server) as client:
            good = typed("input1", "FP32", [1])
            nan = typed("input0", "FP32", [1])
            nan.contents.int_contents.append(1)
            nan.contents.ClearField("fp32_contents")
            both = raw_mul([1], [2])
            both.inputs[0].contents.fp32_contents.append(1)
            bytes_input = messages.ModelInferRequest.InferInputTensor(name="input0", datatype="BYTES", shape=[1], contents={"bytes_contents": [b"x"]})
            untyped = messages.ModelInferRequest.InferInputTensor(name="input0", shape=[1])
            infer = lambda request: lambda: client.ModelInfer(request)  # noqa: E731
            for code, request, said in (
                    ("NOT_FOUND", typed_mul([1], [1], "none"), ["'none'"]),
                    ("NOT_FOUND", typed_mul([1], [1], model_version="7"), ["'7'"]),
                    ("INVALID_ARGUMENT", typed_request("mul", good), ["lacks input 'input0'"]),
                    ("INVALID_ARGUMENT", typed_request("mul", good, good), ["'input1' twice"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("x", "FP32", [1]), good), ["no input 'x'", "'input0', 'input1'"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("input0", "FP64", [1]), good), ["FP64", "FP32"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("input0", "FP32", [1, 2], [1, 2]), good), ["[1,2]"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("input0", "FP32", [1, 2], [3]), good), ["2 elements", "[3] has 3"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("input0", "FP32", [1], [2 ** 40]), good), ["1 elements"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("input0", "FP32", [1], [-1]), good), ["-1"]),
                    ("INVALID_ARGUMENT", typed_request("mul", typed("input0", "FP32", [1], [1] * 33), good), ["more than 32"]),
                    ("INVALID_ARGUMENT", typed_request("mul", nan, good), ["int_contents", "fp32_contents"]),
                    ("INVALID_ARGUMENT", typed_request("mul", untyped, good), ["no 'datatype'", "FP32"]),
                    ("INVALID_ARGUMENT", both, ["both"]),
                    ("INVALID_ARGUMENT", raw_request("mul", ("input0", "FP32", [2], b"1234"), ("input1", "FP32", [1], b"1234")), ["4 bytes", "has 8"]),
                    ("INVALID_ARGUMENT", messages.ModelInferRequest(model_name="mul", inputs=[good], raw_input_contents=[b"1234"] * 2),
                     ["1 inputs and 2"]),
                    ("INVALID_ARGUMENT", typed_mul([1], [1], outputs=[{"name": "y"}]), ["no output 'y'", "'output0'"]),
                    ("INVALID_ARGUMENT", typed_mul([1], [1], outputs=[{"name": "output0"}] * 2), ["twice"]),
                    ("INVALID_ARGUMENT", typed_mul([1, 2], [1, 2, 3]), [])):
                self.refused(code, infer(request), *said)
            # As over HTTP.
            said = self.refused("INVALID_ARGUMENT", infer(typed_request("mul", bytes_input, good)))
            document = server.infer("mul", [tensor("input0", "BYTES", ["x"]), tensor("input1", "FP32", [1])])[1]
            self.assertEqual(said, document["error"])
            path = self.write("i8.vmasm", serve_client.echo_module("i8"))
        with start_grpc(f"--model=i8={path}") as server, Client(server) as client:
            wide = typed("x", "INT8", [1, 128])
            self.refused("INVALID_ARGUMENT", lambda: client.ModelInfer(typed_request("i8", wide)), "element 1 of input 'x'", "INT8")

    def test_bytes_that_are_no_message(self):
        whole = raw_mul([3, 4], [10, 100]).SerializeToString()
        draw = random.Random(39)
        with start_grpc(f"--model=mul={MUL}") as server, Client(server) as client:
            def code_of(data):
                try:
                    client.bytes_of("ModelInfer", data)
                    return None
                except grpc.RpcError as error:
                    return error.code().name
            for end in range(len(whole)):
                self.assertIn(code_of(whole[:end]), ("INVALID_ARGUMENT", "NOT_FOUND"), end)
            for _ in range(500):
                data = bytearray(whole)
                for _ in range(draw.randrange(1, 4)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                self.assertIn(code_of(bytes(data)), (None, "INVALID_ARGUMENT", "NOT_FOUND"), data)
            # A million inputs of two bytes each, and as many sizes of dimensions.
            name = stubs()[0].ModelInferRequest(model_name="mul").SerializeToString()
            self.assertEqual(code_of(name + b"\x2a\x00" * 1_000_000), "INVALID_ARGUMENT")
            self.assertEqual(code_of(name + b"\x3a\x00" * 1_000_000), "INVALID_ARGUMENT")
            self.assertEqual(code_of(name + b"\x2a\x83\x80\x40" + b"\x1a\xff\xff\x3f" + b"\x01" * 0xfffff), "INVALID_ARGUMENT")
            self.assertEqual(code_of(whole), None)
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")


class Document(GrpcCase):
    def test_the_session(self):
        """The session of docs/serving.md, with this test's port and Python."""
        text = vmrun.read_text(os.path.join(vmrun.SOURCE, "docs", "serving.md"))
        protoc, program, output = re.search(r"^\$ (protoc .*?)\n\$ cat client.py\n(.*?)\$ \S*python3 client.py\n(.*?)```", text, re.DOTALL | re.MULTILINE).groups()
        protoc = protoc.replace("tools/vm-serve", os.path.dirname(PROTO)).replace("/usr/bin/grpc_python_plugin", shutil.which("grpc_python_plugin"))
        subprocess.run(["sh", "-c", protoc], cwd=self.folder, check=True)
        with start_grpc(f"--model=mul={MUL}") as server:
            self.write("client.py", program.replace("127.0.0.1:8081", server.grpc))
            done = subprocess.run([sys.executable, "client.py"], cwd=self.folder, capture_output=True, text=True, timeout=vmrun.TIMEOUT)
            self.assertEqual((done.returncode, done.stdout), (0, output), done.stderr)


class Extensions(GrpcCase):
    """Compared with the same answers over HTTP."""

    def json(self, message):
        from google.protobuf import json_format
        return json_format.MessageToDict(message, preserving_proto_field_name=True)

    def test_configurations_and_statistics(self):
        messages = stubs()[0]
        flags = [f"--model=mul={MUL}", f"--model=encoder={ENCODER}", "--batch=encoder=8", "--batch_delay=2ms", "--contexts=3"]
        with start_grpc(*flags) as server, Client(server) as client:
            client.ModelInfer(raw_mul([1], [2]))
            self.refused("INVALID_ARGUMENT", lambda: client.ModelInfer(raw_mul([1], [1, 2])))
            for name in ("mul", "encoder"):
                config = self.json(client.ModelConfig(messages.ModelConfigRequest(name=name)).config)
                document = server.get(f"/v2/models/{name}/config")[2]
                for tensor_config in document["input"] + document["output"]:
                    tensor_config["dims"] = [str(size) for size in tensor_config["dims"]]  # 64 bits are strings in protobuf's JSON
                    if "reshape" in tensor_config:
                        tensor_config["reshape"] = {}
                for group in document["instance_group"]:
                    self.assertEqual(group.pop("kind"), "KIND_AUTO")  # 0
                if "dynamic_batching" in document:
                    document["dynamic_batching"] = {key: str(value) for key, value in document["dynamic_batching"].items()}
                if document["max_batch_size"] == 0:
                    del document["max_batch_size"]
                self.assertEqual(config, document)
            one = client.ModelStatistics(messages.ModelStatisticsRequest(name="mul")).model_stats
            document = server.get("/v2/models/mul/stats")[2]["model_stats"][0]
            self.assertEqual([(each.name, each.version, each.inference_count, each.execution_count, each.last_inference) for each in one],
                             [("mul", "1", 1, 1, document["last_inference"])])
            for name in ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output"):
                sums = getattr(one[0].inference_stats, name)
                self.assertEqual({"count": sums.count, "ns": sums.ns}, document["inference_stats"][name])
            self.assertEqual([(each.batch_size, each.compute_infer.count) for each in one[0].batch_stats], [(1, 1)])
            self.assertEqual({each.name for each in client.ModelStatistics(messages.ModelStatisticsRequest()).model_stats}, {"mul", "encoder"})
            for method, request in (("ModelConfig", messages.ModelConfigRequest), ("ModelStatistics", messages.ModelStatisticsRequest)):
                self.refused("NOT_FOUND", lambda: getattr(client, method)(request(name="none")), "'none'")

    def test_the_repository(self):
        messages = stubs()[0]
        self.write("a/1/model.vmasm", vmrun.read_text(MUL))
        self.write("b/1/model.vmasm", "broken")
        name = lambda kind, model, **members: getattr(messages, f"RepositoryModel{kind}Request")(model_name=model, **members)  # noqa: E731
        with start_grpc(f"--models={self.folder}", "--model_control", "--ready=any") as server, Client(server) as client:
            def index(**members):
                return self.json(client.RepositoryIndex(messages.RepositoryIndexRequest(**members))).get("models", [])
            self.assertEqual([{"reason": "", **each} for each in index()], server.get("/v2/repository/index", "POST", "")[2])
            self.assertEqual([each["name"] for each in index(ready=True)], ["a"])
            client.RepositoryModelUnload(name("Unload", "a"))
            self.assertEqual(index(ready=True), [])
            self.refused("NOT_FOUND", lambda: client.ModelInfer(raw_mul([1], [2], "a")), "unloaded")
            client.RepositoryModelLoad(name("Load", "a"))
            self.assertEqual(client.ModelInfer(raw_mul([1], [2], "a")).raw_output_contents[0], packed("FP32", [2]))
            self.refused("NOT_FOUND", lambda: client.RepositoryModelLoad(name("Load", "none")), "'none'")
            self.refused("INVALID_ARGUMENT", lambda: client.RepositoryModelLoad(name("Load", "b")), "could not be loaded")
            for parameter in ("config", "file:1/model.vmfb"):
                request = name("Load", "a")
                request.parameters[parameter].string_param = "{}"
                self.refused("INVALID_ARGUMENT", lambda: client.RepositoryModelLoad(request), parameter)
        with start_grpc(f"--models={self.folder}") as server, Client(server) as client:
            self.refused("PERMISSION_DENIED", lambda: client.RepositoryModelUnload(name("Unload", "a")), "--model_control")

    def test_a_load_that_is_cancelled(self):
        """The client need not wait; the load goes on to its time limit."""
        self.write("a/1/model.vmasm", serve_client.echo_module("f32"))
        with start_grpc(f"--models={self.folder}", "--model_control", "--load_timeout=10s", "--request_timeout=10s") as server, Client(server) as client:
            self.write("loop/1/model.vmasm", serve_client.LOOP_AT_START_MODULE)
            loading = client.RepositoryModelLoad.future(stubs()[0].RepositoryModelLoadRequest(model_name="loop"))
            late = client.RepositoryModelLoad.future(stubs()[0].RepositoryModelLoadRequest(model_name="loop"), timeout=0.2)
            self.refused("DEADLINE_EXCEEDED", late.result)
            loading.cancel()
            # The server may count the call that reached its deadline as cancelled, too.
            wait_until(lambda: server.metric('halyard_grpc_responses_total{code="CANCELLED"}') in (1, 2), "the cancelled call")
            wait_until(lambda: server.events("model_failed"), "the end of the load")


class TimeAndMemory(GrpcCase):
    def test_deadlines(self):
        with start_grpc(f"--model=loop={self.loop()}", "--request_timeout=500ms") as server, Client(server) as client:
            self.refused("DEADLINE_EXCEEDED", lambda: self.loops(client).result(), "did not answer in time")
            self.assertEqual(server.metric(outcome("loop", "timeout")), 1)
        with start_grpc(f"--model=loop={self.loop()}") as server, Client(server) as client:
            self.refused("DEADLINE_EXCEEDED", lambda: self.loops(client, timeout=5).result())
            # The client ends the call at its deadline, and so does the server; the first of them counts.
            ended = lambda: server.metric(outcome("loop", "timeout")) + server.metric(outcome("loop", "cancelled"))  # noqa: E731
            wait_until(lambda: ended() == 1 and self.calls(server) == 0, "the call to end")
            self.assertEqual(list(self.loops(client, 0, timeout=240).result().outputs[0].contents.int_contents), [0])

    def test_cancelled_calls(self):
        with start_grpc(f"--model=loop={self.loop()}", "--threads=1") as server, Client(server) as client:
            running, waiting = self.loops(client), self.loops(client)
            wait_until(lambda: self.calls(server) == 1 and server.metric('halyard_model_queue_length{model="loop",version="1"}') == 1, "both calls")
            waiting.cancel()
            wait_until(lambda: server.metric(outcome("loop", "cancelled")) == 1, "the one that waits")
            running.cancel()
            wait_until(lambda: server.metric(outcome("loop", "cancelled")) == 2 and self.calls(server) == 0, "the one that runs")
            wait_until(lambda: server.metric('halyard_grpc_responses_total{code="CANCELLED"}') == 2, "the codes")
            # A client that closes its connection.
            with Client(server) as other:
                held = self.loops(other)
                wait_until(lambda: self.calls(server) == 1, "the call")
            wait_until(lambda: server.metric(outcome("loop", "cancelled")) == 3 and self.calls(server) == 0, "the end of its call")
            self.assertTrue(held.done())
            self.assertEqual(list(self.loops(client, 0).result().outputs[0].contents.int_contents), [0])

    def test_a_full_queue(self):
        with start_grpc(f"--model=loop={self.loop()}", f"--model=mul={MUL}", "--threads=1", "--queue=1") as server, Client(server) as client:
            held = [self.loops(client)]
            wait_until(lambda: self.calls(server) == 1, "the call")
            held.append(self.loops(client))
            wait_until(lambda: server.metric('halyard_model_queue_length{model="loop",version="1"}') == 1, "the queue")
            self.refused("UNAVAILABLE", lambda: self.loops(client).result(), "queue", "'loop'")
            self.assertEqual(server.metric(outcome("loop", "rejected")), 1)
            for each in held:
                each.cancel()

    def test_many_calls(self):
        values = [1 + i / 8 for i in range(16 * 64)]
        with start_grpc(f"--model=encoder={ENCODER}", "--batch=encoder=8", f"--model=mul={MUL}", "--threads=2", "--queue=1000") as server:
            about = server.get("/v2/models/encoder")[2]["inputs"][0]
            name, shape = about["name"], [1, *about["shape"][1:]]
            expected = server.infer("encoder", [tensor(name, "FP32", values, shape)])
            clients = [Client(server) for _ in range(4)]
            request = raw_request("encoder", (name, "FP32", shape, packed("FP32", values)))
            quick = [each.ModelInfer.future(raw_mul([i], [2])) for each in clients for i in range(200)]
            futures = [each.ModelInfer.future(request) for each in clients for _ in range(25)]
            for i, future in enumerate(quick):
                self.assertEqual(future.result().raw_output_contents[0], packed("FP32", [2 * (i % 200)]))
            answers = {future.result().raw_output_contents[0] for future in futures}
            self.assertEqual(answers, {packed("FP32", expected[1]["outputs"][0]["data"])})
            for each in clients:
                each.channel.close()
            wait_until(lambda: server.metric(CONNECTIONS) == 1, "the connections to end")
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")

    def test_large_messages(self):
        path = self.write("echo.vmasm", serve_client.echo_module("f32"))
        data = os.urandom(1024) * (8 << 10)
        with start_grpc(f"--model=echo={path}") as server, Client(server) as client:
            request = raw_request("echo", ("x", "FP32", [len(data) // 4], data))
            self.assertTrue(client.ModelInfer(request).raw_output_contents[0] == data)
            numbers = [i / 4 for i in range(1 << 20)]
            answer = client.ModelInfer(typed_request("echo", typed("x", "FP32", numbers)))
            self.assertTrue(list(answer.outputs[0].contents.fp32_contents) == numbers)
        with start_grpc(f"--model=echo={path}", "--max_body=1MiB") as server, Client(server) as client:
            self.refused("RESOURCE_EXHAUSTED", lambda: client.ModelInfer(request))
            small = raw_request("echo", ("x", "FP32", [len(data) // 64], data[:len(data) // 16]))
            self.assertTrue(client.ModelInfer(small).raw_output_contents[0] == data[:len(data) // 16])
        with start_grpc(f"--model=echo={path}", "--max_request_memory=12MiB") as server, Client(server) as client:
            said = self.refused("UNAVAILABLE", lambda: client.ModelInfer(request))
            self.assertTrue("memory" in said or is_ended_connection(said), said)
            self.assertTrue(infer_short_of_memory(client, small).raw_output_contents[0] == data[:len(data) // 16])
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")

    def test_parts_of_messages(self):
        """Bytes that have arrived count, whether or not the message is whole; what is announced takes none."""
        with start_grpc(f"--model=mul={MUL}", "--max_request_memory=64MiB") as server, Client(server) as client:
            host, port = server.grpc.rsplit(":", 1)
            part = lambda most: http2.PartOfACall((host, int(port)), b"/inference.GRPCInferenceService/ModelInfer", 60_000_000, most)  # noqa: E731
            parts = [part(0) for _ in range(50)]
            wait_until(lambda: server.metric(CONNECTIONS) == 1 + len(parts), "the connections")
            self.assertEqual(client.ModelInfer(raw_mul([1], [2])).raw_output_contents[0], packed("FP32", [2]))
            self.assertLess(resident(server), 60 << 20)
            parts += [part(20_000_000) for _ in range(20)]  # 400 MB
            end = time.monotonic() + vmrun.TIMEOUT
            while sum(each.is_refused for each in parts) < 5 and time.monotonic() < end:
                if not any([each.step() for each in parts if not each.is_refused]):
                    time.sleep(0.01)
            self.assertGreaterEqual(sum(each.is_refused for each in parts), 5)
            self.assertLess(resident(server), 200 << 20)
            answer = infer_short_of_memory(client, raw_mul([1], [2]))
            self.assertEqual(answer.raw_output_contents[0], packed("FP32", [2]))
            for each in parts:
                each.socket.close()
            wait_until(lambda: server.metric(CONNECTIONS) == 2, "the connections to end")  # this one, and the client's

    def test_compressed_messages(self):
        with start_grpc(f"--model=mul={MUL}") as server, Client(server) as client:
            for coding in (grpc.Compression.Gzip, grpc.Compression.Deflate):
                self.refused("UNIMPLEMENTED", lambda: client.ModelInfer(raw_mul([1] * 1000, [2] * 1000), compression=coding))
            self.assertEqual(client.ModelInfer(raw_mul([1], [2])).raw_output_contents[0], packed("FP32", [2]))


class GrpcOperation(GrpcCase):
    def model(self, factor):
        return self.write("a/1/model.vmasm", "vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n"
                          f"  %i1 = vm.const.i32 {factor}\n  %i0 = vm.mul.i32 %i0, %i1\n  vm.return %i0\n}}\n")

    def test_reloads_during_calls(self):
        self.model(100)
        with start_grpc(f"--models={self.folder}") as server, Client(server) as client:
            stop, failures = threading.Event(), []
            infer = lambda: client.ModelInfer(typed_request("a", typed("input0", "INT32", [1]))).outputs[0].contents.int_contents[0]  # noqa: E731

            def calls():
                while not stop.is_set():
                    try:
                        if (found := infer()) not in range(100, 106):
                            failures.append(found)
                    except grpc.RpcError as error:
                        failures.append(error)

            threads = [threading.Thread(target=calls) for _ in range(4)]
            for thread in threads:
                thread.start()
            for factor in range(101, 106):
                self.model(factor)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: infer() == factor, f"factor {factor}")
            stop.set()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_calls_that_have_begun_are_answered_at_the_end(self):
        with start_grpc(f"--model=loop={self.loop()}", "--request_timeout=8s") as server, Client(server) as client, Client(server) as idle:
            idle.ServerLive(stubs()[0].ServerLiveRequest())
            running = self.loops(client)
            wait_until(lambda: self.calls(server) == 1, "the call")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.events("draining"), "the signal")
            codes = []

            def is_refused():
                try:
                    self.loops(idle, 0).result()
                except grpc.RpcError as error:
                    codes.append(error.code())
                return codes

            wait_until(is_refused, "the end of new calls")
            # gRPC cancels calls that begin before the client knows that the server ends.
            self.assertIn(codes[0], (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED))
            self.refused("DEADLINE_EXCEEDED", running.result, "did not answer in time")
            self.assertEqual(server.stop(None), 0)
            self.assertEqual(server.events("ended")[0]["cancelled"], False)

    def test_the_end_has_a_limit(self):
        with start_grpc(f"--model=loop={self.loop()}", "--drain_timeout=200ms") as server, Client(server) as client:
            running = self.loops(client)
            wait_until(lambda: self.calls(server) == 1, "the call")
            self.assertEqual(server.stop(), 1)
            self.refused("UNAVAILABLE", running.result)
            self.assertEqual(server.events("ended")[0]["cancelled"], True)

    def test_other_bytes_on_the_port(self):
        draw = random.Random(1)
        with start_grpc(f"--model=mul={MUL}") as server, Client(server) as client:
            self.assertEqual(client.ModelInfer(raw_mul([1], [2])).raw_output_contents[0], packed("FP32", [2]))
            host, port = server.grpc.rsplit(":", 1)
            connections = []
            for sent in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", draw.randbytes(1000), http2.PREFACE, http2.PREFACE + draw.randbytes(1000),
                         http2.PREFACE + bytes(9), http2.PREFACE + b"\xff\xff\xff\x04" + bytes(5), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
                for _ in range(5):
                    connection = socket.create_connection((host, int(port)), timeout=240)
                    connection.sendall(sent)
                    connections.append(connection)
            self.assertEqual(client.ModelInfer(raw_mul([3], [2])).raw_output_contents[0], packed("FP32", [6]))
            for connection in connections:
                connection.close()
            wait_until(lambda: server.metric(CONNECTIONS) == 2, "the connections to end")  # this one, and the client's
            self.assertEqual(client.ModelInfer(raw_mul([3], [2])).raw_output_contents[0], packed("FP32", [6]))
            self.assertEqual([line for line in server.log if not line.startswith("{")], [])

    def test_limits_of_connections(self):
        with start_grpc(f"--model=mul={MUL}", "--max_connections=4", "--idle_timeout=1s") as server:
            host, port = server.grpc.rsplit(":", 1)
            connections = [socket.create_connection((host, int(port)), timeout=240) for _ in range(6)]
            closed = 0
            for connection in connections:  # all of them end: some at once, the others when they have been idle
                try:
                    while connection.recv(1000):
                        pass
                except ConnectionResetError:
                    pass
                closed += 1
                connection.close()
            self.assertEqual(closed, 6)

            def connections():
                try:
                    return server.metric(CONNECTIONS)
                except (OSError, http.client.HTTPException):  # refused, too
                    return None

            wait_until(lambda: connections() == 1, "the connections to end")
            self.assertGreaterEqual(server.metric("halyard_connections_refused_total"), 2)
            with Client(server) as client:
                self.assertEqual(client.ModelInfer(raw_mul([3], [2])).raw_output_contents[0], packed("FP32", [6]))

    def test_addresses(self):
        for text, said in (("8081", "HOST:PORT"), (":8081", "HOST:PORT"), ("127.0.0.1:", "HOST:PORT"), ("127.0.0.1:x", "HOST:PORT"),
                           ("127.0.0.1:65536", "65535"), ("no.such.host.invalid:1", "no.such.host.invalid"), ("unix:", "1 to")):
            done = vmrun.run("vm-serve", f"--model=mul={MUL}", "--port=0", f"--grpc={text}")
            self.assertIsNone(vmrun.why_bad_failure(done, said, "--grpc"), (text, done.stderr))
        path = os.path.join(self.folder, "socket")
        with start_grpc(f"--model=mul={MUL}") as server:
            done = vmrun.run("vm-serve", f"--model=mul={MUL}", "--port=0", f"--grpc={server.grpc}")
            self.assertIsNone(vmrun.why_bad_failure(done, "ALREADY_EXISTS", server.grpc), done.stderr)
        with serve_client.Server(PROGRAM, f"--model=mul={MUL}", f"--grpc=unix:{path}", expect=2) as server, Client(server) as client:
            self.assertEqual(server.grpc, f"unix:{path}")
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o660)
            self.assertEqual(client.ModelInfer(raw_mul([3], [2])).raw_output_contents[0], packed("FP32", [6]))
        self.assertFalse(os.path.exists(path))

    def test_logs_and_traces(self):
        path = os.path.join(self.folder, "trace")
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        with start_grpc(f"--model=mul={MUL}", "--log_requests", f"--trace={path}", "--trace_rate=0") as server, Client(server) as client:
            client.ModelInfer(raw_mul([1], [2]))
            client.ModelInfer(raw_mul([1], [2]), metadata=[("traceparent", parent)])
            self.refused("NOT_FOUND", lambda: client.ModelInfer(raw_mul([1], [2], "none")))
            self.assertEqual(server.stop(), 0)
            lines = [line for line in server.events("request") if line["method"] == "gRPC"]
            self.assertEqual([(line["target"], line["model"], line["status"]) for line in lines],
                             [("ModelInfer", "mul", "OK"), ("ModelInfer", "mul", "OK"), ("ModelInfer", "none", "NOT_FOUND")])
            self.assertEqual([line.get("trace_id") for line in lines], [None, parent.split("-")[1], None])
            self.assertEqual([line.get("version") for line in lines], ["1", "1", None])
            for line in lines:
                self.assertRegex(line["client"], r"^127\.0\.0\.1:\d+$")
            self.assertEqual(server.events("listening")[1]["protocol"], "gRPC")
        self.assertIn(f"mul/1 {parent.split('-')[1]}", [each.name for each in Trace(path).slices()])

    def test_the_library_is_opened_only_with_the_flag(self):
        with serve_client.Server(PROGRAM, f"--model=mul={MUL}") as server:
            self.assertNotIn("libgrpc", vmrun.read_text(f"/proc/{server.process.pid}/maps"))
        with start_grpc(f"--model=mul={MUL}") as server:
            self.assertIn("libgrpc", vmrun.read_text(f"/proc/{server.process.pid}/maps"))
        # An installation without the library.
        for name in ("bin/vm-serve", "lib/libhalyard.so"):
            target = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(os.path.realpath(os.path.join(vmrun.BUILD, name)), target)
        shutil.copy(os.path.join(self.folder, "lib/libhalyard.so"), os.path.join(self.folder, "lib/libhalyard.so.0"))
        command = [os.path.join(self.folder, "bin/vm-serve"), f"--model=mul={MUL}", "--port=0", "--grpc=127.0.0.1:0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=vmrun.TIMEOUT)
        self.assertIsNone(vmrun.why_bad_failure(done, "NOT_FOUND", "vm-serve-grpc.so", "halyard-serve-grpc"), done.stderr)


if __name__ == "__main__":
    unittest.main()
