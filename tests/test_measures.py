"""Libraries of this build beside those of the last version (packaging/measures): no exported name is gone, none has grown by more
than a tenth. To test the comparison, measures are made worse in one way after another."""
import copy
import json
import subprocess
import sys
import zipfile

import vmrun
from installed import BUILD, SOURCE, cache, need_plain_library

sys.path.insert(0, str(SOURCE / "packaging"))
import measures  # noqa: E402

OLD = {"libhalyard.so": {"size": 1000, "exports": ["halyard_a", "halyard_b"]}, "halyard.whl": {"size": 500}}
# A name, a change of the measures, what is found; nothing: it is no worse.
CHANGES = (
    ("nothing", lambda it: None, None),
    ("a name more", lambda it: it["libhalyard.so"]["exports"].append("halyard_c"), None),
    ("a tenth larger", lambda it: it["libhalyard.so"].update(size=1100), None),
    ("smaller", lambda it: it["libhalyard.so"].update(size=10), None),
    ("a file more", lambda it: it.update({"other.so": {"size": 9, "exports": []}}), None),
    ("a file less", lambda it: it.pop("halyard.whl"), None),
    ("a name less", lambda it: it["libhalyard.so"]["exports"].remove("halyard_a"), "libhalyard.so no longer exports halyard_a"),
    ("more than a tenth", lambda it: it["libhalyard.so"].update(size=1101), "libhalyard.so has grown from 1000 to 1101 bytes"),
    ("a large wheel", lambda it: it["halyard.whl"].update(size=600), "halyard.whl has grown"),
)
NAMES = {
    "libhalyard.so.0.2.0": "libhalyard.so",
    "halyard-driver-local.so": "halyard-driver-local.so",
    "libhalyard0_0.2.0_amd64.deb": "libhalyard0.deb",
    "halyard-0.2.0-cp311-abi3-manylinux_2_36_x86_64.whl": "halyard.whl",
    "halyard-0.2.0.tar.gz": "halyard-0.2.0.tar.gz",
}


# Arguments, with the test's folder for {0}; what the error says.
REFUSED = (
    (("--keep", "{0}/none"), "there is no {0}/none/CMakeCache.txt; expected the folder of a build"),
    (("--keep", "{0}/file"), "there is no {0}/file/CMakeCache.txt"),
    (("--keep", "{0}/empty"), "there are no libraries below {0}/empty/lib; build them first"),
    (("--keep", "{0}/built", "{0}/none.whl"), "{0}/none.whl is not a file"),
    (("{0}/none",), "{0}/none is not a file; expected a library"),
    (("{0}/empty",), "{0}/empty is not a file"),
    (("{0}/text.so",), "{0}/text.so is not a shared library that 'nm' can read"),
    (("{0}/text.whl",), "{0}/text.whl is not a wheel"),
)


def check_errors(checks, folder):
    """Nothing is kept, and the error is a sentence."""
    kept = {path: path.read_bytes() for path in measures.KEPT.iterdir()}
    for name in ("empty", "built/lib/halyard"):
        (folder / name).mkdir(parents=True)
        (folder / name.split("/")[0] / "CMakeCache.txt").write_text("HALYARD_LTO:BOOL=ON\n")
    (folder / "file").touch()
    for name in ("text.so", "text.whl"):
        (folder / name).write_text("text")
    (folder / "built" / "lib" / "libhalyard.so").symlink_to(BUILD / "lib" / "libhalyard.so")
    for arguments, text in REFUSED:
        done = subprocess.run([sys.executable, SOURCE / "packaging" / "measures.py", *(each.format(folder) for each in arguments)],
                              capture_output=True, text=True)
        right = done.returncode == 1 and done.stderr.startswith("measures: ") and text.format(folder) in done.stderr
        checks.check(f"{' '.join(arguments)} is refused", None if right else "it is not, or the error is another one", done)
    checks.check("nothing was kept", None if kept == {path: path.read_bytes() for path in measures.KEPT.iterdir()} else "something was")


def check_wheel(checks, folder):
    """A wheel's size, and what Halyard's libraries in it export; not those of others."""
    wheel, library = folder / "halyard-0.2.0-cp311-abi3-linux_x86_64.whl", BUILD / "lib" / "libhalyard.so"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("halyard/__init__.py", "")
        archive.writestr("halyard/_lib/libmd.so.0", "not read")
        archive.write(library, "halyard/_lib/libhalyard.so.0")
    now = measures.measure([wheel])
    checks.check("what is measured of a wheel", None if sorted(now) == ["halyard.whl", "halyard.whl/libhalyard.so"] else f"it is {sorted(now)}")
    checks.check("the wheel's size", None if now["halyard.whl"] == {"size": wheel.stat().st_size} else f"it is {now['halyard.whl']}")
    checks.check("a library of a wheel", None if now["halyard.whl/libhalyard.so"] == measures.measure_library(library) else "it differs")
    written = subprocess.run([sys.executable, SOURCE / "packaging" / "measures.py", wheel], capture_output=True, text=True)
    checks.check("what is written", None if written.returncode == 0 and json.loads(written.stdout) == now else "it is something else", written)
    before = copy.deepcopy(now)
    before["halyard.whl/libhalyard.so"]["exports"].append("halyard_gone")
    worse = measures.compare(before, now)
    checks.check("a name that a wheel lacks", None if worse == ["halyard.whl/libhalyard.so no longer exports halyard_gone"] else f"found {worse}")


def main(checks, folder):
    for name, change, found in CHANGES:
        now = copy.deepcopy(OLD)
        change(now)
        worse = measures.compare(OLD, now)
        right = len(worse) == 1 and found in worse[0] if found else not worse
        checks.check(name, None if right else f"found {worse}")
    checks.check("names alone", None if not measures.compare(OLD, {"libhalyard.so": {"size": 9999, "exports": OLD["libhalyard.so"]["exports"]}},
                                                             sizes=False) else "a size counts")
    for each, complete, right in (("a file less, of a release", True, ["halyard.whl is missing"]), ("a file less, of a build", False, [])):
        worse = measures.compare(OLD, {"libhalyard.so": OLD["libhalyard.so"]}, complete=complete)
        checks.check(each, None if worse == right else f"found {worse}")
    for name, key in NAMES.items():
        checks.check(f"the key of {name}", None if measures.key_of(SOURCE / name) == key else f"it is {measures.key_of(SOURCE / name)}")
    check_errors(checks, folder)
    check_wheel(checks, folder)
    need_plain_library("libraries with a sanitizer are larger")
    if cache("CMAKE_BUILD_TYPE") != "Release":
        return print("the libraries are not compared: this is no release build")
    version, kept = measures.last()
    kind = measures.kind_of(BUILD)
    now = measures.measure(measures.libraries(BUILD))
    new = sorted(now.keys() - kept.get(kind, {}).keys())
    if new and kind in kept:
        print(f"no sizes of {version} are kept for {', '.join(new)} ({kind}): packaging/measures.py --keep {BUILD}")
    for each, before in kept.items():
        worse = measures.compare(before, now, sizes=each == kind)
        checks.check(f"beside {version} ({each})", "; ".join(worse) if worse else None)
    if kind not in kept:
        print(f"no sizes of {version} are kept for a build of the kind '{kind}': packaging/measures.py --keep {BUILD}")
