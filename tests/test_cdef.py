"""halyard-cdef.h: a reader of C without a preprocessor takes it as it is, it declares what libhalyard exports and no numbers
are missing, and a program runs through it."""
import re
import sys

import vmrun
from installed import BUILD, SOURCE, exported

LIBRARY = BUILD / "lib" / "libhalyard.so"
HEADER = BUILD / "cdef" / "halyard-cdef.h"
PROGRAM = b"""vm.module @m
vm.export @add
vm.func @add(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
"""


def macros():
    """Names of macros of the public headers that are a number, as the headers have them."""
    found = set()
    for header in [*(SOURCE / "bindings/c/include/halyard").glob("*.h"), SOURCE / "vm/include/halyard/module.h"]:
        for name, value in re.findall(r"^#define (HALYARD_\w+)[ \t]+(\S+)", header.read_text(), re.MULTILINE):
            if re.fullmatch(r"\(?-?(U?INT\d+_MAX|\d\w*)\)?", value):
                found.add(name)
    return found


def check_call(checks, ffi):
    library = ffi.dlopen(str(LIBRARY))

    def must(status):
        if status:
            text = library.halyard_status_text(status)
            sys.exit("FAILED: " + ffi.string(text).decode())

    def handle(kind, function, *arguments):
        out = ffi.new(f"halyard_{kind}_t*")
        must(function(*arguments, out))
        return out[0]

    instance = handle("instance", library.halyard_instance_create, ffi.NULL)
    data, size = ffi.new("void**"), ffi.new("size_t*")
    must(library.halyard_assemble(PROGRAM, len(PROGRAM), ffi.NULL, data, size))
    module = handle("module", library.halyard_module_load_memory, instance, data[0], size[0], 0)
    library.halyard_free(data[0])
    options = ffi.new("halyard_context_options_t*", {"struct_size": ffi.sizeof("halyard_context_options_t"), "module_count": 1})
    modules = ffi.new("halyard_module_t[]", [module])
    options.modules = modules
    context = handle("context", library.halyard_context_create, instance, options)
    function = handle("function", library.halyard_context_find, context, ffi.NULL, b"add")
    call = handle("call", library.halyard_call_create, context)
    arguments = ffi.new("halyard_value_t[2]", [{"kind": library.HALYARD_VALUE_I32, "i32": number} for number in (40, 2)])
    results = ffi.new("halyard_value_t[1]")
    must(library.halyard_call_invoke(call, function, arguments, 2, results, 1))
    checks.check("a call", None if results[0].i32 == 42 else f"40 + 2 is {results[0].i32}")
    for each in (call, function, context, module, instance):
        library.halyard_release(each)
    for name, expected in (("HALYARD_EVERY_EXECUTION", 2**64 - 1), ("HALYARD_RANK_UNKNOWN", 2**32 - 1),
                           ("HALYARD_DIMENSION_DYNAMIC", -1), ("HALYARD_ELEMENT_F32", 0x21000020), ("HALYARD_INCOMPATIBLE", 18)):
        found = getattr(library, name)
        checks.check(name, None if found == expected else f"is {found}; expected {expected}")


def main():
    if not LIBRARY.exists() or not HEADER.exists():
        vmrun.skip("libhalyard.so or halyard-cdef.h is not built")
    checks = vmrun.Checks()
    text = HEADER.read_text()
    checks.check("no preprocessor", None if not re.search(r"^\s*#", text, re.MULTILINE) else "it has directives")
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    missing = [name for name in exported(LIBRARY) if name.startswith("halyard_") and not re.search(rf"\b{name}\(", code)]
    checks.check("all functions", f"{missing} are exported, but not declared" if missing else None)
    missing = sorted(name for name in macros() if not re.search(rf"\b{name} =", code))
    checks.check("all numbers", f"{missing} are missing" if missing else None)
    try:
        import cffi
    except ImportError:
        print("cffi is not installed (Debian package python3-cffi): the header is not parsed")
        return checks.finish()
    ffi = cffi.FFI()
    ffi.cdef(text)
    check_call(checks, ffi)
    return checks.finish()
