"""Devices of vm-device keep the contract of drivers over every transport, and run every shared program of one device like local
ones. Takes minutes (./dev nightly); test_remote.py has a part of it."""
import os
import unittest

import remote_case
import vmrun
from remote_case import LEAST

DEVICES = [name for name in LEAST if name != "vulkan" or vmrun.vulkan_device()]


class Matrix(vmrun.FolderCase):
    def check(self, transport):
        for device in DEVICES:
            with self.subTest(device=device):
                folder = self.path(device)
                os.mkdir(folder)
                passed, failed, skipped, output = remote_case.suite(transport, device, folder)
                print(f"{transport} {device}: {passed} passed, {failed} failed, {skipped} skipped")
                self.assertEqual(failed, 0, output[-4000:])
                self.assertGreaterEqual(passed, LEAST[device], output[-4000:])

    def test_in_one_process(self):
        self.check("pair")

    def test_unix_sockets(self):
        self.check("unix")

    def test_tls(self):
        self.check("tls")


class Fixtures(vmrun.FolderCase):
    def test_programs(self):
        fixtures = vmrun.needed_fixtures()
        devices = ["local-task", "local-sync", *(["vulkan"] if "vulkan" in DEVICES else [])]
        path = self.path("d.sock")
        runner = self.path("runner")
        remote_case.runner(runner, f"'remote+unix://{path}?device=' + name")
        skip = [] if "vulkan" in DEVICES else ["--skip-device", "vulkan"]
        with remote_case.Server(*[f"--device={name}" for name in devices], "--allow_native", f"--listen=unix://{path}") as server:
            for folder in ("compiled", "constants", "exec/vmvx", "vmasm", "vmasm/legacy"):
                if not os.path.exists(os.path.join(fixtures, folder, "cases.json")):
                    continue
                with self.subTest(folder=folder):
                    passed, failed, skipped, output = remote_case.run_fixtures(runner, folder, *skip)
                    print(f"{folder}: {passed} passed, {failed} failed, {skipped} skipped")
                    self.assertEqual(failed, 0, output[-4000:])
            # Bytes that one connection passes on to another one while work changes them: a matter of time.
            for _ in range(20 if os.path.exists(os.path.join(fixtures, "compiled")) else 0):
                passed, failed, _, output = remote_case.run_fixtures(runner, "compiled", "--only", "multi_device_mul.vmvx+vmvx.multi_device_mul.0")
                self.assertEqual((passed > 0, failed), (True, 0), output)
        self.assertEqual(server.code, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
