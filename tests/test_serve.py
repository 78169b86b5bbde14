"""vm-serve over HTTP: the Open Inference Protocol with JSON and binary tensors, limits, hostile clients, operations."""
import json
import os
import random
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import serve_client
import vmrun
from serve_client import Server, UnixConnection, ask, binary_request, binary_response, packed, tensor

PROGRAM = os.path.join(vmrun.BIN, "vm-serve")
MUL = os.path.join(vmrun.SOURCE, "examples", "inline_mul.vmasm")
FIB = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
ELEMENTWISE = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
TYPES = {"BOOL": "i1", "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "UINT8": "ui8", "UINT16": "ui16",
         "UINT32": "ui32", "UINT64": "ui64", "FP16": "f16", "BF16": "bf16", "FP32": "f32", "FP64": "f64"}
VALUES = {"BOOL": [True, False], "INT8": [-128, 127], "INT16": [-32768, 32767], "INT32": [-2**31, 2**31 - 1],
          "INT64": [-2**63, 2**63 - 1], "UINT8": [0, 255], "UINT16": [0, 65535], "UINT32": [0, 2**32 - 1],
          "UINT64": [0, 2**64 - 1], "FP16": [-1.5, 65504.0], "BF16": [1.0, -2.5], "FP32": [0.5, -3.0e38], "FP64": [0.1, -1e308]}


def start(*flags, **options):
    return Server(PROGRAM, *flags, **options)


def mul(values, other, **members):
    return {"inputs": [tensor("input0", "FP32", values), tensor("input1", "FP32", other)], **members}


def binary_mul(values, other, **members):
    return binary_request([("input0", "FP32", [len(values)], packed("FP32", values)),
                           ("input1", "FP32", [len(other)], packed("FP32", other))], **members)


def wait_until(condition, what, limit=120):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.01)


def raw(server, data, limit=60):
    """Everything that the server answers until it closes the connection."""
    with server.socket(limit) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server has answered, and closed the connection, before it had all
        return read_all(connection)


def read_all(connection):
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def post(body, path="/v2/models/mul/infer", headers=""):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Folder(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="halyard-serve-")
        self.folder = self.holder.name
        self.addCleanup(self.holder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)
        return path


class Protocol(Folder):
    """The cases are those of the protocol's text, path by path."""

    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory(prefix="halyard-serve-")
        models = [f"--model=mul={MUL}", f"--model=fib:recursive={FIB}", f"--model=mul/7={MUL}", f"--model=mul/10={MUL}"]
        for datatype, text in TYPES.items():
            path = os.path.join(cls.files.name, datatype + ".vmasm")
            with open(path, "w") as file:
                file.write(serve_client.echo_module(text))
            models.append(f"--model={datatype}={path}")
        cls.server = start(*models)

    @classmethod
    def tearDownClass(cls):
        with cls.server:
            assert cls.server.stop() == 0, cls.server.log
        cls.files.cleanup()

    def test_server_metadata(self):
        for path in ("/v2", "/v2/"):
            status, headers, document = self.server.get(path)
            self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
            self.assertEqual(document["name"], "halyard")
            self.assertIsInstance(document["version"], str)
            self.assertEqual(document["extensions"], ["binary_tensor_data"])

    def test_health(self):
        self.assertEqual(self.server.get("/v2/health/live")[::2], (200, {"live": True}))
        self.assertEqual(self.server.get("/v2/health/ready")[::2], (200, {"live": True, "ready": True}))

    def test_model_metadata_and_ready(self):
        status, _, document = self.server.get("/v2/models/mul")
        self.assertEqual(status, 200)
        self.assertEqual(document, {"name": "mul", "versions": ["1", "7", "10"], "platform": "iree_vmfb",
                                    "inputs": [{"name": "input0", "datatype": "FP32", "shape": [-1]},
                                               {"name": "input1", "datatype": "FP32", "shape": [-1]}],
                                    "outputs": [{"name": "output0", "datatype": "FP32", "shape": [-1]}]})
        self.assertEqual(self.server.get("/v2/models/mul/versions/7")[2], document)
        self.assertEqual(self.server.get("/v2/models/mul/ready")[::2], (200, {"name": "mul", "ready": True}))
        self.assertEqual(self.server.get("/v2/models/mul/versions/10/ready")[0], 200)
        self.assertIn("mul", self.server.get("/v2/models")[2]["models"])

    def test_what_is_not_there(self):
        for path in ("/v2/models/none", "/v2/models/none/ready", "/v2/models/mul/versions/2", "/v2/models/mul/versions/2/ready", "/v3",
                     "/v2/model/mul"):
            status, headers, document = self.server.get(path)
            self.assertEqual((status, list(document)), (404, ["error"]), path)
        self.assertEqual(self.server.get("/v2/models/none/infer", "POST", "{}")[0], 404)
        status, headers, document = self.server.get("/v2/models/mul/infer")
        self.assertEqual((status, headers["Allow"], list(document)), (405, "POST", ["error"]))
        self.assertEqual(self.server.get("/v2", "DELETE")[0], 405)

    def test_head_has_the_header_alone(self):
        status, headers, body = self.server.get("/v2", "HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 20)

    def test_inference_in_json(self):
        status, document = self.server.infer("mul", **mul([1, 2.5, -3], [10, 2, 0.5]), id="42")
        self.assertEqual(status, 200, document)
        self.assertEqual(document, {"model_name": "mul", "model_version": "10", "id": "42",
                                    "outputs": [{"name": "output0", "shape": [3], "datatype": "FP32", "data": [10, 5, -1.5]}]})
        status, document = self.server.infer("mul/versions/7", **mul([1], [10]))
        self.assertEqual((status, document["model_version"], "id" in document), (200, "7", False))

    def test_a_version_that_is_not_chosen_is_the_last(self):
        self.assertEqual(self.server.infer("mul", **mul([1], [1]))[1]["model_version"], "10")

    def test_numbers_by_value(self):
        for shape in ([1], []):
            status, document = self.server.infer("fib", [tensor("input0", "INT32", [20], shape)])
            self.assertEqual((status, document["outputs"]),
                             (200, [{"name": "output0", "shape": [1], "datatype": "INT32", "data": [6765]}]), document)

    def test_every_type_in_json(self):
        for datatype, values in VALUES.items():
            status, document = self.server.infer(datatype, [tensor("x", datatype, values)])
            self.assertEqual(status, 200, document)
            output = document["outputs"][0]
            self.assertEqual((output["datatype"], output["shape"]), (datatype, [2]))
            if datatype == "FP32":
                self.assertEqual(packed("FP32", output["data"]), packed("FP32", values))
            else:
                self.assertEqual(output["data"], values, datatype)

    def test_every_type_in_binary(self):
        for datatype, values in VALUES.items():
            data = struct.pack("<2H", 0x3F80, 0xC020) if datatype == "BF16" else packed(datatype, values)
            body, headers = binary_request([("x", datatype, [2], data)], parameters={"binary_data_output": True})
            status, headers, answer = self.server.get(f"/v2/models/{datatype}/infer", "POST", body, headers)
            self.assertEqual((status, headers["Content-Type"]), (200, "application/octet-stream"))
            document, tensors = binary_response(headers, answer)
            self.assertEqual(tensors, {"y": data}, datatype)
            self.assertNotIn("data", document["outputs"][0])

    def test_signless_integers_take_either_sign(self):
        status, document = self.server.infer("INT32", [tensor("x", "UINT32", [2**32 - 1])])
        self.assertEqual((status, document["outputs"][0]["data"]), (200, [-1]))

    def test_a_truth_value_is_one_bit(self):
        body, headers = binary_request([("x", "BOOL", [3], bytes([0, 1, 255]))], parameters={"binary_data_output": True})
        _, headers, answer = self.server.get("/v2/models/BOOL/infer", "POST", body, headers)
        self.assertEqual(binary_response(headers, answer)[1]["y"], bytes([0, 1, 1]))

    def test_infinities(self):
        status, document = self.server.infer("FP32", [tensor("x", "FP32", ["Infinity", "-Infinity", "NaN"])])
        self.assertEqual((status, document["outputs"][0]["data"]), (200, ["Infinity", "-Infinity", "NaN"]))

    def test_chosen_outputs_in_either_form(self):
        body, headers = binary_mul([2, 3], [4, 5], outputs=[{"name": "output0", "parameters": {"binary_data": True}}])
        status, headers, answer = self.server.get("/v2/models/mul/infer", "POST", body, headers)
        self.assertEqual(status, 200)
        self.assertEqual(binary_response(headers, answer)[1], {"output0": packed("FP32", [8, 15])})
        body, headers = binary_mul([2], [4], parameters={"binary_data_output": True},
                                   outputs=[{"name": "output0", "parameters": {"binary_data": False}}])
        status, headers, document = self.server.get("/v2/models/mul/infer", "POST", body, headers)
        self.assertEqual((status, headers["Content-Type"], document["outputs"][0]["data"]), (200, "application/json", [8]))
        status, document = self.server.infer("mul", **mul([1], [1]), outputs=[{"name": "other"}])
        self.assertEqual(status, 400)
        self.assertEqual(document, {"error": "model 'mul' has no output 'other'; it gives 'output0'"})

    def test_json_and_binary_inputs_in_one_request(self):
        head = json.dumps({"inputs": [{"name": "input1", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
                                      tensor("input0", "FP32", [3, 4])]}).encode()
        status, _, document = self.server.get("/v2/models/mul/infer", "POST", head + packed("FP32", [10, 100]),
                                              {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual((status, document["outputs"][0]["data"]), (200, [30, 400]))

    def test_large_binary_tensors(self):
        data = random.Random(1).randbytes(4 << 20)
        body, headers = binary_request([("x", "UINT8", [len(data)], data)], parameters={"binary_data_output": True})
        status, headers, answer = self.server.get("/v2/models/UINT8/infer", "POST", body, headers)
        self.assertEqual(status, 200)
        self.assertTrue(binary_response(headers, answer)[1]["y"] == data)

    def test_empty_tensors(self):
        status, document = self.server.infer("FP32", [tensor("x", "FP32", [])])
        self.assertEqual((status, document["outputs"][0]["shape"], document["outputs"][0]["data"]), (200, [0], []))
        body, headers = binary_request([("x", "FP32", [0], b"")], parameters={"binary_data_output": True})
        status, headers, answer = self.server.get("/v2/models/FP32/infer", "POST", body, headers)
        self.assertEqual((status, binary_response(headers, answer)[1]), (200, {"y": b""}))

    def test_requests_that_are_wrong(self):
        for inputs, said in (([tensor("input0", "FP32", [1])], "lacks input 'input1'"),
                             ([tensor("input0", "FP64", [1]), tensor("input1", "FP32", [1])], "is FP64"),
                             ([tensor("input0", "FP32", [1], [1, 1]), tensor("input1", "FP32", [1])], "shape [1,1]"),
                             ([tensor("input0", "FP32", [1], [2]), tensor("input1", "FP32", [1])], "has 1 elements")):
            status, document = self.server.infer("mul", inputs)
            self.assertEqual(status, 400)
            self.assertIn(said, document["error"])
        # Arguments that do not fit each other are for the model to refuse.
        status, document = self.server.infer("mul", **mul([1, 2], [1, 2, 3]))
        self.assertEqual((status, list(document)), (400, ["error"]))
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"inputs":' + b"[" * 100000):
            status, _, document = self.server.get("/v2/models/mul/infer", "POST", body)
            self.assertEqual((status, list(document)), (400, ["error"]), body[:20])

    def test_binary_sizes_that_are_wrong(self):
        body, headers = binary_mul([1, 2], [3, 4])
        for change in ({"Inference-Header-Content-Length": "0"}, {"Inference-Header-Content-Length": "-1"},
                       {"Inference-Header-Content-Length": "x"}, {"Inference-Header-Content-Length": "99999999999999999999"},
                       {"Inference-Header-Content-Length": str(len(body) + 1)}, {"Inference-Header-Content-Length": str(len(body))}):
            status, _, document = self.server.get("/v2/models/mul/infer", "POST", body, {**headers, **change})
            self.assertEqual((status, list(document)), (400, ["error"]), change)
        for wrong in (body + b"x", body[:-1]):
            self.assertEqual(self.server.get("/v2/models/mul/infer", "POST", wrong, headers)[0], 400)
        # Without the header there is nothing behind the JSON object.
        head = body[:int(headers["Inference-Header-Content-Length"])]
        self.assertEqual(self.server.get("/v2/models/mul/infer", "POST", head)[0], 400)

    def test_keep_alive_and_its_end(self):
        connection = self.server.connect()
        for i in range(50):
            status, headers, document = ask(connection, "/v2/models/mul/infer", "POST", json.dumps(mul([i], [2])))
            self.assertEqual((status, document["outputs"][0]["data"]), (200, [2 * i]))
            self.assertNotIn("Connection", headers)
            self.assertEqual(ask(connection, "/v2/none", "POST", b"x" * 1000)[0], 404)  # its body is read, too
        status, headers, _ = ask(connection, "/v2", headers={"Connection": "close"})
        self.assertEqual((status, headers["Connection"]), (200, "close"))
        connection.close()
        self.assertTrue(raw(self.server, b"GET /v2 HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n"))
        answers = raw(self.server, 2 * b"GET /v2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        self.assertEqual(answers.count(b"Connection: keep-alive\r\n"), 2, answers)

    def test_pipelined_requests_are_answered_in_order(self):
        requests = b"".join(post(mul([i], [3], id=str(i))) + b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n" for i in range(30))
        answers = raw(self.server, requests).decode()
        ids = [json.loads(line)["id"] for line in answers.splitlines() if '"outputs"' in line for line in [line[:line.rindex("]}") + 2]]]
        self.assertEqual(ids, [str(i) for i in range(30)])
        self.assertEqual(answers.count("HTTP/1.1 200 OK"), 60)

    def test_chunked_bodies(self):
        def chunks(data, size):
            return b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + size]), data[i:i + size]) for i in range(0, len(data), size)) + b"0\r\n\r\n"

        body = json.dumps(mul([1, 2], [3, 4])).encode()
        for size in (1, 7, 1000):
            request = b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(body, size)
            answer = raw(self.server, request + b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b'"data":[3,8]', answer, size)
            self.assertTrue(answer.endswith(b'{"live":true}\n'))
        body, headers = binary_mul([1, 2], [3, 4])
        for size in (1, 100, 1000):
            for extra, status in ((b"", b"200"), (b"x", b"400")):
                request = (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                           b"Inference-Header-Content-Length: %s\r\n\r\n" % headers["Inference-Header-Content-Length"].encode())
                answer = raw(self.server, request + chunks(body + extra, size))
                self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), answer)

    def test_a_client_that_waits_to_be_told_to_go_on(self):
        body = json.dumps(mul([1], [2])).encode()
        with self.server.socket() as connection:
            connection.sendall(post(body, headers="Expect: 100-continue\r\n")[:-len(body)])
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(body)
            connection.shutdown(socket.SHUT_WR)
            self.assertIn(b'"data":[2]', read_all(connection))
        # Nor is it told to go on where the answer is known.
        with self.server.socket() as connection:
            connection.sendall(post(body, "/v2/models/none/infer", "Expect: 100-continue\r\n")[:-len(body)])
            answer = read_all(connection)
            self.assertTrue(answer.startswith(b"HTTP/1.1 404"), answer)
            self.assertNotIn(b"Continue", answer)

    def test_malformed_http(self):
        for data, status in ((b"\r\n\r\n", None), (b"GET\r\n\r\n", b"400"), (b"GET / HTTP/3.0\r\n\r\n", b"505"),
                             (b"GET /v2 HTTP/1.1\r\n\r\n", b"400"), (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
                             (b"GET / HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n", b"400"), (b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
                             (b"GET /v2/models/%zz HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                              b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", b"415"),
                             (b"GET /v2 HTTP/1.1\r\nHost: x\r\nLong: " + b"x" * 20000 + b"\r\n\r\n", b"431")):
            answer = raw(self.server, data)
            if status is not None:
                self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), (data[:80], answer[:200]))
            self.assertIn(self.server.process.poll(), (None,))
        self.assertEqual(self.server.get("/v2")[0], 200)

    def test_random_bytes(self):
        generator = random.Random(7)
        request = post(mul([1, 2, 3], [4, 5, 6]))
        for _ in range(300):
            data = bytearray(request)
            for _ in range(generator.randrange(1, 6)):
                data[generator.randrange(len(data))] = generator.randrange(256)
            raw(self.server, bytes(data))
        self.assertEqual(self.server.infer("mul", **mul([1], [1]))[0], 200)

    def test_disconnects_at_every_byte(self):
        for request in (post(mul([1], [4])), post(*[binary_mul([1], [2])[0]], headers="Inference-Header-Content-Length: %s\r\n" %
                                                  binary_mul([1], [2])[1]["Inference-Header-Content-Length"])):
            for size in range(len(request)):
                with self.server.socket() as connection:
                    connection.sendall(request[:size])
                    if size % 2:  # a reset instead of an end
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.assertEqual(self.server.infer("mul", **mul([3], [4]))[1]["outputs"][0]["data"], [12])
        wait_until(lambda: self.server.metric("halyard_connections") == 1, "the connections to end")
        self.assertEqual(self.server.metric("halyard_request_memory_bytes"), 0)

    def test_many_connections_each_with_its_own_data(self):
        errors = []

        def client(number):
            try:
                connection = self.server.connect()
                generator = random.Random(number)
                for i in range(40):
                    values = [float(generator.randrange(1000)) for _ in range(generator.randrange(1, 50))]
                    if i % 2:
                        body, headers = binary_mul(values, [number] * len(values), id=f"{number}.{i}", parameters={"binary_data_output": True})
                        status, headers, answer = ask(connection, "/v2/models/mul/infer", "POST", body, headers)
                        document, tensors = binary_response(headers, answer)
                        good = tensors["output0"] == packed("FP32", [value * number for value in values])
                    else:
                        status, _, document = ask(connection, "/v2/models/mul/infer", "POST",
                                                  json.dumps(mul(values, [number] * len(values), id=f"{number}.{i}")))
                        good = document["outputs"][0]["data"] == [value * number for value in values]
                    if status != 200 or not good or document["id"] != f"{number}.{i}":
                        errors.append((number, i, status))
                connection.close()
            except Exception as error:  # shown below
                errors.append((number, repr(error)))

        threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_metrics(self):
        self.server.infer("fib", [tensor("input0", "INT32", [3])])
        status, headers, text = self.server.get("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        known = set()
        for line in text.decode().splitlines():
            if line.startswith("# TYPE "):
                known.add(line.split()[2])
                continue
            self.assertRegex(line, r'^(# HELP \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [-+0-9.e]+)$')
            if not line.startswith("#"):
                self.assertTrue(any(line.startswith(name) for name in known), line)
        labels = 'model="fib",version="1"'
        self.assertGreaterEqual(self.server.metric(f'halyard_model_requests_total{{{labels},outcome="success"}}'), 1)
        self.assertEqual(self.server.metric(f'halyard_model_call_seconds_bucket{{{labels},le="+Inf"}}'),
                         self.server.metric(f"halyard_model_call_seconds_count{{{labels}}}"))

    def test_the_page_loads_nothing_from_elsewhere(self):
        status, headers, page = self.server.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotRegex(page.decode(), r"(src|href)=.?(https?:)?//")


class Limits(Folder):
    def loop(self):
        return self.write("loop.vmasm", serve_client.LOOP_MODULE)

    def test_a_model_that_loops_is_stopped(self):
        with start(f"--model=loop={self.loop()}", f"--model=mul={MUL}", "--threads=1", "--request_timeout=300ms") as server:
            for _ in range(3):
                status, document = server.infer("loop", [tensor("input0", "INT32", [1])])
                self.assertEqual((status, list(document)), (504, ["error"]))
                self.assertEqual(server.infer("loop", [tensor("input0", "INT32", [0])])[0], 200)
            self.assertEqual(server.metric('halyard_model_requests_total{model="loop",version="1",outcome="timeout"}'), 3)
            self.assertEqual(server.stop(), 0)

    def test_a_full_queue_asks_to_come_again_and_others_are_answered(self):
        with start(f"--model=loop={self.loop()}", f"--model=mul={MUL}", "--threads=2", "--contexts=1", "--queue=2") as server:
            waiting = []
            for count in range(3):  # one runs, two wait
                connection = server.socket()
                connection.sendall(post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer"))
                waiting.append(connection)
                labels = '{model="loop",version="1"}'
                wait_until(lambda: server.metric("halyard_model_calls" + labels) + server.metric("halyard_model_queue_length" + labels) == count + 1,
                           "the request to be taken")
            status, headers, document = server.get("/v2/models/loop/infer", "POST", json.dumps({"inputs": [tensor("input0", "INT32", [0])]}))
            self.assertEqual((status, headers["Retry-After"], list(document)), (503, "1", ["error"]))
            self.assertEqual(server.infer("mul", **mul([2], [3]))[1]["outputs"][0]["data"], [6])
            self.assertEqual(server.get("/v2/health/live")[0], 200)
            for connection in waiting:
                connection.close()
            self.assertEqual(server.get("/v2/health/ready")[0], 200)

    def test_bodies_that_are_too_large(self):
        with start(f"--model=mul={MUL}", "--max_body=1KB", "--max_request_memory=1MiB") as server:
            self.assertEqual(server.infer("mul", **mul([1] * 50, [1] * 50))[0], 200)
            self.assertEqual(server.infer("mul", **mul([1] * 500, [1] * 500))[0], 413)
            self.assertTrue(raw(server, b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n")
                            .startswith(b"HTTP/1.1 413"))
            chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
            answer = raw(server, b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + 100 * chunk)
            self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer)

    def test_memory_for_requests(self):
        with start(f"--model=mul={MUL}", "--max_request_memory=100KB") as server:
            self.assertEqual(server.infer("mul", **mul([1] * 50, [1] * 50))[0], 200)
            status, headers, _ = server.get("/v2/models/mul/infer", "POST", json.dumps(mul([1] * 9000, [1] * 9000)))
            self.assertEqual((status, headers["Retry-After"]), (503, "1"))
            self.assertEqual(server.metric("halyard_request_memory_bytes"), 0)
        # Chunks of a byte need no more than their bytes.
        with start(f"--model=mul={MUL}", "--max_request_memory=1MiB") as server:
            body = json.dumps(mul([1] * 50, [1] * 50)).encode()
            chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
            answer = raw(server, b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer[:200])

    def test_memory_of_a_model(self):
        with start(f"--model=mul={MUL}", "--max_memory=1MiB") as server:
            self.assertEqual(server.infer("mul", **mul([1] * 50, [1] * 50))[0], 200)
            body, headers = binary_mul([1.0] * 400000, [1.0] * 400000)
            status, _, document = server.get("/v2/models/mul/infer", "POST", body, headers)
            self.assertEqual((status, document["error"][:18]), (500, "RESOURCE_EXHAUSTED"))
            self.assertEqual(server.infer("mul", **mul([1] * 50, [1] * 50))[0], 200)

    def test_too_many_connections(self):
        with start(f"--model=mul={MUL}", "--max_connections=3") as server:
            connections = [server.connect() for _ in range(3)]
            for connection in connections:
                self.assertEqual(ask(connection, "/v2")[0], 200)
            with server.socket() as further:
                self.assertEqual(read_all(further), b"")
            connections[0].close()
            wait_until(lambda: ask(connections[1], "/metrics")[2].decode().find("halyard_connections 2\n") > 0, "one to go")
            self.assertEqual(server.get("/v2")[0], 200)
            for connection in connections:
                connection.close()

    def test_idle_connections_are_closed(self):
        with start(f"--model=mul={MUL}", "--idle_timeout=200ms") as server:
            for begin in (b"", b"GET /v2 HT"):
                with server.socket() as connection:
                    connection.sendall(begin)
                    self.assertEqual(read_all(connection), b"")

    def test_a_model_that_fails(self):
        path = self.write("fail.vmasm", "vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n  vm.fail %i0, \"as asked\"\n}\n")
        with start(f"--model=fail={path}", "--contexts=1") as server:
            for code, expected in ((3, 400), (13, 500), (14, 503), (15, 500), (1, 500)):  # INVALID_ARGUMENT, INTERNAL, ...
                status, document = server.infer("fail", [tensor("input0", "INT32", [code])])
                self.assertEqual(status, expected, document)
                self.assertIn("as asked", document["error"])
            self.assertEqual(server.get("/v2/models/fail/ready")[0], 200)
            self.assertEqual(server.stop(), 0)


class Batches(Folder):
    def test_the_same_bits(self):
        generator = random.Random(3)
        requests = [[generator.uniform(-1e3, 1e3) for _ in range(generator.randrange(1, 9))] for _ in range(64)]

        def answers(*flags):
            with start(f"--model=mul={MUL}", "--threads=1", "--queue=1000", *flags) as server:
                found = {}

                def client(number):
                    values = requests[number]
                    body, headers = binary_mul(values, values[::-1], id=str(number), parameters={"binary_data_output": True})
                    status, headers, answer = server.get("/v2/models/mul/infer", "POST", body, headers)
                    document, tensors = binary_response(headers, answer)
                    found[number] = (status, document["id"], document["outputs"][0]["shape"], tensors["output0"])

                threads = [threading.Thread(target=client, args=(number,)) for number in range(len(requests))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                calls = server.metric('halyard_model_call_seconds_count{model="mul",version="1"}')
                self.assertEqual(server.stop(), 0)
                return found, calls

        alone, calls = answers()
        self.assertEqual(calls, 64)
        batched, calls = answers("--batch=mul=1000", "--batch_delay=300ms")
        self.assertLess(calls, 64)
        self.assertEqual(alone, batched)
        self.assertEqual({number: answer[2] for number, answer in alone.items()}, {n: [len(r)] for n, r in enumerate(requests)})

    def test_a_full_batch_does_not_wait(self):
        with start(f"--model=mul={MUL}", "--batch=4", "--batch_delay=1000min") as server:
            self.assertEqual(server.infer("mul", **mul([1, 2, 3, 4], [1, 1, 1, 1]))[0], 200)
            self.assertEqual(server.infer("mul", **mul([1, 2, 3, 4, 5], [1, 1, 1, 1, 1]))[0], 200)

    def test_one_that_is_wrong_fails_alone(self):
        with start(f"--model=mul={MUL}", "--batch=64", "--batch_delay=300ms", "--threads=1") as server:
            outcomes = {}

            def client(number):
                values = [1.0] * (number + 1)
                other = values if number != 3 else [1.0, 2.0]  # lengths that differ: never part of a batch
                outcomes[number] = server.infer("mul", **mul(values, other))[0]

            threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(outcomes, {number: 400 if number == 3 else 200 for number in range(8)})


class Operations(Folder):
    def test_what_cannot_start(self):
        for flags, said in (([], "no model given"), ([f"--model=mul={MUL}", "--models=/nowhere"], "/nowhere"),
                            ([f"--model=mul={self.folder}/none.vmfb"], "none.vmfb"), ([f"--model={MUL}"], "expected NAME"),
                            ([f"--model=a b={MUL}"], "expected NAME"), ([f"--model=mul={MUL}", f"--model=mul={MUL}"], "twice"),
                            ([f"--model=fib={FIB}"], "several functions: recursive, iterative"),
                            ([f"--model=fib:none={FIB}"], "no function 'none'"),
                            ([f"--model=mul={MUL}", "--port=65536"], "65535"), ([f"--model=mul={MUL}", "--host=no.such.host.invalid"], "--host"),
                            ([f"--model=mul={MUL}", "--batch=x"], "--batch=x"), ([f"--model=mul={MUL}", "--threads=0"], "--threads=0")):
            done = vmrun.run("vm-serve", "--port=0", *flags)
            self.assertIsNone(vmrun.why_bad_failure(done, said), (flags, done.stderr))
        with start(f"--model=mul={MUL}") as server:
            done = vmrun.run("vm-serve", f"--model=mul={MUL}", f"--port={server.port}")
            self.assertIsNone(vmrun.why_bad_failure(done, "ALREADY_EXISTS", str(server.port)))

    def test_it_listens_on_the_loopback_interface(self):
        with start(f"--model=mul={MUL}") as server:
            self.assertTrue(server.addresses[0].startswith("http://127.0.0.1:"))

    def test_unix_socket(self):
        path = os.path.join(self.folder, "socket")
        for _ in range(2):  # the second one finds a socket that nobody listens on
            with start(f"--model=mul={MUL}", f"--unix_socket={path}") as server:
                self.assertEqual(server.addresses, ["unix:" + path])
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
                connection = UnixConnection(path)
                status, _, document = ask(connection, "/v2/models/mul/infer", "POST", json.dumps(mul([2], [4])))
                connection.close()
                self.assertEqual((status, document["outputs"][0]["data"]), (200, [8]))
                done = vmrun.run("vm-serve", f"--model=mul={MUL}", f"--unix_socket={path}")
                self.assertIsNone(vmrun.why_bad_failure(done, "ALREADY_EXISTS"))
                server.process.kill()
        with start(f"--model=mul={MUL}", f"--unix_socket={path}", "--port=0", expect=2) as server:
            self.assertEqual(server.get("/v2")[0], 200)
            self.assertEqual(server.stop(), 0)
            self.assertFalse(os.path.exists(path))

    def test_requests_that_have_begun_are_answered_at_the_end(self):
        loop = self.write("loop.vmasm", serve_client.LOOP_MODULE)
        with start(f"--model=loop={loop}", f"--model=mul={MUL}", "--request_timeout=2s") as server:
            idle = server.socket()
            running = server.socket()
            running.sendall(post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer"))
            wait_until(lambda: server.metric('halyard_model_calls{model="loop",version="1"}') == 1, "the call")
            half = server.socket()
            body = json.dumps(mul([3], [5])).encode()
            half.sendall(post(body)[:-10])
            wait_until(lambda: server.metric("halyard_request_memory_bytes") > len(body) * 10, "both requests")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(read_all(idle), b"")
            half.sendall(post(body)[-10:])
            answer = read_all(half)
            self.assertIn(b"Connection: close\r\n", answer)
            self.assertIn(b'"data":[15]', answer)
            self.assertTrue(read_all(running).startswith(b"HTTP/1.1 504"))
            self.assertEqual(server.stop(None), 0)
            for connection in (idle, running, half):
                connection.close()
            self.assertEqual(server.events("ended")[0]["cancelled"], False)

    def test_the_end_has_a_limit(self):
        loop = self.write("loop.vmasm", serve_client.LOOP_MODULE)
        with start(f"--model=loop={loop}", "--drain_timeout=200ms") as server:
            running = server.socket()
            running.sendall(post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer"))
            wait_until(lambda: server.metric('halyard_model_calls{model="loop",version="1"}') == 1, "the call")
            self.assertEqual(server.stop(), 1)
            self.assertEqual(server.events("ended")[0]["cancelled"], True)
            running.close()

    def test_a_second_signal_ends_it_at_once(self):
        loop = self.write("loop.vmasm", serve_client.LOOP_MODULE)
        with start(f"--model=loop={loop}") as server:
            running = server.socket()
            running.sendall(post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer"))
            wait_until(lambda: server.metric('halyard_model_calls{model="loop",version="1"}') == 1, "the call")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.events("draining"), "the first signal")
            self.assertEqual(server.stop(), 128 + signal.SIGTERM)
            running.close()

    def model(self, name, version, factor):
        """A version that gives its argument times a factor."""
        return self.write(f"{name}/{version}/model.vmasm",
                          "vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n"
                          f"  %i1 = vm.const.i32 {factor}\n  %i0 = vm.mul.i32 %i0, %i1\n  vm.return %i0\n}}\n")

    def text_of(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def ask_for(self, server, model, value=3):
        status, document = server.infer(model, [tensor("input0", "INT32", [value])])
        return status, document["outputs"][0]["data"][0] if status == 200 else document["error"]

    def test_a_folder_of_models_and_its_changes(self):
        self.model("a", 1, 10)
        self.model("a", 2, 20)
        self.model("a", 10, 100)
        self.model("b", "old", 7)
        self.write("b/new/broken.vmasm", "this is no module")
        self.write("c/1/README", "nothing here")
        self.write(".hidden/1/model.vmasm", "")
        with start(f"--models={self.folder}") as server:
            self.assertEqual(server.get("/v2/models")[2], {"models": ["a", "b", "c"]})
            self.assertEqual(server.get("/v2/models/a")[2]["versions"], ["1", "2", "10"])
            self.assertEqual(self.ask_for(server, "a"), (200, 300))
            self.assertEqual(self.ask_for(server, "a/versions/2"), (200, 60))
            self.assertEqual(self.ask_for(server, "b"), (200, 21))
            self.assertEqual(self.ask_for(server, "b/versions/new")[0], 503)
            self.assertEqual(self.ask_for(server, "c")[0], 503)
            self.assertEqual(server.get("/v2/health/ready")[0], 503)
            self.assertEqual(server.get("/v2/health/live")[0], 200)
            self.assertEqual(server.get("/v2/models/a/ready")[0], 200)
            self.assertEqual(len(server.events("model_failed")), 2)

            # While it serves, no request is lost.
            stop, failures = threading.Event(), []

            def client():
                connection = server.connect()
                while not stop.is_set():
                    status, _, document = ask(connection, "/v2/models/a/infer", "POST", json.dumps({"inputs": [tensor("input0", "INT32", [1])]}))
                    if status != 200 or document["outputs"][0]["data"][0] not in (100, 101, 102, 103, 104, 105):
                        failures.append((status, document))
                connection.close()

            thread = threading.Thread(target=client)
            thread.start()
            for factor in range(101, 106):
                self.model("a", 10, factor)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: self.ask_for(server, "a", 1) == (200, factor), f"factor {factor}")
            stop.set()
            thread.join()
            self.assertEqual(failures, [])

            # What no longer loads goes on as it was; what is gone is gone; what is mended is ready.
            reloads = server.metric("halyard_reloads_total")
            self.write("a/10/model.vmasm", "broken")
            self.write("c/1/model.vmasm", self.text_of("b/old/model.vmasm"))
            os.remove(os.path.join(self.folder, "a/1/model.vmasm"))
            os.rmdir(os.path.join(self.folder, "a/1"))
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: server.metric("halyard_reloads_total") > reloads, "the reload")
            self.assertEqual(self.ask_for(server, "a", 1), (200, 105))
            self.assertEqual(self.ask_for(server, "a/versions/1")[0], 404)
            self.assertEqual(self.ask_for(server, "c", 1), (200, 7))
            self.assertEqual(server.stop(), 0)

    def test_a_folder_that_is_watched(self):
        self.model("a", 1, 10)
        with start(f"--models={self.folder}", "--watch=50ms") as server:
            self.assertEqual(self.ask_for(server, "a", 1), (200, 10))
            self.model("a", 2, 20)
            wait_until(lambda: self.ask_for(server, "a", 1) == (200, 20), "the new version")
            self.model("a", 2, 30)
            wait_until(lambda: self.ask_for(server, "a", 1) == (200, 30), "the change")
            self.assertEqual(server.metric("halyard_reload_failures_total"), 0)

    def test_settings_of_a_model(self):
        with open(FIB) as file:
            self.write("fib/1/model.vmasm", file.read())
        self.write("fib/1/model.json", '{"function": "recursive"}')
        self.write("wrong/1/model.json", '{"functions": []}')
        with open(FIB) as file:
            self.write("wrong/1/model.vmasm", file.read())
        with start(f"--models={self.folder}") as server:
            self.assertEqual(self.ask_for(server, "fib", 20), (200, 6765))
            status, said = self.ask_for(server, "wrong")
            self.assertEqual(status, 503)
            self.assertIn('unknown member "functions"', said)

    def test_log_lines(self):
        with start(f"--model=mul={MUL}", "--log_requests") as server:
            server.infer("mul", **mul([1], [2]))
            server.get("/v2/none")
            self.assertEqual(server.stop(), 0)
            for line in server.log:
                event = json.loads(line)
                self.assertEqual(list(event)[:3], ["time", "level", "event"])
                self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            requests = server.events("request")
            # A line follows the answer, so those of two connections may change places.
            self.assertEqual(sorted((event["method"], event["target"], event["status"]) for event in requests),
                             [("GET", "/v2/none", 404), ("POST", "/v2/models/mul/infer", 200)])

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_disk_for_logs(self):
        with open("/dev/full", "w") as full:
            process = subprocess.Popen([PROGRAM, f"--model=mul={MUL}", "--port=0", "--log_requests"], stdout=subprocess.PIPE, stderr=full, text=True)
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 200"))
        process.terminate()
        self.assertEqual(process.wait(120), 0)
        process.stdout.close()

    def test_a_log_that_nobody_reads(self):
        with start(f"--model=mul={MUL}") as quick:
            quick.stop()
        process = subprocess.Popen([PROGRAM, f"--model=mul={MUL}", "--port=0", "--log_requests"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        port = int(process.stdout.readline().decode().rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            for _ in range(20):
                connection.sendall(b"GET /v2/x HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
                received = 0
                while received < 500:
                    received += connection.recv(1 << 20).count(b"HTTP/1.1 404")
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertRegex(read_all(connection).decode(), r"\nhalyard_log_lines_dropped_total [1-9]")
        process.terminate()
        self.assertEqual(process.wait(120), 0)
        process.stdout.close()
        process.stderr.close()

    def test_systemd(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.bind(path)
            notified.settimeout(60)
            # The descriptor must be number 3, and the process number that of the program: a shell becomes it.
            process = subprocess.Popen(["bash", "-c", f'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&{listener.fileno()}', "bash", PROGRAM,
                                        f"--model=mul={MUL}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       pass_fds=[listener.fileno()], env={**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"})
            self.assertEqual(process.stdout.readline(), f"vm-serve: http://127.0.0.1:{listener.getsockname()[1]}\n")
            messages = [notified.recv(4096).decode()]
            while not messages[-1].startswith("READY=1"):
                messages.append(notified.recv(4096).decode())
            self.assertEqual(messages[-1], "READY=1\nSTATUS=Serving 1 models")
            self.assertEqual(notified.recv(4096), b"WATCHDOG=1")
            with socket.create_connection(listener.getsockname(), timeout=60) as connection:
                connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertIn(b'"halyard"', read_all(connection))
            process.send_signal(signal.SIGHUP)
            while not (message := notified.recv(4096)).startswith(b"RELOADING=1\nMONOTONIC_USEC="):
                pass
            while (message := notified.recv(4096)) != b"READY=1":
                self.assertEqual(message, b"WATCHDOG=1")
            process.terminate()
            while not (message := notified.recv(4096)).startswith(b"STOPPING=1"):
                self.assertEqual(message, b"WATCHDOG=1")
            self.assertEqual(process.wait(120), 0)
            process.stdout.close()
        listener.close()

    def test_the_curl_line_of_the_help(self):
        """Typed as it stands, but for the port."""
        text = vmrun.run("vm-serve", "--help").stdout
        command = text[text.index("  curl ") + 2:]
        command = command[:command.index("]}'") + 3]
        if subprocess.run(["bash", "-c", "command -v curl"], stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("curl is not installed")
        with start(f"--model=mul={MUL}") as server:
            done = subprocess.run(["bash", "-c", command.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}") + " -s"],
                                  stdout=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(json.loads(done.stdout)["outputs"][0]["data"], [30, 400])


class Devices(Folder):
    def test_programs_on_devices(self):
        for device in ("local-sync", "local-task"):
            with start(f"--model=mul={ELEMENTWISE}", f"--device={device}") as server:
                def client(number):
                    for _ in range(20):
                        status, document = server.infer("mul", **mul(list(range(8)), [number] * 8))
                        self.assertEqual((status, document["outputs"][0]["data"]), (200, [i * number for i in range(8)]))

                threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertGreater(server.metric(f'halyard_device_memory_bytes{{device="{device}://",kind="host"}}')
                                   + server.metric(f'halyard_device_memory_bytes{{device="{device}://",kind="device"}}'), -1)
                self.assertEqual(server.stop(), 0)

    def test_compiled_modules(self):
        fixtures = vmrun.fixtures()
        if not fixtures:
            self.skipTest("there are no fixtures")
        compiled = os.path.join(fixtures, "compiled")
        with start(f"--model=plain={compiled}/simple_mul.vmvx.vmfb", f"--model=async={compiled}/simple_mul.async.vmfb",
                   "--device=local-task") as server:
            for model in ("plain", "async"):
                metadata = server.get(f"/v2/models/{model}")[2]
                names = [each["name"] for each in metadata["inputs"]]
                for _ in range(30):
                    status, document = server.infer(model, [tensor(names[0], "FP32", [1, 2, 3, 4]), tensor(names[1], "FP32", [5, 6, 7, 8])])
                    self.assertEqual(status, 200, document)
                    self.assertEqual(document["outputs"][0]["data"], [5, 12, 21, 32])
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
