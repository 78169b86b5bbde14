"""Which tests guard which folder, for `./dev mutate`; the longest prefix of a path counts.

A guard is a program of GoogleTest with a filter, or a script of tests/. `links` are the outputs of the build that contain the
folder's code and are linked again with planted changes; `programs` are further programs and libraries that must lie beside
them, because they look for them there.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Tests:
    name: str  # of a program in <build>/tests, or test_NAME.py
    filter: str = "*"
    seeds: int = 0  # how many programs tests generate (HALYARD_SEEDS); 0: as many as usual


@dataclasses.dataclass(frozen=True)
class Guard:
    links: tuple
    tests: tuple
    programs: tuple = ()
    needed: tuple = ()  # other outputs of the build that the tests use


# What takes seconds comes last: most changes are noticed before.
VM_SLOW = "Disassembler.*:Assembler.DamagedTextIsAnError:Elementary.IsAlmostAlwaysTheNearestFloat:CompiledModules.CutAnywhere"
VM = (Tests("halyard_vm_tests", f"-{VM_SLOW}:*OpcodeEdges*:Differential*"), Tests("halyard_vm_tests", VM_SLOW))
MACHINE = (*VM, Tests("halyard_vm_tests", "Differential*"), Tests("halyard_vm_tests", "*OpcodeEdges*"))
VM_PROGRAM = ("tests/halyard_vm_tests",)
CODEGEN = "lib/halyard/halyard-jit-llvm-codegen.so"
FRONT = "lib/halyard/halyard-jit-llvm.so"
LOCAL_DRIVER = "lib/halyard/drivers/halyard-driver-local.so"

# A few generated loops and sums first, which reach most of the code generator.
JIT_FEW = "Compiled.GeneratedLoops:Compiled.GeneratedSums"
JIT_SLOW = "CompiledLoops.*:CompiledCost.*:CompiledFastMath.*:OpcodeLoads.*:CompiledTiers.*:Compiled.Generated*"
JIT = (Tests("halyard_jit_tests", JIT_FEW, seeds=20), Tests("halyard_jit_tests", f"-{JIT_SLOW}"), Tests("halyard_jit_tests", JIT_SLOW, seeds=100))

# Readers of parameters have tests of their own; the others open devices.
PARAMETERS = Guard(("tests/halyard_modules_tests",), (Tests("halyard_modules_tests", "Gguf*:Safetensors*:Irpa*:Parameter*:*IoParameters*"),))

GUARDS = {
    "base": Guard(("tests/halyard_base_tests",), (Tests("halyard_base_tests"),)),
    "vm": Guard(VM_PROGRAM, VM),
    "vm/src/vm/decode": Guard(VM_PROGRAM, MACHINE),
    "vm/src/vm/run": Guard(VM_PROGRAM, MACHINE),
    "hal": Guard(("tests/halyard_hal_tests",), (Tests("halyard_hal_tests"),)),
    "modules": Guard(("tests/halyard_modules_tests",), (Tests("halyard_modules_tests"),)),
    **{f"modules/src/modules/{name}.cpp": PARAMETERS for name in
       ("gguf", "safetensors", "parameter_archive", "shard_index", "parameters", "parameter_pages", "io_parameters")},
    "aot": Guard(("tests/halyard_aot_tests",), (Tests("halyard_aot_tests"),)),
    "jit/src/codegen": Guard((CODEGEN,), JIT, ("tests/halyard_jit_tests", FRONT)),
    "jit/src/front": Guard((FRONT,), JIT, ("tests/halyard_jit_tests",), needed=(CODEGEN,)),
    "drivers/local": Guard(("tests/halyard_local_tests",), (Tests("halyard_local_tests"),)),
    "tools/common": Guard(("bin/vm-run", "tests/halyard_tools_tests"),
                          (Tests("halyard_tools_tests"), Tests("test_inputs.py"), Tests("test_results.py"), Tests("test_bad_input.py")),
                          needed=("bin/vm-as", LOCAL_DRIVER)),
    "tools/vm-serve": Guard(("tests/halyard_serve_tests", "bin/vm-serve"),
                            (Tests("halyard_serve_tests"), Tests("test_serve_protocol.py"), Tests("test_serve_clients.py")),
                            needed=(LOCAL_DRIVER,)),
}


def guard_of(path: str):
    """The guard of a file, or None."""
    prefixes = [prefix for prefix in GUARDS if path == prefix or path.startswith(prefix + "/")]
    return GUARDS[max(prefixes, key=len)] if prefixes else None
