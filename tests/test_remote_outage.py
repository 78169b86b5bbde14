"""A network that is away for more than a minute, and one that delays and loses packets. Takes two minutes, so it is among the nightly
tests. Skipped where namespaces cannot be made; the second part also where the kernel has no netem."""
import json
import os
import subprocess
import time
import unittest

import vmrun
from remote_case import INPUTS, SIMPLE
from test_remote_network import RESULT, OnTwoMachines, ip
from test_stop import LOOP, program

MINUTE = 61  # seconds without a link


class Outage(OnTwoMachines):
    def start(self, module, *flags, options="", tool="vm-run"):
        process = subprocess.Popen([*self.machines.prefix(self.machines.here), os.path.join(vmrun.BIN, tool),
                                    f"--device={self.uri('local-task', options)}", f"--module={module}", *INPUTS, *flags],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for close in (process.stdout.close, process.stderr.close, process.wait, process.kill):
            self.addCleanup(close)
        return process

    def ended(self, process, begin, least):
        """The text of a process that ends with a failure, so many seconds after `begin` or later."""
        self.assertEqual(process.wait(vmrun.TIMEOUT), 1)
        seconds = time.monotonic() - begin
        errors = process.stderr.read()
        self.assertGreaterEqual(seconds, least, errors)
        return errors

    def packets(self):
        """That have come here."""
        link, = json.loads(ip("-n", self.machines.here, "-s", "-j", "link", "show", "dev", self.machines.link + "h").stdout)
        return link["stats64"]["rx"]["packets"]

    def test_a_minute_without_a_link(self):
        loop = program(self.folder, "loop", LOOP)
        # Work is in flight; both connections would wait longer than the link is away.
        with_deadline = self.start(loop, "--timeout=12s", options="&timeout=120000")
        without = self.start(loop)
        for process in (with_deadline, without):
            self.assertEqual(process.stdout.readline(), "EXEC @mul\n")
        patient = self.start(SIMPLE, "--benchmark_min_time=1000s", "--function=mul", options="&timeout=200000", tool="vm-bench")
        time.sleep(4)  # it calls again and again
        self.assertIsNone(patient.poll())
        begin = time.monotonic()
        self.machines.set_link("down")
        # The deadline of the program counts, not that of the connection.
        self.assertIn("DEADLINE_EXCEEDED", self.ended(with_deadline, begin, 0))
        # Without one the connection's patience of 30 s does, which counts from the last answer to a ping.
        errors = self.ended(without, begin, 15)
        self.assertIn("DEADLINE_EXCEEDED", errors)
        self.assertIn("and with it the memory of the device and", errors)
        time.sleep(max(0.0, MINUTE - (time.monotonic() - begin)))
        self.assertIsNone(patient.poll())
        self.machines.set_link("up")
        # TCP sends again, at the latest after as long as it has waited already. Then there are many calls, not only pings.
        before = self.packets()
        for _ in range(150):
            time.sleep(1)
            if self.packets() > before + 1000:
                break
        self.assertGreater(self.packets(), before + 1000)
        self.assertIsNone(patient.poll())
        patient.kill()
        # The server has stopped the work of the connections that are gone.
        fresh = self.vm_run(f"--device={self.uri('local-task')}", f"--module={SIMPLE}", *INPUTS)
        self.assertIn(RESULT, fresh.stdout, fresh.stderr)
        def seconds():
            fields = vmrun.read_text(f"/proc/{self.server.process.pid}/stat").rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for _ in range(60):
            before = seconds()
            time.sleep(0.5)
            if seconds() - before < 0.1:
                return
        self.fail("the server still computes for clients that are gone")

    def netem(self, *how):
        """Both directions of the link."""
        for namespace, end in ((self.machines.here, "h"), (self.machines.there, "t")):
            try:
                subprocess.run(["tc", "-n", namespace, "qdisc", "replace", "dev", self.machines.link + end, "root", "netem", *how],
                               capture_output=True, text=True, check=True)
            except FileNotFoundError:
                self.skipTest("tc is not installed (package iproute2)")
            except subprocess.CalledProcessError as error:
                if "qdisc kind is unknown" in error.stderr:
                    self.skipTest("this kernel has no netem (CONFIG_NET_SCH_NETEM), so delays and losses are not tested")
                raise

    def test_delays_and_losses(self):
        self.netem("delay", "1ms")
        for how in (["delay", "50ms", "10ms"], ["loss", "10%"], ["delay", "5ms", "reorder", "25%"], ["duplicate", "20%"],
                    ["rate", "1mbit"]):
            with self.subTest(how=" ".join(how)):
                self.netem(*how)
                done = self.vm_run(f"--device={self.uri('local-task')}", f"--module={SIMPLE}", *INPUTS)
                self.assertIn(RESULT, done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
