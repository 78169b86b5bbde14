"""Captures as a user makes them: vm-run --capture, hal-info print, hal-info replay. Captures of local-sync replay
with the same results there and on the other CPU devices, and those without dispatches on the null driver. A changed
byte in a capture is found; a truncated or invalid file is an error."""
import json
import os
import pathlib
import struct

import test_examples
import vmrun

# Records a command buffer without dispatches. The result is two 1.0, the two numbers of a constant, and the first
# half of the argument 8xf32. The target is a slot, the source the argument's buffer.
MOVES_BYTES = """
vm.module @moves_bytes
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.buffer_view.buffer cconv "0r_r"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal.command_buffer.create cconv "0riiIi_r"
vm.import @hal.command_buffer.begin_debug_group cconv "0rr_v"
vm.import @hal.command_buffer.end_debug_group cconv "0r_v"
vm.import @hal.command_buffer.execution_barrier cconv "0riiI_v"
vm.import @hal.command_buffer.fill_buffer cconv "0rrIIiIiI_v"
vm.import @hal.command_buffer.update_buffer cconv "0rrIrIIiI_v"
vm.import @hal.command_buffer.copy_buffer cconv "0riirIrIII_v"
vm.import @hal.command_buffer.finalize cconv "0r_v"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.device.queue.execute.indirect cconv "0rIrrrICrIID_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"

vm.rodata[0] = 0000204200002842             // 40.0, 42.0
vm.rodata[1] = "moving bytes"

vm.export @shuffle
vm.attr @shuffle "iree.abi.declaration" "sync func @shuffle(%input0: tensor<8xf32>) -> (%output0: tensor<8xf32>)"
vm.func @shuffle(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  %i0 = vm.const.i32.zero
  %r1 = vm.call @hal.devices.get(%i0)
  %r2 = vm.call @hal.buffer_view.buffer(%r0)
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 -1
  %i6:7 = vm.const.i64 32
  %i8:9 = vm.const.i64 8
  %i10:11 = vm.const.i64 16
  %i12 = vm.const.i32 0x30                 // device-local
  %i13 = vm.const.i32 0xC03
  %r3 = vm.const.ref.zero
  %i20 = vm.const.i32 1
  %i21 = vm.const.i32 3
  %i22 = vm.const.i32 28
  %i23 = vm.const.i32 13
  %i14:15 = vm.const.i64 0x3F800000        // 1.0
  %i16 = vm.const.i32 4
  %r9 = vm.const.ref.rodata 0
  %r11 = vm.const.ref.rodata 1
  %r6 = vm.call @hal.command_buffer.create(%r1, %i20, %i21, %i4:5, %i20)
  vm.call @hal.command_buffer.begin_debug_group(%r6, %r11)
  vm.call @hal.command_buffer.fill_buffer(%r6, %r3, %i2:3, %i6:7, %i0, %i14:15, %i16, %i2:3)
  vm.call @hal.command_buffer.execution_barrier(%r6, %i22, %i23, %i2:3)
  vm.call @hal.command_buffer.copy_buffer(%r6, %i0, %i0, %r2, %i2:3, %r3, %i10:11, %i10:11, %i2:3)
  vm.call @hal.command_buffer.update_buffer(%r6, %r9, %i2:3, %r3, %i8:9, %i8:9, %i0, %i2:3)
  vm.call @hal.command_buffer.end_debug_group(%r6)
  vm.call @hal.command_buffer.finalize(%r6)
  %r4 = vm.call @hal.fence.create(%r1, %i2:3)
  %r5 = vm.call @hal.fence.create(%r1, %i2:3)
  %r8 = vm.call @hal.device.queue.alloca(%r1, %i4:5, %r3, %r4, %i2:3, %i12, %i13, %i6:7, %i2:3)
  vm.call.variadic @hal.device.queue.execute.indirect segments[65535, 65535, 65535, 65535, 65535, 65535, 1](%r1, %i4:5, %r4, %r5, %r6, %i2:3, %r8, %i2:3, %i6:7)
  %i17 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i17, %i2:3, %r5) -> ^bb1(%i18)
^bb1:
  vm.cond_br %i18, ^bb2, ^bb3
^bb2:
  vm.fail %i18, "failed to wait on timepoint"
^bb3:
  %i19 = vm.const.i32 0x21000020           // f32
  %r10 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r8, %i2:3, %i6:7, %i19, %i20, %i8:9)
  vm.return %R10
}
"""
MOVED = "EXEC @shuffle\nresult[0]: hal.buffer_view\n8xf32=1 1 40 42 5 6 7 8\n"
# Cases of the shared fixtures, by name: the first of each of these programs.
FIXTURES = ["simple_mul.vmvx.", "simple_mul.async.", "matmul_dynamic.vmvx.", "mlp.vmvx.", "control_flow.vmvx.power",
            "stateful.vmvx.", "reductions.vmvx.", "pipeline_chain.vmvx.", "multi_device_mul.vmvx+vmvx.", "parameters.vmvx."]


def hal_info(*arguments):
    return vmrun.run("hal-info", *map(str, arguments))


def good(done, *parts):
    """None, or what is wrong with a run that must succeed and print these."""
    if done.returncode != 0:
        return f"ended with {done.returncode}"
    return next((f"standard output lacks {part!r}" for part in parts if part not in done.stdout), None)


def examples():
    """(name, arguments of vm-run without capturing, folder): what examples/ says how to run, on local-sync."""
    for example in sorted(pathlib.Path(vmrun.SOURCE, "examples").glob("*.vmasm")):
        for number, (command, _) in enumerate(test_examples.commands(example.read_text())):
            words = command.split()
            if words[0] == "vm-run" and "--device=local-sync" in words:
                yield f"{example.stem}.{number}", words[1:], vmrun.SOURCE


def fixtures():
    folder = vmrun.fixtures()
    if not folder:
        return
    folder = os.path.join(folder, "compiled")
    cases = json.loads(pathlib.Path(folder, "cases.json").read_text())
    for prefix in FIXTURES:
        case = next((case for case in cases if case["name"].startswith(prefix) and
                     set(case["devices"]) == {"local-sync"}), None)
        if case:
            yield case["name"], [*case.get("flags", []), *[f"--device={device}" for device in case["devices"]],
                                 f"--module={case['module']}", f"--function={case['function']}",
                                 *[f"--input={value}" for value in case.get("inputs", [])]], folder


def round_trips(checks, folder):
    """Every program prints the same while it is captured, and its captures replay to the same; how many were replayed."""
    drivers = vmrun.run("vm-run", "--list_drivers").stdout
    devices = [device for device in ("local-sync", "local-task") if device in drivers]
    replayed = 0
    for name, arguments, place in [*examples(), *fixtures()]:
        capture = os.path.join(folder, "round-trip.hycap")
        plain = vmrun.run("vm-run", *arguments, cwd=place)
        done = vmrun.run("vm-run", *arguments, f"--capture={capture}", cwd=place)
        checks.check(f"{name}: captured", good(plain) or good(done) or
                     (None if done.stdout == plain.stdout else "prints something else"), done)
        done = hal_info("print", capture, "--json")
        checks.check(f"{name}: described", good(done), done)
        executions = json.loads(done.stdout)["executions"] if done.returncode == 0 else []
        replayed += len(executions)
        if any(execution["outcome"] != "done" for execution in executions):
            checks.check(f"{name}: described", "an execution is not done", done)
        for device in [None, *devices]:
            done = hal_info("replay", capture, *([f"--device={device}"] if device else []))
            result = f": {len(executions)} same" if executions else "0 executions: none"
            checks.check(f"{name}: replayed on {device or 'its own device'}", good(done, result), done)
    return replayed


def null_driver(checks, folder):
    """Without dispatches, local-sync and null are the same; with one, null says why not."""
    module = pathlib.Path(folder, "moves_bytes.vmasm")
    module.write_text(MOVES_BYTES)
    for captured, replayed in (("local-sync", "null"), ("null", "local-sync")):
        capture = os.path.join(folder, f"moves-{captured}.hycap")
        done = vmrun.run("vm-run", f"--device={captured}", f"--module={module}", "--input=8xf32=5,6,7,8,9,10,11,12",
                         f"--capture={capture}")
        checks.check(f"captured on {captured}", good(done) or (None if done.stdout == MOVED else f"expected {MOVED!r}"), done)
        done = hal_info("print", capture)
        checks.check(f"printed from {captured}", good(done, "begin 'moving bytes'\n", "fill slot0[0, +32) with 0x3f800000\n",
                                                     "copy buffer0[0, +16) to slot0[16, +16)\n", "update slot0[8, +8)\n"), done)
        done = hal_info("replay", capture, f"--device={replayed}")
        checks.check(f"from {captured} to {replayed}", good(done, f"execution 0 on {replayed}: same"), done)
    capture = make_capture(folder)
    done = hal_info("replay", capture, "--device=null")
    wrong = None
    if done.returncode != 1 or "execution 0 on null: failed" not in done.stdout or "vmvx-bytecode-fb" not in done.stdout:
        wrong = "does not say that null cannot load the executable"
    checks.check("dispatches on null", wrong, done)


def make_capture(folder):
    """Of one dispatch: 1..8 times 10."""
    capture = os.path.join(folder, "mul.hycap")
    done = vmrun.run("vm-run", "--device=local-sync", "--module=examples/elementwise_mul.vmasm", "--function=mul",
                     "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=10", f"--capture={capture}")
    if done.returncode != 0:
        raise AssertionError("vm-run failed: " + done.stderr)
    return capture


def changed_byte(checks, folder):
    whole = pathlib.Path(make_capture(folder)).read_bytes()
    products = struct.pack("<8f", *range(10, 90, 10))
    place = whole.index(products)
    changed = bytearray(whole)
    changed[place + 5] ^= 0x40
    path = pathlib.Path(folder, "changed.hycap")
    path.write_bytes(changed)
    done = hal_info("replay", path)
    wrong = None if done.returncode == 1 else f"ended with {done.returncode}"
    for part in ("execution 0 on local-sync://: differs", "buffer2[5, +1)", "1 byte differs in total",
                 f"expected  {changed[place + 5]:02x}\n", f"found     {whole[place + 5]:02x}\n", "command 0 is the last"):
        wrong = wrong or (None if part in done.stdout else f"standard output lacks {part!r}")
    checks.check("a changed byte", wrong, done)
    done = hal_info("replay", path, "--json")
    result = json.loads(done.stdout)["executions"][0]
    expected = {"number": 0, "outcome": "differs", "buffer": 2, "offset": 5, "length": 1, "total": 1, "command": 0}
    checks.check("a changed byte, as JSON", None if done.returncode == 1 and expected.items() <= result.items() else "is wrong",
                 done)
    # Different input gives different output.
    changed = bytearray(whole)
    changed[whole.index(struct.pack("<8f", *range(1, 9))) + 6] ^= 0x10
    path.write_bytes(changed)
    done = hal_info("replay", path)
    checks.check("a changed input", None if done.returncode == 1 and "differs" in done.stdout else "is not found", done)


def records(whole):
    """Where each record starts."""
    at = 0
    while at < len(whole):
        yield at
        size = struct.unpack_from("<I", whole, at)[0] + 4
        at += (size + 7) // 8 * 8


def cut_short(checks, folder):
    """At every 64th byte: an error, and what is there with --incomplete."""
    whole = pathlib.Path(make_capture(folder)).read_bytes()
    path = pathlib.Path(folder, "cut.hycap")
    for size in range(0, len(whole), 64):
        path.write_bytes(whole[:size])
        for verb in ("print", "replay"):
            done = hal_info(verb, path)
            code = "DATA_LOSS" if size else "INVALID_ARGUMENT"
            checks.check(f"{verb} of {size} bytes", vmrun.why_bad_failure(done, code, str(path)), done)
        if size:
            done = hal_info("print", path, "--incomplete")
            checks.check(f"print --incomplete of {size} bytes", good(done, "cut short"), done)
    # The execution is present, with or without its result: the last records are the result and the end.
    *_, outcome, end = records(whole)
    for size, part in ((end, ": same"), (outcome, "the capture has no result to compare with")):
        path.write_bytes(whole[:size])
        done = hal_info("replay", path, "--incomplete")
        checks.check(f"replay --incomplete of {size} bytes", good(done, part), done)


def descriptions(checks, folder):
    capture = make_capture(folder)
    done = hal_info("print", capture)
    checks.check("print", good(done, "capture of 1 execution and 1 executable\n", "executable0 vmvx-bytecode-fb, ",
                               "execution 0 on local-sync://: ", "dispatch executable0.0 'mul' workgroups ",
                               "slot2 = buffer2[0, +32)", "[0, +32) changed", "[0, +32) unchanged"), done)
    done = hal_info("print", capture, "--json", "--execution=0")
    found = json.loads(done.stdout)
    dispatch = next((command for command in found["executions"][0]["commands"] if command["kind"] == "dispatch"), None)
    checks.check("print --json", None if found["complete"] and dispatch and dispatch["name"] == "mul" and
                 len(dispatch["bindings"]) == 3 else "lacks the dispatch", done)
    # A program without devices executes nothing.
    empty = os.path.join(folder, "empty.hycap")
    done = vmrun.run("vm-run", "--module=examples/fib.vmasm", "--function=iterative", "--input=5", f"--capture={empty}")
    checks.check("nothing captured", good(done) or good(hal_info("replay", empty), "0 executions: none"), done)


# Doubles instead of multiplying, with the function at another place.
OTHER_KERNELS = """
vm.module @kernels
vm.export @other
vm.export @mul
vm.func @other(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
  %i9 = vm.const.i32 3
  vm.fail %i9, "not this one"
}
"""


def parts_of_executions(checks, folder):
    """Five commands: the bytes that later ones may write are not compared; each alone is measured and cut."""
    module = pathlib.Path(folder, "moves_bytes.vmasm")
    module.write_text(MOVES_BYTES)
    capture = os.path.join(folder, "parts.hycap")
    vmrun.succeeds("vm-run", "--device=local-sync", f"--module={module}", "--input=8xf32=5,6,7,8,9,10,11,12", f"--capture={capture}")
    commands = json.loads(hal_info("print", capture, "--json").stdout)["executions"][0]["commands"]
    for number, command in enumerate(commands):
        done = hal_info("replay", capture, f"--command={number}")
        checks.check(f"up to command {number}", good(done, "execution 0 on local-sync://: same"), done)
        small = os.path.join(folder, f"{number}.hycap")
        done = hal_info("cut", capture, f"--command={number}", f"--output={small}")
        if command["kind"] in ("begin", "end", "barrier"):
            checks.check(f"cut to '{command['kind']}'", vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "touches no bytes"), done)
            continue
        checks.check(f"cut to {command['kind']}", good(done, f"command {number} of execution 0"), done)
        found = json.loads(hal_info("print", small, "--json").stdout)["executions"]
        kinds = [each["kind"] for execution in found for each in execution["commands"]]
        checks.check(f"cut to {command['kind']}: commands", None if kinds == [command["kind"]] else f"they are {kinds}")
        done = hal_info("replay", small, "--device=local-task")
        checks.check(f"cut to {command['kind']}: replayed", good(done, "1 execution: 1 same"), done)
    # A byte that a later command writes is not compared; one that none writes later is.
    whole = pathlib.Path(capture).read_bytes()
    result = struct.pack("<8f", 1, 1, 40, 42, 5, 6, 7, 8)
    place = whole.index(result)
    for byte, command, same in ((0, 1, False), (17, 1, True), (17, 3, False), (8, 3, True), (8, 4, False)):
        changed = bytearray(whole)
        changed[place + byte] ^= 1
        path = pathlib.Path(folder, "changed.hycap")
        path.write_bytes(changed)
        done = hal_info("replay", path, f"--command={command}")
        checks.check(f"byte {byte} after command {command}", None if (done.returncode == 0) == same else "is wrong", done)


def cut_to_a_kernel(checks, folder):
    capture = make_capture(folder)
    small = os.path.join(folder, "small.hycap")
    done = hal_info("cut", capture, "--execution=0", "--command=0", f"--output={small}")
    checks.check("cut", good(done, "command 0 of execution 0, executed on local-sync://", str(os.path.getsize(small))), done)
    done = hal_info("cut", capture, "--execution=0", "--command=0", f"--output={small}", "--json")
    wanted = {"execution": 0, "command": 0, "device": "local-sync://", "file": small, "bytes": os.path.getsize(small)}
    checks.check("cut as JSON", None if done.returncode == 0 and json.loads(done.stdout) == wanted else "is wrong", done)
    checks.check("cut: size", None if os.path.getsize(small) < 4096 else f"{os.path.getsize(small)} bytes")
    for device in ("local-sync", "local-task"):
        done = hal_info("replay", small, f"--device={device}")
        checks.check(f"cut: replayed on {device}", good(done, "1 execution: 1 same"), done)


def json_of_failures(checks, folder):
    """What is printed is whole, or nothing."""
    capture = make_capture(folder)
    for flags in ([], ["--benchmark"]):
        done = hal_info("replay", capture, "--json", "--device=nothing", *flags)
        checks.check(f"JSON of a failure {flags}", None if done.returncode == 1 and done.stdout == "" else "is wrong", done)


def measured(checks, folder):
    capture = make_capture(folder)
    for flags in ([], ["--execution=0", "--command=0"], ["--device=local-task"]):
        done = hal_info("replay", capture, "--benchmark", "--benchmark_min_time=10ms", *flags)
        checks.check(f"measured {flags}", good(done, "execution 0", "us median"), done)
    done = hal_info("replay", capture, "--benchmark", "--benchmark_min_time=20ms", "--json")
    times = json.loads(done.stdout)["executions"][0]
    wrong = None if times["count"] > 0 and 0 < times["fastest_ns"] <= times["median_ns"] and times["total_ns"] >= 20_000_000 else "are wrong"
    checks.check("times as JSON", wrong, done)


def other_code(checks, folder):
    """Instead of the captured kernel: the function is found by its name, which has another number there."""
    text = pathlib.Path(vmrun.SOURCE, "examples", "elementwise_mul.vmasm").read_text()
    begin = text.index("  vm.func @mul(%r0: !vm.buffer")
    kernel = text[begin:text.index("\n  }\n", begin) + 5]
    path = pathlib.Path(folder, "kernels.vmasm")
    capture = make_capture(folder)
    for name, code, status, part in (("as before", kernel, 0, ": same"), ("another", kernel.replace("vm.mul.f32", "vm.add.f32"), 1, ": differs")):
        path.write_text(OTHER_KERNELS + kernel_attributes(text) + code)
        for form in (f"0={path}", f"0=vmvx-bytecode-fb:{path}"):
            done = hal_info("replay", capture, f"--executable={form}")
            checks.check(f"{name} kernel", None if done.returncode == status and part in done.stdout else "is wrong", done)
    for value, parts in ((f"1={path}", ["OUT_OF_RANGE", "executable 1"]), ("0=gone.fb", ["NOT_FOUND", "gone.fb"]), (f"x={path}", ["x="]),
                         (f"0=strange:{path}", ["strange"])):
        done = hal_info("replay", capture, f"--executable={value}")
        wrong = None if done.returncode == 1 and all(part in done.stdout + done.stderr for part in parts) else "is no error that says so"
        checks.check(f"--executable={value}", wrong, done)


def kernel_attributes(text):
    return "".join(line.strip() + "\n" for line in text.splitlines() if line.startswith("  vm.attr @mul"))


def files_of_others(checks, folder):
    path = pathlib.Path(folder, "run.ireereplay")
    path.write_bytes(b"IRRP" + struct.pack("<HHIIQ", 2, 0, 24, 0, 24))
    for verb in ("print", "replay"):
        done = hal_info(verb, path)
        checks.check(f"{verb} of a replay file of IREE", vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "a replay file of IREE", "version 2.0"), done)
    path.write_bytes(b"IRRP")
    checks.check("four bytes", vmrun.why_bad_failure(hal_info("print", path), "INVALID_ARGUMENT", "not a capture"))


def mistakes(checks, folder):
    capture = make_capture(folder)
    for name, done, parts in [
            ("no such execution", hal_info("print", capture, "--execution=7"), ["OUT_OF_RANGE", "execution 7"]),
            ("no number", hal_info("replay", capture, "--execution=first"), ["INVALID_ARGUMENT", "--execution=first"]),
            ("the number that means all", hal_info("print", capture, "--execution=18446744073709551615"),
             ["INVALID_ARGUMENT", "--execution=18446744073709551615"]),
            ("no such file", hal_info("replay", f"{folder}/gone.hycap"), ["NOT_FOUND", "gone.hycap"]),
            ("not a capture", hal_info("print", "README.md"), ["INVALID_ARGUMENT", "README.md", "not a capture"]),
            ("no file", hal_info("replay"), ["INVALID_ARGUMENT", "FILE"]),
            ("no such execution to replay", hal_info("replay", capture, "--execution=7"), ["OUT_OF_RANGE", "execution 7"]),
            ("no such command", hal_info("replay", capture, "--command=7"), ["OUT_OF_RANGE", "--command=7"]),
            ("no such command to measure", hal_info("replay", capture, "--command=7", "--benchmark"), ["OUT_OF_RANGE", "--command=7"]),
            ("a command beyond all numbers", hal_info("replay", capture, "--command=18446744073709551614"), ["OUT_OF_RANGE"]),
            ("cut without a command", hal_info("cut", capture, f"--output={folder}/x.hycap"), ["INVALID_ARGUMENT", "--command"]),
            ("cut without a file", hal_info("cut", capture, "--command=0"), ["INVALID_ARGUMENT", "--output"]),
            ("cut into itself", hal_info("cut", capture, "--command=0", f"--output={capture}"), ["INVALID_ARGUMENT", "the capture itself"]),
            ("cut into no folder", hal_info("cut", capture, "--command=0", f"--output={folder}/gone/c.hycap"), ["NOT_FOUND", "gone/c.hycap"]),
            ("no such device", hal_info("replay", capture, "--device=nothing"), ["NOT_FOUND", "'nothing'"]),
            ("no folder", vmrun.run("vm-run", "--module=examples/fib.vmasm", "--function=fib", "--input=5",
                                    f"--capture={folder}/gone/c.hycap"), ["NOT_FOUND", "gone/c.hycap"]),
    ]:
        checks.check(name, vmrun.why_bad_failure(done, *parts), done)


def main(checks, folder):
    if round_trips(checks, folder) == 0:
        checks.check("round trips", "nothing was captured")
    null_driver(checks, folder)
    changed_byte(checks, folder)
    cut_short(checks, folder)
    descriptions(checks, folder)
    parts_of_executions(checks, folder)
    cut_to_a_kernel(checks, folder)
    json_of_failures(checks, folder)
    measured(checks, folder)
    other_code(checks, folder)
    files_of_others(checks, folder)
    mistakes(checks, folder)
