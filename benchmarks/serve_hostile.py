#!/usr/bin/env python3
"""A good client of vm-serve beside a thousand hostile connections of each kind.

usage: benchmarks/serve_hostile.py [--json] [--connections=N] [--requests=N] [--rounds=N] [--build=FOLDER]

For each kind of tests/hostile.py: the 99th percentile of the good client's requests alone and beside the others, in one server,
in turns; medians of the rounds, and their ratio. What the others do at once when they connect is over by then: the connections
are held, and those that can send a byte now and then. The exit status is 1 where a ratio is above 2.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests"))
import hostile  # noqa: E402
import serve_client  # noqa: E402

BOUND = 2.0


def measure(program, kind, options):
    alone, beside = [], []
    with serve_client.Server(program, f"--model=mul={SOURCE / 'examples' / 'inline_mul.vmasm'}", "--idle_timeout=10min") as server:
        connection = server.connect()
        hostile.good_requests(connection, options.requests)  # warm
        for _ in range(options.rounds):
            alone.append(hostile.percentile(hostile.good_requests(connection, options.requests), .99))
            with hostile.Hostile(kind, server.port, options.connections) as others:
                hostile.good_requests(connection, options.requests, lambda: others.poke(1))  # until what they do at first is over
                beside.append(hostile.percentile(hostile.good_requests(connection, options.requests, lambda: others.poke(1)), .99))
        connection.close()
        server.stop()
    return statistics.median(alone), statistics.median(beside)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=SOURCE / "build" / "release")
    options = parser.parse_args()
    program = os.path.join(options.build, "bin", "vm-serve")
    rows = []
    for kind in hostile.KINDS:
        alone, beside = measure(program, kind, options)
        rows.append({"kind": kind, "alone_us": 1e6 * alone, "beside_us": 1e6 * beside, "ratio": beside / alone})
        if not options.json:
            print(f"{kind:20} p99 {1e6 * alone:8.0f} us alone {1e6 * beside:8.0f} us beside, ratio {beside / alone:5.2f}", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
    return any(row["ratio"] > BOUND for row in rows)


if __name__ == "__main__":
    sys.exit(main())
