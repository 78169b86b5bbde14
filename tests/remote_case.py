"""Shared by the tests of remote devices: servers, certificates, and a proxy that cuts connections."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

import vmrun

vmrun.need_tool("vm-device")
SIMPLE = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
INPUTS = ["--input=8xf32=2", "--input=8xf32=5"]


def open_files(process):
    folder = f"/proc/{process}/fd"
    try:
        return [os.readlink(os.path.join(folder, each)) for each in os.listdir(folder)]
    except OSError:
        return []


class Server:
    """vm-device with these flags. `addresses`: as it printed them. `prefix`: a command that starts it."""

    def __init__(self, *flags, addresses=1, prefix=(), **options):
        self.process = subprocess.Popen([*prefix, os.path.join(vmrun.BIN, "vm-device"), *flags], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **options)
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

    def processes(self):
        """The numbers of the process that listens and of those that serve connections."""
        try:
            children = vmrun.read_text(f"/proc/{self.process.pid}/task/{self.process.pid}/children").split()
        except OSError:
            children = []
        return [self.process.pid, *map(int, children)]

    def serving(self, count):
        """The `count` processes that serve connections: they have a socket beside the one to the process that listens, which one that
        has just been started has as well."""
        found = []

        def are_all_known():
            found[:] = [process for process in self.processes()[1:] if sum("socket:" in at for at in open_files(process)) > 1]
            return len(found) == count

        vmrun.wait_until(are_all_known, f"{count} processes with a connection")
        return found

    def signal_all(self, number):
        for each in self.processes():
            try:
                os.kill(each, number)
            except ProcessLookupError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal_all(signal.SIGCONT)
        self.process.terminate()
        try:
            self.code = self.process.wait(vmrun.TIMEOUT)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.reader.join(60)
            self.process.stderr.close()


def make_certificates(folder, host="localhost", ca="ca", server="server", client="client"):
    """The commands of docs/remote.md."""
    if not shutil.which("openssl"):
        raise unittest.SkipTest("openssl is not installed")
    kind = "IP" if host[0].isdigit() else "DNS"
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    signed = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key"]
    for command in ([*new, "-subj", "/CN=authority", "-keyout", f"{ca}.key", "-out", f"{ca}.pem"],
                    [*new, *signed, "-subj", f"/CN={host}", "-addext", f"subjectAltName={kind}:{host}", "-keyout",
                     f"{server}.key", "-out", f"{server}.pem"],
                    [*new, *signed, "-subj", "/CN=laptop", "-keyout", f"{client}.key", "-out", f"{client}.pem"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def client_options(folder, ca="ca", client="client"):
    """The options of a URI for certificates of make_certificates()."""
    return f"cert={folder}/{client}.pem&key={folder}/{client}.key&ca={folder}/{ca}.pem"


def server_flags(folder):
    return [f"--cert={folder}/server.pem", f"--key={folder}/server.key", f"--client_ca={folder}/ca.pem"]


DRIVER = os.path.join(vmrun.DRIVERS, "halyard-driver-remote.so")
PAIR = os.path.join(vmrun.BUILD, "tests", "halyard-driver-remote-pair.so")
KERNELS = os.path.join(vmrun.BUILD, "tests", "vulkan")
# The programs that test_vulkan.py gives to hal-cts.
PROGRAMS = {"vulkan-spirv-fb": "device_code.bin", "vulkan-spirv-bda-v1": "device_code_bda.bin",
            "vulkan-spirv-bda-raw": "increment_bda.spv"}
LEAST = {"local-sync": 155, "local-task": 155, "null": 125, "vulkan": 145}  # cases that pass


def suite(transport, device, folder, *flags):
    """Runs hal-cts on a device through a server; returns (passed, failed, skipped, its output)."""
    environment = dict(os.environ)
    server = None
    if transport == "pair":
        files = [os.path.join(vmrun.DRIVERS, name) for name in sorted(os.listdir(vmrun.DRIVERS)) if "remote" not in name]
        environment["HALYARD_PAIR_DRIVERS"] = ":".join(files)
        driver, uri = PAIR, f"remote-pair://{device}"
    elif transport == "unix":
        path = os.path.join(folder, "d.sock")
        server = Server(f"--device={device}", f"--listen=unix://{path}")
        driver, uri = DRIVER, f"remote+unix://{path}"
    else:
        make_certificates(folder)
        server = Server(f"--device={device}", "--listen=tls://localhost:0", *server_flags(folder))
        # Not as options: some cases open the device without any.
        environment.update({f"HALYARD_REMOTE_{name.upper()}": os.path.join(folder, file)
                            for name, file in (("cert", "client.pem"), ("key", "client.key"), ("ca", "ca.pem"))})
        driver, uri = DRIVER, f"remote://localhost:{server.port}/{device}"
    programs = [f"--executable={form}={KERNELS}/{file}" for form, file in PROGRAMS.items()] if device == "vulkan" else []
    try:
        done = subprocess.run([os.path.join(vmrun.BIN, "hal-cts"), f"--driver={driver}", f"--device={uri}", "--timeout=120s", *programs,
                               *flags], capture_output=True, text=True, timeout=3000, env=environment)
    finally:
        if server:
            server.__exit__()
    counts = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", done.stdout)
    if not counts:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
    if server and server.code != 0:
        raise AssertionError(f"vm-device ended with {server.code}: " + "".join(server.log)[-2000:])
    return (*map(int, counts.groups()), done.stdout)


def failures(output):
    """The cases that have failed, of the output of hal-cts, and why."""
    return "".join(re.findall(r"(?m)^FAILED.*\n(?:  .*\n)*", output))[-20000:]


def runner(path, place):
    """A program that run.py of the fixtures takes for vm-run: `place` is a Python expression of a list of devices as URIs, by
    their numbers `i` and names `name`."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""#!{sys.executable}
import os, sys
arguments, i = [], 0
for each in sys.argv[1:]:
    if each.startswith("--device="):
        name = each.removeprefix("--device=")
        each = "--device=" + ({place})
        i += 1
    arguments.append(each)
os.execv({os.path.join(vmrun.BIN, 'vm-run')!r}, ["vm-run", *arguments])
""")
    os.chmod(path, 0o755)


def run_fixtures(program, folder, *flags):
    """Returns (passed, failed, skipped, output) of a folder of the shared fixtures."""
    done = subprocess.run([sys.executable, "run.py", program, os.path.join(vmrun.fixtures(), folder), *flags],
                          cwd=vmrun.fixtures(), capture_output=True, text=True)
    counts = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", done.stdout)
    return (*map(int, counts.groups()), done.stdout)


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
