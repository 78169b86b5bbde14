"""The documents are right about the tools: the flags of docs/switching-from-iree-run-module.md behave as its table
says, flags in commands exist, links between documents work, and every command is run by a test or has a reason why not."""
import glob
import os
import re

import vmrun
from documents import FORMATS, OTHERS, OWN_TEST, RUN, blocks, paths

DOCUMENTS = sorted(glob.glob(os.path.join(vmrun.SOURCE, "docs", "*.md"))) + [
    os.path.join(vmrun.SOURCE, *name) for name in (("README.md",), ("CONTRIBUTING.md",), ("SECURITY.md",), ("tools", "README.md"), ("tests", "README.md"),
                                                   ("bindings", "README.md"), ("drivers", "README.md"),
                                                   ("drivers", "local", "README.md"), ("drivers", "vulkan", "README.md"),
                                                   ("examples", "README.md"))]
ROW = re.compile(r"^\| `--(\w+)` \| (same|different|without effect|left out) \|", re.MULTILINE)


def read(path):
    return vmrun.read_text(path)


def flags_of(tool):
    return {name.replace("-", "_") for name in re.findall(r"^  --([\w-]+)", vmrun.run(tool, "--help").stdout, re.MULTILINE)}


def switching(checks):
    flags = flags_of("vm-run")
    text = read(os.path.join(vmrun.SOURCE, "docs", "switching-from-iree-run-module.md"))
    rows = ROW.findall(text)
    checks.check("the table is there", None if len(rows) > 40 else f"it has {len(rows)} rows")
    for name, status in rows:
        is_listed = name in flags
        checks.check(f"--{name} is {status}",
                     None if is_listed == (status in ("same", "different")) else f"it is {'' if is_listed else 'not '}in the help")
        if status == "left out":
            checks.check(f"--{name} is refused", None if vmrun.run("vm-run", f"--{name}", "--help").returncode != 0 else "it is not")
        if status == "without effect":  # a value where it needs one: the message says so
            done = vmrun.run("vm-run", f"--{name}", "--help")
            if done.returncode != 0:
                done = vmrun.run("vm-run", f"--{name}=1", "--help")
            checks.check(f"--{name} is accepted", None if done.returncode == 0 else "it is not", done)
    new = re.search(r"These are new: ([^.]*)\.", text)[1]
    for name in re.findall(r"--([\w-]+)", new):
        checks.check(f"--{name} is new", None if name.replace("-", "_") in flags else "it is no flag")


def commands(checks):
    """In code, flags behind the name of a tool are flags of that tool."""
    flags = {tool: flags_of(tool) for tool in ("vm-run", "vm-serve", "vm-bench", "vm-check", "vm-diff", "vm-as", "vm-dump", "vm-cc", "vm-device", "hal-info", "hal-cts")}
    for path in DOCUMENTS:
        text = re.sub(r"\\\n", " ", read(path))
        for command in re.findall(r"(?:^|[`|(&$] ?)((?:vm-run|vm-serve|vm-bench|vm-check|vm-diff|vm-as|vm-dump|vm-cc|vm-device|hal-info|hal-cts) [^`|\n#]*)", text, re.MULTILINE):
            tool = command.split()[0]
            for name in re.findall(r" --([a-z][\w-]*)", command):
                known = name.replace("-", "_") in flags[tool]
                checks.check(f"{os.path.basename(path)}: {command}", None if known else f"{tool} has no flag --{name}")


def links(checks):
    for path in DOCUMENTS:
        text = read(path)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text):
            if not re.match(r"[a-z]+:", target):
                there = os.path.exists(os.path.join(os.path.dirname(path), target))
                checks.check(f"{os.path.basename(path)}: {target}", None if there else "nothing is there")


# How a command begins, in a line of a block.
COMMAND = re.compile(r"^ *(?:\$ |\./dev |(?:sudo |apt|apt-get|pip|cmake|ctest|cc|c\+\+|gcc|git|mpirun|curl|vulkan-pack) "
                     r"|(?:vm|hal)-\w+ +(?:-|\S+\.\w)).*", re.MULTILINE)
# Commands in sentences: the test that runs them, or why there is none.
IN_SENTENCES = (
    (r"\./dev demo", "examples"),
    (r"apt install libboost-dev", "embedding"),
    (r"\./dev package", "packages"),
    (r"\./dev build (static|small)|cmake -DHALYARD_STATIC=ON .*|strip -o stripped build/static/.*", "static"),
    (r"cmake --install.*", "install"),
    (r"\./dev( (test|nightly|check|lint|format|setup|abi|bench|fuzz|corpus|contractions|mutate|coverage|release)\b.*)?", "runs the tests, or is run by who changes this tree"),
    (r"ctest .*|python3 tests/run\.py .*", "runs a test"),
    (r"python3 tests/coverage\.py .*", "coverage"),
    (r"python3 packaging/measures\.py .*", "measures"),
    (r"python3 benchmarks/.*", "benchmarks compare; no test asserts a time"),
    (r"\./dev (install.*|build|wheel)|cmake --preset (release|coverage .*)|pip install \.", "builds everything once more"),
    (r"\./dev build arm64", "needs the packages of another architecture"),
    (r"(apt purge|pip list|systemctl|man|gdb|perf|valgrind|git lfs)\b.*", "needs a system on which it is installed, or another program"),
)


def why_unmarked(document, block):
    """What is wrong with the language and the marker of a block, or None."""
    if block.language not in RUN + OTHERS:
        return f"its language is '{block.language}'; expected one of {', '.join(RUN + OTHERS)}"
    if block.language in OTHERS:
        command = COMMAND.search(block.text)
        return f"it holds a command, '{command[0].strip()}'; expected the language sh or console" if command else None
    if block.run_by:
        script = os.path.join(vmrun.SOURCE, "tests", f"test_{block.run_by}.py")
        if not os.path.exists(script):
            return f"it is run by '{block.run_by}', which is no test"
        if document not in read(script):
            return f"it is run by '{block.run_by}', whose script does not name {document}"
    return None


def markers(checks):
    """Blocks `sh`, `console` and `python` without a marker are run by test_documented_commands.py."""
    for path in paths():
        document = path.as_posix()
        if document in OWN_TEST or document.startswith(FORMATS):
            continue
        for block in blocks(document):
            checks.check(f"{document}:{block.line}", why_unmarked(document, block))


def sentences(checks):
    tests = {name for _, name in IN_SENTENCES if re.fullmatch(r"\w+", name)} | set(OWN_TEST.values())
    for name in tests:
        checks.check(f"the test {name}", None if os.path.exists(os.path.join(vmrun.SOURCE, "tests", f"test_{name}.py")) else "there is none")
    known = re.compile("|".join(f"(?:{pattern})" for pattern, _ in IN_SENTENCES))
    programs = r"\./dev|cmake|ctest|apt|apt-get|pip|python3|cc|c\+\+|gcc|strip|mpirun|systemctl|man|gdb|perf|valgrind|git"
    for path in paths():
        if path.as_posix().startswith(FORMATS):
            continue
        for command in re.findall(rf"`((?:{programs})(?: [^`\n]*)?)`", read(os.path.join(vmrun.SOURCE, path))):
            is_name = re.fullmatch(r"[\w+-]+", command)
            checks.check(f"{path}: `{command}`", None if is_name or known.fullmatch(command) else "no test runs it, and no reason is given")


def types_of(names):
    """The letters of a calling convention, from names with their types: "(device !hal.device, value i64)…, id i32"."""
    letters = ""
    for repeated, name in re.findall(r"\(([^()]*)\)…|([^,()]+)", names):
        if not repeated and not name.strip():
            continue  # between a repeated group and the next type
        inner = types_of(repeated) if repeated else {"i32": "i", "i64": "I"}.get(name.split()[1], "r")
        letters += f"C{inner}D" if repeated or name.endswith("…") else inner
    return letters


def hal_imports(checks):
    """docs/hal-imports.md has every signature of the one table, and names as many arguments of the same types."""
    table = read(os.path.join(vmrun.SOURCE, "modules", "src", "modules", "hal_functions.inc"))
    expected = {(name, convention, first, last)
                for name, convention, first, last in re.findall(r'HAL_FUNCTION\("([\w.]+)", "(\w+)", (\d), (\d), ', table)}
    found = set()
    for name, body in re.findall(r"^### hal\.([\w.]+)\n(.*?)(?=^##|\Z)", read(os.path.join(vmrun.SOURCE, "docs", "hal-imports.md")),
                                 re.MULTILINE | re.DOTALL):
        checks.check(f"{name} is explained", None if re.search(r"^[^-\s].{10}", body, re.MULTILINE) else "it is not")
        for first, last, convention, arguments, results in re.findall(
                r"^- 0\.(\d)(?: to 0\.(\d))?: `(\w+)` \((.*)\)(?: → (.+))?$", body, re.MULTILINE):
            found.add((name, convention, first, last or first))
            documented = f"0{types_of(arguments) or 'v'}_{types_of(results) or 'v'}"
            checks.check(f"{name} {convention}: arguments", None if documented == convention else f"they are those of {documented}")
    checks.check("docs/hal-imports.md is complete", None if found == expected else f"they differ in {sorted(found ^ expected)}")


def main(checks):
    switching(checks)
    commands(checks)
    links(checks)
    markers(checks)
    sentences(checks)
    hal_imports(checks)
