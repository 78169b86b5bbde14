"""vm-cc where its programs run: other processors under qemu, Cortex-M boards, and WebAssembly in Node and in a page. What is not installed is left
out, with the reason. The folders examples/firmware and examples/web are built and run; a keyword model fits into a small board."""
import functools
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import threading

import lenet
import vmrun
from browser import BROWSER, MISSING, Browser
from npy import npy_array, read_npy
from test_vm_cc import STRICT, example_calls, prints_same

# Name, compiler and its flags, emulator.
LINUX = [
    ("arm64", ["aarch64-linux-gnu-gcc"], ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
    ("armhf", ["arm-linux-gnueabihf-gcc"], ["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"]),
    ("riscv64", ["riscv64-linux-gnu-gcc"], ["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"]),
]
BOARDS = [
    ("cortex-m3", "mps2-an385", ["-mcpu=cortex-m3", "-mthumb"]),
    ("cortex-m4", "mps2-an386", ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]),
    ("cortex-m7", "mps2-an500", ["-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"]),
]
# Boards with room for the C library, which the program of --main needs.
BOARD_SCRIPT = """
MEMORY { flash (rx) : ORIGIN = 0, LENGTH = 4M  ram (rw) : ORIGIN = 0x20000000, LENGTH = 4M }
ENTRY(_start)
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) KEEP(*(.init)) KEEP(*(.fini)) *(.rodata*) . = ALIGN(8);
    __preinit_array_start = .; KEEP(*(.preinit_array)) __preinit_array_end = .;
    __init_array_start = .; KEEP(*(SORT(.init_array.*))) KEEP(*(.init_array)) __init_array_end = .;
    __fini_array_start = .; KEEP(*(.fini_array)) __fini_array_end = .; } > flash
  .ARM.exidx : { __exidx_start = .; *(.ARM.exidx*) __exidx_end = .; } > flash
  data_load = LOADADDR(.data);
  .data : { data_begin = .; *(.data*) . = ALIGN(8); data_end = .; } > ram AT > flash
  .bss (NOLOAD) : { __bss_start__ = .; *(.bss*) *(COMMON) . = ALIGN(8); __bss_end__ = .; end = .; _end = .; __end__ = .; } > ram
  __stack = ORIGIN(ram) + LENGTH(ram);
}
"""
BOARD_START = """#include <stdint.h>
extern uint32_t __stack[], data_begin[], data_end[], data_load[];
void _start(void);
void reset(void) {
  uint32_t* to = data_begin;
  for (const uint32_t* from = data_load; to != data_end;) *to++ = *from++;
#if defined(__ARM_FP)
  *(volatile uint32_t*)0xE000ED88u |= 0xFu << 20;
  __asm__ volatile("dsb\\n isb");
#endif
  _start();
}
__attribute__((section(".vectors"), used)) static void* const vectors[16] = {
    __stack, (void*)reset, (void*)reset, (void*)reset, (void*)reset, (void*)reset, (void*)reset};
"""
# Models that a small board has the memory for, and one case of each.
SMALL = {"compiled": ("simple_mul.vmvx", "mlp.vmvx", "reductions.vmvx", "stateful.vmvx", "elementwise_int_float.vmvx", "pipeline_chain.vmvx",
                      "matmul_dynamic.vmvx", "internal_i64.vmvx", "control_flow.vmvx"),
         "inline": ("simple_mul.inline-static", "mlp.inline-dynamic-vmvx"), "../aot": ("kws8.vmvx", "kws.vmvx")}


def missing(*programs):
    """Why a target is left out, or None."""
    absent = [program for program in programs if not shutil.which(program)]
    return f"{', '.join(absent)} not installed" if absent else None


def left_out(name, why):
    print(f"{name}: left out, {why}")


def write_lenet(folder):
    """LeNet-5, and the flags of a call with an image."""
    chance = random.Random(3)
    pixels = struct.pack(f"<{lenet.IMAGE ** 2}f", *(chance.random() for _ in range(lenet.IMAGE ** 2)))
    path, image = os.path.join(folder, "lenet.vmasm"), os.path.join(folder, "image.npy")
    vmrun.write(path, lenet.text())
    vmrun.write(image, npy_array("<f4", (1, lenet.IMAGE, lenet.IMAGE, 1), pixels))
    return path, ["--function=classify", f"--input=@{image}"], struct.unpack(f"<{len(pixels) // 4}f", pixels)


def models(folder):
    """Name, file and calls (flags) of each model, with what vm-run prints."""
    path, flags, _ = write_lenet(folder)
    found = [("lenet", path, ["--device=local-sync"], flags)]
    for name in ("elementwise_mul", "inline_dispatch", "fib", "functions"):
        path = os.path.join(vmrun.SOURCE, "examples", name + ".vmasm")
        text = vmrun.read_text(path)
        device = ["--device=local-sync"] if "@hal." in text else []
        for call in example_calls(text):
            found.append((name, path, device, [f"--function={call[0]}", *(f"--input={value}" for value in call[1:])]))
            break
        if name == "elementwise_mul":
            found.append(("denormal numbers", path, device, ["--function=mul", "--input=8xf32=1e-40,-1e-40,1e-45,3e-39,1e-38,2e-38,1,0", "--input=8xf32=0.5"]))
    fixtures = vmrun.fixtures()
    for place, names in SMALL.items() if fixtures else ():
        with open(os.path.join(fixtures, place, "cases.json"), encoding="utf-8") as file:
            cases = json.load(file)
        for name in names:
            case = next(each for each in cases if each["module"] == name + ".vmfb" and each["devices"] in ([], ["local-sync"]))
            inputs = [value.replace("@", f"@{fixtures}/{place}/") for value in case["inputs"]]
            found.append((name, os.path.join(fixtures, place, case["module"]), [f"--device={each}" for each in case["devices"]],
                          [f"--function={case['function']}", *(f"--input={value}" for value in inputs)]))
    for index, (name, path, devices, flags) in enumerate(found):
        done = vmrun.succeeds("vm-run", f"--module={path}", *devices, *flags)
        prefix = os.path.join(folder, f"p{index}")
        vmrun.succeeds("vm-cc", path, "--main", "-o", prefix)
        yield name, prefix, flags, done.stdout


def cannot_compile(compiler, folder):
    """Why programs of the C library cannot be compiled, or None."""
    source = os.path.join(folder, "probe.c")
    vmrun.write(source, "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n")
    done = subprocess.run([*compiler, "-o", os.path.join(folder, "probe"), source], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{compiler[0]} has no C library"


def check_linux(checks, folder, programs):
    for target, compiler, emulator in LINUX:
        why = missing(compiler[0], emulator[0]) or cannot_compile(compiler, folder)
        if why:
            left_out(target, why)
            continue
        for name, prefix, flags, expected in programs:
            binary = f"{prefix}.{target}"
            done = subprocess.run([*compiler, *STRICT, "-O2", "-o", binary, prefix + ".c", prefix + "_main.c", "-lm"], capture_output=True,
                                  text=True)
            checks.check(f"{name} compiles for {target}", None if done.returncode == 0 else done.stderr[:1500])
            if done.returncode == 0:
                check_output(checks, f"{name} on {target}", [*emulator, binary, *flags], expected)


def check_output(checks, name, command, expected, folder=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=folder)
    good = done.returncode == 0 and prints_same(expected, done.stdout, 1e-5 if "elementwise" in name else 0.0)
    checks.check(name, None if good else f"expected {expected!r}, found {done.returncode}: {done.stderr[:300]!r} {done.stdout!r}")


def check_boards(checks, folder, programs):
    why = missing("arm-none-eabi-gcc", "qemu-system-arm")
    if why:
        return left_out("Cortex-M", why)
    script, start = os.path.join(folder, "board.ld"), os.path.join(folder, "start.c")
    vmrun.write(script, BOARD_SCRIPT)
    vmrun.write(start, BOARD_START)
    # The command line of a board is short, so files get short names.
    def shortened(flag, number):
        if not flag.startswith("--input=@"):
            return flag
        shutil.copy(flag[len("--input=@"):], os.path.join(folder, f"{number}.npy"))
        return f"--input=@{number}.npy"

    for board, machine, cpu in BOARDS:
        for name, prefix, flags, expected in programs if board == "cortex-m4" else programs[::3]:
            flags = [shortened(flag, number) for number, flag in enumerate(flags)]
            if sum(len(flag) + 1 for flag in flags) > 200:
                continue
            binary = f"{prefix}.{board}.elf"
            done = subprocess.run(["arm-none-eabi-gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-Os", *cpu, "--specs=rdimon.specs", "-T", script,
                                   "-DVM_ARENA_BYTES=1048576", "-Wl,--no-warn-rwx-segments", "-o", binary, start, prefix + ".c",
                                   prefix + "_main.c", "-lm"], capture_output=True, text=True)
            checks.check(f"{name} compiles for {board}", None if done.returncode == 0 else done.stderr[:1500])
            if done.returncode == 0:
                # Commas separate the arguments of qemu's flag, so they are doubled.
                arguments = "".join(",arg=" + flag.replace(",", ",,") for flag in ["program", *flags])
                check_output(checks, f"{name} on {board}", ["qemu-system-arm", "-M", machine, "-nographic", "-semihosting-config",
                                                            "enable=on,target=native" + arguments, "-kernel", binary], expected, folder)


def check_firmware(checks, folder):
    """examples/firmware, as its reader builds it."""
    why = missing("make", "arm-none-eabi-gcc", "qemu-system-arm")
    if why:
        return left_out("examples/firmware", why)
    copy = os.path.join(folder, "firmware", "example")
    shutil.copytree(os.path.join(vmrun.SOURCE, "examples", "firmware"), copy)
    shutil.copy(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"), os.path.dirname(copy))
    done = subprocess.run(["make", "-s", "run", "VM_CC=" + os.path.join(vmrun.BIN, "vm-cc")], cwd=copy, capture_output=True, text=True, timeout=900)
    good = done.returncode == 0 and "10 40 90 160 250 360 490 640" in done.stdout + done.stderr and "warning" not in done.stderr
    checks.check("examples/firmware", None if good else f"{done.returncode}: {done.stdout} {done.stderr}")


KEYWORDS = """
#include "kws8.h"
static kws8_state state;
static unsigned char arena[KWS8_ARENA_BYTES];
static int32_t logits[1][4];
static const int8_t features[1][49][40][1] = {{{{1}}}};
int main(void) {
  if (kws8_init(&state, arena, sizeof arena) != 0) return 1;
  return kws8_classify(&state, features, logits);
}
"""


def check_keywords(checks, folder):
    """The keyword model of a public project, in 32 KiB of flash and 20 KiB of RAM with its stack."""
    fixtures = vmrun.fixtures()
    why = missing("arm-none-eabi-gcc") or (None if fixtures else "the shared fixtures are not here")
    if why:
        return left_out("keyword model", why)
    prefix = os.path.join(folder, "kws8")
    vmrun.succeeds("vm-cc", os.path.join(fixtures, "../aot/kws8.vmvx.vmfb"), "-o", prefix)
    vmrun.write(prefix + "_app.c", KEYWORDS)
    firmware = os.path.join(vmrun.SOURCE, "examples", "firmware")
    start = vmrun.read_text(os.path.join(firmware, "main.c"))
    start = start[:start.index("static model_state state;")].replace('#include "model.h"', "#include <stdint.h>")
    start = re.sub(r"static void print_number.*", "", start, flags=re.DOTALL)
    start = re.sub(r"/\* A call of the debugger.*", "", start, flags=re.DOTALL)
    vmrun.write(prefix + "_start.c", start)
    # The linker script has the sizes: it fails if the program does not fit, or leaves less than 2 KiB for the stack.
    done = subprocess.run(["arm-none-eabi-gcc", "-std=c11", "-Os", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-ffunction-sections",
                           "-fdata-sections", "-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections", "-T",
                           os.path.join(firmware, "cortex-m.ld"), "-o", prefix + ".elf", prefix + "_app.c", prefix + "_start.c", prefix + ".c"],
                          capture_output=True, text=True, cwd=folder)
    checks.check("the keyword model links", None if done.returncode == 0 else done.stderr[:1500])
    if done.returncode != 0:
        return
    sizes = subprocess.run(["arm-none-eabi-size", prefix + ".elf"], capture_output=True, text=True).stdout.splitlines()[1].split()
    flash, ram = int(sizes[0]) + int(sizes[1]), int(sizes[1]) + int(sizes[2])
    header = vmrun.read_text(prefix + ".h")
    stack = int(re.search(r"KWS8_STACK_BYTES (\d+)u", header)[1])
    print(f"keyword model on Cortex-M4: {flash} bytes of flash, {ram} bytes of RAM and at most {stack} bytes of stack")
    checks.check("the keyword model is small", None if flash <= 32 << 10 and ram + stack <= 20 << 10 else f"{flash}, {ram}, {stack}")


def check_lenet(checks, folder):
    """LeNet-5: its results, its arena, and its code on a small board without the weights."""
    path, flags, image = write_lenet(folder)
    result, prefix = os.path.join(folder, "result.npy"), os.path.join(folder, "lenet")
    vmrun.succeeds("vm-run", f"--module={path}", "--device=local-sync", *flags, f"--output=@{result}")
    [(_, shape, data)] = read_npy(vmrun.read(result))
    found, expected = struct.unpack(f"<{lenet.CLASSES}f", data), lenet.reference(image)
    checks.check("LeNet-5", None if shape == (1, lenet.CLASSES) and all(abs(x - y) < 1e-5 for x, y in zip(found, expected)) else f"{found}, expected {expected}")
    report = vmrun.succeeds("vm-cc", path, "--report", "-o", prefix).stdout
    arena, alive, fit = map(int, re.search(r"arena (\d+) bytes; alive at once (\d+), first fit by decreasing size (\d+)", report).groups())
    checks.check("the arena of LeNet-5", None if arena <= min(1.05 * alive, fit) and "none at run time" in report else report)
    why = missing("arm-none-eabi-gcc")
    if why:
        return left_out("the size of LeNet-5", why)
    subprocess.run(["arm-none-eabi-gcc", "-std=c11", "-Os", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-c", prefix + ".c", "-o", prefix + ".o"],
                   check=True)
    text = int(subprocess.run(["arm-none-eabi-size", prefix + ".o"], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[0])
    constants = int(re.search(r"LENET_CONST_BYTES (\d+)u", vmrun.read_text(prefix + ".h"))[1])
    print(f"LeNet-5 on Cortex-M4: {text - constants} bytes of code, {constants} bytes of constants")
    checks.check("LeNet-5 is small", None if text - constants <= 14 << 10 else text)


def check_stack(checks, folder, programs):
    """NAME_STACK_BYTES is at least what compilers take on the deepest path: one exported function and one kernel."""
    compilers = [["gcc"]] + ([["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]] if not missing("arm-none-eabi-gcc") else [])
    for name, prefix, _, _ in programs:
        bound = re.search(r"_STACK_BYTES (\d+)u", vmrun.read_text(prefix + ".h"))
        if bound is None:
            continue
        for compiler in compilers:
            for level in ("-O0", "-O2"):
                usage = f"{prefix}.su"
                subprocess.run([*compiler, "-std=c11", level, "-fstack-usage", "-fno-inline", "-c", prefix + ".c", "-o", f"{prefix}.o"], check=True,
                               capture_output=True, cwd=folder)
                frames = {"k": 0, "other": 0, "host": 0}
                for line in vmrun.read_text(usage).splitlines():
                    place, size, _ = line.split("\t")
                    function = place.split(":")[-1]
                    part = "k" if re.match(r"k\d+_fn", function) else "host" if re.match(r"p\d+_", function) else "other"
                    frames[part] = max(frames[part], int(size) + 8)
                most = sum(frames.values())
                checks.check(f"{name}: stack with {compiler[0]} {level}", None if most <= int(bound[1]) else f"{most} > {bound[1]}")


def check_web(checks, folder):
    """examples/web in Node."""
    why = missing("make", "clang-19", "wasm-ld", "node")
    if why:
        return left_out("examples/web", why)
    copy = os.path.join(folder, "web", "example")
    shutil.copytree(os.path.join(vmrun.SOURCE, "examples", "web"), copy)
    shutil.copy(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"), os.path.dirname(copy))
    done = subprocess.run(["make", "-s", "run", "VM_CC=" + os.path.join(vmrun.BIN, "vm-cc")], cwd=copy, capture_output=True, text=True, timeout=900)
    good = done.returncode == 0 and done.stdout.strip() == "10 40 90 160 250 360 490 640" and "warning:" not in done.stderr.replace("ExperimentalWarning", "")
    checks.check("examples/web", None if good else f"{done.returncode}: {done.stdout} {done.stderr}")
    if not BROWSER:
        return left_out("the page of examples/web", MISSING)
    check_page(checks, copy, os.path.join(folder, "profile"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def check_page(checks, site, profile):
    """The page computes when it is loaded, and again for each input."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser(profile)
    try:
        browser.call("Page.enable")
        browser.call("Page.navigate", url=f"http://127.0.0.1:{server.server_address[1]}/index.html")
        product = "document.getElementById('product')?.value"
        browser.wait_for(f"{product}")
        shown = browser.evaluate(product)
        checks.check("the page shows the product", None if shown == "10 40 90 160 250 360 490 640" else shown)
        browser.evaluate("{ const x = document.getElementById('x'); x.value = '0 -1 2 0.5 4 5 6 7'; x.dispatchEvent(new Event('input')); }")
        shown = browser.evaluate(product)
        checks.check("the page follows its inputs", None if shown == "0 -20 60 20 200 300 420 560" else shown)
    finally:
        browser.close()
        server.shutdown()
        server.server_close()


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    check_firmware(checks, folder)
    check_web(checks, folder)
    check_keywords(checks, folder)
    check_lenet(checks, folder)
    programs = list(models(folder))
    check_stack(checks, folder, programs)
    check_linux(checks, folder, programs)
    check_boards(checks, folder, programs)
