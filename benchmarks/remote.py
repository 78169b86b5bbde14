#!/usr/bin/env python3
"""Devices of vm-device beside plain Asio that exchanges the same bytes, on one machine in one run.

usage: benchmarks/remote.py [--json] [--seconds=N] [--rounds=N] [--build=FOLDER] [--only=TEXT]

Rows, in which both sides take turns:
- whole warm calls of simple_mul over a Unix socket (at most 40 us), TCP on loopback (at most 60 us) and TLS;
- the same with new inputs and with its result read;
- the chain of forty dependent dispatches, and the round trips of a call of it, counted on the wire (at most 1);
- copies of 1, 16 and 64 MiB to the device and back (at least 0.8 of the throughput of the echo);
- a call at 10 ms of latency, through a proxy that delays (at most 1 round trip);
- 500 MB of weights at the second start of a program (at most 50 ms).

Times are the least of the rounds' medians. The exit status is 1 where a bound is missed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
SIMPLE_MUL = FIXTURES / "compiled" / "simple_mul.vmvx.vmfb"
CHAIN = FIXTURES / "compiled" / "pipeline_chain.llvm-cpu.vmfb"
MIB = 1 << 20
LATENCY_MS = 10
TRANSPORTS = ("unix", "tcp", "tls")


def certificates(folder):
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key"]
    for command in ([*new, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"],
                    [*new, *signed, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "server.key",
                     "-out", "server.pem"],
                    [*new, *signed, "-subj", "/CN=client", "-keyout", "client.key", "-out", "client.pem"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


class Setup:
    """The two servers, and programs that use them."""

    def __init__(self, build, folder, stack):
        self.program = build / "benchmarks" / "remote"
        self.folder = pathlib.Path(folder)
        self.stack = stack
        certificates(folder)
        file = lambda name: str(self.folder / name)
        device = self.start([build / "bin" / "vm-device", "--device=local-task", "--allow_native", f"--listen=unix://{folder}/d.sock",
                             "--listen=tcp://127.0.0.1:0", "--listen=tls://localhost:0", f"--cert={file('server.pem')}",
                             f"--key={file('server.key')}", f"--client_ca={file('ca.pem')}"])
        ports = [device.stdout.readline().rsplit(":", 1)[1].strip() for _ in range(3)][1:]
        self.uris = {"unix": f"remote+unix://{folder}/d.sock", "tcp": f"remote://127.0.0.1:{ports[0]}",
                     "tls": f"remote://localhost:{ports[1]}?cert={file('client.pem')}&key={file('client.key')}&ca={file('ca.pem')}"}
        echo = self.start([self.program, "echo", f"unix:{folder}/e.sock", "tcp",
                           f"tls:{file('server.pem')}:{file('server.key')}:{file('ca.pem')}"])
        unix, tcp, tls = (echo.stdout.readline().strip() for _ in range(3))
        # The client has a certificate of its own.
        port = tls.split(":")[1]
        self.echoes = {"unix": unix, "tcp": tcp, "tls": f"tls:{port}:{file('client.pem')}:{file('client.key')}:{file('ca.pem')}"}

    def start(self, command):
        process = self.stack.enter_context(subprocess.Popen([str(each) for each in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                            stderr=open(self.folder / "log", "a"), text=True))
        self.stack.callback(process.terminate)
        return process

    def run(self, *arguments):
        done = subprocess.run([str(self.program), *[str(each) for each in arguments]], stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"'remote {arguments[0]}' failed; standard error says why")
        return json.loads(done.stdout)


class Proxy:
    """In front of the Unix socket of vm-device; delays each direction by so many milliseconds."""

    def __init__(self, setup, milliseconds):
        path = setup.folder / f"proxy-{milliseconds}.sock"
        self.process = setup.start([setup.program, "proxy", path, setup.folder / "d.sock", milliseconds])
        self.process.stdout.readline()
        self.uri = f"remote+unix://{path}"

    def passed(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


SIMPLE_CALL = (SIMPLE_MUL, "simple_mul", 4, 2)
CHAIN_CALL = (CHAIN, "chain", 256, 1)


def per_call(setup, proxy, call, *more):
    """What passes the proxy for each warm call, as the difference of a long run and a short one."""
    results = []
    for seconds in (0, 1):
        proxy.passed()
        count = setup.run("call", proxy.uri, *call, seconds, *more)["count"]
        results.append((count, proxy.passed()))
    (few, before), (many, after) = results
    return {key: (after[key] - before[key]) / (many - few) for key in before}


def least(results):
    return min(each["median_us"] for each in results)


def turns(options, *sides):
    """The results of functions that take turns."""
    results = [[] for _ in sides]
    for _ in range(options.rounds):
        for place, side in enumerate(sides):
            results[place].append(side())
    return results


def row(name, unit, ours, bound=None, echo=None, ratio=None, **more):
    return {"row": name, "unit": unit, "ours": ours, "echo": echo, "ratio": ratio, "bound": bound, **more}


def calls(setup, options):
    rows = []
    plain = Proxy(setup, 0)
    for name, more, bounds in (("simple_mul", (), {"unix": "<= 40", "tcp": "<= 60"}), ("simple_mul, inputs and result too", ("read",), {})):
        wire = per_call(setup, plain, SIMPLE_CALL, *more)
        up, down = round(wire["up"]), round(wire["down"])
        for transport in TRANSPORTS:
            own, echo = turns(options, lambda: setup.run("call", setup.uris[transport], *SIMPLE_CALL, options.seconds, *more),
                              lambda: setup.run("exchange", setup.echoes[transport], up, down, options.seconds))
            rows.append(row(f"{name}, {transport}", "us", least(own), bounds.get(transport), least(echo), round(least(own) / least(echo), 2),
                            least_us=min(each["least_us"] for each in own), bytes_up=up, bytes_down=down))
    own, = turns(options, lambda: setup.run("call", setup.uris["unix"], *CHAIN_CALL, options.seconds))
    rows.append(row("40 dependent dispatches, unix", "us", least(own)))
    return rows


def latency(setup, options):
    rows = []
    far = Proxy(setup, LATENCY_MS // 2)
    for name, call in (("simple_mul", SIMPLE_CALL), ("40 dependent dispatches", CHAIN_CALL)):
        wire = per_call(setup, far, call)
        own, = turns(options, lambda: setup.run("call", far.uri, *call, options.seconds))
        rows.append(row(f"{name}: round trips of a call, on the wire", "", round(wire["turns"], 2), "<= 1.05"))
        rows.append(row(f"{name} at {LATENCY_MS} ms: time in round trips", "", round(least(own) / (LATENCY_MS * 1000), 2), "<= 1.2"))
    return rows


def copies(setup, options):
    rows = []
    for transport in TRANSPORTS:
        for size in (MIB, 16 * MIB, 64 * MIB):
            count = max(8, min(64, 128 * MIB // size))
            for direction, up, down in (("upload", size, 16), ("download", 16, size)):
                own, echo = turns(options, lambda: setup.run(direction, setup.uris[transport], size, count),
                                  lambda: setup.run("exchange", setup.echoes[transport], up, down, options.seconds / 4))
                rate = lambda results: size / MIB / (least(results) / 1e6)
                ratio = round(rate(own) / rate(echo), 2)
                rows.append(row(f"{direction} of {size // MIB} MiB, {transport}", "MiB/s", round(rate(own)), ">= 0.8", round(rate(echo)), ratio))
    return rows


def weights_program(count, size):
    """A program that loads `count` parameters of `size` bytes from scope model, and the header of their file."""
    names = [f"w{place:04d}" for place in range(count)]
    number = lambda value, width: value.to_bytes(width, "little").hex().upper()
    table = "".join(number(place * 5, 4) + number(5, 4) for place in range(count))
    spans = "".join(number(0, 8) + number(0, 8) + number(size, 8) for _ in range(count))
    immutable, transfer_and_dispatch = 0x80000, 0xC03
    text = f"""vm.module @weights version 0
vm.type i32
vm.type i64
vm.type !hal.buffer
vm.type !vm.list<!hal.buffer>
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = {table}
vm.rodata[1] = {"".join(names).encode().hex().upper()}
vm.rodata[2] = {b"model".hex().upper()}
vm.rodata[3] = {spans}
vm.export @start
vm.func @start() -> (i32) {{
^bb0:
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %i2:3 = vm.const.i64.zero
  %r1 = vm.call @hal.fence.create(%r0, %i2)
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.const.ref.rodata 1
  %r4 = vm.const.ref.rodata 2
  %r5 = vm.const.ref.rodata 3
  %i4:5 = vm.const.i64 -1
  %r6 = vm.const.ref.zero
  %i6 = vm.const.i32 48
  %i7 = vm.const.i32 {immutable | transfer_and_dispatch}
  %r7 = vm.call @io_parameters.load(%r0, %i4, %r6, %r1, %r4, %i4, %i6, %i7, %r2, %r3, %r5)
  %i8 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i8, %i2, %r1) -> ^bb1(%i9)
^bb1:
  vm.cond_br %i9, ^bb2(), ^bb3()
^bb2:
  vm.fail %i9, "failed to load"
^bb3:
  %i10 = vm.list.size %r7
  vm.discard.refs %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7
  vm.return %i10
}}
"""
    header = {name: {"dtype": "U8", "shape": [size], "data_offsets": [place * size, (place + 1) * size]} for place, name in enumerate(names)}
    return text, json.dumps(header).encode()


def weights(setup, options):
    count, size = 125, 4_000_000
    text, header = weights_program(count, size)
    header += b" " * (-(len(header) + 8) % 64)
    module, archive = setup.folder / "weights.vmasm", setup.folder / "weights.safetensors"
    module.write_text(text)
    piece = os.urandom(size)
    with open(archive, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for place in range(count):
            file.write(place.to_bytes(8, "little") + piece[8:])
    os.utime(archive, (1, 1))
    subprocess.run(["sleep", "2.5"], check=True)  # digests of files that have just changed are not kept
    uri = f"{setup.uris['unix']}?digests={setup.folder}/digests"
    first = setup.run("start", uri, module, archive)["start_us"] / 1000
    second = [setup.run("start", uri, module, archive)["start_us"] / 1000 for _ in range(max(options.rounds, 3))]
    return [row("500 MB of weights, first start", "ms", round(first, 1)), row("500 MB of weights, second start", "ms", round(min(second), 1), "<= 50")]


GROUPS = {"calls": calls, "latency": latency, "copies": copies, "weights": weights}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=GROUPS, help="one group of rows")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if not SIMPLE_MUL.exists():
        raise SystemExit(f"{SIMPLE_MUL} is not there")
    rows = []
    with tempfile.TemporaryDirectory(prefix="halyard-remote-") as folder, contextlib.ExitStack() as stack:
        setup = Setup(options.build, folder, stack)
        for name, group in GROUPS.items():
            if options.only in (None, name):
                rows += group(setup, options)
    missed = 0
    for each in rows:
        if each["bound"]:
            relation, bound = each["bound"].split()
            value = each["ratio"] if each["unit"] == "MiB/s" else each["ours"]
            each["good"] = value >= float(bound) if relation == ">=" else value <= float(bound)
            missed += not each["good"]
    if options.json:
        print(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1))
    else:
        print(f"{'':<52} {'remote':>9} {'echo':>9} {'ratio':>6} {'bound':>8}")
        for each in rows:
            text = lambda key: "" if each[key] is None else str(each[key])
            print(f"{each['row']:<52} {text('ours'):>9} {text('echo'):>9} {text('ratio'):>6} {text('bound'):>8} {each['unit']}"
                  f"{'  missed' if each.get('good') is False else ''}")
        print(f"load of the machine at the end: {', '.join(f'{each:.2f}' for each in os.getloadavg())}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
