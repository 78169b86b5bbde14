"""vm-serve's repository API, model configuration, statistics and readiness, as Triton's clients use them."""
import gzip
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import serve_client
import vmrun
from serve_case import ENCODER, MUL, Folder, mul, start
from vmrun import wait_until
from serve_client import ask, tensor

FACTOR = ("vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {{\n"
          "  %i1 = vm.const.i32 {}\n  %i0 = vm.mul.i32 %i0, %i1\n  vm.return %i0\n}}\n")


class Served(Folder):
    def model(self, name, version, factor):
        """A version that gives its argument times a factor."""
        return self.write(f"models/{name}/{version}/model.vmasm", FACTOR.format(factor))

    def serve(self, *flags):
        return start(f"--models={self.folder}/models", *flags)

    def ask_for(self, server, model, value=3):
        status, document = server.infer(model, [tensor("input0", "INT32", [value])])
        return status, document["outputs"][0]["data"][0] if status == 200 else document["error"]

    def control(self, server, model, what, body=b"", headers=None):
        status, _, document = server.get(f"/v2/repository/models/{model}/{what}", "POST", body, headers)
        return status, document["error"] if document else ""

    def index(self, server, **members):
        status, _, document = server.get("/v2/repository/index", "POST", json.dumps(members))
        self.assertEqual(status, 200, document)
        return {(each["name"], each["version"]): (each["state"], each["reason"]) for each in document}


class Repository(Served):
    def test_index(self):
        self.model("a", 1, 10)
        self.model("a", 2, 20)
        self.write("models/broken/1/model.vmasm", "no module")
        with self.serve() as server:
            index = self.index(server)
            self.assertEqual(list(index), [("a", "1"), ("a", "2"), ("broken", "1")])
            self.assertEqual(index["a", "1"], ("READY", ""))
            self.assertEqual(index["broken", "1"][0], "UNAVAILABLE")
            self.assertNotEqual(index["broken", "1"][1], "")
            self.assertNotIn(self.folder, index["broken", "1"][1])  # clients need not know the folders
            self.assertEqual(list(self.index(server, ready=True)), [("a", "1"), ("a", "2")])
            self.assertEqual(server.get("/v2/repository/index", "POST")[0], 200)  # an empty body
            for body in ("[]", '{"ready": 1}', "{", b"\xff\xfe"):
                status, _, document = server.get("/v2/repository/index", "POST", body)
                self.assertEqual((status, list(document)), (400, ["error"]), body)
            status, headers, _ = server.get("/v2/repository/index")
            self.assertEqual((status, headers["Allow"]), (405, "POST"))
            self.assertEqual(self.control(server, "a", "unload")[0], 403)
            self.assertIn("--model_control", self.control(server, "a", "load")[1])
            self.assertEqual(self.ask_for(server, "a"), (200, 60))

    def test_load_and_unload(self):
        self.model("a", 1, 10)
        self.model("b", 1, 7)
        with self.serve("--model_control") as server:
            self.assertEqual(self.control(server, "a", "unload"), (200, ""))
            status, why = self.ask_for(server, "a")
            self.assertEqual((status, "unloaded" in why), (404, True), why)
            self.assertEqual(self.index(server)["a", "1"], ("UNAVAILABLE", "unloaded"))
            self.assertEqual(server.get("/v2/models")[2], {"models": ["b"]})
            self.assertEqual(server.get("/v2/models/a/ready")[0], 404)
            self.assertEqual(server.get("/v2/health/ready")[0], 200)
            self.assertEqual(self.ask_for(server, "b"), (200, 21))
            # A search does not bring it back.
            self.model("c", 1, 5)
            server.process.send_signal(1)
            wait_until(lambda: self.ask_for(server, "c") == (200, 15), "the search")
            self.assertEqual(self.ask_for(server, "a")[0], 404)
            self.model("a", 2, 20)
            self.assertEqual(self.control(server, "a", "load", '{"parameters": {}}'), (200, ""))
            self.assertEqual(self.ask_for(server, "a"), (200, 60))
            self.assertEqual(self.ask_for(server, "a/versions/1"), (200, 30))
            # A model that has come since the start, and one whose file has changed.
            self.model("d", 1, 2)
            self.assertEqual(self.ask_for(server, "d")[0], 404)
            self.assertEqual(self.control(server, "d", "load"), (200, ""))
            self.assertEqual(self.ask_for(server, "d"), (200, 6))
            self.model("d", 1, 4)
            self.assertEqual(self.control(server, "d", "load"), (200, ""))
            self.assertEqual(self.ask_for(server, "d"), (200, 12))
            self.assertEqual(len(server.events("model_unloaded")), 1)

    def test_what_does_not_load(self):
        self.model("a", 1, 10)
        with self.serve("--model_control") as server:
            for name in ("none", "..", "%2e%2e", "a%2f..%2fa", "%00", "-", "x" * 200):
                for what in ("load", "unload"):
                    status, why = self.control(server, name, what)
                    self.assertIn(status, (400, 404), (name, why))
            self.write("models/b/1/model.vmasm", "no module")
            status, why = self.control(server, "b", "load")
            self.assertEqual(status, 400)
            self.assertIn("model 'b' could not be loaded", why)
            self.assertNotIn(self.folder, why)
            self.model("b", 1, 2)
            self.assertEqual(self.control(server, "b", "load"), (200, ""))
            # A version that does not load does not hide the one that works.
            self.write("models/a/1/model.vmasm", "no module")
            self.assertEqual(self.control(server, "a", "load")[0], 400)
            self.assertEqual(self.ask_for(server, "a"), (200, 30))
            state, reason = self.index(server)["a", "1"]
            self.assertEqual(state, "READY")
            self.assertNotEqual(reason, "")
            # What a client sends is never loaded.
            for parameters in ({"config": "{}"}, {"file:1/model.vmasm": "AAAA"}):
                status, why = self.control(server, "b", "load", json.dumps({"parameters": parameters}))
                self.assertEqual((status, "not supported" in why), (400, True), why)
            self.assertEqual(self.control(server, "b", "load", b" " * (65 << 10))[0], 413)
            bomb = gzip.compress(b" " * (64 << 20))
            status, why = self.control(server, "b", "load", bomb, {"Content-Encoding": "gzip"})
            self.assertEqual((status, "65536" in why), (413, True), why)
            self.assertEqual(self.control(server, "b", "load", gzip.compress(b"{}"), {"Content-Encoding": "gzip"}), (200, ""))
            wait_until(lambda: server.metric("halyard_request_memory_bytes") == 0, "the memory to be given back")

    def test_a_link_out_of_the_folder_is_the_administrators(self):
        """Names of clients never leave the folder; links in it are followed, as the search at the start does."""
        self.model("a", 1, 10)
        os.makedirs(f"{self.folder}/elsewhere/1")
        vmrun.write(f"{self.folder}/elsewhere/1/model.vmasm", FACTOR.format(9))
        with self.serve("--model_control") as server:
            for name in ("elsewhere", "..%2felsewhere"):
                self.assertEqual(self.control(server, name, "load")[0], 404, name)
            os.symlink(f"{self.folder}/elsewhere", f"{self.folder}/models/linked")
            self.assertEqual(self.control(server, "linked", "load"), (200, ""))
            self.assertEqual(self.ask_for(server, "linked"), (200, 27))

    def test_models_of_flags(self):
        with start(f"--model=mul={MUL}", "--model_control") as server:
            self.assertEqual(self.control(server, "mul", "unload"), (200, ""))
            self.assertEqual(server.infer("mul", **mul([2], [3]))[0], 404)
            self.assertEqual(self.control(server, "mul", "load"), (200, ""))
            self.assertEqual(server.infer("mul", **mul([2], [3]))[1]["outputs"][0]["data"], [6])

    def test_under_traffic(self):
        """Requests of a model that is loaded and unloaded all the time get its result or 404; others notice nothing."""
        self.model("a", 1, 10)
        self.model("b", 1, 7)
        with self.serve("--model_control") as server:
            stop, found, failures = threading.Event(), set(), []

            def client(model, expected):
                connection = server.connect()
                body = json.dumps({"inputs": [tensor("input0", "INT32", [3])]})
                while not stop.is_set():
                    status, _, document = ask(connection, f"/v2/models/{model}/infer", "POST", body)
                    found.add((model, status))
                    if status == 200 and document["outputs"][0]["data"] != [expected]:
                        failures.append(document)
                connection.close()

            def controller(number):
                try:
                    for round in range(20):
                        for what in ("unload", "load") if (number + round) % 2 else ("load", "unload"):
                            status, why = self.control(server, "a", what)
                            if status != 200:
                                failures.append(why)
                except Exception as error:  # shown below
                    failures.append(error)

            clients = [threading.Thread(target=client, args=args) for args in 2 * [("a", 30), ("b", 21)]]
            controllers = [threading.Thread(target=controller, args=(number,)) for number in range(3)]
            for thread in clients + controllers:
                thread.start()
            for thread in controllers:
                thread.join()
            self.assertEqual(self.control(server, "a", "load"), (200, ""))
            wait_until(lambda: ("a", 200) in found, "an answer")
            stop.set()
            for thread in clients:
                thread.join()
            self.assertEqual(failures, [])
            self.assertLessEqual(found, {("a", 200), ("a", 404), ("b", 200)})

    def test_a_load_that_never_ends(self):
        """The server ends in spite of it, and the client's connection with it."""
        self.model("a", 1, 10)
        with self.serve("--model_control", "--drain_timeout=200ms", "--load_timeout=10min") as server:
            self.write("models/loop/1/model.vmasm", serve_client.LOOP_MODULE.replace("vm.export @forever", "vm.export @forever\nvm.export @__init\n"
                       "vm.func @__init() -> () {\n  vm.br ^bb1\n^bb1:\n  vm.br ^bb1\n^bb2:\n  vm.return\n}"))
            with server.socket() as waiting, server.socket() as queued:
                for connection in (waiting, queued):
                    connection.sendall(b"POST /v2/repository/models/loop/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
                wait_until(lambda: self.ask_for(server, "a") == (200, 30) and server.metric("halyard_connections") == 3, "the connections")
                self.assertEqual(server.stop(), 1)


class Readiness(Served):
    def test_one_bad_model(self):
        self.model("good", 1, 10)
        self.write("models/bad/1/model.vmasm", "no module")
        for flags, status in (([], 503), (["--ready=all"], 503), (["--ready=any"], 200), (["--ready=good"], 200), (["--ready=bad"], 503),
                              (["--ready=good,bad"], 503)):
            with self.serve(*flags) as server:
                self.assertEqual(server.get("/v2/health/ready")[::2], (status, {"live": True, "ready": status == 200}), flags)
                self.assertEqual(server.get("/v2/health/live")[0], 200)
        # A version that works is enough for a name.
        self.write("models/good/2/model.vmasm", "no module")
        for flags, status in ((["--ready=good"], 200), (["--ready=all"], 503)):
            with self.serve(*flags) as server:
                self.assertEqual(server.get("/v2/health/ready")[0], status)

    def test_unloaded_models(self):
        self.model("a", 1, 10)
        self.model("b", 1, 10)
        for flag, status in (("--ready=all", 200), ("--ready=any", 200), ("--ready=a", 503), ("--ready=b", 200)):
            with self.serve("--model_control", flag) as server:
                self.assertEqual(self.control(server, "a", "unload"), (200, ""))
                self.assertEqual(server.get("/v2/health/ready")[0], status, flag)
                self.assertEqual(self.control(server, "b", "unload"), (200, ""))
                self.assertEqual(server.get("/v2/health/ready")[0], 200 if flag == "--ready=all" else 503, flag)

    def test_wrong_values(self):
        self.model("bert", 1, 10)
        for value, said in (("", "--ready="), ("brt", "there is no model 'brt'; did you mean 'bert'?"), ("bert,", "--ready=bert,"),
                            ("a b", "--ready=a b")):
            done = vmrun.run("vm-serve", "--port=0", f"--models={self.folder}/models", f"--ready={value}")
            self.assertIsNone(vmrun.why_bad_failure(done, said), (value, done.stderr))


class Configuration(Served):
    def test_without_batches(self):
        self.model("a", 1, 10)
        with self.serve("--contexts=3") as server:
            expected = {"name": "a", "platform": "iree_vmfb", "backend": "halyard", "version_policy": {"all": {}}, "max_batch_size": 0,
                        "input": [{"name": "input0", "data_type": "TYPE_INT32", "dims": [1]}],
                        "output": [{"name": "output0", "data_type": "TYPE_INT32", "dims": [1]}],
                        "instance_group": [{"name": "a", "kind": "KIND_AUTO", "count": 3}], "default_model_filename": "model.vmasm"}
            self.assertEqual(server.get("/v2/models/a/config")[::2], (200, expected))
            self.assertEqual(server.get("/v2/models/a/versions/1/config")[2], expected)
            for path in ("/v2/models/none/config", "/v2/models/a/versions/2/config"):
                self.assertEqual(server.get(path)[0], 404)

    def test_with_batches(self):
        """The dimensions are those of one row, as Triton's clients expect."""
        with start(f"--model=encoder={ENCODER}", f"--model=mul={MUL}", "--batch=8", "--batch_delay=2ms") as server:
            config = server.get("/v2/models/encoder/config")[2]
            self.assertEqual((config["max_batch_size"], config["dynamic_batching"]), (8, {"max_queue_delay_microseconds": 2000}))
            shape = server.get("/v2/models/encoder")[2]["inputs"][0]["shape"]
            self.assertEqual([-1, *config["input"][0]["dims"]], shape)
            # Clients refuse empty dimensions.
            self.assertEqual(server.get("/v2/models/mul/config")[2]["input"][0],
                             {"name": "input0", "data_type": "TYPE_FP32", "dims": [1], "reshape": {"shape": []}})


class Statistics(Served):
    def stats(self, server, path="/v2/models/stats"):
        status, headers, document = server.get(path)
        self.assertEqual((status, headers["Cache-Control"]), (200, "no-store"))
        return {(each["name"], each["version"]): each for each in document["model_stats"]}

    def test_counts(self):
        self.model("a", 1, 10)
        self.model("a", 2, 20)
        self.write("models/fail/1/model.vmasm", 'vm.module @m\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n  vm.fail %i0, "as asked"\n}\n')
        with self.serve() as server:
            self.assertEqual(list(self.stats(server)), [("a", "1"), ("a", "2"), ("fail", "1")])
            fresh = self.stats(server)["a", "1"]
            self.assertEqual((fresh["last_inference"], fresh["inference_count"], fresh["batch_stats"]), (0, 0, []))
            for _ in range(3):
                self.assertEqual(self.ask_for(server, "a"), (200, 60))
            self.ask_for(server, "fail", 13)
            stats = self.stats(server)
            self.assertEqual(stats["a", "1"], fresh)
            ours = stats["a", "2"]
            self.assertEqual((ours["inference_count"], ours["execution_count"]), (3, 3))
            self.assertGreater(ours["last_inference"], 1.7e12)
            sums = ours["inference_stats"]
            self.assertEqual(list(sums), ["success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"])
            self.assertEqual([sums[name]["count"] for name in ("success", "fail", "queue", "compute_infer", "cache_hit")], [3, 0, 3, 3, 0])
            self.assertGreaterEqual(sums["success"]["ns"], sums["queue"]["ns"] + sums["compute_infer"]["ns"])
            self.assertEqual([(each["batch_size"], each["compute_infer"]["count"]) for each in ours["batch_stats"]], [(1, 3)])
            failed = stats["fail", "1"]
            self.assertEqual((failed["inference_stats"]["fail"]["count"], failed["inference_stats"]["success"]["count"],
                              failed["execution_count"]), (1, 0, 0))
            self.assertEqual(list(self.stats(server, "/v2/models/a/stats")), [("a", "1"), ("a", "2")])
            self.assertEqual(list(self.stats(server, "/v2/models/a/versions/2/stats")), [("a", "2")])
            for path in ("/v2/models/none/stats", "/v2/models/a/versions/3/stats"):
                self.assertEqual(server.get(path)[0], 404)

    def test_batches(self):
        """Rows count as inferences; calls count by their rows."""
        with start(f"--model=mul={MUL}", "--batch=mul=4", "--batch_delay=1000min", "--threads=1") as server:
            with ThreadPoolExecutor(2) as threads:
                answers = list(threads.map(lambda rows: server.infer("mul", **mul([1] * rows, [2] * rows))[0], (1, 3)))
            self.assertEqual(answers, [200, 200])
            self.assertEqual(server.infer("mul", **mul([1] * 7, [2] * 7))[0], 200)
            ours = self.stats(server)["mul", "1"]
            self.assertEqual((ours["inference_count"], ours["execution_count"], ours["inference_stats"]["success"]["count"]), (11, 2, 3))
            self.assertEqual([(each["batch_size"], each["compute_infer"]["count"]) for each in ours["batch_stats"]], [(4, 1), (7, 1)])

    def test_sizes_that_a_client_makes_up(self):
        """They take a bounded amount of memory."""
        with start(f"--model=mul={MUL}", "--batch=mul=2") as server:
            connection = server.connect()
            for rows in range(2, 400):
                self.assertEqual(ask(connection, "/v2/models/mul/infer", "POST", json.dumps(mul([1] * rows, [2] * rows)))[0], 200)
            connection.close()
            ours = self.stats(server)["mul", "1"]
            self.assertEqual((ours["execution_count"], len(ours["batch_stats"])), (398, 256))

