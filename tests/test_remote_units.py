"""The units of vm-device for systemd, as systemd's own programs see them, and the examples for Kubernetes against its schemas, which
the npm package kubernetes-models has."""
import os
import re
import shutil
import subprocess
import unittest

import vmrun
from units_case import UnitsCase

SERVICE = os.path.join(vmrun.BUILD, "share", "systemd", "halyard-device.service")
SOCKET = os.path.join(vmrun.SOURCE, "packaging", "systemd", "halyard-device.socket")
EXAMPLES = os.path.join(vmrun.SOURCE, "examples", "remote")
vmrun.need_tool("vm-device")


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Units(UnitsCase, vmrun.FolderCase):
    units, tool = (SERVICE, SOCKET), "vm-device"

    def test_systemd_takes_them_without_a_word(self):
        self.check_that_systemd_takes_them()

    def test_the_service_is_locked_down(self):
        self.check_that_the_service_is_locked_down()


class Memory(unittest.TestCase):
    def test_limits_leave_room_for_a_client(self):
        """--max_client_memory (4 GiB unless given), wherever the server is deployed."""
        for path, limit in ((SERVICE, r"(?m)^MemoryMax=(\d+)G$"), (os.path.join(EXAMPLES, "kubernetes.yaml"), r"limits: {memory: (\d+)Gi}"),
                            (os.path.join(EXAMPLES, "kubernetes-gpu.yaml"), r"limits: {memory: (\d+)Gi}")):
            text = vmrun.read_text(path)
            flag = re.search(r"--max_client_memory=(\d+)GiB", text)
            self.assertGreaterEqual(int(re.search(limit, text)[1]), 2 * int(flag[1] if flag else 4), path)


class Kubernetes(vmrun.FolderCase):
    def check(self, *files):
        folder = os.environ.get("HALYARD_KUBERNETES_MODELS")
        if not folder or not shutil.which("node"):
            self.skipTest("HALYARD_KUBERNETES_MODELS names no folder with the schemas; there: npm install kubernetes-models@5 yaml")
        done = subprocess.run(["node", os.path.join(vmrun.SOURCE, "tests", "remote_schemas.mjs"), folder, *files], capture_output=True, text=True,
                              timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_examples(self):
        files = [os.path.join(EXAMPLES, name) for name in ("kubernetes.yaml", "kubernetes-gpu.yaml")]
        self.assertEqual(self.check(*files), ["Deployment", "Service", "NetworkPolicy", "ResourceClaimTemplate", "Deployment"])
        # The check sees wrong fields and values.
        text = vmrun.read_text(files[1])
        for right, wrong in (("deviceClassName", "deviceClas"), ("containerPort: 9414", "containerPort: abc")):
            self.assertIn(right, text)
            lines = self.check(self.write("wrong.yaml", text.replace(right, wrong)))
            self.assertTrue(any(" " in line for line in lines), (wrong, lines))

    def test_flags_of_the_examples(self):
        """vm-device takes them; only the devices and files are others."""
        for name in ("kubernetes.yaml", "kubernetes-gpu.yaml"):
            flags = re.findall(r"(?m)^            - (--\S+)$", vmrun.read_text(os.path.join(EXAMPLES, name)))
            self.assertGreaterEqual(len(flags), 6)
            flags = [flag for flag in flags if not flag.startswith("--device=")]
            done = vmrun.run("vm-device", "--device=no-such-driver", *flags)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"server\.pem|no-such-driver", name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
