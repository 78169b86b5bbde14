"""The device with worker threads: the examples print there what they print on local-sync, whatever its options; programs that use
both kinds of device at once; wrong options."""
import sys
import unittest

import test_examples
import vmrun

DEVICES = ["local-task", "local-task?workers=1", "local-task?workers=7", "local-task?workers=2&queues=3&validate=1",
           "local-task://?validate=1", "local-sync?validate=1"]
# The program uses the first; the second is there.
PAIRS = [("local-task", "local-sync"), ("local-sync", "local-task"), ("local-task", "local-task?workers=1")]


def examples_with_devices():
    """(example, command, lines expected) of every command that names a device."""
    for example in sorted((test_examples.SOURCE / "examples").rglob("*.vmasm")):
        for command, expected in test_examples.commands(example.read_text()):
            if "--device=local-sync " in command:
                yield example.stem, command, expected


class LocalTask(unittest.TestCase):
    def expect_same(self, flags):
        ran = 0
        for example, command, expected in examples_with_devices():
            with self.subTest(example=example, flags=flags):
                done = test_examples.shell(command.replace("--device=local-sync ", flags + " "))
                self.assertEqual((done.returncode, done.stdout.splitlines()), (0, expected), done.stderr)
                ran += 1
        self.assertGreater(ran, 0, "no example names a device")

    def test_every_example_on_every_variant(self):
        for device in DEVICES:
            self.expect_same(f"'--device={device}'")

    def test_two_devices(self):
        for first, second in PAIRS:
            self.expect_same(f"'--device={first}' '--device={second}'")

    def test_is_the_default(self):
        self.expect_same("")

    def test_is_listed(self):
        done = vmrun.run("vm-run", "--list_devices")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("local-task://", done.stdout.splitlines())

    def test_wrong_options_say_what_is_right(self):
        example = "examples/matmul.vmasm"
        for option, parts in [("workers=0", ["'workers'", "'0'", "1 to 1024"]), ("workers=many", ["'many'"]),
                              ("queues=65", ["'queues'", "1 to 64"]), ("validate=yes", ["'validate'", "0 or 1"]),
                              ("threads=2", ["'threads'", "'workers'", "'queues'", "'validate'"])]:
            with self.subTest(option=option):
                done = vmrun.run("vm-run", f"--device=local-task?{option}", f"--module={example}", "--function=matmul",
                                 "--input=4x3xf32=1", "--input=3x2xf32=1")
                self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", *parts), done.stderr)
        done = vmrun.run("vm-run", "--device=local-sync?workers=2", f"--module={example}", "--function=matmul",
                         "--input=4x3xf32=1", "--input=3x2xf32=1")
        self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "'workers'", "'local-sync'"), done.stderr)


if __name__ == "__main__":
    if not (test_examples.TOOLS / "vm-run").exists():
        vmrun.skip("vm-run is not built")
    sys.exit(not unittest.main(exit=False, verbosity=1).result.wasSuccessful())
