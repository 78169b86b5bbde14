"""halyard_add_model(), as a project outside of this tree calls it: the model is a library with a header, large constants and
parameters are in it, it is translated again when the module changes, and mistakes are errors that help. (test_install.py has
the installed package.)"""
import os
import shutil
import subprocess

import vmrun

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer C)
set(HALYARD_VM_CC "{vm_cc}")
include("{source}/cmake/HalyardModel.cmake")
halyard_add_model(mul mul.vmasm FLAGS --checks=all)
halyard_add_model(table table.vmasm SPLIT 2)
add_executable(program program.c)
target_link_libraries(program PRIVATE mul table)
"""
PROGRAM = """#include <stdio.h>
#include "mul.h"
#include "table.h"
int main(void) {
  static mul_state mul;
  static table_state table;
  static uint64_t arena[512];
  const float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float product[8] = {0};
  int32_t last = 0;
  if (mul_init(&mul, NULL, 0) != 0 || mul_mul(&mul, a, a, product) != 0) return 1;
  if (table_init(&table, arena, sizeof arena) != 0 || table_last(&table, &last) != 0) return 2;
  printf("%g %d\\n", product[7], last);
  return 0;
}
"""
TABLE = """vm.module @table
vm.rodata[0] = hex {{
{rows}
}}
vm.export @last
vm.func @last() -> (i32) {{
  %r0 = vm.const.ref.rodata 0
  %i2:3 = vm.buffer.length %r0
  %i4:5 = vm.const.i64 4
  %i2:3 = vm.div.i64.u %i2:3, %i4:5
  %i4:5 = vm.const.i64 1
  %i2:3 = vm.sub.i64 %i2:3, %i4:5
  %i0 = vm.buffer.load.i32 %r0, %i2:3
  vm.return %i0
}}
"""


def cmake(*arguments):
    return subprocess.run(["cmake", *arguments], capture_output=True, text=True, timeout=900)


def table(last):
    """More than 1 MiB, so that the constants are in a file of their own."""
    rows = ["00" * 1024] * 1056
    return TABLE.format(rows="\n".join([*rows, last.to_bytes(4, "little").hex()]))


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    build = folder / "the build"  # a folder with a blank
    shutil.copy(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"), folder / "mul.vmasm")
    (folder / "table.vmasm").write_text(table(7))
    (folder / "program.c").write_text(PROGRAM)
    project = PROJECT.format(vm_cc=os.path.join(vmrun.BIN, "vm-cc"), source=vmrun.SOURCE)
    (folder / "CMakeLists.txt").write_text(project)

    def builds(name, expected):
        done = cmake("--build", str(build))
        checks.check(f"{name}: builds", None if done.returncode == 0 else done.stdout[-1500:] + done.stderr[-1500:])
        if done.returncode == 0:
            done = subprocess.run([build / "program"], capture_output=True, text=True)
            checks.check(name, None if done.stdout == expected else f"expected {expected!r}", done)

    done = cmake("-G", "Ninja", "-S", str(folder), "-B", str(build), "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    checks.check("the project configures", None if done.returncode == 0 else done.stderr)
    builds("two models", "64 7\n")
    checks.check("large constants are in a file", None if (build / "table.model" / "table.bin").stat().st_size > 1 << 20 else "small")
    checks.check("small ones are not", None if not (build / "mul.model" / "mul.bin").exists() else "there is a file")
    (folder / "table.vmasm").write_text(table(9))
    builds("a changed model", "64 9\n")

    def refused(name, call, *parts):
        (folder / "CMakeLists.txt").write_text(project + call)
        done = cmake("-S", str(folder), "-B", str(build))
        text = " ".join(done.stderr.split())
        missing = [part for part in parts if part not in text]
        checks.check(name, None if done.returncode != 0 and not missing else f"expected {missing} in {done.stderr}")

    refused("an unknown runtime", "halyard_add_model(x mul.vmasm RUNTIME vm)\n", "RUNTIME vm", "none or hal")
    refused("no files", "halyard_add_model(x mul.vmasm SPLIT 0)\n", "SPLIT 0", "1 to 999")
    refused("an unknown argument", "halyard_add_model(x mul.vmasm FLAG --main)\n", "FLAG", "FLAGS flag")
    refused("no vm-cc", "set(HALYARD_VM_CC \"\")\nhalyard_add_model(x mul.vmasm)\n", "vm-cc is not there", "HALYARD_VM_CC")
