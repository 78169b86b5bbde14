#!/usr/bin/env python3
"""vm-serve beside a server of Boost.Beast that echoes the same bodies, on one machine in one run.

usage: benchmarks/serve.py [--json] [--seconds=N] [--rounds=N] [--build=FOLDER] [--requests=N]

Rows: requests per second of simple_mul in JSON on 32 connections (at least 0.5 of the echo's); the latency of a tensor of
1 MiB in binary on one connection (at most 1.3 times the echo's); and, beside vm-bench (at least 0.9), the rows per second of a
layer of a transformer with batches, compiled on both sides, and where the shared fixtures have a whole one, its requests per
second on two connections. Medians of the
rounds, in which the two take turns. The exit status is 1 where a bound is missed.

--requests=N is the load test instead: N requests on 1,000 connections; nothing may be lost, and memory may not grow.
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests"))
import encoder  # noqa: E402
import serve_client  # noqa: E402

FIXTURES = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
SIMPLE_MUL = FIXTURES / "compiled" / "simple_mul.llvm-cpu.vmfb"
ELEMENTWISE = SOURCE / "examples" / "elementwise_mul.vmasm"


# A layer of a transformer; its first dimension is dynamic.
ENCODER = SOURCE / "examples" / "serving" / "encoder.vmasm"
BATCH = 16


def echo_server(program):
    process = subprocess.Popen([program, "echo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def load(program, port, connections, seconds, path, body, header=()):
    done = subprocess.run([program, "load", str(port), str(connections), str(seconds), path, *header], input=body,
                          stdout=subprocess.PIPE, check=True)
    result = json.loads(done.stdout)
    if result["failures"]:
        raise SystemExit(f"{result['failures']} requests of {path} failed")
    return result


def turns(program, rounds, seconds, connections, sides):
    """The results of each side, which take turns; a side is (port, path, body, header)."""
    results = [[] for _ in sides]
    for _ in range(rounds):
        for place, (port, path, body, header) in enumerate(sides):
            results[place].append(load(program, port, connections, seconds, path, body, header))
    return results


def median(results, key):
    return statistics.median(result["requests"] / result["seconds"] if key == "rate" else result[key] for result in results)


def compared(program, options, folder):
    rows = []
    serve = options.build / "bin" / "vm-serve"
    echo_module = os.path.join(folder, "echo.vmasm")
    with open(echo_module, "w") as file:
        file.write(serve_client.echo_module("f32"))
    name, module, size = ("simple_mul", SIMPLE_MUL, 4) if SIMPLE_MUL.exists() else ("elementwise_mul", ELEMENTWISE, 8)
    with serve_client.Server(serve, f"--model=mul={module}", f"--model=echo={echo_module}", "--device=local-sync") as server:
        echo, port = echo_server(program)
        inputs = [each["name"] for each in server.get("/v2/models/mul")[2]["inputs"]]
        body = json.dumps({"inputs": [serve_client.tensor(each, "FP32", list(range(size))) for each in inputs]}).encode()
        sides = [(port, "/", body, ()), (server.port, "/v2/models/mul/infer", body, ())]
        base, own = turns(program, options.rounds, options.seconds, 32, sides)
        rows.append({"row": f"{name} in JSON, 32 connections: requests/s", "echo": round(median(base, "rate")), "serve": round(median(own, "rate")),
                     "ratio": round(median(own, "rate") / median(base, "rate"), 2), "bound": ">= 0.5"})

        data = struct.pack(f"<{1 << 18}f", *range(1 << 18))
        body, headers = serve_client.binary_request([("x", "FP32", [1 << 18], data)], parameters={"binary_data_output": True})
        header = [f"Inference-Header-Content-Length: {headers['Inference-Header-Content-Length']}"]
        sides = [(port, "/", body, header), (server.port, "/v2/models/echo/infer", body, header)]
        base, own = turns(program, options.rounds, options.seconds, 1, sides)
        rows.append({"row": "1 MiB in binary, one connection: median us", "echo": median(base, "median_us"), "serve": median(own, "median_us"),
                     "ratio": round(median(own, "median_us") / median(base, "median_us"), 2), "bound": "<= 1.3"})
        echo.communicate()
    return rows


def calls_a_second(bench, arguments, function, seconds):
    done = subprocess.run([bench, *arguments, f"--function={function}", f"--benchmark_min_time={seconds}s", "--benchmark_format=json"],
                          stdout=subprocess.PIPE, check=True)
    call = next(each for each in json.loads(done.stdout)["benchmarks"] if each["name"].startswith(f"BM_{function}"))
    return {"ns": 1e9, "us": 1e6, "ms": 1e3}[call["time_unit"]] / call["real_time"]


def encoder_request():
    """One row in binary: body and header."""
    data = struct.pack(f"<{encoder.FEATURES}f", *(place % 7 for place in range(encoder.FEATURES)))
    body, headers = serve_client.binary_request([("tokens", "FP32", [1, encoder.FEATURES], data)], parameters={"binary_data_output": True})
    return body, [f"Inference-Header-Content-Length: {headers['Inference-Header-Content-Length']}"]


def batches(program, options):
    """Requests of one row, joined to calls of many, beside calls of as many in vm-bench; one thread each."""
    serve, bench = options.build / "bin" / "vm-serve", options.build / "bin" / "vm-bench"
    body, header = encoder_request()
    own, base = [], []
    with serve_client.Server(serve, f"--model=encoder={ENCODER}", "--threads=1", "--jit=always", f"--batch={BATCH}") as server:
        for _ in range(options.rounds):
            own.append(load(program, server.port, 2 * BATCH, options.seconds, "/v2/models/encoder/infer", body, header))
            base.append(BATCH * calls_a_second(bench, [f"--module={ENCODER}", "--jit=always", f"--input={BATCH}x{encoder.FEATURES}xf32=1"], "encode",
                                               options.seconds))
    ratio = median(own, "rate") / statistics.median(base)
    return [{"row": f"a transformer's layer, 32 connections, --batch={BATCH}: rows/s", "echo": round(statistics.median(base), 1),
             "serve": round(median(own, "rate"), 1), "ratio": round(ratio, 2), "bound": ">= 0.9"}]


def gains(program, options):
    """What batches gain: requests of one row to servers without and with batches, which take turns, each with a thread for each
    processor and the flags of a newcomer."""
    serve = options.build / "bin" / "vm-serve"
    body, header = encoder_request()
    flags = [f"--model=encoder={ENCODER}"]
    rows = []
    with serve_client.Server(serve, *flags) as alone, serve_client.Server(serve, *flags, f"--batch={BATCH}") as batched:
        sides = [(server.port, "/v2/models/encoder/infer", body, header) for server in (alone, batched)]
        turns(program, 1, options.seconds, BATCH, sides)  # until the functions are compiled
        for connections, bounds in ((BATCH, (">= 1.5", "<= 1.0")), (1, (">= 0.95", "<= 1.1"))):
            base, own = turns(program, options.rounds, options.seconds, connections, sides)
            clients = f"{connections} clients" if connections > 1 else "one client"
            for key, what, bound in (("rate", "requests/s", bounds[0]), ("p99_us", "p99 us", bounds[1])):
                rows.append({"row": f"without and with --batch={BATCH}, {clients}: {what}", "echo": round(median(base, key), 1),
                             "serve": round(median(own, key), 1), "ratio": round(median(own, key) / median(base, key), 2), "bound": bound})
    return rows


def transformer(program, options):
    """berttiny on two threads, beside vm-bench on as many processors."""
    large = FIXTURES / ".." / "large"
    weights = options.build / "large" / "berttiny.irpa"
    module = large / "berttiny.llvm-cpu-v3.vmfb"
    if not module.exists():
        return [{"row": "a transformer", "skipped": f"{module} is not there"}]
    if not weights.exists():
        weights.parent.mkdir(exist_ok=True)
        subprocess.run(["/usr/bin/python3", large / "large.py", "berttiny", weights.parent], check=True, stdout=subprocess.DEVNULL)
    serve, bench = options.build / "bin" / "vm-serve", options.build / "bin" / "vm-bench"
    inputs = [large / f"berttiny.0.in{place}.npy" for place in range(3)]
    flags = [f"--parameters=model={weights}", "--device=local-sync"]
    with serve_client.Server(serve, f"--model=bert={module}", "--threads=1", *flags) as server:
        metadata = server.get("/v2/models/bert")[2]["inputs"]
        tensors = []
        for each, path in zip(metadata, inputs):
            raw = path.read_bytes()
            start = raw.index(b"\n") + 1  # behind the header of the .npy file
            tensors.append((each["name"], each["datatype"], each["shape"], raw[start:]))
        body, headers = serve_client.binary_request(tensors, parameters={"binary_data_output": True})
        header = [f"Inference-Header-Content-Length: {headers['Inference-Header-Content-Length']}"]
        own, base = [], []
        for _ in range(options.rounds):
            own.append(load(program, server.port, 2, options.seconds, "/v2/models/bert/infer", body, header))
            base.append(calls_a_second(bench, [f"--module={module}", *flags, *[f"--input=@{path}" for path in inputs]], "encode", options.seconds))
    ratio = median(own, "rate") / statistics.median(base)
    return [{"row": "berttiny, one call at a time: requests/s (vm-bench: calls/s)", "echo": round(statistics.median(base), 1),
             "serve": round(median(own, "rate"), 1), "ratio": round(ratio, 2), "bound": ">= 0.9"}]


def resident(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def load_test(program, options):
    serve = options.build / "bin" / "vm-serve"
    # Without the compiler, whose library is loaded at some moment and is no growth.
    with serve_client.Server(serve, f"--model=mul={SOURCE}/examples/inline_mul.vmasm", "--queue=2000", "--jit=off") as server:
        body = json.dumps({"inputs": [serve_client.tensor(name, "FP32", [1, 2, 3, 4]) for name in ("input0", "input1")]}).encode()
        done, early, late, begin = 0, 0, 0, time.monotonic()
        while done < options.requests:
            done += load(program, server.port, 1000, 5, "/v2/models/mul/infer", body)["requests"]
            late = resident(server.process)
            if done <= options.requests / 2 or early == 0:  # connections and contexts are made, the allocator's arenas are warm
                early = max(early, late)
        seconds = time.monotonic() - begin
        succeeded = server.metric('halyard_model_requests_total{model="mul",version="1",outcome="success"}')
        code = server.stop()
    print(f"{done} requests on 1,000 connections in {seconds:.0f} s, {done / seconds:.0f} a second; the server counts {succeeded:.0f}; "
          f"exit status {code}; resident memory at most {early} KiB in the first half, {late} KiB at the end")
    return 0 if succeeded == done and code == 0 and late < 1.1 * early else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    options = parser.parse_args()
    options.build = options.build.resolve()
    program = options.build / "benchmarks" / "serve"
    if options.requests:
        return load_test(program, options)
    with tempfile.TemporaryDirectory(prefix="halyard-serve-") as folder:
        rows = compared(program, options, folder) + batches(program, options) + gains(program, options) + transformer(program, options)
    missed = 0
    for row in rows:
        if "skipped" in row:
            continue
        relation, bound = row["bound"].split()
        row["good"] = row["ratio"] >= float(bound) if relation == ">=" else row["ratio"] <= float(bound)
        missed += not row["good"]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            if "skipped" in row:
                print(f"{row['row']}: skipped, {row['skipped']}")
            else:
                print(f"{row['row']:<62} {row['echo']:>10} {row['serve']:>10} {row['ratio']:>6} {row['bound']:>7}{'' if row['good'] else '  missed'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
