"""The programs of docs/embedding.md, typed from the page: built against an installed Halyard, far from this tree, they print
what the page says. And the example server is a project that builds there."""
import os
import re
import shutil
import subprocess

from installed import BUILD, SOURCE, cache, need_plain_library, run

PROGRAM = re.compile(r"^\*\*`([\w.-]+)`\*\*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sessions(text: str):
    """(command, what it prints) in the order of the page."""
    for block in CONSOLE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def main(folder):
    need_plain_library("programs built without a sanitizer cannot use this build")
    text = (SOURCE / "docs" / "embedding.md").read_text(encoding="utf-8")
    failures = 0
    prefix, here = folder / "prefix", folder / "programs"
    here.mkdir()
    run("cmake", "--install", BUILD, "--prefix", prefix)
    lib = prefix / cache("CMAKE_INSTALL_LIBDIR")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig"), "LD_LIBRARY_PATH": str(lib)}
    programs = PROGRAM.findall(text)
    for name, code in programs:
        (here / name).write_text(code, encoding="utf-8")
    steps = list(sessions(text))
    for command, expected in steps:
        # Their authors would see warnings too.
        strict = re.sub(r"^(cc|c\+\+) ", r"\1 -Wall -Wextra -Werror ", command)
        result = subprocess.run(["bash", "-o", "pipefail", "-c", strict], cwd=here, env=environment, text=True,
                                capture_output=True, timeout=280)
        if result.stdout != expected or (result.returncode != 0 and "|" not in command):
            print(f"FAILED ({result.returncode}): {command}\nexpected:\n{expected}printed:\n{result.stdout}{result.stderr}")
            failures += 1
    built = [name for name, _ in programs if any(f" {name} " in command for command, _ in steps)]
    if len(programs) < 8 or len(built) != len(programs):
        print(f"FAILED: of the programs {[name for name, _ in programs]} only {built} are built")
        failures += 1
    server = here / "server"
    shutil.copytree(prefix / "share" / "halyard" / "examples" / "cpp", server)
    run("cmake", "-G", "Ninja", "-S", server, "-B", server / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", server / "b")
    usage = subprocess.run([server / "b" / "tensor-echo", "--help"], capture_output=True, text=True)
    if "--limit" not in usage.stderr:
        print(f"FAILED: the server prints {usage}")
        failures += 1
    print(f"{len(steps)} commands of the page, {failures} failed")
    return 1 if failures else 0
