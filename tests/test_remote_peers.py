"""Clients that hang, die or take too much beside clients that do not; the end of work at either side; the operation of vm-device:
numbers for Prometheus, inherited sockets, its end."""
import errno
import os
import re
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import vmrun
from remote_case import INPUTS, SIMPLE, Server, client_options, make_certificates, server_flags
from test_stop import BIG, HOARD, LOOP, program

RESULT = "8xf32=10 10 10 10 10 10 10 10"
TOOL = os.path.join(vmrun.BIN, "vm-run")


def metrics(server):
    """The numbers of the page, by their names without the prefix."""
    address = next(each for each in server.addresses if each.startswith("http://"))
    text = urllib.request.urlopen(address, timeout=vmrun.TIMEOUT).read().decode()
    return {name: int(value) for name, value in re.findall(r"(?m)^halyard_device_(\w+) (\d+)$", text)}


class PeersCase(vmrun.FolderCase):
    def serve(self, *flags, addresses=2):
        server = Server(*flags, f"--listen=unix://{self.path('d.sock')}", "--metrics=127.0.0.1:0", addresses=addresses)
        self.addCleanup(server.__exit__)
        return server

    def uri(self, device="local-task", more=""):
        return f"remote+unix://{self.path('d.sock')}?device={device}{more}"

    def loop(self):
        return program(self.folder, "loop", LOOP)

    def begin(self, uri, *flags, module=None):
        """Starts a program whose kernel does not end; returns when it is at the server."""
        process = subprocess.Popen([TOOL, f"--device={uri}", f"--module={module or self.loop()}", *INPUTS, *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "EXEC @mul\n")
        return process

    def becomes(self, server, name, value):
        self.holds(server, name, lambda found: found == value, value)

    def holds(self, server, name, condition, expected):
        """Numbers of processes are added up from time to time."""
        end = time.monotonic() + vmrun.TIMEOUT
        while not condition(found := metrics(server)[name]):
            self.assertLess(time.monotonic(), end, f"{name} is {found}, not {expected}")
            time.sleep(0.05)

    def good(self, uri, timeout=vmrun.TIMEOUT):
        done = subprocess.run([TOOL, f"--device={uri}", f"--module={SIMPLE}", *INPUTS], capture_output=True, text=True, timeout=timeout)
        self.assertIn(RESULT, done.stdout, done.stderr)


class Peers(PeersCase):
    def test_hanging_clients_do_not_reach_others(self):
        """On local-sync the kernel of a client keeps the thread that serves the client. More such clients than threads."""
        make_certificates(self.folder)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-CA", "ca.pem",
                        "-CAkey", "ca.key", "-subj", "/CN=hostile\nvm-device: a line of its own", "-keyout", "other.key", "-out", "other.pem"],
                       cwd=self.folder, check=True, capture_output=True)
        server = Server("--device=local-sync", "--device=local-task", "--listen=tls://localhost:0", *server_flags(self.folder),
                        "--metrics=127.0.0.1:0", "--threads=2", addresses=2)
        self.addCleanup(server.__exit__)
        place = f"remote://localhost:{server.port}/"
        hostile = [self.begin(f"{place}{device}?{client_options(self.folder, client='other')}", module=self.loop())
                   for device in ("local-sync", "local-sync", "local-sync", "local-sync", "local-task")]
        for device in ("local-sync", "local-task"):
            self.good(f"{place}{device}?{client_options(self.folder)}")
        for process in hostile:
            self.assertIsNone(process.poll())
        self.holds(server, "threads", lambda threads: threads > 2, "more than 2")
        # Killed clients leave nothing behind.
        for process in hostile:
            process.kill()
        self.becomes(server, "connections", 0)
        self.becomes(server, "memory_bytes", metrics(server)["cached_bytes"])
        self.good(f"{place}local-sync?{client_options(self.folder)}")
        server.__exit__()
        log = "".join(server.log)
        self.assertIn("CN=hostile?vm-device: a line of its own", log)
        self.assertEqual(server.code, 0, log)

    def test_the_time_of_work_is_limited(self):
        self.serve("--device=local-task", "--device=local-sync", "--max_time=6s")  # which others do not reach, even on a busy machine
        for device in ("local-task", "local-sync"):
            done = vmrun.run("vm-run", f"--device={self.uri(device)}", f"--module={self.loop()}", *INPUTS)
            self.assertEqual(done.returncode, 1)
            self.assertIn("DEADLINE_EXCEEDED", done.stderr)
            self.good(self.uri(device))

    def test_timeouts_and_interruptions_reach_across(self):
        server = self.serve("--device=local-task", "--device=local-sync")
        for device in ("local-task", "local-sync"):
            done = vmrun.run("vm-run", f"--device={self.uri(device)}", f"--module={self.loop()}", *INPUTS, "--timeout=300ms")
            self.assertEqual(done.returncode, 1)
            self.assertIn("DEADLINE_EXCEEDED", done.stderr)
            process = self.begin(self.uri(device))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(vmrun.TIMEOUT), 130, process.stderr.read())
        # Nothing is left of them but what is kept for their next start.
        self.becomes(server, "connections", 0)
        self.becomes(server, "memory_bytes", metrics(server)["cached_bytes"])

    def test_memory_limits_of_programs_reach_across(self):
        """What kernels allocate at the server: the limit of the program, and that of the client, whichever is lower."""
        server = self.serve("--device=local-task", "--device=local-sync", "--max_client_memory=128MiB")
        for name, body in (("big", BIG), ("hoard", HOARD)):
            path = program(self.folder, name, body)
            for device in ("local-task", "local-sync"):
                for flags, limit in ((["--max_memory=64MiB"], "67108864"), (["--max_memory=8GiB"], "134217728"), ([], "134217728")):
                    done = vmrun.run("vm-run", f"--device={self.uri(device)}", f"--module={path}", *INPUTS, "--timeout=200s", *flags)
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertRegex(done.stderr, f"RESOURCE_EXHAUSTED; .*memory limit is {limit} bytes")
        self.good(self.uri())
        self.becomes(server, "connections", 0)
        self.becomes(server, "memory_bytes", metrics(server)["cached_bytes"])

    def test_memory_limits_reach_across(self):
        self.serve("--device=local-task", "--max_client_memory=1KiB")
        done = vmrun.run("vm-run", f"--device={self.uri()}", f"--module={SIMPLE}", *INPUTS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("RESOURCE_EXHAUSTED", done.stderr)

    def test_a_server_that_is_killed_with_work_in_flight(self):
        server = self.serve("--device=local-task")
        process = self.begin(self.uri())
        server.process.kill()
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
        errors = process.stderr.read()
        self.assertRegex(errors, r"UNAVAILABLE; .*the connection to '.*d\.sock' is lost \(.*\), and with it the memory of the device and \d+ submissions in flight")

    def test_a_server_that_is_stopped_with_work_in_flight(self):
        server = self.serve("--device=local-task")
        process = self.begin(self.uri(more="&timeout=8000"))
        server.signal_all(signal.SIGSTOP)
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
        errors = process.stderr.read()
        self.assertIn("DEADLINE_EXCEEDED", errors)
        self.assertIn("and with it the memory of the device", errors)
        # The call has a deadline of its own, which comes before that of the connection.
        server.signal_all(signal.SIGCONT)
        process = self.begin(self.uri(more="&timeout=600000"), "--timeout=1s")
        server.signal_all(signal.SIGSTOP)
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
        self.assertIn("DEADLINE_EXCEEDED", process.stderr.read())
        server.signal_all(signal.SIGCONT)
        self.good(self.uri())

    def test_the_end_of_a_server_with_work_in_flight(self):
        server = self.serve("--device=local-task", "--device=local-sync")
        processes = [self.begin(self.uri(device)) for device in ("local-task", "local-sync")]
        server.process.terminate()
        self.assertEqual(server.process.wait(vmrun.TIMEOUT), 0)
        for process in processes:
            self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
            self.assertRegex(process.stderr.read(), "UNAVAILABLE|CANCELLED")

    def test_a_closed_log(self):
        """Nobody reads what vm-device prints."""
        path = self.path("d.sock")
        process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-device"), "--device=local-task", f"--listen=unix://{path}"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.stdout.close()
        process.stderr.close()
        for _ in range(3):
            self.good(self.uri())
        self.assertIsNone(process.poll())


class Operation(PeersCase):
    def test_numbers(self):
        server = self.serve("--device=local-task")
        before = metrics(server)
        self.good(self.uri())
        self.becomes(server, "connections", 0)
        after = metrics(server)
        self.assertEqual(after["connections_accepted_total"] - before["connections_accepted_total"], 1)
        self.assertGreater(after["submissions_total"], before["submissions_total"])
        self.assertGreater(after["received_bytes_total"], before["received_bytes_total"])
        page = server.addresses[-1].removesuffix("/metrics")
        self.assertEqual(urllib.request.urlopen(page + "/healthz", timeout=vmrun.TIMEOUT).read(), b"ok\n")
        for path, method, code in (("/", "GET", 404), ("/metrics/..", "GET", 404), ("/metrics", "POST", 405)):
            with self.assertRaises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(urllib.request.Request(page + path, method=method), timeout=vmrun.TIMEOUT)
            self.assertEqual(raised.exception.code, code)
            raised.exception.close()
        host, port = re.search(r"http://(.*):(\d+)$", page).groups()
        # Heads without an end, too long, or no HTTP: the page goes on.
        for text in (b"GET / HTTP/1.1\r\n", b"GET /" + b"a" * 20000, b"\0\1\2\r\n\r\n", b""):
            with socket.create_connection((host, int(port)), 30) as client:
                try:
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    client.recv(1000)
                except OSError as error:  # the server may have closed the connection already
                    if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                        raise
        self.assertEqual(metrics(server)["connections"], 0)

    def test_the_page_is_in_the_format_of_prometheus(self):
        try:
            from prometheus_client.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("python3-prometheus-client is not installed")
        server = self.serve("--device=null")
        text = urllib.request.urlopen(server.addresses[-1], timeout=vmrun.TIMEOUT).read().decode()
        families = list(text_string_to_metric_families(text))
        self.assertGreaterEqual(len(families), 12)
        for family in families:
            self.assertTrue(family.documentation)
            self.assertIn(family.type, ("counter", "gauge"))

    def test_inherited_sockets(self):
        def start(listening, *flags):
            """As systemd does: descriptors from 3 on, and the number of the process in the environment."""
            listening.set_inheritable(True)
            code = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); " \
                   "os.execv(sys.argv[2], sys.argv[2:])"
            return Server(*flags, prefix=["/usr/bin/env", "python3", "-c", code, str(listening.fileno())],
                          pass_fds=(listening.fileno(), ))

        path = self.path("inherited.sock")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()
            with start(listening, "--device=local-task", "--listen=fd://") as server:
                self.good(f"remote+unix://{path}")
            self.assertEqual(server.code, 0)
        self.assertTrue(os.path.exists(path))  # it is systemd's
        make_certificates(self.folder)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            with start(listening, "--device=local-task", "--listen=fd://", *server_flags(self.folder)):
                self.good(f"remote://localhost:{port}?{client_options(self.folder)}")
            # Never without TLS.
            with self.assertRaisesRegex(AssertionError, "INVALID_ARGUMENT; .*--cert"):
                start(listening, "--device=local-task", "--listen=fd://")
        done = vmrun.run("vm-device", "--device=local-sync", "--listen=fd://")
        self.assertEqual(done.returncode, 1)
        self.assertIn("$LISTEN_FDS", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
