"""vm-cc without a runtime over the shared programs: everything with one local device, or none, gives what the cases state, or is
refused with the reason, as bytecode of the compiler or of text. Each program is built once, with compilers, levels and sanitizers
in turn. HALYARD_VM_CC_TARGETS builds all of them for each target that it names, or with `all` for every one, and counts.
HALYARD_VM_CC_PART=K/N takes every Nth program from the Kth on (from 0); a line for each program tells how far a run came."""
import collections
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess

import vmrun
from test_vm_cc import STRICT
from test_vm_cc_targets import BOARD_SCRIPT, BOARD_START, BOARDS, LINUX

FOLDERS = ("compiled", "vmasm", "vmasm/legacy", "inline", "constants", "../aot")
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Refused by vm-cc itself, with the status of the case or, for kernels that are machine code, with the reason.
MACHINE_CODE = "none of its constants is a portable one"
NODE = """import { WASI } from 'wasi';
import { readFile } from 'node:fs/promises';
const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args: ['program', ...args], preopens: { '.': '.' }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
"""


class Target:
    """A compiler with its flags, and the command that runs a program."""

    def __init__(self, name, compiler, flags, runner=None, needs=(), arena=None, strict=STRICT):
        self.name, self.compiler, self.flags = name, compiler, [*strict, *flags]
        self.runner = runner or (lambda binary, flags: ([binary, *flags], {}))
        self.needs = [compiler, *needs]
        if arena:
            self.flags.append(f"-DVM_ARENA_BYTES={arena}")

    def missing(self):
        return [program for program in self.needs if not shutil.which(program)]


def behind(*emulator):
    return lambda binary, flags: ([*emulator, binary, *flags], {})


def with_short_files(folder, flags):
    """Copies the files of inputs to the folder, under short names: the command line of a board is short, and WebAssembly sees one folder."""
    short = []
    for number, flag in enumerate(flags):
        place = flag.find("@")
        if flag.startswith("--input=") and place >= 0:
            name = f"{number}.npy"
            shutil.copy(flag[place + 1:], os.path.join(folder, name))
            flag = flag[:place + 1] + name
        short.append(flag)
    return short


def web(script, folder):
    return lambda binary, flags: (["node", "--no-warnings", script, binary, *with_short_files(folder, flags)], {"cwd": folder})


def board(machine, folder):
    def run(binary, flags):
        # Blanks separate arguments on a board, and commas do between elements.
        short = [flag.replace(" ", ",") for flag in with_short_files(folder, flags)]
        # Commas separate the arguments of qemu's flag, so they are doubled.
        arguments = "".join(",arg=" + flag.replace(",", ",,") for flag in ["program", *short])
        return ["qemu-system-arm", "-M", machine, "-nographic", "-semihosting-config", "enable=on,target=native" + arguments, "-kernel",
                binary], {"cwd": folder}
    return run


def targets(folder):
    """By name. The first ones are for this machine."""
    found = [Target(f"{compiler}{level}{'+san' if sanitized else ''}", compiler, [level, *(SANITIZE if sanitized else [])])
             for sanitized in (False, True) for compiler in ("gcc", "clang-19") for level in ("-O0", "-O2")]
    for name, compiler, emulator in LINUX:
        found.append(Target(name, compiler[0], ["-O2"], behind(*emulator), [emulator[0]]))
    script, start = os.path.join(folder, "board.ld"), os.path.join(folder, "start.c")
    vmrun.write(script, BOARD_SCRIPT)
    vmrun.write(start, BOARD_START)
    for name, machine, cpu in BOARDS:
        found.append(Target(name, "arm-none-eabi-gcc", ["-Os", *cpu, "--specs=rdimon.specs", "-T", script, "-Wl,--no-warn-rwx-segments", start],
                            board(machine, folder), ["qemu-system-arm"], arena=1 << 20, strict=["-std=c11", "-Wall", "-Wextra", "-Werror"]))
    node = os.path.join(folder, "run.mjs")
    vmrun.write(node, NODE)
    found.append(Target("wasm32", "clang-19", ["-O2", "--target=wasm32-wasi", f"-fuse-ld={shutil.which('wasm-ld')}"],
                        web(node, folder), ["node", "wasm-ld"]))
    return found


def comparison():
    """run.py of the fixtures, which compares values."""
    spec = importlib.util.spec_from_file_location("fixtures_run", os.path.join(vmrun.fixtures(), "run.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases():
    """By module: its folder, and its cases with local devices of one kind."""
    found = collections.defaultdict(list)
    for place in FOLDERS:
        folder = os.path.normpath(os.path.join(vmrun.fixtures(), place))
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            for case in json.load(file):
                if set(case.get("devices", [])) <= {"local-sync"} and isinstance(case["module"], str):
                    # Flags with files and the number of devices are part of the program.
                    baked = [flag.replace("=", f"={folder}/", 1) if flag.count("=") == 1 else
                             "=".join([*flag.split("=")[:2], f"{folder}/{flag.split('=')[2]}"])
                             for flag in case.get("flags", []) if flag.startswith("--parameters=")]
                    if len(case.get("devices", [])) > 1:
                        baked.append(f"--devices={len(case['devices'])}")
                    found[(folder, case["module"], *baked)].append(case)
    return found


class Runs:
    """The runs of programs, kept: many modules of older versions become the same C as those of newer ones."""

    def __init__(self):
        self.kept = {}

    @staticmethod
    def key(target, sources, case, folder):
        digest = hashlib.sha256(target.name.encode())
        for path in sources:
            # The first comment of each file names the module.
            digest.update(re.sub(rb"\A/\* .*?\*/", b"", pathlib.Path(path).read_bytes(), flags=re.DOTALL) + b"\0")
        for value in (case["function"], *case.get("inputs", [])):
            digest.update(value.encode() + b"\0")
            if "@" in value:
                digest.update(pathlib.Path(folder, value[value.index("@") + 1:]).read_bytes())
        return digest.digest()

    def get(self, key, run):
        """What `run` gives, or has given: a process that is done, or a text."""
        if key not in self.kept:
            self.kept[key] = run()
        return self.kept[key]


def run_case(case, folder, target, binary):
    inputs = [value.replace("@", f"@{folder}/") for value in case.get("inputs", [])]
    command, options = target.runner(binary, [f"--function={case['function']}", *(f"--input={value}" for value in inputs)])
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=900, **options)
    except subprocess.TimeoutExpired:
        return "no answer in 900 s"


def outcome(compare, case, target, done):
    """None, or how the program differs from the case."""
    if isinstance(done, str):
        return done
    if "error" in case:
        if done.returncode <= 0:
            return f"must fail with {case['error']}, ends with {done.returncode}: {done.stderr[-300:]}"
        return None if case["error"] in done.stderr else f"must fail with {case['error']}, fails with {done.stderr[-300:]}"
    if done.returncode != 0:
        return f"ends with {done.returncode}: {done.stderr[-300:]}"
    found = compare.values(done.stdout)
    tolerance = max(case.get("rtol", 0), 0 if target.name[:3] in ("gcc", "cla") else 1e-5)  # functions of another C library
    if len(found) == len(case["expected"]) and all(map(compare.same, case["expected"], found, [tolerance] * len(found))):
        return None
    return f"expected {case['expected']}, found {found}"


class Count:
    def __init__(self):
        self.passed = self.failed = self.too_large = 0

    def __str__(self):
        return f"{self.passed} cases passed, {self.failed} failed, {self.too_large} need more memory than the target has"


def part():
    """Which programs are taken: the number of the first one, and the step to the next one."""
    asked = os.environ.get("HALYARD_VM_CC_PART", "0/1")
    first, _, step = asked.partition("/")
    if not (first.isdecimal() and step.isdecimal() and int(first) < int(step)):
        raise SystemExit(f"HALYARD_VM_CC_PART expects K/N with K below N, such as 0/4, and is '{asked}'")
    return int(first), int(step)


def check_target(checks, compare, target, name, prefix, all_cases, folder, count, runs):
    sources = [prefix + end for end in (".c", "_main.c", "_data.S") if os.path.exists(prefix + end)]
    read = [*sources, *(prefix + end for end in (".h", ".bin") if os.path.exists(prefix + end))]
    keys = [runs.key(target, read, case, folder) for case in all_cases]
    binary = f"{prefix}.{target.name}"
    if all(key in runs.kept for key in keys):
        return check_runs(checks, compare, target, all_cases, [runs.kept[key] for key in keys], count)
    done = subprocess.run([target.compiler, *target.flags, "-o", binary, *sources, "-lm"], capture_output=True, text=True,
                          cwd=os.path.dirname(prefix), timeout=600)
    if done.returncode != 0 and any(part in done.stderr for part in ("overflowed by", "will not fit in region")):
        count.too_large += len(all_cases)
        return
    checks.check(f"{name} compiles for {target.name}", None if done.returncode == 0 else done.stderr[:1500])
    if done.returncode != 0:
        count.failed += len(all_cases)
        return
    found = [runs.get(key, lambda case=case: run_case(case, folder, target, binary)) for key, case in zip(keys, all_cases)]
    os.remove(binary)
    check_runs(checks, compare, target, all_cases, found, count)


def check_runs(checks, compare, target, all_cases, found, count):
    for case, done in zip(all_cases, found):
        wrong = outcome(compare, case, target, done)
        if wrong and target.name.startswith("cortex") and ("RESOURCE_EXHAUSTED" in wrong or sum(map(len, case.get("inputs", []))) > 200):
            count.too_large += 1
            continue
        count.passed += wrong is None
        count.failed += wrong is not None
        checks.check(f"{case['name']} on {target.name}", wrong)


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    vmrun.needed_fixtures()
    compare = comparison()
    all_targets = targets(folder)
    asked = os.environ.get("HALYARD_VM_CC_TARGETS", "").replace(",", " ").split()
    wanted = [target for target in all_targets if target.name in asked or asked == ["all"]]
    turns = [target for target in all_targets if target.name.startswith(("gcc", "clang")) and not target.missing()]
    counts = collections.defaultdict(Count)
    for target in wanted:
        if target.missing():
            print(f"{target.name}: left out, {', '.join(target.missing())} not installed")
    refused = 0
    runs = Runs()
    first, step = part()
    for number, ((place, module, *baked), all_cases) in list(enumerate(sorted(cases().items())))[first::step]:
        os.makedirs(os.path.join(folder, f"p{number}"))
        prefix = os.path.join(folder, f"p{number}", "program")  # one name, so that the same program is the same C
        done = vmrun.run("vm-cc", os.path.join(place, module), "--main", "-o", prefix, *baked)
        name = os.path.join(os.path.basename(place), module)
        if done.returncode != 0:
            # All cases of a program that cannot run fail with one status, which vm-cc names.
            errors = {case.get("error") for case in all_cases}
            good = MACHINE_CODE in done.stderr if ".llvm-cpu" in module or "embedded" in module or errors == {None} else \
                any(error in done.stderr for error in errors if error)
            checks.check(f"{name} is refused with the reason", None if good else "another reason", done)
            refused += 1
            continue
        for target in wanted or [turns[number % len(turns)]]:
            if not target.missing():
                check_target(checks, compare, target, name, prefix, all_cases, place, counts[target.name], runs)
        if wanted:
            print(f"program {number}, {name}: {'; '.join(f'{target}: {count}' for target, count in counts.items())}", flush=True)
    print(f"{refused} programs refused")
    for name, count in counts.items():
        print(f"{name}: {count}")
