"""The documents are right about the tools: the flags of docs/switching-from-iree-run-module.md behave as its table
says, flags in commands exist, and links between documents work."""
import glob
import os
import re

import vmrun

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
    help_text = vmrun.run("vm-run", "--help").stdout
    for name, status in rows:
        is_flag = name in flags
        checks.check(f"--{name} is {status}", None if is_flag == (status != "left out") else f"it is {'' if is_flag else 'not '}a flag")
        if is_flag:
            section = re.search(rf"^  --{name}\b.*\n((?:      .*\n)*)", help_text, re.MULTILINE)[1]
            checks.check(f"--{name} has an effect or none",
                         None if ("without effect" in section) == (status == "without effect") else f"it is said to be {status}")
    new = re.search(r"These are new: ([^.]*)\.", text)[1]
    for name in re.findall(r"--([\w-]+)", new):
        checks.check(f"--{name} is new", None if name.replace("-", "_") in flags else "it is no flag")


def commands(checks):
    """In code, flags behind the name of a tool are flags of that tool."""
    flags = {tool: flags_of(tool) for tool in ("vm-run", "vm-serve", "vm-bench", "vm-check", "vm-as", "vm-dump", "hal-info", "hal-cts")}
    for path in DOCUMENTS:
        text = re.sub(r"\\\n", " ", read(path))
        for command in re.findall(r"(?:^|[`|(&$] ?)((?:vm-run|vm-serve|vm-bench|vm-check|vm-as|vm-dump|hal-info|hal-cts) [^`|\n#]*)", text, re.MULTILINE):
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
    hal_imports(checks)
