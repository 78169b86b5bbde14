"""vm-serve over HTTP: the Open Inference Protocol with JSON and binary tensors, and hostile clients."""
import json
import os
import random
import re
import socket
import struct
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

import serve_client
import vmrun
from serve_case import FIB, MUL, Folder, binary_mul, mul, post, raw, read_all, start
from vmrun import wait_until
from serve_client import ask, binary_request, binary_response, packed, tensor

TYPES = {"BOOL": "i1", "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64", "UINT8": "ui8", "UINT16": "ui16",
         "UINT32": "ui32", "UINT64": "ui64", "FP16": "f16", "BF16": "bf16", "FP32": "f32", "FP64": "f64"}
VALUES = {"BOOL": [True, False], "INT8": [-128, 127], "INT16": [-32768, 32767], "INT32": [-2**31, 2**31 - 1],
          "INT64": [-2**63, 2**63 - 1], "UINT8": [0, 255], "UINT16": [0, 65535], "UINT32": [0, 2**32 - 1],
          "UINT64": [0, 2**64 - 1], "FP16": [-1.5, 65504.0], "BF16": [1.0, -2.5], "FP32": [0.5, -3.0e38], "FP64": [0.1, -1e308]}


class Protocol(Folder):
    """The cases are those of the protocol's text, path by path."""

    @classmethod
    def setUpClass(cls):
        cls.files = tempfile.TemporaryDirectory(prefix="halyard-serve-")
        models = [f"--model=mul={MUL}", f"--model=fib:recursive={FIB}", f"--model=mul/7={MUL}", f"--model=mul/10={MUL}"]
        for datatype, text in TYPES.items():
            path = os.path.join(cls.files.name, datatype + ".vmasm")
            vmrun.write(path, serve_client.echo_module(text))
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
            self.assertEqual(document["extensions"], ["binary_tensor_data", "model_repository", "model_configuration", "statistics"])

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
        self.assertEqual(document, {"error": "model 'mul' has no output 'other'; it has 'output0'"})

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

    def test_a_large_body_that_comes_in_pieces(self):
        """The server lets the socket collect pieces of a large body; no byte waits for one that does not come."""
        data = random.Random(2).randbytes((1 << 20) + 7)
        body, headers = binary_request([("x", "UINT8", [len(data)], data)], parameters={"binary_data_output": True})
        request = post(body, "/v2/models/UINT8/infer", "".join(f"{name}: {value}\r\n" for name, value in headers.items()))
        with self.server.socket() as connection:
            for piece in (100, 70_000, 1, 300_000, 250_000, len(request)):
                connection.sendall(request[:piece])
                request = request[piece:]
                time.sleep(0.02)
            # The next request on this connection is small.
            connection.sendall(post(mul([2], [3]), headers="Connection: close\r\n"))
            answers = read_all(connection)
            first, _, rest = answers.partition(data)
            self.assertTrue(first.startswith(b"HTTP/1.1 200"), first[:200])
            self.assertTrue(rest.startswith(b"HTTP/1.1 200") and b"[6" in rest, rest[:400])
        for size in (200_000, 1_000_000, len(body)):
            with self.server.socket() as connection:
                connection.sendall(post(body, "/v2/models/UINT8/infer", "Inference-Header-Content-Length: "
                                        f"{headers['Inference-Header-Content-Length']}\r\n")[:size])
        wait_until(lambda: self.server.metric("halyard_connections") == 1, "the connections to end")
        wait_until(lambda: self.server.metric("halyard_request_memory_bytes") == 0, "the memory to be given back")

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
        requests = b"".join(post(mul([i], [3], id=str(i))) + b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" for i in range(30))
        answers = raw(self.server, requests).decode()
        ids = [json.loads(line)["id"] for line in answers.splitlines() if '"outputs"' in line for line in [line[:line.rindex("]}") + 2]]]
        self.assertEqual(ids, [str(i) for i in range(30)])
        self.assertEqual(answers.count("HTTP/1.1 200 OK"), 60)

    def test_chunked_bodies(self):
        def chunks(data, size):
            return b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + size]), data[i:i + size]) for i in range(0, len(data), size)) + b"0\r\n\r\n"

        body = json.dumps(mul([1, 2], [3, 4])).encode()
        for size in (1, 7, 1000):
            request = b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(body, size)
            answer = raw(self.server, request + b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b'"data":[3,8]', answer, size)
            self.assertTrue(answer.endswith(b'{"live":true}\n'))
        body, headers = binary_mul([1, 2], [3, 4])
        for size in (1, 100, 1000):
            for extra, status in ((b"", b"200"), (b"x", b"400")):
                request = (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                           b"Inference-Header-Content-Length: %s\r\n\r\n" % headers["Inference-Header-Content-Length"].encode())
                answer = raw(self.server, request + chunks(body + extra, size))
                self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), answer)

    def test_a_client_that_expects_100_continue(self):
        body = json.dumps(mul([1], [2])).encode()
        with self.server.socket() as connection:
            connection.sendall(post(body, headers="Expect: 100-continue\r\n")[:-len(body)])
            self.assertEqual(connection.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.sendall(body)
            connection.shutdown(socket.SHUT_WR)
            self.assertIn(b'"data":[2]', read_all(connection))
        # A client whose request is refused gets no "100 Continue".
        with self.server.socket() as connection:
            connection.sendall(post(body, "/v2/models/none/infer", "Expect: 100-continue\r\n")[:-len(body)])
            answer = read_all(connection)
            self.assertTrue(answer.startswith(b"HTTP/1.1 404"), answer)
            self.assertNotIn(b"Continue", answer)

    def test_malformed_http(self):
        for data, status in ((b"\r\n\r\n", None), (b"GET\r\n\r\n", b"400"), (b"GET / HTTP/3.0\r\n\r\n", b"505"),
                             (b"GET /v2 HTTP/1.1\r\n\r\n", b"400"), (b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
                             (b"GET / HTTP/1.1\r\nHost: localhost\r\nA B: c\r\n\r\n", b"400"), (b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
                             (b"GET /v2/models/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                              b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", b"415"),
                             (b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", b"400"),
                             (b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nLong: " + b"x" * 20000 + b"\r\n\r\n", b"431")):
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
        wait_until(lambda: self.server.metric("halyard_request_memory_bytes") == 0, "the memory to be given back")

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

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(client, range(16)))  # raises their errors
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

    def test_metrics_of_the_process_and_the_build(self):
        """With the names of Prometheus' client libraries, and values that /proc confirms."""
        pid = self.server.process.pid
        metric = self.server.metric
        self.assertGreater(metric("process_threads"), 1)
        with open(f"/proc/{pid}/limits") as file:
            limits = {line[:25].strip(): line[26:46].strip() for line in file}
        self.assertEqual(metric("process_max_fds"), int(limits["Max open files"]))
        self.assertEqual(metric("process_virtual_memory_max_bytes") >= 2**63, limits["Max address space"] == "unlimited")
        with self.server.socket(), self.server.socket():
            wait_until(lambda: metric("halyard_connections") >= 3, "the connections")
            wait_until(lambda: metric("process_open_fds") - 1 == len(os.listdir(f"/proc/{pid}/fd")), "its own connection to close")
        self.assertGreater(metric("process_virtual_memory_bytes"), metric("process_resident_memory_bytes"))
        self.assertGreater(metric("process_resident_memory_bytes"), 1 << 20)
        before = metric("process_cpu_seconds_total")
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        hertz = os.sysconf("SC_CLK_TCK")
        ticks = (int(fields[11]) + int(fields[12])) / hertz
        self.assertLessEqual(before, ticks)
        self.assertLessEqual(ticks, metric("process_cpu_seconds_total"))
        with open("/proc/stat") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
        self.assertAlmostEqual(metric("process_start_time_seconds"), boot + int(fields[19]) / hertz)
        version = self.server.get("/v2")[2]["version"]
        text = self.server.get("/metrics")[2].decode()
        self.assertRegex(text, rf'\nhalyard_build_info{{version="{re.escape(version)}",compiler="(GCC|Clang) [^"]+",arch="\w+"}} 1\n')

    @unittest.skipIf(text_string_to_metric_families is None, "python3-prometheus-client is not installed")
    def test_metrics_as_prometheus_reads_them(self):
        families = {family.name: family for family in text_string_to_metric_families(self.server.get("/metrics")[2].decode())}
        self.assertEqual(families["process_cpu_seconds"].type, "counter")
        self.assertEqual(families["process_open_fds"].type, "gauge")
        self.assertEqual(families["halyard_build_info"].samples[0].value, 1)
        self.assertEqual(families["halyard_model_request_seconds"].type, "histogram")

    def test_the_page_loads_nothing_from_elsewhere(self):
        status, headers, page = self.server.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotRegex(page.decode(), r"(src|href)=.?(https?:)?//")
