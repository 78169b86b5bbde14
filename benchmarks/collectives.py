#!/usr/bin/env python3
"""all_reduce on the ranks of one machine, beside the bare MPI call in the same run: whole calls of examples/collectives/all_reduce.vmasm.

usage: benchmarks/collectives.py [--json] [--ranks=N] [--build=FOLDER]

From 1 MiB on a call may take 1.15 times as long as MPI_Allreduce, below 10 us more; the exit status is 1 where one takes
longer. Medians of nine rounds, in which the two take turns; of each round counts the slowest rank.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
LARGE = 1 << 20  # bytes
MOST_RATIO = 1.15
MOST_MORE_US = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    options = parser.parse_args()
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["mpirun.openmpi", "--oversubscribe", "-n", str(options.ranks),
                           options.build.resolve() / "benchmarks" / "collectives"],
                          check=True, stdout=subprocess.PIPE, text=True, env=environment)
    rows = json.loads(done.stdout)
    slow = 0
    for row in rows:
        row["ratio"] = round(row["halyard_us"] / row["mpi_us"], 2)
        row["more_us"] = round(row["halyard_us"] - row["mpi_us"], 2)
        row["good"] = row["ratio"] <= MOST_RATIO if row["bytes"] >= LARGE else row["more_us"] <= MOST_MORE_US
        slow += not row["good"]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        print(f"all_reduce of f32, {options.ranks} ranks: microseconds of a call\n")
        print(f"{'bytes':>10} {'MPI':>12} {'Halyard':>12} {'ratio':>7} {'more':>12}")
        for row in rows:
            print(f"{row['bytes']:>10} {row['mpi_us']:>12.2f} {row['halyard_us']:>12.2f} {row['ratio']:>7.2f} "
                  f"{row['more_us']:>12.2f}{'' if row['good'] else '  too slow'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
