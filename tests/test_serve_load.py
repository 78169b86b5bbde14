"""vm-serve under load: limits of time, memory and connections, models that fail, batches."""
import json
import os
import random
import socket
import struct
from concurrent.futures import Future, ThreadPoolExecutor

import encoder
import serve_client
from serve_case import ENCODER, MUL, Folder, binary_mul, mul, post, raw, read_all, start
from vmrun import wait_until
from serve_client import ask, binary_request, binary_response, packed, tensor


class Limits(Folder):
    def loop(self):
        return self.write("loop.vmasm", serve_client.LOOP_MODULE)

    def test_a_model_that_loops_is_stopped(self):
        with start(f"--model=loop={self.loop()}", f"--model=mul={MUL}", "--threads=1", "--request_timeout=6s") as server:
            for _ in range(2):
                status, document = server.infer("loop", [tensor("input0", "INT32", [1])])
                self.assertEqual((status, list(document)), (504, ["error"]))
                self.assertEqual(server.infer("loop", [tensor("input0", "INT32", [0])])[0], 200)
            self.assertEqual(server.metric('halyard_model_requests_total{model="loop",version="1",outcome="timeout"}'), 2)

    def test_a_quick_model_that_loops_is_stopped(self):
        """Quick calls run on the thread that has read the request; its time limit holds nevertheless."""
        with start(f"--model=loop={self.loop()}", f"--model=mul={MUL}", "--threads=1", "--request_timeout=8s") as server:
            connection = server.connect()

            def infer(value):
                return ask(connection, "/v2/models/loop/infer", "POST", json.dumps({"inputs": [tensor("input0", "INT32", [value])]}))[0]

            for _ in range(200):
                self.assertEqual(infer(0), 200)
            self.assertEqual(infer(1), 504)
            # Other requests are answered meanwhile, and the long one can be cancelled.
            gone = server.socket()
            for _ in range(200):
                self.assertEqual(infer(0), 200)
            gone.sendall(post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer"))
            wait_until(lambda: server.metric('halyard_model_calls{model="loop",version="1"}') == 1, "the call")
            self.assertEqual(server.get("/v2/health/live")[0], 200)
            gone.close()
            wait_until(lambda: server.metric('halyard_model_calls{model="loop",version="1"}') == 0, "the call to end")
            connection.close()

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

    def test_clients_that_go_away_make_room(self):
        path = os.path.join(self.folder, "socket")
        with start(f"--model=loop={self.loop()}", "--threads=2", "--contexts=1", "--queue=1", f"--unix_socket={path}", "--port=0",
                   expect=2) as server:
            labels = 'model="loop",version="1"'
            request = post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer")

            def unix():
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(path)
                return connection

            for round, connect in enumerate((server.socket, unix)):
                running, waiting = connect(), connect()
                running.sendall(request)
                wait_until(lambda: server.metric(f"halyard_model_calls{{{labels}}}") == 1, "the call")
                waiting.sendall(request)
                wait_until(lambda: server.metric(f"halyard_model_queue_length{{{labels}}}") == 1, "the request to wait")
                self.assertEqual(server.infer("loop", [tensor("input0", "INT32", [0])])[0], 503)
                waiting.close()
                wait_until(lambda: server.metric(f"halyard_model_queue_length{{{labels}}}") == 0, "the place in the queue")
                running.close()
                wait_until(lambda: server.metric(f"halyard_model_calls{{{labels}}}") == 0, "the call to end")
                self.assertEqual(server.infer("loop", [tensor("input0", "INT32", [0])])[0], 200)
                self.assertEqual(server.metric(f'halyard_model_requests_total{{{labels},outcome="cancelled"}}'), 2 * (round + 1))
                self.assertEqual(server.metric('halyard_responses_total{status="499"}'), 2 * (round + 1))

    def test_a_client_that_closes_its_side_gets_its_answer(self):
        with start(f"--model=loop={self.loop()}", "--request_timeout=1s") as server:
            request = post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer")
            answer = raw(server, request).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.assertTrue(answer.startswith(b"HTTP/1.1 504"), answer)
            answer = raw(server, request.replace(b"HTTP/1.1", b"HTTP/1.0"))  # which has no interim responses
            self.assertTrue(answer.startswith(b"HTTP/1.1 504"), answer)
            self.assertEqual(server.metric('halyard_model_requests_total{model="loop",version="1",outcome="timeout"}'), 2)

    def test_bodies_that_are_too_large(self):
        with start(f"--model=mul={MUL}", "--max_body=1KB", "--max_request_memory=1MiB") as server:
            self.assertEqual(server.infer("mul", **mul([1] * 50, [1] * 50))[0], 200)
            self.assertEqual(server.infer("mul", **mul([1] * 500, [1] * 500))[0], 413)
            self.assertTrue(raw(server, b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n")
                            .startswith(b"HTTP/1.1 413"))
            chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
            answer = raw(server, b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + 100 * chunk)
            self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer)

    def test_memory_for_requests(self):
        with start(f"--model=mul={MUL}", "--max_request_memory=100KB") as server:
            self.assertEqual(server.infer("mul", **mul([1] * 50, [1] * 50))[0], 200)
            status, headers, _ = server.get("/v2/models/mul/infer", "POST", json.dumps(mul([1] * 9000, [1] * 9000)))
            self.assertEqual((status, headers["Retry-After"]), (503, "1"))
            wait_until(lambda: server.metric("halyard_request_memory_bytes") == 0, "the memory to be given back")
        # Chunks of a byte need no more than their bytes.
        with start(f"--model=mul={MUL}", "--max_request_memory=1MiB") as server:
            body = json.dumps(mul([1] * 50, [1] * 50)).encode()
            chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
            answer = raw(server, b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
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


class Batches(Folder):
    def answers(self, model, path, output, requests, *flags):
        """The answers to these requests at once, by their number; and how many calls they took."""
        found = {}
        with start(f"--model={model}={path}", "--threads=1", "--request_timeout=10min", *flags) as server:
            def client(number):
                body, headers = binary_request(requests[number], id=str(number), parameters={"binary_data_output": True})
                status, headers, answer = server.get(f"/v2/models/{model}/infer", "POST", body, headers)
                document, tensors = binary_response(headers, answer)
                found[number] = (status, document["id"], document["outputs"][0]["shape"], tensors[output])

            with ThreadPoolExecutor(len(requests)) as threads:
                list(threads.map(client, range(len(requests))))  # raises their errors
            calls = server.metric(f'halyard_model_call_seconds_count{{model="{model}",version="1"}}')
        return found, calls

    def check_same(self, model, path, output, requests, flags, batch):
        """Batches give the bits that the requests give alone, which are returned."""
        alone, calls = self.answers(model, path, output, requests, *flags)
        self.assertEqual(calls, len(requests))
        batched, calls = self.answers(model, path, output, requests, *flags, batch, "--batch_delay=1s")
        self.assertLess(calls, len(requests))
        self.assertEqual(alone, batched)
        return alone

    def test_the_same_bits(self):
        generator = random.Random(3)
        values = [[generator.uniform(-1e3, 1e3) for _ in range(generator.randrange(1, 9))] for _ in range(64)]
        requests = [[(name, "FP32", [len(given)], packed("FP32", given)) for name, given in (("input0", row), ("input1", row[::-1]))]
                    for row in values]
        alone = self.check_same("mul", MUL, "output0", requests, ["--queue=1000"], "--batch=mul=1000")
        self.assertEqual({number: answer[2] for number, answer in alone.items()}, {n: [len(row)] for n, row in enumerate(values)})

    def test_a_transformer(self):
        """A layer whose first dimension is the batch: the bits are those of a request alone, and the numbers are right."""
        generator = random.Random(7)
        values = [[generator.uniform(-2, 2) for _ in range(encoder.FEATURES)] for _ in range(12)]
        requests = [[("tokens", "FP32", [1, encoder.FEATURES], packed("FP32", row))] for row in values]
        alone = self.check_same("encoder", ENCODER, "encoded", requests, [], "--batch=4")
        given = struct.unpack(f"<{len(values[0])}f", packed("FP32", values[0]))
        for found, expected in zip(struct.unpack(f"<{len(given)}f", alone[0][3]), encoder.encode(given), strict=True):
            self.assertAlmostEqual(found, expected, delta=1e-4)

    def test_one_client_of_a_batch_goes_away(self):
        """The call that both are part of goes on for the other. Interpreted: compiled, it would be over at once. On a busy machine the call
        may have ended before the client goes away; then all begins anew."""
        for one_goes in (True, False):
            self.assertTrue(any(self.clients_of_a_batch_go_away(one_goes) for _ in range(20)), "the calls were over too early")

    def clients_of_a_batch_go_away(self, one_goes):
        """One of the two, or both. False: the call was over before they did."""
        slow = self.write("slow.vmasm", serve_client.SLOW_ECHO_MODULE)
        labels = 'model="slow",version="1"'
        with start(f"--model=slow={slow}", "--threads=1", "--jit=off", "--batch=2", "--batch_delay=1000min", "--request_timeout=10min") as server:
            def ended(outcome):
                return server.metric(f'halyard_model_requests_total{{{labels},outcome="{outcome}"}}')

            clients = [server.socket(), server.socket(600)]
            for connection, value in zip(clients, (1, 2)):
                connection.sendall(post({"inputs": [tensor("x", "FP32", [value])]}, "/v2/models/slow/infer", "Connection: close\r\n"))
            wait_until(lambda: server.metric(f"halyard_model_calls{{{labels}}}") == 1 or ended("success") == 2, "the call")
            gone = clients[:1] if one_goes else clients
            for connection in gone:
                connection.close()
            wait_until(lambda: ended("cancelled") == len(gone) or ended("cancelled") + ended("success") == 2, "the requests to end")
            if ended("cancelled") == len(gone) and one_goes:
                self.assertIn(b'"data":[2]', read_all(clients[1]))
                self.assertEqual(server.metric(f"halyard_model_batch_rows_sum{{{labels}}}"), 2)
            clients[1].close()
            return ended("cancelled") == len(gone)

    def test_contexts_share_what_waits(self):
        """A context takes its share of the rows that wait, not all of them. Interpreted, so that all wait before a call ends, if the machine
        is not busy."""
        # Two calls of one row, then 4 of the 6 that wait beside one that still runs, then the other 2; or 3 and 3.
        calls = []
        while (4, 4) not in calls:
            self.assertLess(len(calls), 20, calls)
            calls.append(self.calls_of_eight_requests())

    def calls_of_eight_requests(self):
        """The calls of at most 4 rows, and all calls."""
        slow = self.write("slow.vmasm", serve_client.SLOW_ECHO_MODULE)
        labels = 'model="slow",version="1"'
        with start(f"--model=slow={slow}", "--threads=2", "--jit=off", "--batch=16", "--request_timeout=10min") as server:
            def rows(most):
                return server.metric(f'halyard_model_batch_rows_bucket{{{labels},le="{most}"}}')

            def client(number):
                return server.infer("slow", [tensor("x", "FP32", [number])])[1]["outputs"][0]["data"]

            with ThreadPoolExecutor(8) as threads:
                running = [threads.submit(client, number) for number in range(2)]
                wait_until(lambda: server.metric(f"halyard_model_calls{{{labels}}}") == 2 or any(map(Future.done, running)), "both calls")
                waiting = [threads.submit(client, number) for number in range(2, 8)]
                self.assertEqual([answer.result() for answer in running + waiting], [[number] for number in range(8)])
            return rows(4), rows("+Inf")

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

            with ThreadPoolExecutor(8) as threads:
                list(threads.map(client, range(8)))  # raises their errors
            self.assertEqual(outcomes, {number: 400 if number == 3 else 200 for number in range(8)})
