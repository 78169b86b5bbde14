"""Shared by the tests of remote devices: servers, certificates, and a proxy that cuts connections."""
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import vmrun

vmrun.need_tool("vm-device")
SIMPLE = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
INPUTS = ["--input=8xf32=2", "--input=8xf32=5"]


class Server:
    """vm-device with these flags. `addresses`: as it printed them."""

    def __init__(self, *flags, addresses=1):
        self.process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-device"), *flags], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(addresses)]
        if not lines[-1]:
            raise AssertionError(self.process.communicate()[1])
        self.addresses = [line.removeprefix("vm-device: ").strip() for line in lines]
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    @property
    def port(self):
        return int(re.search(r":(\d+)$", self.addresses[0])[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.reader.join(5)
            self.process.stderr.close()


def make_certificates(folder, host="localhost", ca="ca", server="server", client="client"):
    """The commands of docs/remote.md."""
    if not shutil.which("openssl"):
        raise unittest.SkipTest("openssl is not installed")
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    signed = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key"]
    for command in ([*new, "-subj", "/CN=authority", "-keyout", f"{ca}.key", "-out", f"{ca}.pem"],
                    [*new, *signed, "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}", "-keyout", f"{server}.key",
                     "-out", f"{server}.pem"],
                    [*new, *signed, "-subj", "/CN=laptop", "-keyout", f"{client}.key", "-out", f"{client}.pem"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


class Proxy:
    """Passes bytes between clients and a Unix socket, and closes a connection after so many bytes of one direction.
    `limit`: (to the server?, bytes), or None."""

    def __init__(self, path, target, limit=None):
        self.target, self.limit = target, limit
        self.counts = [0, 0]  # to the client, to the server
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for source, sink, to_server in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.pass_on, args=(source, sink, to_server), daemon=True).start()

    def pass_on(self, source, sink, to_server):
        try:
            while data := source.recv(65536):
                end = len(data)
                if self.limit and self.limit[0] == to_server:
                    end = max(0, min(end, self.limit[1] - self.counts[to_server]))
                sink.sendall(data[:end])
                self.counts[to_server] += end
                if end < len(data):
                    break
        except OSError:
            pass
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
