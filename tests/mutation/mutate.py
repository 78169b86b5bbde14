"""usage: ./dev mutate FOLDER|FILE|NAME... [--count=N] [--seed=S] [--quick] [--list] [--json] [--build=FOLDER]

Plants small changes, one at a time, in the C++ sources of a folder, and runs the tests that guard it: a comparison turned or
off by one, && for ||, a negation dropped, a number one more, a check that never holds, a step not made, another status. Says
how many the tests noticed, and each one that lived, with its place.

A NAME is that of several places (tests/mutation/guards.py): {places}.

  --count=N       so many changes, drawn at random (100); 0: all
  --seed=S        of the draw (1): the same seed gives the same changes while the sources stay
  --quick         runs only the first tests of a folder's guard, which take seconds; those that come last may notice more
  --list          prints the changes and plants none
  --json          prints one JSON object instead of text
  --build=FOLDER  a configured build, which is brought up to date (build/mutate, made if it is not there)

All changes of a file are compiled at once, each behind a number that an environment variable selects; so a file is compiled
once, a program is linked once, and a change costs one run of the tests that reach it. No source is changed, and nothing in the
build folder but FOLDER/mutants. A change that no test can notice stands in tests/mutation/equivalent.txt with its reason, and
does not count. The exit status is 1 if less than 90 % are noticed.
"""
import argparse
import concurrent.futures
import dataclasses
import fcntl
import functools
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

import guards
import mutations

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
ENOUGH = 0.9
MOST = 60000  # planted.c has room for a few more
MEMORY = 16 << 30  # of the address space of a test: a changed bound may allocate without end
OPTIONS = ("-DHALYARD_PCH=OFF", "-DHALYARD_LTO=OFF", "-DHALYARD_UNITY=OFF", "-DHALYARD_BENCHMARKS=OFF", "-DHALYARD_JIT_VERIFY=ON")


def stop(text):
    sys.exit(f"mutate: {text}")


def output(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        stop(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def equivalent():
    """{key of a mutation: why nothing can notice it}, from lines `KEY ## WHY`."""
    lines = (HERE / "equivalent.txt").read_text().splitlines()
    return dict(line.split(" ## ", 1) for line in lines if line and not line.startswith("#"))


def expanded(places):
    """(path, names of the functions that count; none: all) for each place, and for each of those that a name stands for."""
    for place in places:
        for part in guards.PLACES.get(place, ()):
            path, _, functions = part.partition("#")
            yield SOURCE / path, functions.split(",") if functions else []
        if place not in guards.PLACES:
            yield place, []


def changes(places):
    """The changes that can be planted in the places."""
    found = []
    for place, functions in expanded(places):
        for path in sources([place]):
            text = (SOURCE / path).read_text()
            lines = set()
            for function in functions:
                own = mutations.lines_of(text, function)
                if not own:
                    stop(f"{path} defines no function '{function}', which tests/mutation/guards.py names")
                lines |= own
            found += [mutation for mutation in mutations.mutations(path, text) if not functions or mutation.line in lines]
    return found


def sources(places):
    """The files of the places that can be changed, as paths from the root."""
    found = []
    for place in places:
        path = pathlib.Path(place).resolve()
        if not path.exists():
            stop(f"there is no '{place}'; expected a folder or a file of {SOURCE}")
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        found += [str(file.relative_to(SOURCE)) for file in files
                  if file.suffix in (".cpp", ".inc") and "tests" not in file.parts and "benchmarks" not in file.parts]
    unguarded = [path for path in found if not guards.guard_of(path)]
    if not found or unguarded:
        known = ", ".join(sorted(guards.GUARDS))
        stop(f"no tests are known for {unguarded[0] if unguarded else ' '.join(places)}; expected sources in one of: {known}")
    return found


class Build:
    """A build folder, and beside it the same programs with planted changes."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        if not (self.folder / "build.ninja").exists():
            if folder != SOURCE / "build" / "mutate":
                stop(f"{folder} is not a configured build; expected one made by `cmake --preset release -B {folder}`")
            output("cmake", "--preset", "release", "-B", self.folder, *OPTIONS, cwd=SOURCE)
        self.place = self.folder / "mutants"
        self.commands = {}
        for entry in json.loads((self.folder / "compile_commands.json").read_text()):
            path = pathlib.Path(entry["file"])
            if path.is_relative_to(SOURCE):
                self.commands.setdefault(str(path.relative_to(SOURCE)), []).append(shlex.split(entry["command"]))

    def bring_up_to_date(self, outputs, jobs):
        output("flock", self.folder / ".lock", "ninja", "-C", self.folder, f"-j{jobs}", *outputs)  # as ./dev build does

    def mirror(self):
        """The folder of the changed programs: links to all others."""
        shutil.rmtree(self.place, ignore_errors=True)
        tree = self.place / "build"
        for part in ("bin", "lib", "tests", "examples"):
            for path in sorted((self.folder / part).rglob("*")):
                target = tree / path.relative_to(self.folder)
                if path.is_dir() and not path.is_symlink():
                    target.mkdir(parents=True, exist_ok=True)
                elif "CMakeFiles" not in path.parts:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.symlink_to(path)
        for name in ("CMakeCache.txt", "compile_commands.json", "schemas", "emulated"):
            if (self.folder / name).exists():
                (tree / name).symlink_to(self.folder / name)
        return tree

    @functools.lru_cache(maxsize=None)
    def users(self, path):
        """The sources that are compiled with a file: itself, or those of its layer that include it."""
        if path in self.commands:
            return [path]
        layer = path.split("/", 1)[0]
        deps, current = output("ninja", "-C", self.folder, "-t", "deps"), None
        found = []
        for line in deps.splitlines():
            if line.endswith(")") and ": #deps" in line:
                current = line.split(":", 1)[0]
            elif line.strip() == str(SOURCE / path) or os.path.normpath(os.path.join(self.folder, line.strip())) == str(SOURCE / path):
                found.append(current)
        objects = {shlex.join(command): source for source, list_ in self.commands.items() for command in list_}
        users = {source for object_ in found for command, source in objects.items()
                 if f" {object_} " in f" {command} " and source.startswith(layer + "/") and "/tests/" not in source}
        return sorted(users)


def object_of(command):
    return command[command.index("-o") + 1]


class Compilation:
    """One source with what is planted in it and in the tables that it includes."""

    def __init__(self, build, source):
        self.build, self.source = build, source
        self.texts = {}  # path: {number: mutation}
        self.objects = {}  # object of the build: the changed one

    def compile(self):
        """Returns the numbers of the mutations that do not compile, which are left out."""
        left_out = set()
        for _ in range(8):
            errors = self.try_once()
            if not errors:
                return left_out
            wrong = set()
            for path, line in errors:
                for number, mutation in self.texts.get(path, {}).items():
                    if self.lines(mutation)[0] <= line <= self.lines(mutation)[1]:
                        wrong.add((path, number))
            if not wrong:
                print(f"mutate: {self.source} does not compile with changes: {sorted(errors)[:3]}; none of its changes are planted",
                      file=sys.stderr)
                wrong = {(path, number) for path, numbered in self.texts.items() for number in numbered}
            for path, number in wrong:
                left_out.add(number)
                del self.texts[path][number]
        stop(f"{self.source} does not compile")

    def lines(self, mutation):
        text = (SOURCE / mutation.path).read_text()
        return text.count("\n", 0, mutation.host[0]) + 1, text.count("\n", 0, mutation.host[1]) + 1

    def try_once(self):
        place = self.build.place
        own = place / "src" / self.source
        own.parent.mkdir(parents=True, exist_ok=True)
        errors = set()
        for path in {self.source, *self.texts}:
            text = mutations.planted((SOURCE / path).read_text(), self.texts.get(path, {}))
            target = own if path == self.source else place / "inc" / path.split("/src/", 1)[-1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        for command in self.build.commands[self.source]:
            changed = place / "obj" / object_of(command)
            changed.parent.mkdir(parents=True, exist_ok=True)
            arguments, skip = [], False
            for argument in command:
                if skip or argument in ("-MF", "-MT", "-o", "-c"):
                    skip = not skip
                elif not re.match(r"-(O[0-3s]|g\d?|MD|Werror.*|flto.*|ffat-lto.*)$", argument):
                    arguments.append(argument)
            folder = (SOURCE / self.source).parent
            arguments += ["-O1", "-g0", "-w", "-D_GLIBCXX_ASSERTIONS", "-fmax-errors=0", "-iquote", place / "inc", "-idirafter", folder, "-include", HERE / "planted.h",
                          "-c", own, "-o", changed]
            done = subprocess.run([str(part) for part in arguments], cwd=self.build.folder, capture_output=True, text=True)
            if done.returncode != 0:
                inc = {str(place / "inc" / path.split("/src/", 1)[-1]): path for path in self.texts} | {str(own): self.source}
                for name, line in re.findall(r"^(\S+?):(\d+)(?::\d+)?: (?:error|  +required|note)", done.stderr, re.MULTILINE):
                    if name in inc:
                        errors.add((inc[name], int(line)))
                if not errors:
                    stop(f"{self.source} does not compile:\n{done.stderr[:3000]}")
            self.objects[object_of(command)] = changed
        return errors


def link(build, tree, name, objects, runtime):
    """Links an output of the build again, with the changed objects in place of its own or before its archives."""
    line = output("ninja", "-C", build.folder, "-t", "commands", "-s", name).strip().splitlines()[-1]
    part = next(piece for piece in line.split(" && ") if f" -o {name} " in f"{piece} ")
    arguments, own = [argument.replace("\\$", "$") for argument in shlex.split(part)], set()  # "\$ORIGIN", as a shell reads it
    arguments = [own.add(argument) or str(objects[argument]) if argument in objects else argument for argument in arguments]
    archives = [output("ar", "t", build.folder / argument) for argument in arguments
                if argument.endswith(".a") and (build.folder / argument).exists() and not argument.startswith("/")]
    names = {member for archive in archives for member in archive.split()}
    more = [str(changed) for object_, changed in objects.items() if object_ not in own and os.path.basename(object_) in names]
    at = arguments.index("-o")
    target = tree / name
    target.unlink(missing_ok=True)
    arguments[at:at + 2] = ["-o", str(target), *more, str(runtime)]
    done = subprocess.run(arguments, cwd=build.folder, capture_output=True, text=True)
    if done.returncode != 0:
        stop(f"{name} does not link with changes:\n{done.stderr[-3000:]}")


def run_tests(tree, tests, number, limit, reached=None):
    """Runs a guard; what it noticed, as text, or None if all passed."""
    environment = {**os.environ, "HALYARD_BUILD": str(tree), "HALYARD_SOURCE": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    if number:
        environment["HALYARD_MUTANT"] = str(number)
        environment["HALYARD_TEST_PATIENCE"] = "10"  # what a change keeps from coming
    if tests.seeds:
        environment["HALYARD_SEEDS"] = str(tests.seeds)
    if reached:
        reached.write_bytes(bytes(65536))
        environment["HALYARD_MUTANTS_REACHED"] = str(reached)
    if tests.name.endswith(".py"):
        command = [sys.executable, SOURCE / "tests" / "run.py", SOURCE / "tests" / tests.name]
    else:
        command = [tree / "tests" / tests.name, f"--gtest_filter={tests.filter}", "--gtest_brief=1", "--gtest_fail_fast"]
    with subprocess.Popen([str(part) for part in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True, cwd=tree,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))) as process:
        try:
            text = process.communicate(timeout=limit)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"{tests.name}: no end after {limit:.0f} s"
    try:
        os.killpg(process.pid, signal.SIGKILL)  # what a failed test left running
    except ProcessLookupError:
        pass
    if process.returncode == 0:
        return None
    if process.returncode < 0:
        return f"{tests.name}: {signal.Signals(-process.returncode).name}"
    failed = re.search(r"^\[  FAILED  \] ([\w./]+)", text, re.MULTILINE) or re.search(r"^(?:FAILED: |not ok|FAIL: )(.*)", text, re.MULTILINE)
    return f"{tests.name}: {failed[1] if failed else f'exit status {process.returncode}: {text[-200:].strip()}'}"


class Hunt:
    """The changes of one guard: compiled, linked, and run one by one."""

    def __init__(self, build, guard, numbered, jobs):
        self.build, self.guard, self.numbered, self.jobs = build, guard, numbered, jobs

    def prepare(self):
        programs = [f"tests/{tests.name}" for tests in self.guard.tests if not tests.name.endswith(".py")]
        self.build.bring_up_to_date([*self.guard.links, *self.guard.programs, *self.guard.needed, *programs], self.jobs)
        tree = self.build.mirror()
        for name in self.guard.programs:
            (tree / name).unlink()
            shutil.copy(self.build.folder / name, tree / name)
        compilations = {}
        for number, mutation in self.numbered.items():
            users = self.build.users(mutation.path)
            if not users:
                stop(f"no source that is compiled includes {mutation.path}")
            for user in users:
                compilation = compilations.setdefault(user, Compilation(self.build, user))
                compilation.texts.setdefault(mutation.path, {})[number] = mutation
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for left_out in pool.map(Compilation.compile, compilations.values()):
                for number in left_out:
                    self.numbered.pop(number, None)
        runtime = self.build.place / "planted.o"
        output("cc", "-O1", "-fPIC", "-fvisibility=hidden", "-c", HERE / "planted.c", "-o", runtime)
        objects = {object_: changed for compilation in compilations.values() for object_, changed in compilation.objects.items()}
        for name in self.guard.links:
            link(self.build, tree, name, objects, runtime)
        return tree

    def measure(self, tree):
        """Runs each guard without a change: it must pass, and shows how long it takes and what it reaches."""
        self.limits, self.reached = {}, {}
        for tests in self.guard.tests:
            file, begin = self.build.place / "reached", time.monotonic()
            failed = run_tests(tree, tests, 0, 1200, file)
            if failed:
                stop(f"the tests fail without a change: {failed}")
            self.limits[tests] = 30 + 8 * (time.monotonic() - begin)
            self.reached[tests] = {number for number, byte in enumerate(file.read_bytes()) if byte}
        if self.numbered and not any(self.reached.values()):
            stop(f"the tests reach none of {len(self.numbered)} changes in {next(iter(self.numbered.values())).path} and others; "
                 "do they run what was linked again (`links` and `programs` in tests/mutation/guards.py)?")

    def fate(self, tree, number):
        """(what noticed it or None, whether a test reached it)"""
        chosen = [tests for tests in self.guard.tests if number in self.reached[tests]]
        for tests in chosen:
            noticed = run_tests(tree, tests, number, self.limits[tests])
            if noticed:
                return noticed, True
        return None, bool(chosen)


def report(results, chosen, known, as_json):
    noticed = [number for number, (by, _) in results.items() if by]
    excused = [number for number, (by, _) in results.items() if not by and chosen[number].key() in known]
    lived = [number for number, (by, _) in results.items() if not by and chosen[number].key() not in known]
    counted = len(noticed) + len(lived)
    share = len(noticed) / counted if counted else 1.0
    if as_json:
        print(json.dumps({"planted": len(results), "noticed": len(noticed), "share": round(share, 4),
                          "lived": [{"key": chosen[n].key(), "path": chosen[n].path, "line": chosen[n].line, "kind": chosen[n].kind, "change": chosen[n].change(),
                                     "text": chosen[n].was, "reached": results[n][1]} for n in lived],
                          "equivalent": [{"path": chosen[n].path, "line": chosen[n].line, "change": chosen[n].change(),
                                          "why": known[chosen[n].key()]} for n in excused]}, indent=1))
        return share
    for number in excused:
        mutation = chosen[number]
        print(f"{mutation.path}:{mutation.line}: cannot be noticed: {mutation.change()}: {known[mutation.key()]}")
    for number in lived:
        mutation = chosen[number]
        reached = "" if results[number][1] else "; no test reaches it"
        print(f"{mutation.path}:{mutation.line}: lived: {mutation.kind}{reached}\n    {mutation.key().split(': ', 1)[1]}")
    print(f"{len(results)} changes planted, {len(noticed)} noticed, {len(lived)} lived, {len(excused)} cannot be noticed: "
          f"{100 * share:.1f} % of those that count")
    return share


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0][len("usage: "):], add_help=False)
    parser.add_argument("places", nargs="*")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--build", default=str(SOURCE / "build" / "mutate"))
    parser.add_argument("--help", "-h", action="store_true")
    options = parser.parse_args()
    if options.help or not options.places:
        print(__doc__.replace("{places}", ", ".join(sorted(guards.PLACES))))
        return 0 if options.help else 2
    if options.count < 0:
        stop(f"--count is {options.count}; expected 0 (all) or more")
    found = changes(options.places)
    if options.count and options.count < len(found):
        found = random.Random(options.seed).sample(found, options.count)
        found.sort(key=lambda mutation: (mutation.path, mutation.begin, mutation.end))
    if options.list:
        for mutation in found:
            print(f"{mutation.path}:{mutation.line}: {mutation.kind}: {mutation.change()}\n    {mutation.was}")
        print(f"{len(found)} changes")
        return 0
    if len(found) > MOST:
        stop(f"{len(found)} changes are too many for one run; expected at most {MOST}")
    jobs = int(os.environ.get("HALYARD_JOBS", os.cpu_count()))
    build = Build(pathlib.Path(options.build))
    lock = open(build.folder / ".mutants.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # one run at a time in a folder
    chosen = dict(enumerate(found, 1))
    results = {}
    for guard in {guards.guard_of(mutation.path): None for mutation in found}:
        used = dataclasses.replace(guard, tests=guard.tests[:guard.quick]) if options.quick else guard
        hunt = Hunt(build, used, {number: mutation for number, mutation in chosen.items() if guards.guard_of(mutation.path) is guard}, jobs)
        tree = hunt.prepare()
        hunt.measure(tree)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            fates = {pool.submit(hunt.fate, tree, number): number for number in hunt.numbered}
            for done in concurrent.futures.as_completed(fates):
                results[fates[done]] = done.result()
                if sys.stderr.isatty():
                    print(f"\r{len(results)}/{len(chosen)}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    share = report(dict(sorted(results.items())), chosen, equivalent(), options.json)
    return 0 if share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
