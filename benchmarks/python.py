#!/usr/bin/env python3
"""The cost of a warm call from Python and from C, in one run: the product of two small tensors on local-sync.

usage: benchmarks/python.py [--json] [--rounds=N] [--build=FOLDER]

Python and the program `call` alternate; each row is the minimum of N rounds, in CPU time. The program is simple_mul if the fixtures
exist (HALYARD_FIXTURES or ../shared/fixtures), else the example elementwise_mul.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def fixtures():
    return pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))


def from_c(build, row):
    report = subprocess.run([build / "benchmarks" / "call", f"--benchmark_filter={row}$", "--benchmark_format=json",
                             "--benchmark_min_time=0.2"], capture_output=True, text=True, check=True)
    found = json.loads(report.stdout)["benchmarks"]
    return found[0]["cpu_time"] * 1e-9 if found and not found[0].get("error_occurred") else None


def timed(call, turns=20000):
    """CPU time of this thread, as the program `call` measures it: other work of the machine does not count."""
    begin = time.thread_time()
    for _ in range(turns):
        call()
    return (time.thread_time() - begin) / turns


def import_time(build):
    code = "import time; t = time.process_time(); import halyard; print(time.process_time() - t)"
    done = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(build / 'python')!r}); {code}"],
                          capture_output=True, text=True, check=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    sys.path.insert(0, str(build / "python"))
    import numpy as np

    import halyard

    device = halyard.device("local-sync")
    fixture = fixtures() / "compiled" / "simple_mul.vmvx.vmfb"
    if fixture.exists():
        row, multiply, size = "simple_mul", halyard.load(fixture, device=device).simple_mul, 4
    else:
        row, size = "elementwise_mul", 8
        multiply = halyard.load(SOURCE / "examples" / "elementwise_mul.vmasm", device=device).mul
    a, b = np.full(size, 2, np.float32), np.full(size, 3, np.float32)
    left, right = halyard.Tensor(a, device=device), halyard.Tensor(b, device=device)
    nothing = halyard.load(halyard.assemble("""
vm.module @small
vm.export @empty
vm.func @empty() -> () {
  vm.return
}
""")).empty
    rows = {f"C: {row}": lambda: from_c(build, f"call_product/{row}"),
            "Python: from numpy arrays": lambda: timed(lambda: multiply(a, b)),
            "Python: from tensors": lambda: timed(lambda: multiply(left, right)),
            "Python: from numpy arrays, and to one": lambda: timed(lambda: np.asarray(multiply(a, b))),
            "C: an empty function": lambda: from_c(build, "call_empty"),
            "Python: an empty function": lambda: timed(nothing),
            "import halyard": lambda: import_time(build)}
    times = {name: [] for name in rows}
    for _ in range(arguments.rounds):
        for name, measure in rows.items():
            times[name].append(measure())
    least = {name: min(values) for name, values in times.items()}
    more = least["Python: from numpy arrays"] - least[f"C: {row}"]
    if arguments.json:
        print(json.dumps({"seconds": least, "more_than_c": more}, indent=2))
        return
    for name, seconds in least.items():
        print(f"{name:<40} {seconds * 1e6:10.3f} us   (median {statistics.median(times[name]) * 1e6:.3f})")
    print(f"from numpy arrays, Python takes {more * 1e6:.3f} us more than C (limit 1)")


if __name__ == "__main__":
    main()
