"""The units of vm-serve, as systemd's own programs see them. Neither needs systemd as the first process."""
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

import vmrun
from serve_case import MUL, PROGRAM, Folder, read_all, start
from units_case import UnitsCase

UNITS = [os.path.join(vmrun.BUILD, "share", "systemd", "halyard-serve.service"),
         os.path.join(vmrun.SOURCE, "packaging", "systemd", "halyard-serve.socket")]


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Units(UnitsCase, Folder):
    units, tool = UNITS, "vm-serve"

    def test_systemd_takes_them_without_a_word(self):
        self.check_that_systemd_takes_them()

    def test_the_service_is_locked_down(self):
        self.check_that_the_service_is_locked_down()

    def test_the_flags_of_the_service_are_taken(self):
        """With the folder that the unit names, which has no models yet."""
        command = re.search(r"(?m)^ExecStart=(.*)$", vmrun.read_text(UNITS[0]))[1]
        os.makedirs(os.path.join(self.folder, "models"))
        arguments = command.replace("${STATE_DIRECTORY}", self.folder).replace("$HALYARD_SERVE_FLAGS", "").split()[1:]
        with start(*arguments) as server:
            self.assertEqual(server.get("/v2/models")[2], {"models": []})
            self.assertEqual(server.get("/v2/health/ready")[0], 200)


class Limits(unittest.TestCase):
    def test_memory_is_limited_wherever_it_is_deployed(self):
        """And leaves room for what --max_request_memory lets requests have."""
        examples = os.path.join(vmrun.SOURCE, "examples", "serving")
        for path, limit in ((UNITS[0], r"(?m)^MemoryMax=(\d+)G$"), (os.path.join(examples, "deployment.yaml"), r"limits: {.*memory: (\d+)Gi"),
                            (os.path.join(examples, "kserve.yaml"), r"limits: {.*memory: (\d+)Gi")):
            text = vmrun.read_text(path)
            found = re.search(limit, text)
            self.assertTrue(found, path)
            flag = re.search(r"--max_request_memory=(\d+)MiB", text)
            self.assertGreaterEqual(int(found[1]) << 10, 2 * (int(flag[1]) if flag else 1024), path)


@unittest.skipUnless(shutil.which("systemd-socket-activate"), "systemd-socket-activate is not installed")
class SocketActivation(Folder):
    def activated(self, address, connect):
        """Answers of the server that the first connection starts, and its exit status."""
        process = subprocess.Popen(["systemd-socket-activate", f"--listen={address}", PROGRAM, f"--model=mul={MUL}"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        try:
            self.assertRegex(process.stderr.readline(), "Listening on")
            bodies = []
            for _ in range(3):  # the first one begins before there is a server
                with connect() as connection:
                    connection.sendall(b"GET /v2/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    bodies.append(read_all(connection).split(b"\r\n\r\n")[-1])
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(vmrun.TIMEOUT), 0, process.stderr.read())
            return bodies
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    def test_tcp(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        bodies = self.activated(f"127.0.0.1:{port}", lambda: socket.create_connection(("127.0.0.1", port), timeout=vmrun.TIMEOUT))
        self.assertEqual(bodies, 3 * [b'{"models":["mul"]}\n'])

    def test_unix(self):
        path = os.path.join(self.folder, "socket")

        def connect():
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(240)
            connection.connect(path)
            return connection

        self.assertEqual(self.activated(path, connect), 3 * [b'{"models":["mul"]}\n'])
