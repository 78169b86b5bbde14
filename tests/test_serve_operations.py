"""vm-serve in operation: start and end, sockets, reloads, logs, systemd, devices."""
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import serve_client
import vmrun
from perfetto import Trace
from serve_case import ELEMENTWISE, FIB, MUL, PROGRAM, Folder, mul, post, read_all, start
from vmrun import wait_until
from serve_client import UnixConnection, ask, tensor


class Operations(Folder):
    def test_what_cannot_start(self):
        for flags, said in (([], "no model given"), ([f"--model=mul={MUL}", "--models=/nowhere"], "/nowhere"),
                            ([f"--model=mul={self.folder}/none.vmfb"], "none.vmfb"), ([f"--model={MUL}"], "expected NAME"),
                            ([f"--model=a b={MUL}"], "expected NAME"), ([f"--model=mul={MUL}", f"--model=mul={MUL}"], "twice"),
                            ([f"--model=fib={FIB}"], "several functions: recursive, iterative"),
                            ([f"--model=fib:none={FIB}"], "no function 'none'"),
                            ([f"--model=mul={MUL}", "--port=65536"], "65535"), ([f"--model=mul={MUL}", "--host=no.such.host.invalid"], "--host"),
                            ([f"--model=mul={MUL}", "--batch=x"], "--batch=x"), ([f"--model=mul={MUL}", "--threads=0"], "--threads=0"),
                            ([f"--model=mul={MUL}", "--trace_rate=5"], "--trace=FILE")):
            done = vmrun.run("vm-serve", "--port=0", *flags)
            self.assertIsNone(vmrun.why_bad_failure(done, said), (flags, done.stderr))
        with start(f"--model=mul={MUL}") as server:
            done = vmrun.run("vm-serve", f"--model=mul={MUL}", f"--port={server.port}")
            self.assertIsNone(vmrun.why_bad_failure(done, "ALREADY_EXISTS", str(server.port)))

    def test_batches_that_have_no_effect(self):
        """A name that no model has, and models whose rows cannot be joined."""
        fixed = self.write("fixed.vmasm", serve_client.echo_module("f32").replace("?x", "4x"))
        loop = self.write("loop.vmasm", serve_client.LOOP_MODULE)
        self.write("folder/mul/1/model.vmasm", vmrun.read_text(MUL))
        self.write("folder/fixed/1/model.vmasm", vmrun.read_text(fixed))
        folder = os.path.join(self.folder, "folder")
        for flags, said in (([f"--model=mul={MUL}", "--batch=mull=8"], "--batch=mull=8: there is no model 'mull'; did you mean 'mul'?"),
                            ([f"--models={folder}", "--batch=fixd=8"], "did you mean 'fixed'?"),
                            ([f"--models={folder}", "--batch=fixed=8"], "input 'x' has the shape [4]"),
                            ([f"--model=fixed={fixed}", f"--model=mul={MUL}", "--batch=fixed=8"], "model 'fixed' cannot have batches of 8 rows"),
                            ([f"--model=fixed={fixed}", f"--model=loop={loop}", "--batch=8"], "--batch=8: no model can have batches: of model 'fixed'"),
                            ([f"--model=loop={loop}", "--batch=loop=2"], "input 'input0' is a number")):
            done = vmrun.run("vm-serve", "--port=0", *flags)
            self.assertIsNone(vmrun.why_bad_failure(done, said), (flags, done.stderr))
        # One row is no batch, and --batch of all models is for those that support it.
        for flags in ([f"--model=fixed={fixed}", "--batch=fixed=1", "--batch=1"], [f"--models={folder}", "--batch=8"]):
            with start(*flags) as server:
                self.assertEqual(server.infer("fixed", [tensor("x", "FP32", [1, 2, 3, 4])])[0], 200)
        # What model.json asks for is the model's own affair.
        self.write("folder/fixed/1/model.json", '{"batch": 8}')
        with start(f"--models={folder}") as server:
            self.assertEqual(server.infer("fixed", [tensor("x", "FP32", [1, 2, 3, 4])])[0], 503)
            self.assertEqual(server.infer("mul", **mul([2], [3]))[0], 200)
            wait_until(lambda: server.events("model_failed"), "the line of the model that failed")
            self.assertIn("cannot have batches", server.events("model_failed")[0]["error"])

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
                server.process.wait()
        with start(f"--model=mul={MUL}", f"--unix_socket={path}", "--port=0", expect=2) as server:
            self.assertEqual(server.get("/v2")[0], 200)
            self.assertEqual(server.stop(), 0)
            self.assertFalse(os.path.exists(path))

    def test_requests_that_have_begun_are_answered_at_the_end(self):
        loop = self.write("loop.vmasm", serve_client.LOOP_MODULE)
        with start(f"--model=loop={loop}", f"--model=mul={MUL}", "--request_timeout=8s") as server:
            idle = server.socket()
            running = server.socket()
            running.sendall(post({"inputs": [tensor("input0", "INT32", [1])]}, "/v2/models/loop/infer"))
            wait_until(lambda: server.metric('halyard_model_calls{model="loop",version="1"}') == 1, "the call")
            half = server.socket()
            body = json.dumps(mul([3], [5])).encode()
            half.sendall(post(body)[:-10])
            wait_until(lambda: server.metric("halyard_request_memory_bytes") >= len(body) - 10, "both requests")
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
        return vmrun.read_text(os.path.join(self.folder, name))

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
            wait_until(lambda: len(server.events("model_failed")) == 2, "the log")

            # A server that is busy loses no request.
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

            # A model whose new file does not load keeps its version, a removed model is gone, a repaired one is ready.
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

    def test_the_page_of_a_model_is_kept(self):
        """It is computed once for each version that is loaded, so it stays when the file changes, until that is loaded."""
        self.model("a", 1, 10)
        file = os.path.join(self.folder, "a/1/model.vmasm")
        with start(f"--models={self.folder}") as server:
            status, headers, first = server.get("/v2/models/a/page")
            self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
            text = vmrun.read_text(file)
            os.remove(file)
            for path in ("/v2/models/a/page", "/v2/models/a/versions/1/page"):
                self.assertEqual(server.get(path)[::2], (200, first))
            self.write("a/1/model.vmasm", text + "\n// changed\n")
            self.assertEqual(server.get("/v2/models/a/page")[::2], (200, first))
            reloads = server.metric("halyard_reloads_total")
            self.model("a", 1, 11)
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: server.metric("halyard_reloads_total") > reloads, "the reload")
            wait_until(lambda: self.ask_for(server, "a", 1) == (200, 11), "the new version")
            changed = server.get("/v2/models/a/page")[2]
            os.remove(file)
            self.assertEqual(server.get("/v2/models/a/page")[2], changed)

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
        self.write("fib/1/model.vmasm", vmrun.read_text(FIB))
        self.write("fib/1/model.json", '{"function": "recursive"}')
        self.write("wrong/1/model.json", '{"functions": []}')
        self.write("wrong/1/model.vmasm", vmrun.read_text(FIB))
        with start(f"--models={self.folder}") as server:
            self.assertEqual(self.ask_for(server, "fib", 20), (200, 6765))
            status, said = self.ask_for(server, "wrong")
            self.assertEqual(status, 503)
            self.assertNotIn("/", said)  # where things lie is for the log
            wait_until(lambda: server.events("model_failed"), "the log")
            self.assertIn('the member "functions" is unknown', server.events("model_failed")[0]["error"])

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

    def test_log_lines_name_client_model_and_trace(self):
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
        path = os.path.join(self.folder, "socket")
        with start(f"--model=mul={MUL}", f"--model=mul/7={MUL}", "--log_requests", f"--unix_socket={path}", "--port=0", expect=2) as server:
            connection = server.connect()
            for target, headers in (("/v2/models/mul/infer", {"traceparent": parent}), ("/v2/models/mul/versions/1/infer", {"traceparent": "nonsense"})):
                self.assertEqual(ask(connection, target, "POST", json.dumps(mul([2], [4])), headers)[0], 200)
            client = "%s:%d" % connection.sock.getsockname()
            connection.close()
            self.assertEqual(server.infer("none", [])[0], 404)
            connection = UnixConnection(path)
            self.assertEqual(ask(connection, "/v2/health/live")[0], 200)
            connection.close()
            self.assertEqual(server.stop(), 0)
            lines = {event["target"]: event for event in server.events("request")}
            latest, first = lines["/v2/models/mul/infer"], lines["/v2/models/mul/versions/1/infer"]
            self.assertEqual((latest["client"], latest["model"], latest["version"], latest["trace_id"]), (client, "mul", "7", parent.split("-")[1]))
            self.assertEqual((first["client"], first["model"], first["version"], "trace_id" in first), (client, "mul", "1", False))
            self.assertNotIn("answer", latest)
            wrong, live = lines["/v2/models/none/infer"], lines["/v2/health/live"]
            self.assertEqual((wrong["model"], "version" in wrong, "no model" in wrong["answer"]), ("none", False, True))
            self.assertEqual((live["client"], "model" in live), ("unix", False))

    def traced(self, flags, headers, model=("mul", ELEMENTWISE), device="--device=local-task"):
        """The trace of requests with these headers, one after another."""
        path = os.path.join(self.folder, "serve.perfetto")
        name, file = model
        with start(f"--model={name}={file}", device, f"--trace={path}", *flags) as server:
            connection = server.connect()
            for header in headers:
                status, _, document = ask(connection, f"/v2/models/{name}/infer", "POST", json.dumps(mul(list(range(8)), [3] * 8)),
                                          {"traceparent": header} if header else {})
                self.assertEqual((status, document["outputs"][0]["data"][7]), (200, 21))
            connection.close()
            if flags:  # the file can be read while the server runs
                wait_until(lambda: os.path.getsize(path) > 0 and [s for s in Trace(path).slices() if s.name.startswith(name + "/1")], "the file")
        return Trace(path)

    def test_traces_of_some_requests(self):
        sampled, unsampled = (f"00-4bf92f3577b34da6a3ce929d0e0e473{i}-00f067aa0ba902b7-0{i}" for i in (1, 0))
        names = ["mul/1 4bf92f3577b34da6a3ce929d0e0e4731"]
        for model in (("mul", ELEMENTWISE), ("mul", MUL)):
            for flags, headers, expected in ((["--trace_rate=0"], [None] * 5 + [sampled, unsampled, "nonsense"], names),
                                             (["--trace_rate=4"], [None] * 5 + [unsampled, sampled] + [None] * 3, names + 2 * ["mul/1"]),
                                             ([], [None, sampled, None], names + 2 * ["mul/1"])):
                trace = self.traced(flags, headers, model)
                slices = trace.slices()
                requests = [s for s in slices if s.name.startswith("mul/1")]
                self.assertEqual(sorted(s.name for s in requests), sorted(expected))
                for each in requests:
                    self.assertEqual(trace.tracks[each.track].name, "requests")
                    parts = [s for s in slices if s.track == each.track and each.begin <= s.begin and s.end <= each.end and s is not each]
                    self.assertEqual([s.name for s in sorted(parts, key=lambda s: s.begin) if s.name != "queue"], ["read", "call", "answer"])
                    self.assertTrue(all(s.depth == each.depth + 1 for s in parts))
                # What the others did is not there: neither their functions nor their dispatches.
                # A call that is resumed has a slice for each part, and a flow that leads to the later ones.
                calls = [s for s in slices if s.category == "machine" and not s.name.endswith("__init") and not s.flows]
                self.assertEqual(len(calls), len(expected), calls)
                if model[1] == ELEMENTWISE:
                    self.assertEqual(len([s for s in slices if s.name == "execute"]), len(expected), slices)
                    self.assertEqual({s.category for s in slices if s.category == "device"}, {"device"})

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_disk_for_logs(self):
        with open("/dev/full", "w") as full:
            process = subprocess.Popen([PROGRAM, f"--model=mul={MUL}", "--port=0", "--log_requests"], stdout=subprocess.PIPE, stderr=full, text=True)
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=vmrun.TIMEOUT) as connection:
                connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 200"))
        process.terminate()
        self.assertEqual(process.wait(vmrun.TIMEOUT), 0)
        process.stdout.close()

    def test_a_log_that_nobody_reads(self):
        with start(f"--model=mul={MUL}") as quick:
            quick.stop()
        process = subprocess.Popen([PROGRAM, f"--model=mul={MUL}", "--port=0", "--log_requests"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        port = int(process.stdout.readline().decode().rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=vmrun.TIMEOUT) as connection:
            for _ in range(20):
                connection.sendall(b"GET /v2/x HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
                received = 0
                while received < 500:
                    received += connection.recv(1 << 20).count(b"HTTP/1.1 404")
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertRegex(read_all(connection).decode(), r"\nhalyard_log_lines_dropped_total [1-9]")
        process.terminate()
        self.assertEqual(process.wait(vmrun.TIMEOUT), 0)
        process.stdout.close()
        process.stderr.close()

    def test_systemd(self):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.bind(path)
            notified.settimeout(240)
            # The descriptor must be number 3, and the process number the program's: the shell is replaced by the program.
            process = subprocess.Popen(["bash", "-c", f'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&{listener.fileno()}', "bash", PROGRAM,
                                        f"--model=mul={MUL}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       pass_fds=[listener.fileno()], env={**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"})
            self.assertEqual(process.stdout.readline(), f"vm-serve: http://127.0.0.1:{listener.getsockname()[1]}\n")
            messages = [notified.recv(4096).decode()]
            while not messages[-1].startswith("READY=1"):
                messages.append(notified.recv(4096).decode())
            self.assertEqual(messages[-1], "READY=1\nSTATUS=Serving 1 models")
            self.assertEqual(notified.recv(4096), b"WATCHDOG=1")
            with socket.create_connection(listener.getsockname(), timeout=vmrun.TIMEOUT) as connection:
                connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertIn(b'"halyard"', read_all(connection))
            process.send_signal(signal.SIGHUP)
            while not (message := notified.recv(4096)).startswith(b"RELOADING=1\nMONOTONIC_USEC="):
                pass
            while (message := notified.recv(4096)) != b"READY=1":
                self.assertEqual(message, b"WATCHDOG=1")
            process.terminate()
            while not (message := notified.recv(4096)).startswith(b"STOPPING=1"):
                self.assertEqual(message, b"WATCHDOG=1")
            self.assertEqual(process.wait(vmrun.TIMEOUT), 0)
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
                                  stdout=subprocess.PIPE, text=True, timeout=vmrun.TIMEOUT)
            self.assertEqual(json.loads(done.stdout)["outputs"][0]["data"], [30, 400])


class Devices(Folder):
    def test_programs_on_devices(self):
        for device in ("local-sync", "local-task"):
            with start(f"--model=mul={ELEMENTWISE}", f"--device={device}") as server:
                def client(number):
                    for _ in range(20):
                        status, document = server.infer("mul", **mul(list(range(8)), [number] * 8))
                        self.assertEqual((status, document["outputs"][0]["data"]), (200, [i * number for i in range(8)]))

                with ThreadPoolExecutor(4) as threads:
                    list(threads.map(client, range(4)))  # raises their errors
                self.assertGreater(server.metric(f'halyard_device_memory_bytes{{device="{device}://",kind="host"}}')
                                   + server.metric(f'halyard_device_memory_bytes{{device="{device}://",kind="device"}}'), -1)

    def test_a_lost_device(self):
        """Answers are errors, readiness says so, and a reload brings it back where the driver can."""
        driver = os.path.join(vmrun.BUILD, "tests", "drivers", "halyard-driver-faulty.so")
        local = os.path.join(vmrun.DRIVERS, "halyard-driver-local.so")
        if not os.path.exists(driver):
            self.skipTest("the faulty driver is not built")
        lose, refuse = os.path.join(self.folder, "lose"), os.path.join(self.folder, "refuse")
        environment = {**os.environ, "HALYARD_FAULTY_WRAP": f"local-sync={local}", "HALYARD_FAULTY_LOSE": lose,
                       "HALYARD_FAULTY_REFUSE_OPEN": refuse}
        with start(f"--model=mul={ELEMENTWISE}", f"--model=inline={MUL}", f"--driver={driver}", "--device=faulty", env=environment) as server:
            def answer(model="mul"):
                return server.infer(model, **mul(list(range(8)), [2] * 8))

            def touch(path):
                open(path, "w").close()

            expected = [2.0 * i for i in range(8)]
            for round in range(1, 4):
                for _ in range(20):
                    status, document = answer()
                    self.assertEqual((status, document["outputs"][0]["data"]), (200, expected))
                self.assertEqual(server.get("/v2/health/ready")[0], 200)
                touch(lose)
                statuses, failures = [], []

                def client(_):
                    for _ in range(10):
                        status, document = answer()
                        statuses.append(status)
                        if status == 200 and document["outputs"][0]["data"] != expected:
                            failures.append(document)

                with ThreadPoolExecutor(4) as threads:
                    list(threads.map(client, range(4)))  # raises their errors
                self.assertEqual(failures, [])
                self.assertLessEqual(set(statuses), {200, 500, 503})
                wait_until(lambda: server.metric("halyard_devices_lost_total") == round, "the loss to be noticed")
                status, document = answer()
                self.assertEqual(status, 503)
                self.assertIn("device of model 'mul' is lost", document["error"])
                self.assertEqual(server.get("/v2/health/ready")[0], 503)
                self.assertEqual(server.get("/v2/models/mul/ready")[0], 503)
                self.assertEqual(server.get("/v2/health/live")[0], 200)
                # A model that needs no device goes on.
                self.assertEqual(server.get("/v2/models/inline/ready")[0], 200)
                self.assertEqual(answer("inline")[0], 200)

                touch(refuse)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: server.metric("halyard_reload_failures_total") == round, "the reload to fail")
                self.assertEqual(answer()[0], 503)
                os.remove(refuse)
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: answer()[0] == 200, "the device to be back")
            self.assertEqual(server.get("/v2/health/ready")[0], 200)
            wait_until(lambda: len(server.events("device_lost")) == 3, "the log")

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
