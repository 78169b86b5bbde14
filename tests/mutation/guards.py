"""Which tests guard which folder, for `./dev mutate`; the longest prefix of a path counts. And places with a name, which are parts of
folders.

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
    quick: int = 1  # how many of the tests `--quick` runs


# What takes seconds comes last: most changes are noticed before.
VM_SLOW = "Disassembler.*:Assembler.DamagedTextIsAnError:Elementary.IsAlmostAlwaysTheNearestFloat:CompiledModules.CutAnywhere"
VM = (Tests("halyard_vm_tests", f"-{VM_SLOW}:*OpcodeEdges*:Differential*"), Tests("halyard_vm_tests", VM_SLOW))
MACHINE = (*VM, Tests("halyard_vm_tests", "Differential*"), Tests("halyard_vm_tests", "*OpcodeEdges*"))
VM_PROGRAM = ("tests/halyard_vm_tests",)
CODEGEN = "lib/halyard/halyard-jit-llvm-codegen.so"
FRONT = "lib/halyard/halyard-jit-llvm.so"
LOCAL_DRIVER = "lib/halyard/drivers/halyard-driver-local.so"

# A few generated loops and sums first, which reach most of the code generator. Then all that compares compiled code with the
# interpreter at the ends of buffers and of 64 bits. What measures times or costs comes last.
JIT_FEW = "Compiled.GeneratedLoops:Compiled.GeneratedSums"
JIT_BOUNDS = ("CompiledWrittenBuffers.*:CompiledOwnBuffers.*:CompiledBounds*:CompiledLoop.*:CompiledLists.*:CompiledCalls.*:*SharedLoops*:"
              "Image.*:PlacedCode.*")
JIT_LOOPS = "*CompiledLoops.*"
JIT_SLOW = f"{JIT_LOOPS}:CompiledCost.*:CompiledFastMath.*:OpcodeLoads.*:CompiledTiers.*:Compiled.Generated*"
JIT = (Tests("halyard_jit_tests", JIT_FEW, seeds=20), Tests("halyard_jit_tests", JIT_BOUNDS), Tests("halyard_jit_tests", JIT_LOOPS),
       Tests("halyard_jit_tests", f"-{JIT_SLOW}:{JIT_BOUNDS}"), Tests("halyard_jit_tests", JIT_SLOW, seeds=100))
JIT_QUICK = 3
# What the front has to itself: files of compiled code, names for debuggers and profilers, costs, processors, memory.
JIT_FRONT = (Tests("halyard_jit_tests", "CompiledCacheTest.*:CachedFunctionsTest.*:PerfNameTest.*:GdbNameTest.*:NegotiateTest.*:PlacedCode.*:Image.*:CompiledMemory.*:"
                                        "CompiledTiers.*:CompiledCost.*"), *JIT)

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
    "jit/src/codegen": Guard((CODEGEN,), JIT, ("tests/halyard_jit_tests", FRONT), quick=JIT_QUICK),
    # The program of the tests has some of these sources too.
    "jit/src/front": Guard((FRONT, "tests/halyard_jit_tests"), JIT_FRONT, needed=(CODEGEN,), quick=2),
    "jit/src/shared": Guard((FRONT, CODEGEN, "tests/halyard_jit_tests"), JIT, quick=JIT_QUICK),
    "drivers/local": Guard(("tests/halyard_local_tests",), (Tests("halyard_local_tests"),)),
    "tools/common": Guard(("bin/vm-run", "tests/halyard_tools_tests"),
                          (Tests("halyard_tools_tests", "-Files.*"), Tests("halyard_tools_tests", "Files.*"), Tests("test_inputs.py"), Tests("test_results.py"), Tests("test_bad_input.py")),
                          needed=("bin/vm-as", LOCAL_DRIVER)),
    "tools/vm-serve": Guard(("tests/halyard_serve_tests", "bin/vm-serve"),
                            (Tests("halyard_serve_tests"), Tests("test_serve_protocol.py"), Tests("test_serve_clients.py")),
                            needed=(LOCAL_DRIVER,)),
}

# Places that belong together, by a name that `./dev mutate` takes instead of a path: files, or "FILE#FUNCTION,..." for some functions
# of one.
PLACES = {
    "interpreter-bounds": tuple(f"vm/src/vm/run/{name}" for name in (
        "interpreter.cpp", "interpreter_ops.inc", "interpreter_fused.inc", "object_ops.cpp", "calls.cpp", "linking.cpp", "invocation.cpp")),
    # What compiled code compares before it reads or writes: indices, ranges of loops, distances of rows, sizes of frames and panels.
    "jit-bounds": (
        "jit/src/codegen/hoist.cpp#affine,check_of,plan,known_turns,known_turns_inside,find_buffers,greatest,checked,transform",
        "jit/src/codegen/loops.cpp#constant_of,is_known_before",
        "jit/src/codegen/uncoalesce.cpp#division,find,split",
        "jit/src/codegen/translate_ops.cpp#element,emit_load,emit_store,emit_buffer,emit_global",
        "jit/src/codegen/translate_lists.cpp#load_list,list_element,emit_list",
        "jit/src/codegen/translate_calls.cpp#emit_own_call",
        "jit/src/codegen/contraction/neighbours.cpp#have_same_counts,is_of_output,are_contiguous,range,keep_apart",
        "jit/src/codegen/contraction/ranges.cpp",
        "jit/src/codegen/contraction/write.cpp#count_between,add_panels,panel_memory,are_rows_apart,may_be_together,at_most,terms_of_row,"
        "rows_of_group",
        "jit/src/codegen/contraction/write_pairs.cpp#are_offsets_small,pairs_of_innermost,number_of_pair,address_of_pairs,"
        "address_of_row_pair,add_panels_of_pairs",
        "jit/src/codegen/contraction/share.cpp#first_row,share_groups",
        "jit/src/front/placed_code.cpp", "jit/src/shared/image.cpp"),
    "serve-requests": tuple(f"tools/vm-serve/{name}.cpp" for name in (
        "request_head", "decoder", "wire", "accept_encoding", "access", "route", "infer_json", "infer_message", "infer_request",
        "control_request", "datatype", "tensor_contents", "tensor")),
    "serve-bodies": tuple(f"tools/vm-serve/{name}.cpp" for name in ("body", "compression", "connection")),
}


def guard_of(path: str):
    """The guard of a file, or None."""
    prefixes = [prefix for prefix in GUARDS if path == prefix or path.startswith(prefix + "/")]
    return GUARDS[max(prefixes, key=len)] if prefixes else None
