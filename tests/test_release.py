"""What `./dev release` makes besides packages: the version stands in one place; the list of contents is valid SPDX; the wheel
and the source archive have the same bytes when they are made again."""
import copy
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import spdx
import vmrun

SOURCE = pathlib.Path(vmrun.SOURCE).resolve()
sys.path[:0] = [str(SOURCE / "packaging"), str(SOURCE / "bindings" / "python" / "build_backend")]
import halyard_backend  # noqa: E402
import release  # noqa: E402
from version import version  # noqa: E402

# Changes to a valid document that must be found.
DAMAGE = {
    "another version": lambda it: it.update(spdxVersion="SPDX-2.2"),
    "no name": lambda it: it.pop("name"),
    "a namespace with #": lambda it: it.update(documentNamespace="https://spdx.org/a#b"),
    "no creators": lambda it: it["creationInfo"].update(creators=[]),
    "a local time": lambda it: it["creationInfo"].update(created="2026-01-02T03:04:05"),
    "a package without a place": lambda it: it["packages"][1].pop("downloadLocation"),
    "a package URL with blanks": lambda it: it["packages"][1]["externalRefs"][0].update(referenceLocator="pkg:deb/a b@1"),
    "an identifier twice": lambda it: it["files"][1].update(SPDXID=it["files"][0]["SPDXID"]),
    "an identifier with +": lambda it: it["packages"][1].update(SPDXID="SPDXRef-g++"),
    "a file without SHA1": lambda it: it["files"][0]["checksums"].pop(0),
    "a digest that is cut": lambda it: it["files"][0]["checksums"][0].update(checksumValue="12ab"),
    "an absolute name": lambda it: it["files"][0].update(fileName="/a"),
    "a relation to nothing": lambda it: it["relationships"][0].update(relatedSpdxElement="SPDXRef-nothing"),
    "a relation of no kind": lambda it: it["relationships"][0].update(relationshipType="IS_FOND_OF"),
    "no DESCRIBES": lambda it: it["relationships"].pop(0),
}


def sbom(*files):
    return subprocess.run([sys.executable, SOURCE / "packaging" / "sbom.py", *files], text=True, capture_output=True, check=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}).stdout


def check_version(checks):
    number = version()
    places = []
    for path in [*SOURCE.glob("*.toml"), *SOURCE.glob("CMake*"), *SOURCE.glob("cmake/*"), *SOURCE.glob("packaging/*.py"),
                 *SOURCE.glob("bindings/python/**/*.py"), *SOURCE.glob("*/include/**/*.h"), *SOURCE.glob("bindings/*/include/**/*.h")]:
        if path.is_file() and re.search(rf"\b{re.escape(number)}\b", path.read_text()):
            places.append(str(path.relative_to(SOURCE)))
    checks.check("the version is in one place", f"besides halyard.h it is in {places}" if places else None)
    heading = re.search(r"^## (.*)$", (SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    checks.check("the first heading of CHANGELOG.md",
                 None if re.fullmatch(rf"{re.escape(number)} \(\d{{4}}-\d\d-\d\d\)|After \d+\.\d+(\.\d+)?", heading) else
                 f"it is '{heading}'; expected '{number} (YYYY-MM-DD)', or 'After X.Y' between releases")


def check_sbom(checks, folder):
    files = [folder / name for name in ("libb_1_all.deb", "a.whl")]
    for path in files:
        path.write_bytes(path.name.encode())
    text = sbom(*files)
    document = json.loads(text)
    found = spdx.errors(document)
    checks.check("the SBOM is valid", f"{found}" if found else None)
    names = {entry["fileName"]: entry["checksums"][1]["checksumValue"] for entry in document["files"]}
    expected = {f"./{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    checks.check("the SBOM's files", None if names == expected else f"they are {names}")
    packages = {entry["name"]: entry["versionInfo"] for entry in document["packages"]}
    checks.check("the SBOM's version", None if packages.get("halyard") == version() else f"it is {packages.get('halyard')}")
    checks.check("the SBOM's libraries", None if "libffi-dev" in packages else f"they are {sorted(packages)}")
    checks.check("the SBOM again", None if sbom(*reversed(files)) == text else "another order of files gives another text")
    for name, damage in DAMAGE.items():
        damaged = copy.deepcopy(document)
        damage(damaged)
        checks.check(f"SPDX with {name}", None if spdx.errors(damaged) else "it was not found to be wrong")


def check_archives(checks, folder):
    files = {"halyard/__init__.py": b"pass\n", "halyard/_lib/libhalyard.so.0": b"\x7fELF"}
    halyard_backend.write_wheel(folder / "one.whl", files)
    os.environ["TZ"] = "Asia/Tokyo"
    halyard_backend.write_wheel(folder / "two.whl", files)
    checks.check("the wheel again", None if (folder / "one.whl").read_bytes() == (folder / "two.whl").read_bytes() else "other bytes")
    if not (SOURCE / ".git").exists():
        print("no source archive: this is not a git tree")
        return
    archives = []
    for name in "first", "second":
        (folder / name).mkdir()
        archives.append(release.source_archive(folder / name, "1.2.3").read_bytes())
        os.umask(0o077)
    checks.check("the source archive again", None if archives[0] == archives[1] else "other bytes")


def main(checks, folder):
    check_version(checks)
    check_sbom(checks, folder)
    check_archives(checks, folder)
