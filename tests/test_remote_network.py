"""Two machines, as two network namespaces with a link between them: programs of two devices with one device on each, and a link that
goes down. Skipped where namespaces cannot be made (they need root and iproute2)."""
import itertools
import json
import os
import subprocess
import threading
import time
import unittest

import vmrun
from remote_case import INPUTS, SIMPLE, Server, client_options, make_certificates, server_flags
from test_stop import LOOP, program

NUMBERS = itertools.count()
RESULT = "8xf32=10 10 10 10 10 10 10 10"


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)


class Machines:
    """Two namespaces, `here` and `there`; there has the address HOST."""
    HOST = "10.77.0.2"

    def __init__(self):
        tag = f"hy{os.getpid() % 100000}x{next(NUMBERS)}"
        self.here, self.there, self.link = tag + "a", tag + "b", tag

    def __enter__(self):
        try:
            ip("netns", "add", self.here)
            ip("netns", "add", self.there)
            ip("link", "add", self.link + "h", "netns", self.here, "type", "veth", "peer", "name", self.link + "t", "netns", self.there)
            for namespace, end, address in ((self.here, "h", "10.77.0.1/24"), (self.there, "t", self.HOST + "/24")):
                ip("-n", namespace, "address", "add", address, "dev", self.link + end)
                ip("-n", namespace, "link", "set", self.link + end, "up")
                ip("-n", namespace, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            raise unittest.SkipTest(f"no network namespaces here: {getattr(error, 'stderr', '') or error}".strip()) from error
        return self

    def set_link(self, state):
        ip("-n", self.there, "link", "set", self.link + "t", state)

    def __exit__(self, *_):
        for namespace in (self.here, self.there):
            try:
                subprocess.run(["ip", "netns", "del", namespace], capture_output=True)
            except OSError:
                pass

    def prefix(self, name):
        return ["ip", "netns", "exec", name]

    def run(self, *command, timeout=vmrun.TIMEOUT):
        return subprocess.run([*self.prefix(self.here), *command], capture_output=True, text=True, timeout=timeout)


class OnTwoMachines(vmrun.FolderCase):
    """A server there, and programs here."""

    def setUp(self):
        super().setUp()
        self.machines = Machines()
        self.machines.__enter__()
        self.addCleanup(self.machines.__exit__)
        make_certificates(self.folder, host=Machines.HOST)
        self.server = Server("--device=local-task", "--device=local-sync", f"--listen=tls://{Machines.HOST}:0",
                             *server_flags(self.folder), prefix=self.machines.prefix(self.machines.there))
        self.addCleanup(self.server.__exit__)

    def uri(self, device, more=""):
        return f"remote://{Machines.HOST}:{self.server.port}/{device}?{client_options(self.folder)}{more}"

    def vm_run(self, *arguments, **options):
        return self.machines.run(os.path.join(vmrun.BIN, "vm-run"), *arguments, **options)


class TwoMachines(OnTwoMachines):
    def test_plain_tcp_to_another_machine_is_refused(self):
        done = vmrun.run("vm-device", "--device=local-sync", f"--listen=tcp://{Machines.HOST}:0")
        self.assertEqual(done.returncode, 1)
        with Server("--device=local-sync", f"--listen=tcp://{Machines.HOST}:0", "--insecure",
                    prefix=self.machines.prefix(self.machines.there)) as plain:
            uri = f"remote://{Machines.HOST}:{plain.port}"
            done = self.vm_run(f"--device={uri}", f"--module={SIMPLE}", *INPUTS)
            self.assertEqual(done.returncode, 1)
            self.assertIn("PERMISSION_DENIED", done.stderr)
            self.assertIn("insecure=1", done.stderr)
            done = self.vm_run(f"--device={uri}?insecure=1", f"--module={SIMPLE}", *INPUTS)
            self.assertIn(RESULT, done.stdout, done.stderr)

    def test_programs_of_two_devices(self):
        """Each shared program of several devices, with every choice of one device there and the others here."""
        fixtures = vmrun.fixtures()
        if not fixtures:
            self.skipTest("the shared fixtures are not here; HALYARD_FIXTURES names their folder")
        ran = 0
        for folder in ("compiled", "vmasm"):
            place = os.path.join(fixtures, folder)
            for case in json.loads(vmrun.read_text(os.path.join(place, "cases.json"))):
                devices = case["devices"]
                if len(devices) < 2 or "vulkan" in devices:
                    continue
                for there in range(len(devices)):
                    named = [self.uri(name) if i == there else name for i, name in enumerate(devices)]
                    modules = case["module"] if isinstance(case["module"], list) else [case["module"]]
                    done = self.vm_run(*case.get("flags", []), *[f"--device={name}" for name in named],
                                       *[f"--module={os.path.join(place, name)}" for name in modules],
                                       f"--function={case['function']}", *[f"--input={text}" for text in case.get("inputs", [])])
                    with self.subTest(case=case["name"], there=there):
                        if "error" in case:
                            self.assertNotEqual(done.returncode, 0)
                            self.assertIn(case["error"], done.stderr)
                        else:
                            self.assertEqual(done.returncode, 0, done.stderr)
                            values = [line for line in done.stdout.splitlines() if "=" in line or line[:1].isdigit()]
                            self.assertEqual(values, [line for line in case["expected"] if "=" in line or line[:1].isdigit()])
                    ran += 1
        self.assertGreaterEqual(ran, 20)

    def test_the_link_goes_down(self):
        """Work in flight and everything later fails at the deadline, by name; the link that comes back serves new connections."""
        uri = self.uri("local-task", "&timeout=8000")
        self.assertIn(RESULT, self.vm_run(f"--device={uri}", f"--module={SIMPLE}", *INPUTS).stdout)
        # The link is down before, and goes down between two calls of one process.
        self.machines.set_link("down")
        done = self.vm_run(f"--device={uri}", f"--module={SIMPLE}", *INPUTS)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "DEADLINE_EXCEEDED|UNAVAILABLE")
        self.assertIn(Machines.HOST, done.stderr)
        self.machines.set_link("up")
        self.serves_again(uri)
        process = subprocess.Popen([*self.machines.prefix(self.machines.here), os.path.join(vmrun.BIN, "vm-run"), f"--device={uri}",
                                    f"--module={program(self.folder, 'loop', LOOP)}", *INPUTS],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "EXEC @mul\n")
        time.sleep(0.5)
        self.machines.set_link("down")
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
        errors = process.stderr.read()
        self.assertIn("DEADLINE_EXCEEDED", errors)
        self.assertRegex(errors, r"is lost .*and with it the memory of the device and \d+ submissions in flight")
        self.machines.set_link("up")
        self.serves_again(uri)

    def serves_again(self, uri):
        """A link that comes up takes a moment until it has a route."""
        vmrun.wait_until(lambda: RESULT in self.vm_run(f"--device={uri}", f"--module={SIMPLE}", *INPUTS).stdout, "the link")

    def test_a_link_that_comes_back_in_time(self):
        """TCP sends again what was lost; nothing is noticed."""
        uri = self.uri("local-task", "&timeout=60000")
        self.machines.set_link("down")
        timer = threading.Timer(1.0, lambda: self.machines.set_link("up"))
        timer.start()
        done = self.vm_run(f"--device={uri}", f"--module={SIMPLE}", *INPUTS)
        timer.join()
        self.assertIn(RESULT, done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
