#!/usr/bin/env python3
"""A process of vm-run from its start to its end, for one call of simple_mul, beside /bin/true.

usage: benchmarks/startup.py [--json] [--rounds=N] [--build=FOLDER] [--device=URI] [--against=PROGRAM]

The programs run in turns, N rounds. --build is a build folder or a prefix of `./dev install`; what is installed is stripped and,
unlike most build folders, optimized as a whole. --against is another runner, which gets the same flags: iree-run-module, or vm-run of another
build. CPU time is that of user and kernel. Peak memory and page faults are those that the system accounts to the process. System
calls are counted with strace if it is there. Without the fixtures (HALYARD_FIXTURES), the program is examples/elementwise_mul.vmasm.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def call():
    """The flags of one call."""
    fixtures = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
    module = (fixtures / "compiled" / "simple_mul.vmvx.vmfb").resolve()
    if module.exists():
        return [f"--module={module}", "--function=simple_mul", "--input=4xf32=1,2,3,4", "--input=4xf32=5,6,7,8"]
    return [f"--module={SOURCE / 'examples' / 'elementwise_mul.vmasm'}", "--function=mul",
            "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2"]


def run(command):
    """Seconds of the wall clock, and what the system accounts to the process."""
    if not os.access(command[0], os.X_OK):
        sys.exit(f"startup.py: there is no program '{command[0]}'; build it, or name another folder with --build= or program with --against=")
    begin = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with {os.waitstatus_to_exitcode(status)}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "faults": used.ru_minflt}


def peak_memory(command):
    """KiB; None without a C compiler. What the system accounts includes the memory that the process had before exec(), so a program
    smaller than Python starts it."""
    source = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char** arguments) {
  if (fork() == 0) {
    dup2(open("/dev/null", O_WRONLY), 1);
    execv(arguments[1], arguments + 1);
    _exit(127);
  }
  int status = 0;
  struct rusage used;
  wait4(-1, &status, 0, &used);
  printf("%ld", used.ru_maxrss);
  return count < 2 || status != 0;
}
"""
    if not shutil.which("cc"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        starter = os.path.join(folder, "starter")
        subprocess.run(["cc", "-O1", "-x", "c", "-", "-o", starter], input=source, text=True, check=True)
        return min(int(subprocess.run([starter, *command], capture_output=True, check=True).stdout) for _ in range(10))


def system_calls(command):
    """Of all threads; None without strace."""
    if not shutil.which("strace"):
        return None
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(["strace", "-f", "-qq", "-o", log.name, *command], stdout=subprocess.DEVNULL, check=True)
        return sum("(" in line and " resumed>" not in line for line in log)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--build", default=SOURCE / "build" / "release")
    parser.add_argument("--device", default="")
    parser.add_argument("--against", default="")
    arguments = parser.parse_args()

    flags = call() + ([f"--device={arguments.device}"] if arguments.device else [])
    commands = {"/bin/true": ["/bin/true"], "vm-run": [str(pathlib.Path(arguments.build).resolve() / "bin" / "vm-run"), *flags]}
    if arguments.against:
        commands[arguments.against] = [shutil.which(arguments.against) or sys.exit(f"there is no program '{arguments.against}'"), *flags]
    runs = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            runs[name].append(run(command))
    rows = {}
    for name, command in commands.items():
        columns = {key: [each[key] for each in runs[name]] for key in ("wall", "cpu", "faults")}
        rows[name] = {"wall_ms": min(columns["wall"]) * 1e3, "wall_median_ms": statistics.median(columns["wall"]) * 1e3,
                      "cpu_ms": min(columns["cpu"]) * 1e3, "cpu_median_ms": statistics.median(columns["cpu"]) * 1e3,
                      "page_faults": min(columns["faults"]), "peak_KiB": peak_memory(command), "system_calls": system_calls(command)}
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'program':40} {'wall, least (median)':>22} {'CPU, least (median)':>22} {'page faults':>12} {'peak':>10} {'system calls':>13}")
    for name, row in rows.items():
        wall, cpu = (f"{row[key + '_ms']:.2f} ms ({row[key + '_median_ms']:.2f})" for key in ("wall", "cpu"))
        peak, calls = ("-" if row[key] is None else row[key] for key in ("peak_KiB", "system_calls"))
        print(f"{name:40} {wall:>22} {cpu:>22} {row['page_faults']:>12} {peak:>6} KiB {calls:>13}")


if __name__ == "__main__":
    main()
