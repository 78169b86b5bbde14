"""Libraries of this build beside those of the last version (packaging/measures): no exported name is gone, none has grown by more
than a tenth. To test the comparison, measures are made worse in one way after another."""
import copy
import sys

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


def main(checks):
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
