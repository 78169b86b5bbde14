"""hal-info as a user types it: the tables, JSON, one device, formats, queries; and every kind of invalid or bad
driver: a line with the reason, exit status 0, and the good driver beside it still works."""
import json
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess

import installed
import vmrun

SAMPLES = pathlib.Path(vmrun.BUILD, "tests", "drivers")
PATIENCE = "12 s" if installed.cache("HALYARD_SANITIZE") else "8 s"  # for drivers that hang, and too long for those that do not
TIMEOUT = "--timeout=" + PATIENCE.replace(" ", "")

# A sample driver, its outcome, and the text of its line.
DRIVERS = [
    ("sample", "taken", ""),
    ("partial", "taken", ""),
    ("twin", "shadowed", "which is found first and has its kinds: sample"),
    ("newer", "taken", ""),
    ("shorter", "taken", ""),
    ("empty", "refused", "lacks functions that driver ABI 1 demands: initialize, shutdown, "),
    ("future", "refused", "supports driver ABI 2..3, this Halyard supports 1; install a driver built for this Halyard, or a newer"),
    ("zero", "refused", "supports driver ABI 0..1, this Halyard supports 1; version 0 marks an unfinished"),
    ("instrumented", "refused", "was built with MemorySanitizer, this Halyard with"),
    ("noteless", "refused", "is not a Halyard driver: it has no note"),
    ("symbolless", "refused", "does not export halyard_driver_negotiate"),
    ("unresolved", "refused", "undefined symbol: function_that_is_nowhere"),
    ("older", "refused", "lacks functions that driver ABI 1 demands: memory_allocate, queue_submit"),
    ("liar", "refused", "chose driver ABI 7; expected 1"),
    ("renamed", "refused", "negotiated the kinds 'surprise', its note says 'renamed'"),
    ("refusing", "refused", "refuses this host, which supports driver ABI 1: only on Sundays"),
    ("unavailable", "refused", "UNAVAILABLE; no hardware is plugged in"),
    ("crashes_in_constructor", "refused", "crashed with signal 11 (SIGSEGV) in load (a constructor of the library)"),
    ("hangs_in_constructor", "refused", f"no answer within {PATIENCE} in load (a constructor of the library)"),
    ("crashes_in_destructor", "refused", "crashed with signal 7 (SIGBUS) in exit (a destructor or an exit handler of the library"),
    ("aborts_in_negotiate", "refused", "crashed with signal 6 (SIGABRT) in negotiate"),
    ("crashes_in_initialize", "refused", "crashed with signal 11 (SIGSEGV) in initialize; it wrote: the sky falls"),
    ("hangs_in_initialize", "refused", f"no answer within {PATIENCE} in initialize"),
    ("exits_in_initialize", "refused", "ended the process with exit status 0 in initialize"),
    ("crashes_in_enumerate", "refused", "crashed with signal 8 (SIGFPE) in enumerate_devices"),
    ("crashes_in_open", "refused", "crashed with signal 4 (SIGILL) in device_open"),
    ("hangs_in_shutdown", "refused", f"no answer within {PATIENCE} in shutdown"),
]


def patched(offset, form, value):
    def make(data):
        struct.pack_into(form, data, offset, value)
        return data
    return make


def note_field(index, value):
    """Changes a number of the note: abi_min, abi_max, sanitizer."""
    def make(data):
        owner = data.index(struct.pack("<III", 8, 272, 1) + b"Halyard\0")
        struct.pack_into("<I", data, owner + 20 + 4 * index, value)
        return data
    return make


# Damaged copies of the sample driver.
DAMAGED = [
    ("machine", patched(18, "<H", 22), "is for s390, this machine is"),
    ("bits", patched(4, "B", 1), "is not a 64-bit library"),
    ("order", patched(5, "B", 2), "is for a big-endian machine"),
    ("program", patched(16, "<H", 1), "is an ELF file, but not a shared library"),
    ("header", lambda data: data[:40], "ends within its header"),
    ("half", lambda data: data[:len(data) // 2], "is damaged"),
    ("text", lambda data: bytearray(b"hello, world\n"), "is not a shared library (no ELF file)"),
    ("no-bytes", lambda data: bytearray(), "is not a shared library (no ELF file)"),
    ("upside-down", note_field(1, 0), "is not valid"),
    ("misnamed", lambda data: data, "calls itself 'sample'; expected a file with the name halyard-driver-sample.so"),
]


def library(name):
    return f"halyard-driver-{name}.so"


class Places:
    """Folders with drivers, and hal-info run among them alone."""

    def __init__(self, folder):
        self.folder = folder
        self.home = self.folder / "home"
        self.home.mkdir()
        self.count = 0

    def with_samples(self, *names):
        self.count += 1
        place = self.folder / f"drivers{self.count}"
        place.mkdir()
        for name in names:
            shutil.copy(SAMPLES / library(name), place)
        return place

    def run(self, *arguments, path="", **options):
        environment = {**os.environ, "HOME": str(self.home), "HALYARD_DRIVER_PATH": str(path), "COLUMNS": "100"}
        environment.update(options.pop("environment", {}))
        return vmrun.run("hal-info", *map(str, arguments), env=environment, **options)


def succeeded(done, *parts):
    """None, or what is wrong with a run that must succeed and print these."""
    if done.returncode != 0:
        return f"ended with {done.returncode}"
    for part in parts:
        if part not in done.stdout:
            return f"standard output lacks {part!r}"
    return None


def explained(text, path):
    """The outcome and the reason that --explain gives for a path."""
    found = re.search(rf"^  (\w+) +{re.escape(str(path))}(?:  .*)?\n(?:            (.*)\n)?", text, re.MULTILINE)
    return (found.group(1), found.group(2) or "") if found else ("nothing", "")


def check_all_samples(checks, places):
    place = places.with_samples(*(name for name, _, _ in DRIVERS))
    whole = (SAMPLES / library("sample")).read_bytes()
    for name, damage, _ in DAMAGED:
        (place / library(name)).write_bytes(damage(bytearray(whole)))
    done = places.run("--explain", TIMEOUT, path=place)
    checks.check("--explain of all samples", succeeded(done, "named by $HALYARD_DRIVER_PATH"), done)
    answers = places.run("--explain", "--json", TIMEOUT, path=place)
    checks.check("--explain --json of all samples", succeeded(answers), answers)
    entries = {entry["path"]: entry for entry in json.loads(answers.stdout)["search"]}
    for name, outcome, reason in DRIVERS + [(name, "refused", reason) for name, _, reason in DAMAGED]:
        path = place / library(name)
        found, why = explained(done.stdout, path)
        wrong = None if found == outcome and reason in why else f"expected {outcome}: {reason!r}, found {found}: {why!r}"
        if outcome == "refused" and not re.match(r"[A-Z_]+; ", why):
            wrong = f"no code: {why!r}"
        checks.check(f"{name} in --explain", wrong)
        entry = entries.get(str(path), {})
        same = entry.get("outcome") == outcome and reason in (entry.get("reason") or "")
        checks.check(f"{name} in --explain --json", None if same else f"found {entry}")

    done = places.run(TIMEOUT, path=place)
    checks.check("hal-info among bad drivers", succeeded(
        done, "sample-b", "sample://slack", "third://", "newer://", "hal-info --explain says why"), done)
    for name in ("crashes", "hangs", "aborts", "zero", "refusing"):
        checks.check(f"{name} is in no table", f"{name} is listed" if name in done.stdout else None, done)
    checks.check("the others still work", succeeded(places.run("devices", "sample", path=place), "sample://"))
    for name, outcome, reason in DRIVERS:
        if outcome == "refused":
            done = places.run("devices", name, TIMEOUT, path=place)
            checks.check(f"{name} by name", bad_failure(done, reason, name), done)


def bad_failure(done, *parts):
    if done.stdout:
        return "printed something to standard output"
    return vmrun.why_bad_failure(done, *parts)


def check_versions(checks, places):
    whole = (SAMPLES / library("sample")).read_bytes()
    for low, high, reason in ((0, 0, "0, this Halyard supports 1; version 0 marks an unfinished"), (0, 1, "0..1, this Halyard supports 1;"),
                              (1, 7, None), (2, 2, "2, this Halyard supports 1; install a driver built for this Halyard, or a newer")):
        place = places.with_samples("newer")
        (place / library("sample")).write_bytes(note_field(0, low)(note_field(1, high)(bytearray(whole))))
        done = places.run("--explain", path=place)
        found, why = explained(done.stdout, place / library("sample"))
        right = found == "taken" if reason is None else found == "refused" and f"supports driver ABI {reason}" in why
        checks.check(f"a driver of ABI {low}..{high}", None if right else f"found {found}: {why}", done)
        checks.check("and the one beside it", succeeded(places.run("devices", "newer", path=place), "newer://"))


def check_search(checks, places):
    good = places.with_samples("sample")
    other = places.with_samples("newer")
    (other / "notes.txt").write_text("no driver")
    (other / "halyard-driver-newer.so.1").write_text("no driver")
    link = places.folder / "links"
    link.mkdir()
    (link / library("sample")).symlink_to(good / library("sample"))
    listed = places.folder / "a file"
    listed.write_text("not a folder")
    locked = places.folder / "locked"
    locked.mkdir()
    locked.chmod(0)
    gone = places.folder / library("gone")
    path = f"{good}::relative/folder:/none/such:{other}:{good}:{link}:{listed}:{locked}:/none/{library('x')}"
    arguments = ["--explain", f"--driver={gone}", f"--driver={good / library('sample')}", "--driver=no/such/driver.so"]
    done = places.run(*arguments, path=path)
    checks.check("every place", succeeded(done, "named by --driver\n", "named by $HALYARD_DRIVER_PATH\n", "the user's folder\n",
                                          "beside libhalyard or the program\n"), done)
    sections = [done.stdout.index(title) for title in ("named by --driver", "named by $HALYARD", "the user's", "beside lib")]
    checks.check("their order", None if sections == sorted(sections) else f"found {sections}", done)
    expected = [
        (gone, "refused", "NOT_FOUND; "),
        (good / library("sample"), "taken", ""),
        (pathlib.Path(vmrun.SOURCE, "no/such/driver.so"), "refused", "NOT_FOUND; "),
        ("''", "skipped", "the current folder is never searched"),
        ("relative/folder", "refused", "give a path that starts with '/'"),
        ("/none/such", "skipped", "NOT_FOUND; there is no such folder"),
        (other, "folder", ""),
        (other / library("newer"), "taken", ""),
        (link / library("sample"), "skipped", f"this file is '{(good / library('sample')).resolve()}', which was seen before"),
        (listed, "skipped", "is not a folder, and no file named halyard-driver-NAME.so either"),
        (f"/none/{library('x')}", "refused", "NOT_FOUND; "),
        (places.home / ".local/lib/halyard/drivers", "skipped", "there is no such folder"),
        (pathlib.Path(vmrun.DRIVERS).resolve(), "folder", ""),
    ]
    for place, outcome, reason in expected:
        found, why = explained(done.stdout, place)
        right = found == outcome and reason in why
        checks.check(f"'{place}' in --explain", None if right else f"expected {outcome} {reason!r}, found {found} {why!r}", done)
    checks.check("files that are no drivers", succeeded(done, f"{other}  (2 files in it are not named halyard-driver-NAME.so)"), done)
    checks.check("a folder named twice", succeeded(done, "this folder was searched before"), done)
    if os.geteuid() != 0:
        checks.check("a locked folder", None if "PERMISSION_DENIED" in explained(done.stdout, locked)[1] else "is not told", done)
    locked.chmod(stat.S_IRWXU)
    none = places.run("--explain", path="")
    checks.check("no HALYARD_DRIVER_PATH", succeeded(none, "named by $HALYARD_DRIVER_PATH\n  it is not set, or empty\n"), none)
    none = places.run("--explain", path="", environment={"HOME": "relative"})
    checks.check("a HOME that is none", succeeded(none, "$HOME/.local/lib/halyard/drivers", "HOME is not the path"), none)
    # vm-run prints the same without trying drivers.
    ran = vmrun.run("vm-run", "--list_drivers", *arguments, env={**os.environ, "HOME": str(places.home), "HALYARD_DRIVER_PATH": path})
    checks.check("vm-run --explain", None if ran.stdout == places.run(*arguments, path=path).stdout else "differs", ran)
    # A driver named with --driver that is refused is an error for its kinds, even if another one has them.
    bad = places.with_samples() / library("sample")
    bad.write_text("junk")
    done = places.run("devices", "sample", f"--driver={bad}", path=good)
    checks.check("a named driver that is refused", bad_failure(done, str(bad), "no ELF file"), done)
    # A driver that leaves a process with open pipes behind: only its own end counts.
    place = places.with_samples("leaves_a_process", "sample")
    done = places.run("--explain", TIMEOUT, path=place)
    checks.check("a process left behind", None if explained(done.stdout, place / library("leaves_a_process"))[0] == "taken"
                 else "the driver is not taken", done)


def check_tables(checks, places):
    place = places.with_samples("sample", "newer")
    for columns in (40, 80, 200):
        done = places.run(path=place, environment={"COLUMNS": str(columns)})
        checks.check(f"a table of {columns} columns", succeeded(done, "DRIVER", "sample-b", "newer://slack"), done)
        long = [line for line in done.stdout.splitlines() if len(line) > columns and "/" not in line and columns > 70]
        checks.check(f"fits {columns} columns", f"too long: {long}" if long else None, done)
    checks.check("no colours in a pipe", "there are some" if "\x1b" in done.stdout else None)
    script = shutil.which("script")
    if script:  # a terminal of its own
        command = f"{vmrun.BIN}/hal-info drivers"
        environment = {**os.environ, "HALYARD_DRIVER_PATH": str(place), "TERM": "xterm"}
        environment.pop("NO_COLOR", None)
        for extra, wanted in (({}, True), ({"NO_COLOR": "1"}, False)):
            done = subprocess.run([script, "-qec", command, "/dev/null"], text=True, stdout=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, env={**environment, **extra}, timeout=vmrun.TIMEOUT)
            checks.check(f"colours on a terminal {extra}", None if ("\x1b[1m" in done.stdout) == wanted else repr(done.stdout))
    done = places.run("devices", path=place)
    checks.check("devices", succeeded(done, "sample://  plain sample\n", "capabilities  runs in caller\n", "queues        4\n",
                                      "barrier, execute\n", "aligned to 64 bytes, largest allocation 1 MiB\n",
                                      "USES MEMORY OF", "its own memory (same driver)", "imported host memory, aligned to 64 bytes"), done)
    done = places.run("drivers", path=place)
    checks.check("drivers", succeeded(done, "sample-b", "1.2", str(place / library("newer"))), done)
    done = places.run("devices", "sample://slack", path=place)
    checks.check("one device", succeeded(done, "sample://slack\n") or ("newer" in done.stdout and "shows others") or None, done)
    done = places.run("devices", "sample://sealed", path=place)
    checks.check("no import", succeeded(done, "none: host memory is copied"), done)
    done = places.run("devices", "sample://broken-alignment", path=place)
    checks.check("a device that makes no sense", bad_failure(done, "memory alignment of 48"), done)


def check_answers(checks, places):
    place = places.with_samples("sample")
    done = places.run("formats", "sample", "native", "old", "strange", path=place)
    checks.check("formats", succeeded(done, "native   native\n", "old      recompile  made for another sample\n",
                                      "strange  no         unknown format\n"), done)
    done = places.run("formats", "sample", path=place)
    checks.check("known formats", succeeded(done, "vmvx-bytecode-fb", "vulkan-spirv-fb "), done)
    done = places.run("formats", "sample", f"loadable={place / library('sample')}", path=place)
    checks.check("a file", succeeded(done, "  loadable", "made for another sample"), done)
    done = places.run("formats", "sample", "loadable=/none", path=place)
    checks.check("no file", bad_failure(done, "'/none'"), done)
    done = places.run("formats", "sample", "=x", path=place)
    checks.check("no format", bad_failure(done, "'=x'"), done)
    done = places.run("query", "sample", "sample", "open_devices", path=place)
    checks.check("query", None if done.stdout == "1\n" else f"printed {done.stdout!r}", done)
    done = places.run("query", "sample", "sample", "colour", path=place)
    checks.check("an unknown key", bad_failure(done, "'colour'", "'sample'"), done)
    found = json.loads(places.run("query", "sample", "sample", "colour", "--json", path=place).stdout)
    checks.check("an unknown key as JSON", None if found["known"] is False and found["value"] is None else found)
    found = json.loads(places.run("query", "sample", "hal.device.id", "s*", "--json", path=place).stdout)
    checks.check("query as JSON", None if found == {"uri": "sample://", "category": "hal.device.id", "key": "s*", "known": True,
                                                     "value": 1} else found)
    found = json.loads(places.run("formats", "sample", "old", "--json", path=place).stdout)
    checks.check("formats as JSON", None if found == {"uri": "sample://", "formats": [
        {"format": "old", "file": None, "grade": "recompile", "reason": "made for another sample"}]} else found)


def check_capabilities(checks, _):
    """Every capability that the driver ABI has got a name for users."""
    facts = pathlib.Path(vmrun.SOURCE, "tests", "abi", "baseline.txt").read_text(encoding="utf-8")
    driver, host = (set(re.findall(rf"^constant HALYARD_{prefix}_(\w+ = \d+)$", facts, re.MULTILINE)) for prefix in ("DEVICE", "CAPABILITY"))
    checks.check("capabilities of the driver ABI are in the C ABI", None if driver and driver == host else f"they differ in {driver ^ host}")
    done = vmrun.run("hal-info", "devices", "local-sync")
    checks.check("capabilities have names", succeeded(done, "writes constants", "stops work"), done)
    checks.check("no capability is a number", "one is" if re.search(r"\bbit \d", done.stdout) else None, done)


def check_json(checks, places):
    place = places.with_samples("sample", "zero")
    done = places.run("--json", path=place)
    checks.check("--json", succeeded(done), done)
    found = json.loads(done.stdout)
    driver = next(driver for driver in found["drivers"] if driver["name"] == "sample")
    sanitizer = driver.pop("sanitizer")
    checks.check("a sanitizer", None if sanitizer in (None, "AddressSanitizer", "ThreadSanitizer") else sanitizer)
    checks.check("a driver", None if driver == {
        "name": "sample", "description": "the first sample", "library": str(place / library("sample")), "version": "1.2",
        "abi_min": 1, "abi_max": 1, "device_count": 2, "error": None} else driver)
    checks.check("refused files", None if found["refused_files"] == 1 else found["refused_files"])
    device = next(device for device in found["devices"] if device["uri"] == "sample://")
    memory = device.pop("memory")
    checks.check("memory", None if set(memory) == {
        f"{whose}_{what}" for whose in ("host", "device") for what in ("live", "peak", "allocated", "freed")} else memory)
    checks.check("a device", None if device == {
        "uri": "sample://", "name": "plain sample", "error": None, "driver": "sample", "library": str(place / library("sample")),
        "capabilities": ["runs_in_caller"], "operations": ["barrier", "execute"], "queue_count": 4, "memory_alignment": 64,
        "maximum_allocation": 1048576, "import_alignment": 64} else device)
    pairs = {(pair["user"], pair["owner"]): (pair["memory"], pair["alignment"]) for pair in found["sharing"]}
    for user, owner, expected in (("sample://", "null://", ("host_memory", 64)), ("null://", "sample://", ("host_memory", 1)),
                                  ("sample://", "sample-b://slack", ("same_driver", 0))):
        checks.check(f"what {user} uses of {owner}", None if pairs.get((user, owner)) == expected else pairs)
    found = json.loads(places.run("--explain", "--json", path=place).stdout)["search"]
    checks.check("a folder", None if found[0] == {"path": str(place), "origin": "environment", "is_folder": True,
                                                  "outcome": "folder", "reason": None, "other_files": 0} else found[0])
    found[1].pop("sanitizer", None)
    checks.check("a candidate", None if found[1] == {
        "path": str(place / library("sample")), "origin": "environment", "is_folder": False, "outcome": "taken", "reason": None,
        "version": "1.2", "abi_min": 1, "abi_max": 1, "kinds": ["sample", "sample-b"],
        "serves": ["sample", "sample-b"]} else found[1])
    for verb in ("drivers", "devices"):
        checks.check(f"{verb} --json", None if verb in json.loads(places.run(verb, "--json", path=place).stdout) else "lacks it")


def check_mistakes(checks, places):
    place = places.with_samples("sample")
    mistakes = [
        (["drivrs"], ["'drivrs'", "did you mean 'drivers'?"]),
        (["devices", "smaple"], ["'smaple'", "did you mean 'sample'?"]),
        (["devices", "sample://nowhere"], ["no such sample", "'sample://nowhere'"]),
        (["devices", "sample://?colour=red"], ["unknown option"]),
        (["devices", ""], ["the driver is missing"]),
        (["devices", "a", "b"], ["'hal-info devices'", "2 arguments"]),
        (["drivers", "x"], ["'hal-info drivers'"]),
        (["formats"], ["'hal-info formats'"]),
        (["query", "sample", "hal.device"], ["URI CATEGORY KEY"]),
        (["--explian"], ["--explian", "--explain"]),
        (["devices", "--explain"], ["--explain", "'devices'"]),
        (["--timeout=soon"], ["--timeout=soon"]),
    ]
    for arguments, parts in mistakes:
        done = places.run(*arguments, path=place)
        checks.check(" ".join(arguments), bad_failure(done, *parts), done)
    done = places.run("--help")
    checks.check("--help", succeeded(done, "usage: hal-info", "examples:\n", "hal-info --explain", "--json"), done)
    closed = subprocess.run(["sh", "-c", f"exec '{vmrun.BIN}/hal-info' --explain <&- 2>&-"], text=True, stdout=subprocess.PIPE,
                            env={**os.environ, "HALYARD_DRIVER_PATH": str(place)}, timeout=vmrun.TIMEOUT)
    checks.check("without standard input and error", None if explained(closed.stdout, place / library("sample"))[0] == "taken"
                 else closed.stdout)
    full = places.run(path=place, stdout=open("/dev/full", "w"))
    checks.check("a full disk", vmrun.why_bad_failure(full, "standard output"), full)


def main(checks, folder):
    if not (pathlib.Path(vmrun.BIN) / "hal-info").exists() or not SAMPLES.exists():
        vmrun.skip("hal-info or the sample drivers are not built")
    if not vmrun.starts_itself():
        vmrun.skip(vmrun.NO_BINFMT)
    places = Places(folder)
    for part in (check_all_samples, check_versions, check_search, check_tables, check_answers, check_capabilities, check_json, check_mistakes):
        part(checks, places)
