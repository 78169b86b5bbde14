"""vm-cc --emit=vmfb: modules with machine code. The shared programs of portable kernels give what their cases state, without a
compiler where they run, and the bits of code that is compiled at run time; devices that cannot run the code get the portable
kernels; kernels for other processors run under qemu, where it is installed, and give the bits of those for this one."""
import json
import os
import platform
import re
import shutil
import subprocess

import elementary_programs
import kernel_programs
import microkernel_programs
import vmrun
from test_vm_cc_fixtures import comparison

EMITTER = os.path.join(vmrun.BUILD, "lib", "halyard", "halyard-emit-llvm.so")
FOLDERS = ("compiled", "vmasm", "vmasm/legacy", "inline", "constants", "../aot", "../bench/kernels")
LEVELS = {"x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}
NO_KERNELS = "has no portable kernels"
# A kernel that packs tiles of a matrix of dynamic size into a buffer of its own.
UNKNOWN_SIZES = {"matmul_dynamic.vmvx-uk-dt.vmfb": ("UNIMPLEMENTED", "buffer.alloc: the size of the buffer is not known")}
# A processor, its compiler, and its emulator.
OTHERS = [("arm64", "aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
          ("arm64+dotprod+i8mm", "aarch64-linux-gnu-gcc", ["qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"]),
          ("riscv64", "riscv64-linux-gnu-gcc", ["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"]),
          ("riscv64+v", "riscv64-linux-gnu-gcc", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0", "-L", "/usr/riscv64-linux-gnu"])]
# Runs kernel N of a library for all workgroups, over buffers of numbers, and prints what is in the buffers then.
RUNNER = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct environment { const uint32_t* constants; void* thunk; void *functions, *contexts; uint64_t cpu[8]; };
struct dispatch { uint32_t size_x, size_y; uint16_t size_z, constant_count; uint32_t count_x, count_y; uint16_t count_z;
                  uint8_t concurrency, binding_count; const uint32_t* constants; void* const* bindings; const size_t* lengths; };
struct workgroup { uint32_t x, y; uint16_t z, reserved; uint32_t processor; void* memory; uint32_t memory_bytes; };
struct attributes { uint64_t flags; uint16_t pages; uint8_t constant_count, binding_count; uint32_t rest[13]; };
struct library { const void* header; uint64_t imports[2]; uint32_t count;
                 int (**functions)(const struct environment*, const struct dispatch*, const struct workgroup*);
                 const struct attributes* attributes; };
int main(int argc, char** argv) {
  void* file = dlopen(argv[1], RTLD_NOW);
  if (!file) return fprintf(stderr, "%s\n", dlerror()), 2;
  const struct library* (*query)(uint32_t, const struct environment*) =
      (const struct library* (*)(uint32_t, const struct environment*))dlsym(file, "iree_hal_executable_library_query");
  static struct environment environment;
  if (!query(5, &environment) || query(7, &environment)) return fprintf(stderr, "revisions\n"), 3;
  const struct library* library = query(6, &environment);
  uint32_t kernel = (uint32_t)atoi(argv[2]);
  struct dispatch dispatch = {.count_x = (uint32_t)atoi(argv[3]), .count_y = (uint32_t)atoi(argv[4]), .count_z = (uint16_t)atoi(argv[5])};
  void* bindings[16];
  size_t lengths[16];
  uint32_t seed = 1;
  for (int i = 6; i < argc; ++i) {
    size_t bytes = lengths[i - 6] = (size_t)atoll(argv[i]);
    float* numbers = bindings[i - 6] = calloc(1, bytes + 4);
    for (size_t n = 0; n < bytes / 4; ++n) numbers[n] = (float)(int32_t)((seed = seed * 1664525u + 1013904223u) >> 12) / 262144.0f - 2.0f;
    dispatch.binding_count++;
  }
  dispatch.bindings = bindings;
  dispatch.lengths = lengths;
  const struct attributes* attributes = &library->attributes[kernel];
  if (kernel >= library->count || attributes->binding_count != dispatch.binding_count) return fprintf(stderr, "counts\n"), 4;
  struct workgroup workgroup = {.memory = aligned_alloc(64, attributes->pages * 4096u + 64), .memory_bytes = attributes->pages * 4096u};
  memset(workgroup.memory, 0xAB, attributes->pages * 4096u);
  int result = 0;
  for (uint32_t z = 0; z < dispatch.count_z; ++z)
    for (uint32_t y = 0; y < dispatch.count_y; ++y)
      for (uint32_t x = 0; x < dispatch.count_x; ++x) {
        workgroup.x = x, workgroup.y = y, workgroup.z = (uint16_t)z;
        result |= library->functions[kernel](&environment, &dispatch, &workgroup);
      }
  printf("result %d", result);
  for (int i = 0; i < dispatch.binding_count; ++i) {
    uint64_t sum = 14695981039346656037u;
    for (size_t n = 0; n < lengths[i]; ++n) sum = (sum ^ ((uint8_t*)bindings[i])[n]) * 1099511628211u;
    printf(" %016llx", (unsigned long long)sum);
  }
  printf("\n");
}
"""


def levels():
    """The processors that this machine is, the best one last."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = file.read().split()
    return [name for name, feature in LEVELS.items() if feature in flags]


def emit(module, target, output, *flags, **options):
    return vmrun.run("vm-cc", module, "--emit=vmfb", f"--target={target}", f"--output={output}", *flags, timeout=900, **options)


def cases():
    """Folder, module and its cases with local devices."""
    found = {}
    for place in FOLDERS:
        folder = os.path.normpath(os.path.join(vmrun.fixtures(), place))
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            for case in json.load(file):
                if set(case.get("devices", [])) <= {"local-sync", "local-task"} and isinstance(case["module"], str):
                    found.setdefault((folder, case["module"]), []).append(case)
    return found


def check_fixtures(checks, folder):
    compare = comparison()
    made = 0
    for number, ((place, module), all_cases) in enumerate(cases().items()):
        source = os.path.join(place, module)
        output = os.path.join(folder, "made.vmfb")
        # In turns: with the portable kernels, without them, and for all levels at once.
        flags = [[], ["--no-portable"], []][number % 3]
        target = ",".join(LEVELS) if number % 3 == 2 else levels()[number // 3 % len(levels())]
        done = emit(source, target, output, *flags)
        if NO_KERNELS in done.stderr or module in UNKNOWN_SIZES:
            checks.check(module, vmrun.why_bad_failure(done, *([NO_KERNELS] if NO_KERNELS in done.stderr else UNKNOWN_SIZES[module])), done)
            if NO_KERNELS in done.stderr:
                continue
            done = emit(source, target, output, *flags, "--kernel_memory=1MiB")
        if done.returncode != 0 or done.stderr:
            checks.check(module, f"is not compiled: {done.stderr[-300:]}", done)
            continue
        made += 1
        for case in all_cases:
            # Such programs ask for a wrong format or give wrong data; without portable kernels the format has another name.
            if "error" in case and flags:
                continue
            wrong, _ = compare.run({**case, "module": output, "flags": ["--jit=off", *case.get("flags", [])]},
                                   os.path.join(vmrun.BIN, "vm-run"), place, 120)
            checks.check(f"{module} {case['function']} for {target} {flags}", wrong)
    checks.check("modules with machine code", None if made >= 40 else f"only {made}")


def check_bits(checks, folder):
    """All levels give the bits of code that is compiled at run time."""
    place = os.path.normpath(os.path.join(vmrun.fixtures(), "..", "bench", "kernels"))
    vmrun.need_compiler()
    for module in sorted(name for name in os.listdir(place) if name.endswith(".vmvx.vmfb")):
        name = module.split(".")[0]
        source, output = os.path.join(place, module), os.path.join(folder, "made.vmfb")
        inputs = [f"--input=@{os.path.join(place, each)}" for each in sorted(os.listdir(place)) if each.startswith(f"{name}.in")]

        def result(program, jit):
            file = os.path.join(folder, "result.npy")
            vmrun.succeeds("vm-run", f"--module={program}", "--device=local-sync", f"--function={name}", *inputs, f"--jit={jit}",
                           "--jit_cache=", f"--output=@{file}")
            return vmrun.read(file)

        expected = result(source, "always")
        for level in levels():
            done = emit(source, level, output, "--no-portable")
            same = done.returncode == 0 and result(output, "off") == expected
            checks.check(f"bits of {name} for {level}", None if same else "differ from those of compiled bytecode", done)


# The instructions of microkernels (docs/microkernels.md) on processors of a level.
INSTRUCTIONS = {"x86-64-v2": "sse4", "x86-64-v3": "avx2", "x86-64-v4": "avx512", "x86-64-v4+avx512vnni": "avx512-vnni"}


def mul_of(module, device, inputs, output):
    """The file with the result of @mul, or the process that failed."""
    done = vmrun.run("vm-run", f"--module={module}", f"--device={device}", "--function=mul", "--jit=off", f"--output=@{output}",
                     *(f"--input=@{each}" for each in inputs))
    return vmrun.read(output) if done.returncode == 0 else done


def check_microkernels(checks, folder):
    """Microkernels as machine code have the bits and the statuses of those of a device with the same instructions."""
    calls = microkernel_programs
    programs = {
        "elements": (True, list(calls.elementwise_calls([name for name in calls.BINARY + calls.UNARY if not name.startswith(("divs", "divu"))]))),
        "quotients": (False, list(calls.elementwise_calls(["divs.2d.i32", "divu.2d.i32"]))),
        "copies": (True, list(calls.copy_calls())),
        "tiles": (False, list(calls.tile_calls())),
        "overlapping tiles": (False, list(calls.overlapping_tile_calls())),
        "products": (False, list(calls.product_calls((1, 2)))),
        "products of special numbers": (True, list(calls.product_calls((2,)))),
        "sizes of tiles": (False, calls.size_calls()),
    }
    made, file = os.path.join(folder, "made.vmfb"), os.path.join(folder, "result.npy")
    files = {special: calls.inputs(folder, special) for special in (False, True)}

    def result(module, device, special):
        return mul_of(module, device, files[special], file)

    for level in [*levels(), *(["x86-64-v4+avx512vnni"] if "avx512_vnni" in vmrun.read_text("/proc/cpuinfo").split() else [])]:
        device = f"local-sync?isa={INSTRUCTIONS[level]}"
        for name, (special, each) in programs.items():
            source = program(calls.text(each), folder, "microkernels")
            expected = result(source, "local-sync?isa=scalar" if name.startswith("overlapping") else device, special)
            if not isinstance(expected, bytes) and "isa" in expected.stderr:
                print(f"{level}: left out, {expected.stderr}")
                break
            checks.check(f"portable microkernels: {name}", None if isinstance(expected, bytes) else "fail", None if isinstance(expected, bytes) else expected)
            done = emit(source, level, made, "--no-portable")
            found = result(made, "local-sync", special) if done.returncode == 0 else done
            wrong = None if isinstance(found, bytes) and found == expected else "other bits"
            if wrong and isinstance(found, bytes) and isinstance(expected, bytes):
                at = next(index for index in range(0, len(found), 4) if found[index:index + 4] != expected[index:index + 4])
                wrong += f" from element {(at - len(found)) // 4 + calls.SIZE} on: {found[at:at + 4].hex()} instead of {expected[at:at + 4].hex()}"
            checks.check(f"microkernels for {level}: {name}", wrong, found if not isinstance(found, bytes) else None)
    for name, (code, call) in calls.FAILING.items():
        source = program(calls.text([call]), folder, "microkernels")
        done = emit(source, levels()[-1], made, "--no-portable")
        checks.check(f"emits {name}", None if done.returncode == 0 else "fails", done)
        wrong = vmrun.why_bad_failure(result(made, "local-sync", True), "INTERNAL", f"kernel 'mul' failed with {code}")
        checks.check(f"microkernels: {name}", wrong)
        portable = vmrun.run("vm-run", f"--module={source}", "--device=local-sync", "--function=mul", *(f"--input=@{each}" for each in files[True]))
        checks.check(f"the portable kernel fails, too: {name}", None if portable.returncode else "it does not", portable)


def check_functions(checks, folder):
    """Functions of f32 are code of the kernel, with the interpreter's bits."""
    made, file = os.path.join(folder, "made.vmfb"), os.path.join(folder, "result.npy")
    files = microkernel_programs.inputs(folder, True)

    def result(module):
        return mul_of(module, "local-sync", files, file)

    for number, name in enumerate(elementary_programs.UNARY + elementary_programs.BINARY):
        source = program(elementary_programs.of(name), folder, "functions")
        expected = result(source)
        checks.check(f"portable {name}", None if isinstance(expected, bytes) else "fails", None if isinstance(expected, bytes) else expected)
        for level in {levels()[number % len(levels())], levels()[-1]}:
            done = emit(source, level, made, "--no-portable")
            found = result(made) if done.returncode == 0 else done
            checks.check(f"{name} for {level}", None if found == expected else "other bits", None if isinstance(found, bytes) else found)


def check_local_memory(checks, folder):
    """It is as long as the kernel's attribute says, though buffers of the kernel's own share its pages."""
    source, made = program(kernel_programs.program(kernel_programs.LOCAL_MEMORY, 4096), folder, "local_memory"), os.path.join(folder, "made.vmfb")
    for level in levels():
        done = emit(source, level, made, "--no-portable")
        found = vmrun.run("vm-run", f"--module={made}", "--function=f", "--input=8xi32=1") if done.returncode == 0 else done
        checks.check(f"local memory for {level}", None if "8xi32=4097 " in found.stdout else "another length", found)


def program(text, folder, name):
    vmrun.write(os.path.join(folder, name + ".vmasm"), text)
    return os.path.join(folder, name + ".vmasm")


MUL = ["--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2"]
PRODUCT = "8xf32=2 4 6 8 10 12 14 16"


def check_choice(checks, folder):
    """Devices that cannot run the machine code."""
    example = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
    this, other = (levels()[0], "arm64,riscv64") if levels() else ("arm64", "x86-64-v2")
    made = os.path.join(folder, "choice.vmfb")

    def run(target, *flags, emit_flags=()):
        checks.check(f"emits for {target}", None if emit(example, target, made, *emit_flags).returncode == 0 else "fails")
        return vmrun.run("vm-run", f"--module={made}", "--device=local-sync", *MUL, "--jit=off", *flags)

    def prints(name, done):
        checks.check(name, None if done.returncode == 0 and PRODUCT in done.stdout else "another result", done)

    prints("machine code", run(this))
    prints("no code of the module is allowed to run", run(this, "--allow-native=no"))
    prints("another processor", run(other))
    prints("without the portable kernels", run(this, emit_flags=["--no-portable"]))
    checks.check("without them, and no code may run",
                 vmrun.why_bad_failure(run(this, "--allow-native=no", emit_flags=["--no-portable"]), "no device runs"))
    checks.check("another processor, without portable kernels",
                 vmrun.why_bad_failure(run("arm64,riscv64", emit_flags=["--no-portable"]), "machine code for arm64, riscv64"))
    # The machine code is what runs: a host that may not interpret or compile kernels has no other.
    done = vmrun.run("vm-dump", made, "--disassemble")
    checks.check("the portable kernels are left out", None if "vm.export @mul" in done.stdout and "module {" not in done.stdout
                 else "the text has a module of kernels", done)
    first = vmrun.read(made)
    emit(example, "arm64,riscv64", made, "--no-portable")
    checks.check("the same bytes", None if vmrun.read(made) == first else "they differ")


def check_failures(checks, folder):
    """Kernels that fail."""
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    made = os.path.join(folder, "failing.vmfb")
    index = "%i18:19 = vm.ext.i32.i64.u %i15"
    for name, old, new, code in [
            ("out of bounds", index, index + "\n    %i22:23 = vm.const.i64 8\n    %i18:19 = vm.add.i64 %i18:19, %i22:23", 11),
            ("a binding that does not exist", "%r5 = vm.list.get.ref %r2, %i11", "%i11 = vm.const.i32 3\n    %r5 = vm.list.get.ref %r2, %i11", 11),
            ("the program's own failure", "    vm.return", "    vm.fail %i10, \"own\"", 1)]:
        source = program(text.replace(old, new, 1), folder, "failing")
        done = emit(source, levels()[-1], made)
        checks.check(f"emits {name}", None if done.returncode == 0 else "fails", done)
        done = vmrun.run("vm-run", f"--module={made}", "--device=local-sync", *MUL)
        checks.check(name, vmrun.why_bad_failure(done, "INTERNAL", f"kernel 'mul' failed with {code}"), done)
    for name, old, new, reason in [
            ("a function of the C library", "%i20 = vm.mul.f32 %i20, %i21", "%i22:23 = vm.cast.si32.f64 %i20\n    %i22:23 = vm.sin.f64 %i22:23\n    %i20 = vm.cast.f64.si32 %i22:23", "sin.f64: its bits are those of the C library"),
            ("an unknown size", "vm.br ^bb1\n  ^bb1:", "%i22:23 = vm.ext.i32.i64.u %i14\n    %r6 = vm.buffer.alloc %i22:23, %i10\n    vm.br ^bb1\n  ^bb1:",
             "the size of the buffer is not known"),
            ("an instruction that kernels do not have", "%i20 = vm.mul.f32 %i20, %i21", "%i20 = vm.mul.f32 %i20, %i21\n    %r6 = vm.buffer.clone %r3, %i12:13, %i12:13, %i10",
             "buffer.clone")]:
        done = emit(program(text.replace(old, new, 1), folder, "refused"), levels()[-1], made)
        checks.check(name, vmrun.why_bad_failure(done, "UNIMPLEMENTED", "kernel 'mul'", reason), done)


# By name: before the loop, in it, and at its end; whether --kernel_memory is needed, and whether 128 bytes are enough.
BUFFERS = {
    "a buffer in a loop": ("", """    %i22:23 = vm.const.i64 300
    %r6 = vm.buffer.alloc %i22:23, %i10
    %i24 = vm.buffer.load.f32 %r6, %i12:13
    %i20 = vm.add.f32 %i20, %i24
    vm.buffer.store.f32 %i20, %r6, %i12:13
""", "", False, True),
    "buffers that grow in a loop": ("", """    %i22:23 = vm.const.i64 100
    %i22:23 = vm.mul.i64 %i18:19, %i22:23
    %i24:25 = vm.const.i64 4
    %i22:23 = vm.add.i64 %i22:23, %i24:25
    %r6 = vm.buffer.alloc %i22:23, %i10
    %i26:27 = vm.buffer.length %r6
    %i26:27 = vm.sub.i64 %i26:27, %i22:23
    %i24 = vm.buffer.load.f32 %r6, %i26:27
    %i20 = vm.add.f32 %i20, %i24
    vm.buffer.store.f32 %i20, %r6, %i12:13
""", "", True, False),
    "empty buffers of a size that is not known": ("    %i28:29 = vm.ext.i32.i64.u %i14\n    %i28:29 = vm.sub.i64 %i28:29, %i28:29\n", """    %i22:23 = vm.ext.i32.i64.u %i0
    %i22:23 = vm.mul.i64 %i22:23, %i28:29
    %r6 = vm.buffer.alloc %i22:23, %i10
""", "", True, True),
    "a buffer that the next turn reads": ("""    %i22:23 = vm.const.i64 8
    %r6 = vm.buffer.alloc %i22:23, %i10
    %r7 = vm.buffer.alloc %i22:23, %i10
""", """    %i24 = vm.buffer.load.f32 %r7, %i12:13
    %r6 = vm.buffer.alloc %i22:23, %i10
    vm.buffer.store.f32 %i20, %r6, %i12:13
    %i26 = vm.buffer.load.f32 %r7, %i12:13
    %i24 = vm.sub.f32 %i24, %i26
    %i20 = vm.add.f32 %i20, %i24
""", "(%R6 -> %r7)", True, False),
}


def check_buffers(checks, folder):
    """Kernels that allocate in loops, or buffers of a size that is not known ahead of time."""
    example = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    made = os.path.join(folder, "buffers.vmfb")
    for name, (before, inside, end, needs_memory, is_small) in BUFFERS.items():
        text = example.replace("    vm.br ^bb1\n  ^bb1:", before + "    vm.br ^bb1\n  ^bb1:", 1)
        text = text.replace("    vm.buffer.store.f32 %i20, %r5", inside + "    vm.buffer.store.f32 %i20, %r5", 1)
        text = text.replace("%i15, %i10\n    vm.br ^bb1", f"%i15, %i10\n    vm.br ^bb1{end}", 1)
        source = program(text, folder, "buffers")
        portable = vmrun.run("vm-run", f"--module={source}", "--device=local-sync", *MUL)
        checks.check(f"{name}: portable", None if PRODUCT in portable.stdout else "another result", portable)
        done = emit(source, levels()[-1], made, "--no-portable")
        if needs_memory:
            checks.check(f"{name}: refused", vmrun.why_bad_failure(done, "UNIMPLEMENTED", "buffer.alloc", "--kernel_memory=SIZE"), done)
            done = emit(source, levels()[-1], made, "--no-portable", "--kernel_memory=16KiB")
        checks.check(f"{name}: emits", None if done.returncode == 0 else "fails", done)
        for device in ("local-sync", "local-task"):
            done = vmrun.run("vm-run", f"--module={made}", f"--device={device}", *MUL)
            checks.check(f"{name}: {device}", None if PRODUCT in done.stdout else "another result", done)
        if not needs_memory:
            continue
        emit(source, levels()[-1], made, "--no-portable", "--kernel_memory=128")
        done = vmrun.run("vm-run", f"--module={made}", "--device=local-sync", *MUL)
        wrong = (None if PRODUCT in done.stdout else "another result") if is_small else vmrun.why_bad_failure(done, "INTERNAL", "kernel 'mul' failed with 8")
        checks.check(f"{name}: in 128 bytes", wrong, done)


def check_arguments(checks, folder):
    example, made = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"), os.path.join(folder, "arguments.vmfb")

    def fails(name, done, *parts):
        checks.check(name, vmrun.why_bad_failure(done, *parts) or (f"wrote {made}" if os.path.exists(made) else None), done)

    fails("an unknown processor", emit(example, "x86-64-v5", made), "INVALID_ARGUMENT", "--target: unknown processor 'x86-64-v5'", "did you mean 'x86-64-v", "riscv64")
    fails("an unknown feature", emit(example, "x86-64-v4+avx512vni", made), "did you mean 'avx512vnni'")
    fails("a feature of another processor", emit(example, "arm64+avx512vnni", made), "unknown feature 'avx512vnni'", "dotprod")
    fails("an empty feature", emit(example, "arm64+", made), "no feature after '+'")
    fails("an empty processor", emit(example, "arm64,", made), "unknown processor ''")
    fails("a processor twice", emit(example, "arm64,riscv64,arm64", made), "'arm64' is named twice")
    fails("no processor", vmrun.run("vm-cc", example, "--emit=vmfb", f"--output={made}"), "--target=")
    fails("flags for C", emit(example, "arm64", made, "--main"), "--main")
    fails("--target for C", vmrun.run("vm-cc", example, "--target=arm64", f"--output={made}"), "--emit=vmfb")
    fails("--kernel_memory for C", vmrun.run("vm-cc", example, "--kernel_memory=1MiB", f"--output={made}"), "--emit=vmfb")
    fails("too much memory", emit(example, "arm64", made, "--kernel_memory=1GiB"), "INVALID_ARGUMENT", "268431360 bytes of local memory")
    fails("no size", emit(example, "arm64", made, "--kernel_memory=much"), "--kernel_memory")
    fails("another kind", vmrun.run("vm-cc", example, "--emit=elf", f"--output={made}"), "--emit", "c", "vmfb")
    fails("no kernels", emit(os.path.join(vmrun.SOURCE, "examples", "fib.vmasm"), "arm64", made), "FAILED_PRECONDITION", NO_KERNELS)
    vmrun.write(os.path.join(folder, "broken.vmfb"), b"PK\3\4 no module")
    fails("no module", emit(os.path.join(folder, "broken.vmfb"), "arm64", made), "INVALID_ARGUMENT")
    itself = os.path.join(folder, "itself.vmfb")
    vmrun.assemble(vmrun.read_text(example), folder, "itself")
    before = vmrun.read(itself)
    fails("the input as output", emit(itself, "arm64", itself), "is the input")
    checks.check("the input is as it was", None if vmrun.read(itself) == before else "it changed")


def libraries(path):
    """The ELF files in a module."""
    data = vmrun.read(path)
    found, at = [], data.find(b"\x7fELF")
    while at >= 0:
        sections = int.from_bytes(data[at + 40:at + 48], "little")
        end = at + sections + int.from_bytes(data[at + 58:at + 60], "little") * int.from_bytes(data[at + 60:at + 62], "little")
        found.append(data[at:end])
        at = data.find(b"\x7fELF", end)
    return found


def dispatches(module):
    """Kernel, workgroups and bytes of bindings of the dispatches whose operands are constants."""
    text = vmrun.succeeds("vm-dump", module, "--disassemble").stdout
    constants, found = {}, set()
    for line in text.splitlines():
        if line.startswith("vm.func"):
            constants = {}
        known = re.match(r"  %i(\d+)(?::\d+)? = vm\.const\.i\d+(?:\.zero)? ?(-?\d*)", line)
        if known:
            constants[known[1]] = int(known[2] or 0)
        call = re.search(r"@hal\.command_buffer\.dispatch segments\[([\d, ]+)\]\((.*)\)", line)
        if not call or call[1].split(", ")[-2] != "0":
            continue
        operands = [each if each.lower().startswith("%r") else constants.get(each[2:].split(":")[0]) for each in call[2].split(", ")]
        lengths = operands[-1:-5 * int(call[1].split(", ")[-1]):-5][::-1]
        numbers = (*operands[2:6], *lengths)
        if None not in numbers:
            found.add(numbers)
    return sorted(found)


def microkernel_sources(folder):
    """Programs of microkernels whose bits are the same on all processors: the signs of NaNs are not, nor are denormal numbers."""
    calls = microkernel_programs
    names = [name for name in calls.BINARY + calls.UNARY if not name.startswith("rsqrt")]
    programs = {"elements": calls.elementwise_calls(names), "copies": calls.copy_calls(), "tiles": calls.tile_calls(), "products": calls.product_calls((1, 2))}
    return [program(calls.text(list(each)), folder, f"microkernels_{name}") for name, each in programs.items()]


def check_others(checks, folder):
    source = os.path.join(folder, "runner.c")
    vmrun.write(source, RUNNER)
    native = os.path.join(folder, "runner")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", native, source, "-ldl"], check=True)
    bench, compiled = os.path.normpath(os.path.join(vmrun.fixtures(), "..", "bench", "kernels")), os.path.join(vmrun.fixtures(), "compiled")
    modules = [os.path.join(bench, f"{name}.vmvx.vmfb") for name in ("depthwise_conv", "matmul_128", "requantize_i8", "softmax", "scan")]
    modules += [os.path.join(compiled, f"{name}.vmvx.vmfb") for name in ("simple_mul", "mlp", "reductions", "elementwise_int_float")]
    made = os.path.join(folder, "others.vmfb")

    def results(target, command, module):
        vmrun.succeeds("vm-cc", module, "--emit=vmfb", f"--target={target}", f"--output={made}", timeout=900)
        [library] = libraries(made)
        file = os.path.join(folder, "library.so")
        vmrun.write(file, library)
        printed = []
        for numbers in dispatches(module) or [(0, 1, 1, 1, *3 * [4 * microkernel_programs.SIZE])]:
            done = subprocess.run([*command, file, *map(str, numbers)], capture_output=True, text=True, timeout=600)
            printed.append(done.stdout or done.stderr)
        return printed

    modules += microkernel_sources(folder) + [program(elementary_programs.sum_of_all(), folder, "functions")]
    expected = {module: results(levels()[-1], [native], module) for module in modules}
    unfused = {module: results("x86-64-v2", [native], module) for module in microkernel_sources(folder)}
    checks.check("dispatches", None if sum(map(len, expected.values())) >= 12 else f"only {expected}")
    for module, found in expected.items():
        checks.check(os.path.basename(module), None if found and all(each.startswith("result 0 ") for each in found) else f"fails: {found}")
    for target, compiler, emulator in OTHERS:
        if not shutil.which(compiler) or not shutil.which(emulator[0]):
            print(f"left out {target}: {compiler} or {emulator[0]} is not installed")
            continue
        runner = os.path.join(folder, f"runner.{target}")
        subprocess.run([compiler, "-O1", "-o", runner, source, "-ldl"], check=True)
        for module in modules:
            found = results(target, [*emulator, runner], module)
            # Products and sums are fused where the microkernels of a device fuse them.
            wanted = (unfused if target.startswith("riscv") else expected).get(module, expected[module])
            checks.check(f"{os.path.basename(module)} on {target}", None if found == wanted else f"{found} instead of {wanted}")


def main(folder):
    vmrun.need_tool("vm-cc")
    checks = vmrun.Checks()
    if not os.path.exists(EMITTER):
        example = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
        done = emit(example, "x86-64-v2", os.path.join(folder, "made.vmfb"))
        checks.check("without the compiler of kernels", vmrun.why_bad_failure(done, "NOT_FOUND", "halyard-emit-llvm.so", "liblld-19-dev"), done)
        return checks.finish()
    if platform.machine() != "x86_64" or not levels():
        vmrun.skip("this test is for x86-64")
    check_arguments(checks, folder)
    check_choice(checks, folder)
    check_failures(checks, folder)
    check_buffers(checks, folder)
    check_microkernels(checks, folder)
    check_functions(checks, folder)
    check_local_memory(checks, folder)
    if vmrun.fixtures():
        check_fixtures(checks, folder)
        check_bits(checks, folder)
        check_others(checks, folder)
    else:
        print("left out: the shared programs are not here; HALYARD_FIXTURES names their folder")
    return checks.finish()


if __name__ == "__main__":
    with vmrun.temporary_folder() as temporary:
        raise SystemExit(main(temporary))
