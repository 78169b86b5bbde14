"""vm-serve facing clients that are hostile, in a hurry, or in a browser: what they get, and what others get meanwhile."""
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import zlib

import hostile
import serve_client
import vmrun
from serve_case import MUL, PROGRAM, Folder, binary_mul, mul, post, raw, read_all, resident, start
from vmrun import wait_until
from serve_client import binary_request, binary_response, packed, tensor

COUNT = 1000
CONNECTIONS = "halyard_connections"
MEMORY = "halyard_request_memory_bytes"


class HostileConnections(Folder):
    def test_a_good_client_beside_a_thousand_of_each_kind(self):
        for kind in hostile.KINDS:
            with self.subTest(kind), start(f"--model=mul={MUL}", "--max_request_memory=64MiB", "--idle_timeout=10min") as server:
                connection = server.connect()
                alone = hostile.good_requests(connection, 200)
                with hostile.Hostile(kind, server.port, COUNT) as others:
                    if others.is_kept:
                        wait_until(lambda: server.metric(CONNECTIONS) >= COUNT, "the connections")
                    beside = hostile.good_requests(connection, 200, others.poke)
                    print(f"{kind}: p99 {1e6 * hostile.percentile(alone, .99):.0f} us alone, {1e6 * hostile.percentile(beside, .99):.0f} us beside")
                connection.close()
                wait_until(lambda: server.metric(CONNECTIONS) == 1, "the connections to end")
                wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")
                self.assertEqual(server.stop(), 0)


class Memory(Folder):
    def test_what_is_announced_takes_none(self):
        with start(f"--model=mul={MUL}", "--max_request_memory=1MiB") as server:
            body, headers = binary_mul([1], [2])
            head = int(headers["Inference-Header-Content-Length"])
            large = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": [4 << 20], "parameters": {"binary_data_size": 16 << 20}}
                                           for name in ("input0", "input1")]}).encode()
            announced = [(hostile.HEAD + b"Content-Length: 67108864\r\n\r\n"),
                         (hostile.HEAD + b"Content-Length: 67108864\r\nInference-Header-Content-Length: 60000000\r\n\r\n"),
                         (hostile.HEAD + b"Transfer-Encoding: chunked\r\nInference-Header-Content-Length: 60000000\r\n\r\n"),
                         (hostile.HEAD + b"Content-Length: %d\r\nInference-Header-Content-Length: %d\r\n\r\n"
                          % (len(large) + (32 << 20), len(large)) + large)]
            connections = []
            for request in 4 * announced:
                connections.append(server.socket())
                connections[-1].sendall(request)
            wait_until(lambda: server.metric(CONNECTIONS) == 1 + len(connections), "the connections")
            self.assertEqual(server.infer("mul", **mul([1] * 100, [2] * 100))[0], 200)
            self.assertEqual(server.get("/v2/models/mul/infer", "POST", body, headers)[0], 200)
            self.assertLess(server.metric(MEMORY), 1 << 19)
            self.assertGreater(head, 0)
            # Received bytes do take memory.
            connections[0].sendall(b" " * 300_000)
            wait_until(lambda: server.metric(MEMORY) >= 1 << 18, "the bytes")
            connections[0].sendall(b" " * (1 << 20))
            self.assertIn(b"HTTP/1.1 503", connections[0].recv(100))
            for connection in connections:
                connection.close()
            wait_until(lambda: server.metric(MEMORY) == 0, "the bytes to go")

    def test_answers_count_until_they_are_written(self):
        path = self.write("echo.vmasm", serve_client.echo_module("f32"))
        with start(f"--model=echo={path}", "--max_request_memory=24MiB", "--threads=1") as server:
            data = os.urandom(1024) * (8 << 10)
            body, headers = binary_request([("x", "FP32", [len(data) // 4], data)], parameters={"binary_data_output": True})
            request = post(body, "/v2/models/echo/infer", f"Inference-Header-Content-Length: {headers['Inference-Header-Content-Length']}\r\n")
            deaf = []
            for i in range(12):
                connection = socket.socket()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.connect(("127.0.0.1", server.port))
                deaf.append(connection)
                try:
                    connection.sendall(request)
                except OSError:
                    pass  # refused before the whole body had come
                wait_until(lambda: sum(server.metric(f'halyard_responses_total{{status="{status}"}}') for status in (503,))
                           + server.metric('halyard_model_requests_total{model="echo",version="1",outcome="success"}') > i, "an answer")
            self.assertGreaterEqual(server.metric(MEMORY), 8 << 20)
            self.assertLessEqual(server.metric(MEMORY), 24 << 20)
            self.assertLess(resident(server), 120 << 20)  # 12 answers would be 96 MiB, and their requests as much
            self.assertGreater(server.metric('halyard_responses_total{status="503"}'), 0)
            for connection in deaf:
                connection.close()
            wait_until(lambda: server.metric(MEMORY) == 0, "the answers to go")
            status, headers, answer = server.get("/v2/models/echo/infer", "POST", body, headers)
            self.assertEqual(status, 200)
            self.assertTrue(binary_response(headers, answer)[1]["y"] == data)

    def test_json_takes_what_is_reserved_in_every_order(self):
        path = self.write("echo.vmasm", serve_client.echo_module("f64"))
        count = 1 << 20
        data = b"[" + b",".join([b"1"] * count) + b"]"
        for form in (b'{"inputs":[{"name":"x","datatype":"FP64","shape":[%d],"data":%s}]}', b'{"inputs":[{"data":%s,"name":"x","datatype":"FP64","shape":[%d]}]}'):
            with start(f"--model=echo={path}", "--max_request_memory=64MiB", "--threads=1") as server:
                body = form % ((count, data) if form.startswith(b'{"inputs":[{"name"') else (data, count))
                before = resident(server)
                with open(f"/proc/{server.process.pid}/clear_refs", "w") as file:
                    file.write("5")  # the peak counts from now on
                status, _, document = server.get("/v2/models/echo/infer", "POST", body[:-2] + b"!}")
                self.assertEqual(status, 400)
                with open(f"/proc/{server.process.pid}/status") as file:
                    peak = int(next(line for line in file if line.startswith("VmHWM")).split()[1]) << 10
                self.assertLess(peak - before, len(body) + 8 * count + (8 << 20))  # text, elements, and the rest of the process
                status, _, document = server.get("/v2/models/echo/infer", "POST", body)
                self.assertEqual((status, len(document["outputs"][0]["data"])), (200, count))


class Compressed(Folder):
    def test_gzip_and_deflate(self):
        body = json.dumps(mul([1, 2.5], [10, 4])).encode()
        binary, headers = binary_mul([1, 2.5], [10, 4], parameters={"binary_data_output": True})
        with start(f"--model=mul={MUL}") as server:
            for coding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress), ("GZIP", gzip.compress), ("identity", bytes)):
                status, _, document = server.get("/v2/models/mul/infer", "POST", pack(body), {"Content-Encoding": coding})
                self.assertEqual((status, document["outputs"][0]["data"]), (200, [10, 10]), document)
                # The length of the JSON object is that before compression, as Triton's clients send it.
                status, answered, answer = server.get("/v2/models/mul/infer", "POST", pack(binary), {**headers, "Content-Encoding": coding})
                self.assertEqual((status, binary_response(answered, answer)[1]["output0"]), (200, packed("FP32", [10, 10])))
                # In chunks of three bytes, and the next request is read from its beginning.
                data = pack(body)
                chunks = b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + 3]), data[i:i + 3]) for i in range(0, len(data), 3)) + b"0\r\n\r\n"
                answers = raw(server, hostile.HEAD + b"Content-Encoding: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % coding.encode() + chunks
                              + b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertEqual(answers.count(b"HTTP/1.1 200"), 2, answers)
            for coding, data in (("gzip", body), ("deflate", gzip.compress(body)), ("gzip", zlib.compress(body)), ("gzip", gzip.compress(body)[:-1]),
                                 ("gzip", b""), ("deflate", zlib.compress(body) + b"x")):
                status, _, document = server.get("/v2/models/mul/infer", "POST", data, {"Content-Encoding": coding})
                self.assertEqual((status, "Content-Encoding" in document["error"]), (400, True), document)
            for size in (len(binary) + 1, int(headers["Inference-Header-Content-Length"]) - 1):
                self.assertEqual(server.get("/v2/models/mul/infer", "POST", gzip.compress(binary), {
                    "Content-Encoding": "gzip", "Inference-Header-Content-Length": str(size)})[0], 400)
            self.assertEqual(server.get("/v2/models/mul/infer", "POST", gzip.compress(binary + b"x"), {**headers, "Content-Encoding": "gzip"})[0], 400)
            status, headers, _ = server.get("/v2/models/mul/infer", "POST", body, {"Content-Encoding": "br"})
            self.assertEqual((status, headers["Accept-Encoding"]), (415, "gzip, deflate"))
            answer = raw(server, hostile.HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks)
            self.assertTrue(answer.startswith(b"HTTP/1.1 501") and b"gzip, chunked" in answer and b"Connection: close" in answer, answer)
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")

    def test_the_answer_does_not_depend_on_the_pieces(self):
        """A body that becomes too large before a byte that is malformed is too large, however its bytes arrive."""
        packer = zlib.compressobj()
        head = packer.compress(bytes(3000)) + packer.flush(zlib.Z_FULL_FLUSH)
        with start(f"--model=mul={MUL}", "--max_body=2KiB") as server:
            for data, status in ((head + b"\xff" * 8, b"413"), (zlib.compress(bytes(1000))[:-5] + b"\xff" * 8, b"400")):
                answers = set()
                for piece in (1, 3, len(data)):
                    chunks = b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + piece]), data[i:i + piece]) for i in range(0, len(data), piece))
                    answers.add(raw(server, hostile.HEAD + b"Content-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
                                    + b"0\r\n\r\n").split(b"\r\n\r\n")[1])
                    self.assertEqual(len(answers), 1, answers)
                answer = raw(server, hostile.HEAD + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                self.assertTrue(answer.startswith(b"HTTP/1.1 " + status), answer)
                self.assertEqual({answer.split(b"\r\n\r\n")[1]}, answers)

    def test_decompression_bombs(self):
        bomb = gzip.compress(b" " * (300 << 20), 9)
        self.assertLess(len(bomb), 1 << 20)
        with start(f"--model=mul={MUL}", "--max_body=100MiB", "--max_request_memory=32MiB") as server:
            self.assertEqual(server.get("/v2/models/mul/infer", "POST", bomb, {"Content-Encoding": "gzip"})[0], 503)
            self.assertLess(resident(server), 100 << 20)
        with start(f"--model=mul={MUL}", "--max_body=1MiB") as server:
            self.assertEqual(server.get("/v2/models/mul/infer", "POST", bomb, {"Content-Encoding": "gzip"})[0], 413)
            self.assertLess(resident(server), 100 << 20)
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")


class CompressedAnswers(Folder):
    def ask(self, server, path, coding, body=None, headers=(), method=None):
        """(headers, body as sent); the status has to be 200."""
        connection = server.connect()
        connection.request(method or ("POST" if body else "GET"), path, body, {"Accept-Encoding": coding, **dict(headers)} if coding else dict(headers))
        response = connection.getresponse()
        data = response.read()
        connection.close()
        self.assertEqual(response.status, 200, data)
        return dict(response.getheaders()), data

    def test_gzip_and_deflate(self):
        values = [float(i % 100) for i in range(100_000)]
        body = json.dumps(mul(values, [2] * len(values))).encode()
        binary, binary_headers = binary_mul(values, [2] * len(values), parameters={"binary_data_output": True})
        unpack = {"gzip": gzip.decompress, "deflate": zlib.decompress}
        with start(f"--model=mul={MUL}") as server:
            for path, sent, headers in (("/v2/models/mul/infer", body, {}), ("/v2/models/mul/infer", binary, binary_headers), ("/", None, {})):
                plain_headers, plain = self.ask(server, path, "", sent, headers)
                self.assertNotIn("Content-Encoding", plain_headers)
                self.assertEqual(plain_headers["Vary"], "Accept-Encoding")
                for accepted, coding in (("gzip", "gzip"), ("deflate", "deflate"), ("gzip;q=0.5, deflate", "deflate"), ("br, *", "gzip")):
                    got, packed_body = self.ask(server, path, accepted, sent, headers)
                    self.assertEqual(got["Content-Encoding"], coding)
                    self.assertLess(len(packed_body), len(plain) / 2)
                    self.assertEqual(unpack[coding](packed_body), plain)
                    # The length of the JSON object is that before compression.
                    self.assertEqual(got.get("Inference-Header-Content-Length"), plain_headers.get("Inference-Header-Content-Length"))
                for accepted in ("identity", "gzip;q=0", "br", "gzip;q=2"):
                    self.assertEqual(self.ask(server, path, accepted, sent, headers)[1], plain)
            # Both directions at once.
            got, answer = self.ask(server, "/v2/models/mul/infer", "gzip", gzip.compress(body), {"Content-Encoding": "gzip"})
            self.assertEqual(json.loads(gzip.decompress(answer))["outputs"][0]["data"], [2 * value for value in values])
            got, answer = self.ask(server, "/metrics", "gzip")
            self.assertIn(b"halyard_build_info", gzip.decompress(answer))
            # A header without a body, and bodies that fit in a packet.
            self.assertNotIn("Content-Encoding", self.ask(server, "/", "gzip", method="HEAD")[0])
            self.assertNotIn("Content-Encoding", self.ask(server, "/v2", "gzip")[0])
            wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")

    def test_what_does_not_become_smaller(self):
        path = self.write("echo.vmasm", serve_client.echo_module("f32"))
        with start(f"--model=echo={path}") as server:
            for size in (1 << 12, 1 << 20):
                data = os.urandom(size)
                body, headers = binary_request([("x", "FP32", [size // 4], data)], parameters={"binary_data_output": True})
                got, answer = self.ask(server, "/v2/models/echo/infer", "gzip", body, headers)
                self.assertNotIn("Content-Encoding", got)
                self.assertEqual(binary_response(got, answer)[1]["y"], data)

    def test_memory(self):
        """An answer is sent as it is if there is no memory for both of its forms."""
        path = self.write("echo.vmasm", serve_client.echo_module("f32"))
        size = 4 << 20
        body, headers = binary_request([("x", "FP32", [size // 4], bytes(size))], parameters={"binary_data_output": True})
        for limit, is_packed in (("6MiB", False), ("64MiB", True)):
            with start(f"--model=echo={path}", f"--max_request_memory={limit}", "--threads=1") as server:
                got, answer = self.ask(server, "/v2/models/echo/infer", "gzip", body, headers)
                self.assertEqual("Content-Encoding" in got, is_packed)
                answer = gzip.decompress(answer) if is_packed else answer
                self.assertEqual(binary_response(got, answer)[1]["y"], bytes(size))
                wait_until(lambda: server.metric(MEMORY) == 0, "the memory to be given back")

    def test_clients_of_others(self):
        """curl, and the fetch of Node.js, ask for compressed answers and decode them."""
        values = list(range(5000))
        body = json.dumps(mul(values, [3] * len(values)))
        request = self.write("request.json", body)
        fetch = ("fetch(process.argv[1], {method: 'POST', body: require('fs').readFileSync(process.argv[2])}).then(async answer => "
                 "console.log(answer.headers.get('content-encoding'), JSON.stringify(await answer.json())))")
        with start(f"--model=mul={MUL}", "--log_requests") as server:
            url = f"http://127.0.0.1:{server.port}/v2/models/mul/infer"
            for tool, command in (("curl", ["curl", "-sS", "--compressed", "-w", "%{size_download}", "-d", f"@{request}", url]),
                                  ("node", ["node", "-e", fetch, url, request])):
                if not shutil.which(tool):
                    continue
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=vmrun.TIMEOUT, check=True).stdout
                document = json.loads(done[done.index("{"):done.rindex("}") + 1])
                self.assertEqual(document["outputs"][0]["data"], [3 * value for value in values])
                if tool == "node":
                    self.assertTrue(done.startswith("gzip "), done[:20])
                else:
                    self.assertLess(int(done[done.rindex("}") + 1:]), len(json.dumps(document)) / 2)


class Framing(Folder):
    def test_a_request_that_may_end_elsewhere_is_the_last(self):
        hidden = b"GET /v2/models/HIDDEN HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with start(f"--model=mul={MUL}") as server:
            for lines, statuses in ((b"Transfer-Encoding: gzip", (400,)), (b"Transfer-Encoding: identity", (400,)), (b"Transfer-Encoding: xchunked", (400,)),
                                    (b"Transfer-Encoding: chunked, identity", (400,)), (b'Transfer-Encoding: "chunked"', (400,)),
                                    (b"Transfer-Encoding: chunked, chunked", (400,)), (b"Transfer-Encoding: gzip, chunked", (501,)),
                                    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", (400,)),
                                    (b"Transfer-Encoding: gzip\r\nContent-Length: 2", (400,)), (b"Content-Length: 2\r\nTransfer-Encoding: gzip", (400,)),
                                    (b"Content-Length: 2, 2", (400,)), (b"Content-Length: 2\r\nContent-Length: 2", (400,)),
                                    (b"Content-Length: +2", (400,)), (b"Content-Length: 2x", (400,)), (b"Expect: 1-continue", (417,))):
                for path in (b"/v2/models/mul/infer", b"/v2/health/live"):
                    answer = raw(server, b"POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % (path, lines) + hidden)
                    self.assertIn(int(answer[9:12]), statuses, (lines, answer))
                    self.assertIn(b"Connection: close\r\n", answer)
                    self.assertNotIn(b"HIDDEN", answer, lines)
                    self.assertEqual(answer.count(b"Server: halyard\r\n"), 1, answer)


class Browsers(Folder):
    def ask(self, server, host="localhost", origin=None, method=b"GET", path=b"/v2/health/live", extra=b""):
        lines = b"" if origin is None else b"Origin: %s\r\n" % origin.encode()
        answer = raw(server, b"%s %s HTTP/1.1\r\nHost: %s\r\n%s%sConnection: close\r\n\r\n" % (method, path, host.encode(), lines, extra))
        return int(answer[9:12]), answer

    def test_names_of_the_loopback_interface(self):
        with start(f"--model=mul={MUL}") as server:
            for host in ("localhost", f"localhost:{server.port}", "127.0.0.1", "[::1]:80", "a.localhost"):
                self.assertEqual(self.ask(server, host)[0], 200, host)
            for host in ("evil.example", f"evil.example:{server.port}", "x", "127.0.0.1.evil.example", "10.0.0.1"):
                self.assertEqual(self.ask(server, host)[0], 421, host)
                self.assertEqual(self.ask(server, "localhost", path=b"http://%s/v2" % host.encode())[0], 421, host)
            self.assertEqual(self.ask(server, "a b")[0], 400)
            self.assertTrue(raw(server, b"GET /v2 HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200"))
        with start(f"--model=mul={MUL}", "--allow_host=models.example.com") as server:
            self.assertEqual((self.ask(server, "models.example.com:80")[0], self.ask(server, "evil.example")[0]), (200, 421))
        with start(f"--model=mul={MUL}", "--allow_host=*") as server:
            self.assertEqual(self.ask(server, "evil.example")[0], 200)
        with start(f"--model=mul={MUL}", "--host=0.0.0.0") as server:  # for other machines, which know this one by other names
            self.assertEqual(self.ask(server, "models.example.com")[0], 200)

    def test_pages_of_other_origins(self):
        body = json.dumps(mul([2], [3])).encode()
        inference = dict(method=b"POST", path=b"/v2/models/mul/infer")
        with start(f"--model=mul={MUL}", "--allow_origin=https://friend.example") as server:
            own = f"localhost:{server.port}"
            self.assertEqual(self.ask(server, own, f"http://{own}")[0], 200)
            for origin in ("http://evil.example", "https://friend.example.evil.example", "http://friend.example", "null", "http://localhost:1"):
                status, answer = self.ask(server, own, origin, extra=b"Content-Length: 0\r\n", **inference)
                self.assertEqual((status, b"Access-Control" in answer), (403, False), answer)
                self.assertEqual(self.ask(server, own, origin, method=b"OPTIONS", path=b"/v2/models/mul/infer")[0], 403)
            status, answer = self.ask(server, own, "https://friend.example", method=b"OPTIONS", path=b"/v2/models/mul/infer",
                                      extra=b"Access-Control-Request-Method: POST\r\n")
            self.assertEqual((status, b"Access-Control-Allow-Methods: GET, HEAD, POST\r\n" in answer), (200, True), answer)
            answer = raw(server, post(body, headers="Origin: https://friend.example\r\nConnection: close\r\n"))
            self.assertIn(b"Access-Control-Allow-Origin: https://friend.example\r\n", answer)
            self.assertIn(b'"data":[6]', answer)
            self.assertEqual(server.metric('halyard_model_requests_total{model="mul",version="1",outcome="success"}'), 1)


class Life(Folder):
    def test_hangup_as_soon_as_it_says_that_it_listens(self):
        for _ in range(5):
            with start(f"--model=mul={MUL}") as server:
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: server.metric("halyard_reloads_total") == 1, "the reload")

    def test_signals_while_the_first_models_are_loaded(self):
        path = self.write("loop.vmasm", serve_client.LOOP_AT_START_MODULE)
        for number in (signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen([PROGRAM, f"--model=loop={path}", "--port=0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until(lambda: int(self.status_of(process, "SigCgt"), 16) >> (signal.SIGHUP - 1) & 1, "its handlers")
            process.send_signal(signal.SIGHUP)
            process.send_signal(number)
            self.assertEqual(process.wait(vmrun.TIMEOUT), 128 + number)

    @staticmethod
    def status_of(process, name):
        with open(f"/proc/{process.pid}/status") as file:
            return next(line for line in file if line.startswith(name + ":")).split()[1]

    def test_a_model_that_never_loads(self):
        self.write("x/1/model.vmasm", serve_client.echo_module("f32"))
        flags = [f"--models={self.folder}", "--drain_timeout=1s"]
        for signals, code in ((1, 0), (2, 128 + signal.SIGTERM)):
            with start(*flags, *(["--drain_timeout=10min"] if signals == 2 else [])) as server:
                self.write("a/1/model.vmasm", serve_client.LOOP_AT_START_MODULE)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: server.metric("halyard_reloads_total") == 0 and server.get("/v2/health/live")[0] == 200, "the reload to begin")
                wait_until(lambda: self.a_thread_computes(server), "the initializer")
                server.process.send_signal(signal.SIGTERM)
                if signals == 2:
                    wait_until(lambda: server.events("draining"), "the first signal")
                    server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.stop(None), code)
                if signals == 1:
                    self.assertEqual(len(server.events("load_abandoned")), 1)
            os.remove(os.path.join(self.folder, "a/1/model.vmasm"))
        # With a limit, the server reports that this model could not be loaded, and serves the others.
        self.write("a/1/model.vmasm", serve_client.LOOP_AT_START_MODULE)
        with start(*flags, "--load_timeout=6s") as server:
            wait_until(lambda: server.events("model_failed"), "the log")
            self.assertIn("DEADLINE_EXCEEDED", server.events("model_failed")[0]["error"])
            self.assertEqual(server.infer("x", [tensor("x", "FP32", [1])])[0], 200)
            self.assertEqual(server.infer("a", [tensor("input0", "INT32", [1])])[0], 503)

    def a_thread_computes(self, server):
        """Whether a thread of the server has computed for half a second, as one does that loads a loop."""
        folder = f"/proc/{server.process.pid}/task"
        ticks = []
        for task in os.listdir(folder):
            ticks.append(int(vmrun.read_text(os.path.join(folder, task, "stat")).rsplit(")", 1)[1].split()[11]))  # utime
        return max(ticks) >= os.sysconf("SC_CLK_TCK") / 2

    def test_files_of_a_model_that_are_none(self):
        self.write("x/1/model.vmasm", serve_client.echo_module("f32"))
        for name in ("a/1/model.json", "b/1/model.irpa"):
            self.write(os.path.dirname(name) + "/model.vmasm", serve_client.echo_module("f32"))
            os.mkfifo(os.path.join(self.folder, name))
        os.makedirs(os.path.join(self.folder, "c/1"))
        os.mkfifo(os.path.join(self.folder, "c/1/model.vmfb"))
        with start(f"--models={self.folder}") as server:
            self.assertEqual(server.infer("x", [tensor("x", "FP32", [1])])[0], 200)
            wait_until(lambda: len(server.events("model_failed")) == 3, "the log")
            failed = server.events("model_failed")
            self.assertEqual([each["model"] for each in failed], ["a", "b", "c"])
            for each in failed:
                self.assertIn("not a regular file", each["error"])
            status, _, document = server.get("/v2/models/a/infer", "POST", "{}")
            self.assertEqual(status, 503)
            self.assertNotIn(self.folder, document["error"])

    def test_a_limit_of_file_sizes(self):
        import resource
        path = os.path.join(self.folder, "trace")
        with open(os.path.join(self.folder, "log"), "w") as log:
            process = subprocess.Popen([PROGRAM, f"--model=mul={MUL}", "--port=0", "--log_requests", f"--trace={path}"], stdout=subprocess.PIPE,
                                       stderr=log, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            with socket.create_connection(("127.0.0.1", port), timeout=vmrun.TIMEOUT) as connection:
                for _ in range(200):
                    connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertTrue(connection.recv(1000).startswith(b"HTTP/1.1 200"))
                connection.sendall(post(mul([2], [3]), headers="Connection: close\r\n"))
                self.assertIn(b'"data":[6]', read_all(connection))
            process.terminate()
            self.assertIn(process.wait(vmrun.TIMEOUT), (0, 1))  # 1: the trace is not whole
            process.stdout.close()
