"""Devices of vm-device, as users have them: over Unix sockets, TCP and TLS; the suite of drivers and the fixtures through
them; servers that die, stop, or were never there."""
import os
import re
import signal
import subprocess
import threading
import unittest

import remote_case
import vmrun
from remote_case import INPUTS, LEAST, SIMPLE, Proxy, Server, make_certificates

RESULT = "8xf32=10 10 10 10 10 10 10 10"


def mul(device, *flags, timeout=vmrun.TIMEOUT):
    return vmrun.run("vm-run", f"--device={device}", *flags, f"--module={SIMPLE}", *INPUTS, timeout=timeout)


class Transports(unittest.TestCase):
    def test_unix_socket_and_loopback(self):
        with vmrun.temporary_folder() as folder:
            path = os.path.join(folder, "d.sock")
            with Server("--device=local-task", "--device=local-sync", f"--listen=unix://{path}", "--listen=tcp://127.0.0.1:0",
                        addresses=2) as server:
                port = re.search(r":(\d+)$", server.addresses[1])[1]
                for device in (f"remote+unix://{path}", f"remote+unix://{path}?device=local-sync",
                               f"remote://127.0.0.1:{port}", f"remote://localhost:{port}/local-sync"):
                    done = mul(device)
                    self.assertIn(RESULT, done.stdout, device + done.stderr)
                done = mul(f"remote://127.0.0.1:{port}/vulkan")
                self.assertIn("NOT_FOUND", done.stderr)
                self.assertIn("'local-task', 'local-sync'", done.stderr)
            self.assertFalse(os.path.exists(path))

    def test_tls_needs_certificates_of_both_sides(self):
        with vmrun.temporary_folder() as folder:
            make_certificates(folder)
            other = os.path.join(folder, "other")
            os.mkdir(other)
            make_certificates(other)
            file = lambda name: os.path.join(folder, name)
            with Server("--device=local-sync", "--listen=tls://localhost:0", f"--cert={file('server.pem')}",
                        f"--key={file('server.key')}", f"--client_ca={file('ca.pem')}") as server:
                uri = f"remote://localhost:{server.port}"
                good = f"{uri}?cert={file('client.pem')}&key={file('client.key')}&ca={file('ca.pem')}"
                self.assertIn(RESULT, mul(good).stdout)
                environment = dict(os.environ, HALYARD_REMOTE_CERT=file("client.pem"), HALYARD_REMOTE_KEY=file("client.key"),
                                   HALYARD_REMOTE_CA=file("ca.pem"))
                done = subprocess.run([os.path.join(vmrun.BIN, "vm-run"), f"--device={uri}", f"--module={SIMPLE}", *INPUTS],
                                      env=environment, capture_output=True, text=True, timeout=vmrun.TIMEOUT)
                self.assertIn(RESULT, done.stdout, done.stderr)
                # Another authority than the other side's, for each side; another name; no TLS at all.
                stranger = f"{uri}?cert={other}/client.pem&key={other}/client.key&ca={file('ca.pem')}"
                distrust = f"{uri}?cert={file('client.pem')}&key={file('client.key')}&ca={other}/ca.pem"
                renamed = good.replace("localhost", "127.0.0.1")
                for device in (stranger, distrust, renamed, uri + "?timeout=3000"):
                    done = mul(device)
                    self.assertNotEqual(done.returncode, 0, device)
                    self.assertRegex(done.stderr, "UNAUTHENTICATED|UNAVAILABLE", device)
                self.assertIn(RESULT, mul(good).stdout)
            self.assertIn("CN=laptop", "".join(server.log))

    def test_what_is_refused_on_the_command_line(self):
        for flags, texts in ((["--listen=tcp://0.0.0.0:0"], ["PERMISSION_DENIED", "--insecure", "tls://"]),
                             (["--listen=tls://127.0.0.1:0"], ["INVALID_ARGUMENT", "--cert"]),
                             (["--listen=http://127.0.0.1:0"], ["INVALID_ARGUMENT", "tls://HOST:PORT"]),
                             (["--listen=tcp://127.0.0.1:99999"], ["INVALID_ARGUMENT", "65535"]),
                             ([], ["INVALID_ARGUMENT", "--listen"]),
                             (["--listen=tcp://127.0.0.1:0", "--max_handles=0"], ["INVALID_ARGUMENT", "at least 1"]),
                             (["--listen=unix:///tmp/x.sock", "--allow_user=nobody-has-this-name"], ["NOT_FOUND", "nobody-has"]),
                             (["--listen=tcp://127.0.0.1:0", "--device=no-such-driver"], ["NOT_FOUND", "no-such-driver"])):
            done = vmrun.run("vm-device", "--device=local-sync", *flags)
            self.assertEqual(done.returncode, 1, flags)
            for text in texts:
                self.assertIn(text, done.stderr, flags)

    def test_what_is_refused_in_uris(self):
        for device, code, text in (("remote://127.0.0.1:1", "UNAVAILABLE", "is vm-device running there?"),
                                   ("remote://", "INVALID_ARGUMENT", "HOST"),
                                   ("remote://h:99999", "INVALID_ARGUMENT", "65535"),
                                   ("remote://127.0.0.1?colour=red", "INVALID_ARGUMENT", "colour"),
                                   ("remote://127.0.0.1?cert=x.pem", "INVALID_ARGUMENT", "'key'"),
                                   ("remote+unix://relative", "NOT_FOUND", "absolute"),
                                   ("remote+unix:///no/such.sock", "UNAVAILABLE", "/no/such.sock")):
            done = mul(device)
            self.assertEqual(done.returncode, 1, device)
            self.assertIn(code, done.stderr, device)
            self.assertIn(text, done.stderr, device)


class Meaning(vmrun.FolderCase):
    @property
    def socket(self):
        return self.path("d.sock")

    def serve(self, *flags):
        server = Server(*flags, f"--listen=unix://{self.socket}")
        self.addCleanup(server.__exit__)
        return server

    def test_drivers_keep_their_contract_through_a_server(self):
        # All pairs of a transport and a device: test_remote_matrix.py.
        for transport, device in (("unix", "local-task"), ("pair", "local-sync"), ("tls", "null")):
            passed, failed, _, output = remote_case.suite(transport, device, self.folder)
            self.assertEqual(failed, 0, f"{transport}, {device}:\n" + remote_case.failures(output))
            self.assertGreaterEqual(passed, LEAST[device], f"{transport}, {device}")

    def test_fixtures(self):
        if not vmrun.fixtures():
            self.skipTest("the shared fixtures are not there")
        self.serve("--device=local-task", "--device=local-sync", "--allow_native")
        runner = self.path("runner")
        remote_case.runner(runner, f"'remote+unix://{self.socket}?device=' + name")
        for folder, only, least in (("compiled", ".vmvx", 80), ("constants", ".vmvx", 4), ("vmasm", "two_device", 6)):
            passed, failed, _, output = remote_case.run_fixtures(runner, folder, "--only", only, "--skip-device", "vulkan")
            self.assertEqual(failed, 0, output[-4000:])
            self.assertGreaterEqual(passed, least, folder)


class Faults(unittest.TestCase):
    def test_the_connection_is_cut_at_every_place(self):
        with vmrun.temporary_folder() as folder:
            path = os.path.join(folder, "d.sock")
            with Server("--device=local-task", f"--listen=unix://{path}"):
                with Proxy(os.path.join(folder, "whole.sock"), path) as whole:
                    self.assertIn(RESULT, mul(f"remote+unix://{folder}/whole.sock").stdout)
                    to_client, to_server = whole.counts
                cut = 0
                for is_to_server, size in ((True, to_server), (False, to_client)):
                    for limit in sorted({*range(0, 64, 13), *range(64, size, max(size // 12, 1))}):
                        socket_path = os.path.join(folder, f"{int(is_to_server)}-{limit}.sock")
                        with Proxy(socket_path, path, (is_to_server, limit)):
                            done = mul(f"remote+unix://{socket_path}?timeout=60000", timeout=vmrun.TIMEOUT)
                        if done.returncode == 0:  # only what closes the device was cut off
                            self.assertIn(RESULT, done.stdout)
                            continue
                        cut += 1
                        self.assertEqual(done.returncode, 1, done.stderr)
                        self.assertRegex(done.stderr, "UNAVAILABLE", f"{is_to_server} {limit}")
                        self.assertRegex(done.stderr, "is lost|ended the connection", f"{is_to_server} {limit}")
                self.assertGreater(cut, 15)
                self.assertIn(RESULT, mul(f"remote+unix://{path}").stdout)

    def test_a_server_that_is_stopped(self):
        with vmrun.temporary_folder() as folder:
            path = os.path.join(folder, "d.sock")
            with Server("--device=local-task", f"--listen=unix://{path}") as server:
                server.signal_all(signal.SIGSTOP)
                done = mul(f"remote+unix://{path}?timeout=1000")
                self.assertEqual(done.returncode, 1)
                self.assertIn("DEADLINE_EXCEEDED", done.stderr)
                server.signal_all(signal.SIGCONT)
                self.assertIn(RESULT, mul(f"remote+unix://{path}").stdout)

    def test_a_server_that_is_killed_and_started_again(self):
        with vmrun.temporary_folder() as folder:
            path = os.path.join(folder, "d.sock")
            with Server("--device=local-task", f"--listen=unix://{path}") as server:
                self.assertIn(RESULT, mul(f"remote+unix://{path}").stdout)
                server.process.kill()
                server.process.wait()
            self.assertIn("UNAVAILABLE", mul(f"remote+unix://{path}").stderr)
            with Server("--device=local-task", f"--listen=unix://{path}"):
                self.assertIn(RESULT, mul(f"remote+unix://{path}").stdout)

    def test_many_clients_at_once(self):
        with vmrun.temporary_folder() as folder:
            path = os.path.join(folder, "d.sock")
            with Server("--device=local-task", f"--listen=unix://{path}"):
                results = []
                threads = [threading.Thread(target=lambda: results.append(mul(f"remote+unix://{path}").stdout)) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(sum(RESULT in each for each in results), 8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
