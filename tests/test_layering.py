"""Checks the dependencies between layers, and between the folders of a layer: which may include which.

- No source reaches out of its layer with `#include "../..."`.
- For every layer and every other layer, a one-line file with the flags of the real build (compile_commands.json) of the
  first includes a header of the second: where there is an arrow it compiles, where there is none the compiler must say
  "No such file".
- The folders of a layer have an order (FOLDERS): a file includes its own folder and those before it.
- Where no order of folders says it (WITHOUT_CIRCLES), files do not include each other in a circle; x.h and x.cpp count as one.

`test_layering.py --graph` prints the folders that each folder includes.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from installed import BUILD, SOURCE


# Candidates: folder that is searched for a header, and the spelling of that header in an #include.
HEADERS = {
    "halyard/status.h": ("base/include", "halyard/status.h"),
    "halyard/abi.h": ("base/include", "halyard/abi.h"),
    "halyard/value.h": ("base/include", "halyard/value.h"),
    "halyard/private_folder.hpp": ("base/include", "halyard/private_folder.hpp"),
    "halyard/small_floats.hpp": ("base/include", "halyard/small_floats.hpp"),
    "halyard/wildcards.hpp": ("base/include", "halyard/wildcards.hpp"),
    "halyard/x86_features.hpp": ("base/include", "halyard/x86_features.hpp"),
    "halyard/module.h": ("vm/include", "halyard/module.h"),
    "halyard/program.h": ("vm/include", "halyard/program.h"),
    "halyard/driver.h": ("hal/include", "halyard/driver.h"),
    "halyard/halyard.h": ("bindings/c/include", "halyard/halyard.h"),
    "halyard/halyard.hpp": ("bindings/cpp/include", "halyard/halyard.hpp"),
    "text": ("base/text/src", "text/*.h"),
    "base": ("base/src", "base/*.h"),
    "vm": ("vm/src", "vm/*/*.h"),
    "hal": ("hal/src", "hal/*/*.h"),
    "modules": ("modules/src", "modules/*.h"),
    "aot": ("aot/src", "aot/*.h"),
    "analysis": ("analysis/src", "analysis/*.h"),
    "remote": ("remote/src", "remote/*.h"),
    "server": ("remote/server/src", "server/server.h"),
}

# Layer: (its sources, its allowed includes). All other entries of HEADERS are forbidden.
# x86_features.hpp includes nothing of C++, so C sources find it, too.
C_BASE = ["halyard/status.h", "halyard/abi.h", "halyard/value.h", "halyard/x86_features.hpp"]
BASE = [*C_BASE, "halyard/private_folder.hpp", "halyard/small_floats.hpp", "halyard/wildcards.hpp"]
MODULE = ["halyard/module.h", "halyard/program.h"]
LAYERS = {
    "base/text": ("base/text/src", ["text"]),
    "base": ("base/src", [*BASE, "text", "base"]),
    "vm": ("vm/src", [*BASE, *MODULE, "text", "base", "vm"]),
    "jit": ("jit/src", [*BASE, *MODULE, "text", "base", "vm"]),
    "aot": ("aot/src", [*BASE, *MODULE, "text", "base", "vm", "aot"]),
    "analysis": ("analysis/src", [*BASE, *MODULE, "text", "base", "vm", "analysis"]),
    "hal": ("hal/src", [*BASE, "halyard/driver.h", "text", "base", "hal"]),
    "remote": ("remote/src", [*BASE, "remote"]),
    "remote/server": ("remote/server/src", [*BASE, "halyard/driver.h", "text", "base", "hal", "remote", "server"]),
    "modules": (
        "modules/src",
        [*BASE, *MODULE, "halyard/driver.h", "text", "base", "vm", "hal", "modules"],
    ),
    "bindings/c": (
        "bindings/c/src",
        [*BASE, *MODULE, "halyard/driver.h", "halyard/halyard.h", "text", "base", "vm", "analysis", "hal", "modules"],
    ),
    "drivers/local": ("drivers/local", [*BASE, *MODULE, "halyard/driver.h", "text", "base", "vm"]),
    "drivers/vulkan": ("drivers/vulkan", [*BASE, "halyard/driver.h"]),
    "drivers/remote": ("drivers/remote", [*BASE, "halyard/driver.h", "remote"]),
    "drivers/null": ("drivers/null", [*C_BASE, "halyard/driver.h"]),
    "drivers/template": ("drivers/template", [*BASE, "halyard/driver.h"]),
    "examples/native_module": ("examples/native_module", [*C_BASE, *MODULE]),
    "tools": ("tools", [*BASE, *MODULE, "halyard/halyard.h", "halyard/halyard.hpp", "text"]),
    # Exceptions among tools: one runs no program, one offers devices as the host has them, one tests layers below the C ABI.
    "tools/vm-device": (
        "tools/vm-device",
        [*BASE, *MODULE, "halyard/halyard.h", "halyard/halyard.hpp", "text", "remote", "server"],
    ),
    "tools/vm-cc": ("tools/vm-cc", [*BASE, *MODULE, "halyard/halyard.h", "halyard/halyard.hpp", "text", "aot"]),
    # Of vm-cc, its reader of parameter files.
    "tools/vm-cc/parameters": (
        "tools/vm-cc/parameters",
        [*BASE, *MODULE, "halyard/driver.h", "text", "base", "vm", "hal", "modules", "aot"],
    ),
    "tools/hal-cts": (
        "tools/hal-cts",
        [*BASE, *MODULE, "halyard/driver.h", "halyard/halyard.h", "halyard/halyard.hpp", "text"],
    ),
}

# The folders of a layer, from the lowest to the highest.
FOLDERS = {
    "vm/src/vm": ["elementary", "object", "format", "module", "verify", "decode", "count", "compile", "run", "native", "text"],
    "hal/src/hal": ["trace", "driver", "device", "registry", "channel", "command", "queue", "view", "capture"],
}

# Layers that use only some folders of another layer.
PARTS = {"aot/src": ("vm", ["elementary", "object", "format", "module", "verify", "decode", "text"]),
         "analysis/src": ("vm", ["format", "module", "count", "text"])}

# Folders in which files do not include each other in a circle; one a line.
WITHOUT_CIRCLES = [
    "base/src",
    "vm/src",
    "jit/src",
    "aot/src",
    "analysis/src",
    "hal/src",
    "modules/src",
    "channels",
    "bindings/c/src",
    "bindings/python/src",
    "drivers/local",
    "drivers/vulkan",
    "drivers/remote",
    "remote/src",
    "remote/server/src",
    "tools",
]

SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".inc"}


def sources(folder: str) -> list[pathlib.Path]:
    return [file for file in sorted((SOURCE / folder).rglob("*")) if file.suffix in SUFFIXES and file.is_file()]


def reaching_out() -> list[str]:
    found = []
    for folder in ("base", "vm", "jit", "aot", "analysis", "hal", "remote", "modules", "bindings", "drivers", "tools", "tests", "benchmarks",
                   "examples"):
        for file in sources(folder):
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                if re.match(r'\s*#\s*include\s*["<]\.\./', line):
                    found.append(f"{file.relative_to(SOURCE)}:{number}: {line.strip()}")
    return found


Graph = dict[str, dict[str, list[str]]]


def included(root: str, unit) -> Graph:
    """For each unit of a folder, its parts or its folders: the units that it includes, with the files that do. `unit` names
    the unit of a file."""
    top = SOURCE / root
    files = dict.fromkeys(sources(root))
    found: Graph = {unit(file.relative_to(top)): {} for file in files}
    for file in files:
        own = unit(file.relative_to(top))
        for header in re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read_text(), re.MULTILINE):
            # The places where the compiler looks: beside the file, in the folder, and in its parent.
            places = (place / header for place in (file.parent, top, top.parent))
            other = next((unit(place.relative_to(top)) for place in places if place in files), own)
            if other != own:
                found[own].setdefault(other, []).append(file.relative_to(top).as_posix())
    return found


def folder_of(file: pathlib.Path) -> str:
    return file.parent.as_posix()


def part_of(file: pathlib.Path) -> str:
    """x.h and x.cpp are one."""
    return file.with_suffix("").as_posix()


def climbing(graph: Graph, order: list[str]) -> list[str]:
    """The includes that the order of folders does not allow, and folders without a place in it."""
    failures = [f"{folder} has no place in the order of folders" for folder in graph if folder not in order]
    failures += [f"{folder} is in the order of folders but does not exist" for folder in order if folder not in graph]
    for folder in filter(order.__contains__, graph):
        for other, files in graph[folder].items():
            if other not in order[:order.index(folder)]:
                failures.append(f"{folder} includes {other}, which comes after it: {', '.join(sorted(set(files)))}")
    return failures


def wrong_folders() -> list[str]:
    failures = []
    for root, order in FOLDERS.items():
        graph = included(root, folder_of)
        failures += [f"{root}: {each}" for each in climbing(graph, order)]
        # The check itself: an include of the highest folder by the lowest is found, and so is a folder that is new.
        for planted in ({**graph, order[0]: {order[-1]: ["planted.h"]}}, {**graph, "new": {}}):
            if not climbing(planted, order):
                failures.append(f"{root}: a wrong include was not found")
    return failures


def circle_in(graph: Graph) -> list[str]:
    """Parts of which each includes the next and the last is the first again; none if there is no circle."""
    left = set(graph)
    while lowest := {part for part in left if left.isdisjoint(graph[part])}:
        left -= lowest
    # Each part that is left includes another one that is left: whoever goes on from one to the next comes back.
    path = [min(left)] if left else []
    while path and path.count(path[-1]) == 1:
        path.append(min(left.intersection(graph[path[-1]])))
    return path[path.index(path[-1]):] if path else []


def circles() -> list[str]:
    failures = []
    for root in WITHOUT_CIRCLES:
        whole = graph = included(root, part_of)
        while circle := circle_in(graph):
            steps = [f"{graph[part][other][0]} includes {other}" for part, other in zip(circle, circle[1:])]
            failures.append(f"{root}: a circle of includes, {' -> '.join(circle)}: {', '.join(steps)}")
            graph = {part: {each: files for each, files in others.items() if each not in circle}
                     for part, others in graph.items() if part not in circle}
        # The check itself: if one include also went the other way, the circle would be found.
        some = next(((part, other) for part, others in whole.items() for other in others), None)
        if not some or not circle_in({**whole, some[1]: {**whole[some[1]], some[0]: ["planted.h"]}}):
            failures.append(f"{root}: a circle of includes was not found")
    return failures


def layer_of(file: pathlib.Path) -> str | None:
    """The innermost folder decides."""
    found = [layer for layer, (folder, _) in LAYERS.items() if file.is_relative_to(SOURCE / folder)]
    return max(found, key=lambda layer: len(LAYERS[layer][0]), default=None)


def wrong_parts() -> list[str]:
    """Includes of folders that a layer does not use."""
    failures = []
    for root, (layer, folders) in PARTS.items():
        used = set()
        for file in sources(root):
            for folder in re.findall(rf'^\s*#\s*include\s*"{layer}/(\w+)/', file.read_text(), re.MULTILINE):
                used.add(folder)
                if folder not in folders:
                    failures.append(f"{file.relative_to(SOURCE)} includes {layer}/{folder}; {root} uses only {', '.join(folders)}")
        failures += [f"{root} does not use {layer}/{folder}" for folder in folders if folder not in used]
    return failures


def flags_of_layers() -> dict[str, list[str]]:
    """For each layer that has a source in this build: its compiler and flags, without the file and the outputs."""
    flags = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        for layer in LAYERS:
            if layer in flags or layer != layer_of(file) or "tests" in file.relative_to(SOURCE).parts:
                continue
            arguments = shlex.split(entry["command"])
            if pathlib.Path(arguments[0]).name == "ccache":
                arguments = arguments[1:]
            kept, skip = [], False
            for argument in arguments:
                if skip:
                    skip = False
                elif argument in ("-o", "-MF", "-MT", "-MQ"):
                    skip = True
                elif argument in ("-c", "-MD", "-MMD", "-Werror") or argument == entry["file"]:
                    pass
                else:
                    kept.append(argument)
            flags[layer] = kept + ["-x", "c" if file.suffix == ".c" else "c++"]
    return flags


def compile_line(flags: list[str], line: str) -> subprocess.CompletedProcess:
    # -E only looks for the file: a C compiler need not accept C++ in it.
    return subprocess.run(flags + ["-E", "-o", os.devnull, "-"], input=line + "\n", text=True, capture_output=True)


def main() -> int:
    if "--graph" in sys.argv:
        for root in FOLDERS:
            for folder, others in sorted(included(root, folder_of).items(), key=lambda each: FOLDERS[root].index(each[0])):
                print(f"{root}/{folder}: {' '.join(sorted(others, key=FOLDERS[root].index)) or '-'}")
        return 0
    failures = [f"reaches out of its folder: {where}" for where in reaching_out()]
    failures += wrong_folders()
    failures += circles()
    failures += wrong_parts()
    failures += [f"drivers/{file.parent.name}: has no row in LAYERS" for file in sorted(SOURCE.glob("drivers/*/CMakeLists.txt"))
                 if f"drivers/{file.parent.name}" not in LAYERS and file.parent.name != "testing"]  # code of tests, not a driver
    flags = flags_of_layers()
    proved = 0
    for layer, (_, allowed) in LAYERS.items():
        if layer not in flags:
            print(f"{layer}: has no sources in this build")
            continue
        control = compile_line(flags[layer], "")
        if control.returncode != 0:
            failures.append(f"{layer}: an empty file does not compile with its flags: {control.stderr}")
            continue
        for target, (folder, pattern) in HEADERS.items():
            header = next(iter(sorted((SOURCE / folder).glob(pattern))), None)
            if header is None:
                print(f"{layer} -> {target}: no header there to try")
                continue
            name = header.relative_to(SOURCE / folder).as_posix()
            result = compile_line(flags[layer], f'#include "{name}"')
            if target in allowed and result.returncode != 0:
                failures.append(f"{layer} must be able to include {name}: {result.stderr}")
            elif target not in allowed and result.returncode == 0:
                failures.append(f"{layer} must not be able to include {name}, and can")
            elif target not in allowed and "No such file" not in result.stderr:
                failures.append(f"{layer} including {name}: expected 'No such file', got: {result.stderr}")
            else:
                proved += 1
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{proved} arrows proved, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
