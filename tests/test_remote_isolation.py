"""Clients whose kernels or calls crash a driver, end its process, block it or take all memory, beside clients that go on: each
connection has a process of its own. The driver does what executables ask for (faulty_driver/faulty.c)."""
import os
import re
import signal
import socket
import subprocess
import time
import unittest

import vmrun
from remote_case import INPUTS, SIMPLE, Server, client_options, make_certificates, server_flags
from test_remote_peers import PeersCase, metrics

FAULTY = os.path.join(vmrun.BUILD, "tests", "faulty", "halyard-driver-faulty.so")
KINDS = {"segv": r"SIGSEGV \(Segmentation fault\)", "abort": r"SIGABRT \(Aborted\)", "exit": "exit code 3", "hoard": r"SIGABRT \(Aborted\)"}  # the last: malloc() has failed


def ends(server, count, limit=vmrun.TIMEOUT):
    """Waits until the server has so many processes that serve connections, or wait for one."""
    end = time.monotonic() + limit
    while len(found := server.processes()) - 1 != count:
        if time.monotonic() > end:
            raise AssertionError(f"the processes are {found}")
        time.sleep(0.05)


@unittest.skipUnless(os.path.exists(FAULTY), "the faulty driver is not built")
class Isolation(PeersCase):
    def offer(self, *flags, **options):
        return self.serve(f"--driver={FAULTY}", "--device=local-task", "--device=local-sync", *flags, **options)

    def program(self, kind):
        text = vmrun.read_text(SIMPLE)
        marked = text.replace('  vm.attr @mul "binding_count" "3"\n', f'  vm.attr @mul "binding_count" "3"\n  vm.attr @mul "fault" "fault-{kind}"\n')
        self.assertNotEqual(text, marked)
        path = self.path(f"{kind}.vmasm")
        vmrun.write(path, marked)
        return path

    def fails(self, uri, kind, *flags, timeout=vmrun.TIMEOUT):
        done = subprocess.run([os.path.join(vmrun.BIN, "vm-run"), f"--device={uri}", f"--module={self.program(kind)}", *INPUTS, *flags],
                              capture_output=True, text=True, timeout=timeout)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def logged(self, server, pattern):
        vmrun.wait_until(lambda: re.search(pattern, "".join(server.log)), f"{pattern} in the log")

    def test_a_crash_ends_one_connection_alone(self):
        server = self.offer()
        # The same client has work in flight all the time.
        working = [self.begin(self.uri(device)) for device in ("local-task", "local-sync")]
        for kind, cause in KINDS.items():
            for device in ("local-task", "local-sync"):
                error = self.fails(self.uri(device), kind)
                self.assertRegex(error, "^vm-run: UNAVAILABLE; the connection to .* is lost", kind)
                self.assertRegex(error, f"the server's process of this connection (was ended|has ended itself) .*({cause})", kind)
                self.assertRegex(error, r"with it the memory of the device and \d+ submissions in flight", kind)
                self.good(self.uri(device))
            self.logged(server, rf"client 'user \w+' \(unix\): process \d+ of its connection .*({cause}).*; other connections go on")
            for process in working:
                self.assertIsNone(process.poll())
        self.becomes(server, "process_crashes_total", 2 * len(KINDS))
        self.becomes(server, "connections", len(working))  # those of clients that have ended take a moment to end
        for process in working:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(vmrun.TIMEOUT), 130, process.stderr.read())
        self.becomes(server, "connections", 0)
        self.becomes(server, "memory_bytes", metrics(server)["cached_bytes"])
        ends(server, 1)

    def test_clients_with_tls(self):
        """Nobody can send the reason after the process and its keys have gone."""
        make_certificates(self.folder)
        server = Server(f"--driver={FAULTY}", "--device=local-task", "--listen=tls://localhost:0", *server_flags(self.folder))
        self.addCleanup(server.__exit__)
        uri = f"remote://localhost:{server.port}?{client_options(self.folder)}"
        error = self.fails(uri, "segv")
        self.assertRegex(error, "^vm-run: UNAVAILABLE; .* its process may have crashed: the log of the server tells")
        self.logged(server, r"client 'CN=laptop' \(127\.0\.0\.1:\d+\): process \d+ of its connection was ended by SIGSEGV")
        self.good(uri)

    def test_a_process_that_is_killed(self):
        server = self.offer()
        process = self.begin(self.uri())
        os.kill(server.serving(1)[0], signal.SIGKILL)
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
        self.assertRegex(process.stderr.read(), r"UNAVAILABLE; .*SIGKILL \(Killed\); is the machine short of memory\?")
        self.good(self.uri())

    def test_work_that_cannot_be_stopped(self):
        server = self.offer("--max_time=6s")
        # The process ends although a thread of the driver goes on.
        error = self.fails(self.uri(), "loop")
        self.assertIn("DEADLINE_EXCEEDED", error)
        self.assertIn("--max_time", error)
        self.good(self.uri())
        ends(server, 1)

    def test_clients_that_leave_a_driver_that_does_not_return(self):
        server = self.offer()
        processes = []
        for kind in ("loop", "submit"):
            processes.append(self.begin(self.uri(), module=self.program(kind)))
        processes.append(subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--device={self.uri()}", f"--module={self.program('load')}",
                                           *INPUTS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.addCleanup(processes[-1].wait)
        computing = lambda: sum(vmrun.processor_seconds(each) >= 0.5 for each in server.processes()[1:])  # noqa: E731
        vmrun.wait_until(lambda: computing() >= len(processes), "the driver to be at work for each of them")
        self.good(self.uri())
        for process in processes:
            process.kill()
        ends(server, 1)
        self.becomes(server, "connections", 0)
        self.becomes(server, "memory_bytes", metrics(server)["cached_bytes"])
        self.logged(server, "its driver did not let it end")
        self.good(self.uri())

    def test_the_end_of_a_server_whose_drivers_hang(self):
        server = self.offer()
        self.begin(self.uri(), module=self.program("submit"))
        children = server.processes()[1:]
        self.assertGreaterEqual(len(children), 2)
        server.process.terminate()
        self.assertEqual(server.process.wait(vmrun.TIMEOUT), 0)
        for each in children:
            self.assertFalse(os.path.exists(f"/proc/{each}"))

    def test_processes_end_with_the_one_that_listens(self):
        server = self.offer()
        process = self.begin(self.uri())
        children = server.processes()[1:]
        server.process.kill()
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)

        def has_ended(number):
            try:
                return " Z " in vmrun.read_text(f"/proc/{number}/stat")
            except OSError:
                return True

        vmrun.wait_until(lambda: all(map(has_ended, children)), "its processes to end")

    def test_strangers(self):
        """More connections of clients that do not say who they are than there may be: a client that does is served."""
        server = self.offer()
        strangers = []
        for _ in range(80):
            strangers.append(socket.socket(socket.AF_UNIX))
            strangers[-1].connect(self.path("d.sock"))
        self.good(self.uri())
        self.logged(server, "it did not say who it is")
        for each in strangers:
            each.close()
        ends(server, 1)

    def test_one_process(self):
        server = self.offer("--one_process")
        self.good(self.uri())
        self.assertEqual(len(server.processes()), 1)
        self.assertEqual(metrics(server)["processes"], 1)
        # The price of it.
        other = self.begin(self.uri("local-sync"))
        self.assertIn("UNAVAILABLE", self.fails(self.uri(), "segv"))
        self.assertEqual(other.wait(vmrun.TIMEOUT), 1)
        self.assertEqual(server.process.wait(vmrun.TIMEOUT), -signal.SIGSEGV)


class Shared(PeersCase):
    def test_connections_of_a_client_share_its_limits(self):
        server = self.serve("--device=local-task", "--max_client_connections=2")
        working = [self.begin(self.uri()) for _ in range(2)]
        done = vmrun.run("vm-run", f"--device={self.uri()}", f"--module={SIMPLE}", *INPUTS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--max_client_connections", done.stderr)
        before = metrics(server)
        self.assertEqual(before["connections"], 2)
        self.assertGreater(before["memory_bytes"], 0)
        # What a process that is killed had counted is given back.
        os.kill(server.serving(2)[0], signal.SIGKILL)
        self.becomes(server, "connections", 1)
        vmrun.wait_until(lambda: any(process.poll() == 1 for process in working), "the client of that process to fail")
        self.holds(server, "memory_bytes", lambda found: found < before["memory_bytes"], f"less than {before['memory_bytes']}")
        after = metrics(server)
        self.assertGreaterEqual(after["received_bytes_total"], before["received_bytes_total"])
        self.good(self.uri())

    def test_code_is_sent_once(self):
        server = self.serve("--device=local-task")
        self.good(self.uri())
        self.becomes(server, "connections", 0)
        first = metrics(server)
        self.assertGreater(first["cached_bytes"], 0)
        self.good(self.uri())
        self.becomes(server, "connections", 0)
        second = metrics(server)
        self.assertEqual(second["cached_bytes"], first["cached_bytes"])
        self.assertLess(second["received_bytes_total"] - first["received_bytes_total"], first["received_bytes_total"] - 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
