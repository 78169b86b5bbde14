#!/usr/bin/env python3
"""Format and clang-tidy, for `./dev lint`: what has changed, or everything; changes no file.

usage: lint.py [--all] [--base=COMMIT] [--jobs=N] [--build=FOLDER] [FILE...]

Without FILE and --all it checks what differs from the merge base with COMMIT (main): the changed sources, and for the
changed headers as few of the sources that include them as cover all. --all checks every source that is built.

A source that was clean is not checked again until its text after preprocessing, its flags, the checks or clang-tidy
change. The cache is build/lint, or the folder that HALYARD_LINT_CACHE names, which several clones may share.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("base", "vm", "jit", "aot", "analysis", "hal", "remote", "modules", "bindings", "drivers", "channels", "tools", "tests", "benchmarks", "fuzz",
           "examples")
CLANG_TIDY, CLANG_FORMAT = "clang-tidy-19", "clang-format-19"
# g++'s options that clang does not know are no finding.
CLANG_OPTIONS = ["-Wno-unknown-warning-option", "-Wno-unused-command-line-argument"]
# The analyzer gives up a path after so many states instead of 225,000: a third of the time, and the same findings.
ANALYZER = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000"]
# It takes a minute for what GoogleTest's macros become, and says nothing about it; of coroutines it knows nothing.
WITHOUT_ANALYZER = "--checks=-clang-analyzer-*"
CACHE_DAYS = 30


def git(*arguments):
    return subprocess.run(["git", "-C", SOURCE, *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def own_files():
    """C and C++ files of this project, those not yet added to git included, as paths from its root."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *FOLDERS)
    return [name for name in names if (SOURCE / name).is_file() and name.endswith((".h", ".hpp", ".inc", ".c", ".cpp"))]


def changed_files(base):
    try:
        fork = git("merge-base", base, "HEAD")[0]
    except (subprocess.CalledProcessError, IndexError):
        sys.exit(f"lint: no commit '{base}' that this branch comes from; give --base=COMMIT, or --all")
    return set(git("diff", "--name-only", fork)) | set(git("ls-files", "--others", "--exclude-standard"))


def compile_commands(build):
    """{path from the root: arguments of the compiler}. Of a source that is built twice, the first."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(SOURCE) and not path.is_relative_to(build):
            commands.setdefault(str(path.relative_to(SOURCE)), shlex.split(entry["command"]))
    return commands


def make_generated_headers(build):
    """clang-tidy reads them; nothing else is built."""
    targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    headers = re.findall(r"^([^/\n][^:\n]*\.(?:h|inc)): CUSTOM_COMMAND$", targets, re.MULTILINE)
    if headers:
        subprocess.run(["ninja", "-C", build, *headers], check=True, stdout=subprocess.DEVNULL)


# ---- Which sources


def include_graph(files):
    """{file: the files of this project that it names in #include}, by the ends of their paths."""
    by_name = {}
    for file in files:
        by_name.setdefault(pathlib.PurePath(file).name, []).append(file)
    graph = {}
    for file in files:
        text = (SOURCE / file).read_text(errors="replace")
        named = re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', text, re.MULTILINE)
        graph[file] = {found for name in named for found in by_name.get(pathlib.PurePath(name).name, [])
                       if f"/{found}".endswith("/" + re.sub(r"^(\.\./)+", "", name))}
    return graph


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for file in graph.get(todo.pop(), ()):
            if file not in seen:
                seen.add(file)
                todo.append(file)
    return seen


def sources_for(changed, files, commands):
    """The changed sources, and sources that include the other changed files: of those, as few as the greedy choice needs."""
    chosen = {file for file in changed if file in commands}
    graph = include_graph(files)
    covers = {source: reachable(graph, source) for source in commands}
    left = {file for file in changed if file in graph and file not in commands}
    left -= set().union(*(covers[source] for source in chosen))
    while left:
        best = max(covers, key=lambda source: (len(covers[source] & left), -len(covers[source]), source))
        if not covers[best] & left:
            break  # nothing that is built includes them
        chosen.add(best)
        left -= covers[best]
    return sorted(chosen)


# ---- One source


class Checker:
    def __init__(self, build, commands):
        self.build = build
        self.commands = commands
        self.cache = pathlib.Path(os.environ.get("HALYARD_LINT_CACHE", SOURCE / "build" / "lint"))
        self.cache.mkdir(parents=True, exist_ok=True)
        version = subprocess.run([CLANG_TIDY, "--version"], check=True, capture_output=True, text=True).stdout
        self.rules = version + (SOURCE / ".clang-tidy").read_text()

    def flags(self, source):
        """The flags of the compiler, without its name, the source and the target."""
        flags, arguments = [], iter(self.commands[source][1:])
        for argument in arguments:
            if argument in ("-o", "-c"):
                next(arguments)
            elif argument == "-include":
                next(arguments)  # precompiled headers, which hide that an #include is missing
            elif argument == "-Wshadow=local":
                flags.append("-Wshadow")  # as builds with clang have it
            else:
                flags.append(argument)
        return flags

    def options(self, source):
        if "tests" in pathlib.PurePath(source).parts or "co_await" in (SOURCE / source).read_text():
            return [WITHOUT_ANALYZER]
        return [f"--extra-arg={argument}" for argument in ANALYZER]

    def key(self, source):
        """None where the source does not compile: clang-tidy says why."""
        flags = self.flags(source)
        compiler = "clang-19" if source.endswith(".c") else "clang++-19"
        done = subprocess.run([compiler, *flags, *CLANG_OPTIONS, "-E", str(SOURCE / source)], cwd=self.build,
                              capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            return None
        digest = hashlib.sha256()
        for part in (self.rules, source, *self.options(source), *(flag for flag in flags if flag[:2] not in ("-I", "-D"))):
            digest.update(part.encode() + b"\0")
        own = set()
        for line in done.stdout.splitlines():
            if line.startswith("# "):
                name = line.split('"')[1] if '"' in line else ""
                if name.startswith(f"{SOURCE}/"):
                    own.add(name)
            elif line.strip():
                digest.update(line.encode() + b"\n")
        for name in sorted(own):  # comments are gone after preprocessing, and these count
            text = pathlib.Path(name).read_text(errors="replace")
            for line in re.findall(r".*NOLINT.*", text) if "NOLINT" in text else ():
                digest.update(line.encode() + b"\n")
        return digest.hexdigest()

    def check(self, source):
        """(source, whether it was known, seconds, findings as text)."""
        key = self.key(source)
        known = self.cache / key if key else None
        if known and known.exists():
            known.touch()
            return source, True, 0.0, ""
        begin = time.monotonic()
        done = subprocess.run([CLANG_TIDY, "--quiet", *self.options(source), str(SOURCE / source), "--",
                               *self.flags(source), *CLANG_OPTIONS],
                              cwd=self.build, capture_output=True, text=True, errors="replace")
        seconds = time.monotonic() - begin
        findings = done.stdout.strip()
        if done.returncode != 0 and not findings:
            findings = done.stderr.strip() or f"{CLANG_TIDY} ended with status {done.returncode}"
        if not findings and known:
            known.touch()
        return source, False, seconds, findings

    def forget_old(self):
        oldest = time.time() - CACHE_DAYS * 86400
        for entry in self.cache.iterdir():
            if entry.stat().st_mtime < oldest:
                entry.unlink(missing_ok=True)


# ---- All of them


def check_format(files):
    wanted = [file for file in files if file.endswith((".h", ".hpp", ".c", ".cpp"))]  # tables in *.inc are laid out by hand
    if not wanted:
        return True
    return subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", *wanted], cwd=SOURCE).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--base", default="main")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "debug")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    begin = time.monotonic()
    make_generated_headers(build)
    commands, files = compile_commands(build), own_files()
    if arguments.all:
        sources = sorted(commands)
    else:
        if arguments.files:
            changed = {str(file.resolve().relative_to(SOURCE)) for file in arguments.files}
        else:
            changed = changed_files(arguments.base)
        if ".clang-tidy" in changed:
            print("lint: .clang-tidy has changed; './dev lint --all' checks everything with it")
        sources = sources_for(changed, files, commands)
        files = [file for file in files if file in changed]
    is_well = check_format(files)
    checker = Checker(build, commands)
    # The large ones first, so that the end is not one of them alone.
    sources.sort(key=lambda source: -(SOURCE / source).stat().st_size)
    known, with_findings, times = 0, 0, []
    said = set()  # what a header has is found once for each source that includes it
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for number, (source, was_known, seconds, findings) in enumerate(pool.map(checker.check, sources), 1):
            known += was_known
            times.append((seconds, source))
            if findings:
                with_findings += 1
                if findings not in said:
                    said.add(findings)
                    print(findings, flush=True)
            if sys.stderr.isatty():
                print(f"\r{number}/{len(sources)}", end="\r", file=sys.stderr, flush=True)
    checker.forget_old()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"lint: {len(files)} files formatted{'' if is_well else ' WRONGLY'}, {len(sources)} sources: "
          f"{known} known to be clean, {len(sources) - known - with_findings} found clean, {with_findings} with findings; "
          f"{time.monotonic() - begin:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time")
    if arguments.all and (slow := [row for row in sorted(times, reverse=True)[:5] if row[0] > 0]):
        print("longest:", ", ".join(f"{source} {seconds:.0f} s" for seconds, source in slow))
    return 0 if is_well and with_findings == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
