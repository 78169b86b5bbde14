"""The models of waiting and of teams (*.pml) hold under all schedules, as Spin sees them; each planted fault is found; and the code that a
model names is still there. The searches are skipped where spin is not installed."""
import re
import shutil
import subprocess
import unittest

import vmrun
from installed import SOURCE

BLOCKED = "invalid end state"  # a wakeup is lost
BROKEN = "assertion violated"
# Model: the faults that it has, and how the search reports them.
MODELS = {
    "base/tests/wait.pml": {"CHECK_FIRST": BLOCKED, "CHECK_UNLOCKED": BLOCKED, "CHECK_BEFORE_ARMED": BLOCKED, "NO_NUMBER": BROKEN,
                            "STAYS_ARMED": BROKEN, "ABANDON_UNLOCKED": BROKEN, "HOOK_UNLOCKED": BROKEN, "NOTIFY_UNLOCKED": BROKEN},
    "hal/tests/fence_wait.pml": {"CHECK_FIRST": BLOCKED, "DROP_SILENTLY": BLOCKED, "DROP_TWICE": BROKEN, "KEEP_LATE": BROKEN,
                                 "LEAVE_SUBSCRIBER": BROKEN},
    "drivers/local/tests/team.pml": {"NO_REFERENCE": BROKEN, "ENTER_CLOSED": BROKEN, "FORGET_NUMBER": BROKEN, "DO_NOT_WAIT": BROKEN,
                                     "RELEASE_STARTED": BROKEN, "RELEASE_FIRST": BROKEN},
}
DEPTH = 100000
SECONDS = 600  # of one step; a guard against a search without end


@unittest.skipUnless(shutil.which("spin") and shutil.which("cc"), "spin is not installed (./dev setup)")
class Schedules(vmrun.FolderCase):
    def search(self, model, *defines):
        """What the search of all states prints."""
        done = None
        for command in (["spin", "-a", *defines, str(SOURCE / model)], ["cc", "-O1", "-DSAFETY", "-o", "pan", "pan.c"],
                        ["./pan", f"-m{DEPTH}"]):
            done = subprocess.run(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("max search depth too small", done.stdout)
        return done.stdout

    def test_models_hold(self):
        for model in MODELS:
            with self.subTest(model):
                found = self.search(model)
                self.assertIn("errors: 0", found)
                self.assertNotIn("Search not completed", found)
                self.assertGreater(int(re.search(r"(\d+) states, stored", found)[1]), 10000)

    def test_planted_faults_are_found(self):
        for model, faults in MODELS.items():
            for fault, report in faults.items():
                with self.subTest(model, fault=fault):
                    found = self.search(model, f"-DPLANT_{fault}")
                    self.assertIn("errors: 1", found)
                    self.assertIn(report, found)


class Code(unittest.TestCase):
    def test_the_faults_of_the_models_are_those_of_the_table(self):
        self.assertEqual({str(path.relative_to(SOURCE)) for layer in ("base", "hal", "drivers/local") for path in (SOURCE / layer / "tests").glob("*.pml")},
                         set(MODELS))
        for model, faults in MODELS.items():
            text = vmrun.read_text(SOURCE / model)
            self.assertEqual(set(re.findall(r"^#ifn?def PLANT_(\w+)$", text, re.MULTILINE)), set(faults), model)

    def test_the_code_of_the_models_is_there(self):
        for model in MODELS:
            text = vmrun.read_text(SOURCE / model)
            sources = re.search(r"Sources: ((?:\s*\**\s*[\w/]+\.\w+)+)", text)[1].replace("*", " ").split()
            code = " ".join(" ".join(vmrun.read_text(SOURCE / source).split()) for source in sources)
            named = re.findall(r"`([^`\n]+)`", text)
            self.assertGreater(len(named), 15, model)
            for snippet in named:
                with self.subTest(model):
                    self.assertTrue(snippet in code, f"'{snippet}' is in none of {sources}")
