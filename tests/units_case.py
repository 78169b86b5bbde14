"""Units for systemd, as systemd's own programs see them. Not a test."""
import os
import re
import subprocess

import vmrun


class UnitsCase:
    """The units of one tool, and checks of them; beside a case with a folder."""
    units: tuple  # files, the service first
    tool: str

    def copies(self, change=lambda text: text):
        """The units with the program of the build, because systemd-analyze looks whether there is one."""
        program = os.path.join(vmrun.BIN, self.tool)
        paths = []
        for unit in self.units:
            text = change(re.sub(rf'(?m)^ExecStart="[^"]*{self.tool}" ', f'ExecStart="{program}" ', vmrun.read_text(unit)))
            paths.append(self.write(os.path.basename(unit), text))
        return paths

    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
                              env={**os.environ, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"})

    def check_that_systemd_takes_them(self):
        done = self.analyze("verify", "--man=no", *self.copies())
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        # It does say where a setting is unknown, so that silence is worth something.
        done = self.analyze("verify", "--man=no", *self.copies(lambda text: text.replace("ProtectHome=", "ProtectHomes=")))
        self.assertIn("ProtectHomes", done.stdout)

    def check_that_the_service_is_locked_down(self):
        done = self.analyze("security", "--offline=true", "--threshold=25", self.copies()[0])  # tenths
        if "unrecognized option" in done.stdout:
            self.skipTest("systemd-analyze is older than 250")
        self.assertEqual(done.returncode, 0, done.stdout)
