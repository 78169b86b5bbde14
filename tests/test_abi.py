"""Compares the public headers with the baseline (tests/abi/baseline.txt): each of its lines, a fact that a driver, a native
module or an embedder relies on, must describe the headers as they are. Additions are allowed. To test the comparison, a copy
of the headers is broken in one way after another."""
import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys

import vmrun

sys.path.insert(0, os.path.join(vmrun.SOURCE, "tests", "abi"))
import surface  # noqa: E402

sys.path.insert(0, os.path.join(vmrun.SOURCE, "packaging"))
from version import version  # noqa: E402

STATUS = "base/include/halyard/status.h"
VALUE = "base/include/halyard/value.h"
DRIVER = "hal/include/halyard/driver.h"
EMBED = "bindings/c/include/halyard/halyard.h"
MODULE = "vm/include/halyard/module.h"

# A name, whether old binaries survive the change, the header, the text that is replaced, the new text.
CHANGES = [
    ("a field at the end of a growing struct", True, DRIVER,
     "} halyard_device_properties_t;", "  uint64_t later;\n} halyard_device_properties_t;"),
    ("a function at the end of the table", True, DRIVER,
     "} halyard_driver_table_t;", "  void (*later)(halyard_submission_t* it);\n} halyard_driver_table_t;"),
    ("a new number", True, DRIVER, "HALYARD_OPERATION_EXECUTE = 9,", "HALYARD_OPERATION_EXECUTE = 9, HALYARD_OPERATION_X = 10,"),
    ("a new function", True, EMBED,
     "HALYARD_API void halyard_release(void* handle);",
     "HALYARD_API void halyard_release(void* handle);\nHALYARD_API void halyard_later(halyard_instance_t it);"),
    ("two new structs of 16 bytes", True, EMBED,
     "HALYARD_API void halyard_release(void* handle);",
     "HALYARD_API void halyard_release(void* handle);\ntypedef struct halyard_later { uint64_t a, b; } halyard_later_t;\n"
     "typedef struct halyard_last { uint32_t a, b; void* c; } halyard_last_t;\nHALYARD_API halyard_later_t halyard_after(halyard_last_t it);"),
    ("a parameter of another name", True, EMBED,
     "HALYARD_API void halyard_release(void* handle);", "HALYARD_API void halyard_release(void* it);"),
    ("a field in the middle", False, DRIVER,
     "  uint32_t queue_count;  /* 1..64", "  uint32_t later;\n  uint32_t queue_count;  /* 1..64"),
    ("a field of another type", False, DRIVER, "  uint64_t import_alignment;", "  int64_t import_alignment;"),
    ("a field that is gone", False, EMBED, "  void* trace_user;\n", ""),
    ("fields that changed places", False, EMBED,
     "  size_t parameter_count;\n  halyard_trace_fn trace;", "  halyard_trace_fn trace;\n  size_t parameter_count;"),
    ("a field at the end of a frozen struct", False, DRIVER, "} halyard_binding_t;", "  uint64_t later;\n} halyard_binding_t;"),
    ("a field of a frozen struct of another type", False, DRIVER,
     "  halyard_driver_semaphore_t semaphore;\n  uint64_t value;", "  halyard_driver_semaphore_t semaphore;\n  int64_t value;"),
    ("an argument of a function in the table", False, DRIVER,
     "halyard_status_t (*queue_flush)(halyard_driver_device_t device, uint64_t affinity);",
     "halyard_status_t (*queue_flush)(halyard_driver_device_t device, uint32_t affinity);"),
    ("functions of the table that changed places", False, DRIVER,
     "  halyard_status_t (*device_trim)(halyard_driver_device_t device);\n", ""),
    ("an argument of a callback", False, DRIVER,
     "typedef void (*halyard_completed_fn)(void* user,", "typedef void (*halyard_completed_fn)(uint64_t when, void* user,"),
    ("an argument of a function", False, EMBED,
     "halyard_status_code(halyard_status_t status);", "halyard_status_code(halyard_status_t status, int later);"),
    ("a function that is gone", False, EMBED,
     "HALYARD_API const char* halyard_device_uri(halyard_device_t device);", ""),
    ("a number that changed", False, DRIVER, "HALYARD_COMMAND_COPY = 4,", "HALYARD_COMMAND_COPY = 14,"),
    ("a number that is gone", False, MODULE, "HALYARD_PLAIN_STATE = ", "HALYARD_PLAIN_OTHER = "),
    ("a number of 64 bits that changed", False, DRIVER, "HALYARD_WAIT_FOREVER INT64_MAX", "HALYARD_WAIT_FOREVER UINT64_MAX"),
    ("a frozen struct of another alignment", False, DRIVER,
     "  uint32_t slot;\n  uint32_t reserved;\n  uint64_t offset; /* bytes */",
     "  uint32_t slot;\n  uint32_t reserved;\n  _Alignas(32) uint64_t offset; /* bytes */"),
    ("a growing struct of another alignment", False, DRIVER,
     "} halyard_device_properties_t;", "  _Alignas(16) uint64_t later;\n} halyard_device_properties_t;"),
    ("a member of a union that is gone", False, VALUE, "    double f64;\n", ""),
    ("a member of a union that is larger", False, VALUE, "    double f64;\n", "    double f64;\n    uint64_t later[2];\n"),
    ("a union that is a struct", False, VALUE, "  union {", "  struct {"),
    ("another sign below a typedef", False, STATUS, "typedef int32_t halyard_status_code_t;", "typedef uint32_t halyard_status_code_t;"),
    ("another type of the same size", False, EMBED,
     "halyard_list_get(halyard_object_t list, size_t index", "halyard_list_get(halyard_object_t list, uint64_t index"),
    ("a result of another type", False, EMBED,
     "HALYARD_API void halyard_release(void* handle);", "HALYARD_API int halyard_release(void* handle);"),
    ("a pointer that was to const", False, DRIVER, "  const void* source;     /*", "  void* source;     /*"),
    ("a pointer to another struct", False, DRIVER,
     "  const halyard_operation_t* operation;", "  const halyard_operation_fill_t* operation;"),
    ("a note that grew", False, DRIVER, "} halyard_driver_note_t;", "  char later[8];\n} halyard_driver_note_t;"),
]


def missing(baseline, folder, headers):
    """The facts of the baseline that are not true of the headers; "" if all are."""
    folder.mkdir()
    there = set(surface.describe(folder, headers))
    return "\n".join(line for line in baseline if line not in there)


def broken(folder, header, old, new):
    """A copy of the headers with one change, without the size assertions, which would detect some."""
    for layer in surface.LAYERS:
        shutil.copytree(surface.SOURCE / layer / "include", folder / layer / "include")
    text = (folder / header).read_text()
    if text.count(old) != 1:
        sys.exit(f"FAILED: {header} has {text.count(old)} times {old!r}; expected it once: bring test_abi.py up to date")
    (folder / header).write_text(text.replace(old, new))
    for file in folder.rglob("*.h"):
        file.write_text(re.sub(r"HALYARD_STATIC_ASSERT_\((.|\n)*?\);", "", file.read_text()))
    return folder


def main(checks, folder):
    if platform.machine() != "x86_64":
        vmrun.skip("the baseline describes x86_64")
    baseline = surface.BASELINE.read_text().splitlines()
    wrong = missing(baseline, folder / "now", surface.SOURCE)
    checks.check("the public headers", None if not wrong else "they break what was compiled against them: these lines of "
                 f"{surface.BASELINE} are not true any more. Where that cannot be anything yet, './dev abi' renews them.\n{wrong}")
    for number, (what, survives, header, old, new) in enumerate(CHANGES):
        headers = broken(folder / f"headers{number}", header, old, new)
        wrong = missing(baseline, folder / f"build{number}", headers)
        if survives:
            checks.check(what, f"is taken for a change:\n{wrong}" if wrong else None)
        else:
            checks.check(what, None if wrong else "goes unnoticed")
    # Additions need no new soname; it changes with the major version alone.
    dynamic = subprocess.run(["readelf", "--dynamic", f"{vmrun.BUILD}/lib/libhalyard.so"], text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    soname = re.search(r"soname: \[(.*)\]", dynamic)[1]
    major = re.search(r"HALYARD_VERSION_MAJOR (\d+)", (surface.SOURCE / EMBED).read_text())[1]
    built = ctypes.CDLL(f"{vmrun.BUILD}/lib/libhalyard.so").halyard_version
    built.restype = ctypes.c_char_p
    checks.check("the version", None if built() == version().encode() else
                 f"halyard_version() is {built()}; the header defines {version()}")
    checks.check("soname", None if soname == f"libhalyard.so.{major}" else f"is {soname}; expected libhalyard.so.{major}")
    exported = vmrun.subprocess.run(["nm", "-D", "--defined-only", "--format=posix", f"{vmrun.BUILD}/lib/libhalyard.so"],
                                    text=True, check=True, stdout=subprocess.PIPE).stdout
    there = {line.split()[0].split("@")[0] for line in exported.splitlines()}
    promised = {name for line in baseline for name in re.findall(r"^function (\w+)", line)
                if not name.endswith("_negotiate")}  # plugins export those
    checks.check("libhalyard.so", None if promised and there.issuperset(promised) else
                 f"does not export {sorted(promised - there)}")
