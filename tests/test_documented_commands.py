"""The commands of the documents work: each document is one session in a folder of its own, with the tools of an installed Halyard,
whose folder is the word PREFIX. Blocks `sh` must succeed, blocks `console` print what the document shows, blocks `python`
continue one program. test_documents.py checks that every other block says why it is not run here."""
import os
import socket
import struct
import subprocess
import sys

import vmrun
from documents import FORMATS, OWN_TEST, RUN, Block, blocks, in_prefix, is_output, paths, run_in_one_shell, steps
from installed import BUILD, SOURCE, cache, need_plain_library, run
from npy import npy_array

TEMPLATE = ("cp -r $PREFIX/share/halyard/examples/driver-{0} mine && cd mine && mv {0}.{1} mine.{1} && "
            "sed -i 's/\\b{0}\\b/mine/g' CMakeLists.txt && sed -i 's/\"{0}\"/\"mine\"/g' mine.{1}")
PROGRAM = """cat >program.vmasm <<'TEXT'
vm.module @program
vm.import @{0}.add cconv "0ii_i"
vm.export @main
vm.func @main() -> (i32) {{
  %i0 = vm.const.i32 7
  %i0 = vm.call @{0}.add(%i0, %i0)
  vm.return %i0
}}
TEXT
vm-as program.vmasm --output=program.vmfb"""
# The server runs beside the commands that follow, until the session ends.
SERVER = """vm-serve() {
  coproc SERVER { exec vm-serve "$@" --port=8080 2>/dev/null; }
  trap "kill $SERVER_PID" EXIT
  read -r line <&"${SERVER[0]}" && printf '%s\\n' "$line"
}"""
# Nothing is run on a machine without Vulkan, and only one case of hal-cts, because software takes minutes for all.
ON_VULKAN = 'if [ -z "$(vm-run --list_devices=vulkan)" ]; then {0}() {{ :; }}; else {0}() {{ command {0} "$@" {1}; }}; fi'
# What stands in a reader's folder before the commands of a document. Every folder has model.vmfb (documents.vmasm), examples/ and
# build/release as well.
GIVEN = {
    "bindings/README.md": "echo 'int main(void) { return 0; }' >program.c",
    "docs/driver-abi.md": "cp $PREFIX/share/halyard/examples/driver-null/null.c mine.c",
    "docs/hal-cts.md": "sed 's/\"null\"/\"mine\"/g' $PREFIX/share/halyard/examples/driver-null/null.c >mine.c && echo '# none' >known.txt && "
                       "cc -shared -fPIC -fvisibility=hidden -I$PREFIX/include mine.c -o halyard-driver-mine.so",
    "docs/native-modules.md": PROGRAM.format("small"),
    "docs/python.md": PROGRAM.format("host") + "\npython3 -c 'import halyard; halyard.save_parameters(\"weights.safetensors\", {\"unused\": [1.0]})'",
    "docs/serving.md": SERVER,
    "docs/vulkan.md": "cp examples/vulkan/mul.comp .\n" + ON_VULKAN.format("vm-run", ""),
    "drivers/README.md": "cp -r $PREFIX/share/halyard/examples/driver-null . && cp driver-null/null.c .",
    "drivers/null/README.md": TEMPLATE.format("null", "c"),
    "drivers/template/README.md": TEMPLATE.format("template", "cpp"),
    "tools/hal-cts/kernels/README.md": "cp $PREFIX/share/halyard/examples/hal-cts-kernels/*.comp .\n" + ON_VULKAN.format("hal-cts", "--filter=dispatch.bindings"),
}


def python_with_numpy() -> str:
    """The path of a Python that has numpy, or ""."""
    found = (each for each in (sys.executable, "/usr/bin/python3") if subprocess.run([each, "-c", "import numpy"], capture_output=True).returncode == 0)
    return next(found, "")


def furnish(folder, prefix, python):
    """A reader's folder."""
    folder.mkdir()
    (folder / ".bin").mkdir()
    (folder / ".bin" / "python3").symlink_to(python)
    (folder / ".curlrc").write_text("silent\n")
    (folder / "build").mkdir()
    for preset in "release", "demo":
        (folder / "build" / preset).symlink_to(BUILD)
    (folder / "examples").symlink_to(SOURCE / "examples")
    run(prefix / "bin" / "vm-as", SOURCE / "tests" / "documents.vmasm", f"--output={folder}/model.vmfb")
    for name, elements in ("input", (1, 2, 3, 4)), ("expected", (1, 4, 9, 16)):
        vmrun.write(folder / f"{name}.npy", npy_array("<f4", (1, 4), struct.pack("<4f", *elements)))


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def session(document: str, found: list[Block]):
    """(line, command, what it prints or None) of a document in order. Servers listen at a port that is free."""
    port = free_port()
    for line, command, printed in documented(document, found):
        yield line, in_prefix(command).replace("8080", port), printed and printed.replace("8080", port)


def documented(document: str, found: list[Block]):
    if document in GIVEN:
        yield 0, GIVEN[document], None
    program = ""
    for block in found:
        if block.name:
            yield block.line, f"cat >{block.name} <<'END OF FILE'\n{block.text}END OF FILE", None
        elif block.language == "python" and not block.not_run:
            program += block.text  # a later block may go on with what an earlier one has imported
            yield block.line, f"python3 - <<'END OF PROGRAM'\n{program}END OF PROGRAM", None
        elif block.language in RUN and not block.not_run and not block.run_by:
            for command, printed in steps(block):
                yield block.line, command, printed


def check_session(checks, document, folder, prefix, python):
    commands = list(session(document, blocks(document)))
    if not any(line for line, _, _ in commands):
        return 0  # nothing but what is given
    furnish(folder, prefix, python)
    lib = prefix / cache("CMAKE_INSTALL_LIBDIR")
    environment = {"PATH": f"{folder}/.bin:{prefix}/bin:{os.environ['PATH']}", "PREFIX": str(prefix), "HOME": str(folder),
                   "PKG_CONFIG_PATH": str(lib / "pkgconfig"), "LD_LIBRARY_PATH": str(lib),
                   "PYTHONPATH": str(prefix / cache("HALYARD_PYTHON_INSTALL"))}
    results = run_in_one_shell([command for _, command, _ in commands], folder, environment)
    for (line, command, expected), (status, printed) in zip(commands, results):
        found = None
        if status is None:
            found = "the shell ended before"
        elif expected is not None and not is_output(printed, expected):
            found = f"it prints\n{printed}expected\n{expected}"
        elif expected is None and status != 0:
            found = f"exit status {status}; it prints\n{printed}"
        checks.check(f"{document}:{line}: {command.splitlines()[0]}", found)
    return len(commands)


def main(checks, folder):
    need_plain_library("programs built without a sanitizer cannot use this build")
    prefix = folder / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    run("cmake", "--install", BUILD, "--prefix", prefix, "--component", "templates")
    python = python_with_numpy() or vmrun.skip("no Python has numpy")
    count = 0
    for path in paths():
        document = path.as_posix()
        if document not in OWN_TEST and not document.startswith(FORMATS):
            count += check_session(checks, document, folder / document.replace("/", "-"), prefix, python)
    print(f"{count} commands ran")
