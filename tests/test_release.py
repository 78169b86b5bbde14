"""What `./dev release` makes besides packages: the version stands in one place; the list of contents is valid SPDX; the wheel
and the source archive have the same bytes when they are made again; packaging/verify.py finds every change of a signed release."""
import copy
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import spdx
import vmrun

SOURCE = pathlib.Path(vmrun.SOURCE).resolve()
sys.path[:0] = [str(SOURCE / "packaging"), str(SOURCE / "bindings" / "python" / "build_backend")]
import halyard_backend  # noqa: E402
import provenance  # noqa: E402
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


def replace(folder, name, old, new):
    text = (folder / name).read_text()
    assert old in text, (name, old)
    (folder / name).write_text(text.replace(old, new))


def sums_again(folder):
    """Checksums that fit what a forger has changed."""
    (folder / release.SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in release.digests(folder).items()))


def other_digest(folder):
    """A statement about other bytes, with checksums that fit the statement."""
    replace(folder, "halyard-1.intoto.json", hashlib.sha256(b"a.whl").hexdigest(), "0" * 64)
    sums_again(folder)


def two_statements(folder):
    (folder / "second.intoto.json").write_text((folder / "halyard-1.intoto.json").read_text())
    sums_again(folder)


def no_provenance(folder):
    replace(folder, "halyard-1.intoto.json", "https://slsa.dev/provenance/v1", "https://example.org/other")
    sums_again(folder)


# A change of a release, whether it is found without the signature, and the message.
FORGERIES = (
    ("a byte of a file", lambda folder: (folder / "a.whl").write_bytes(b"b.whl"), True, "a.whl has other bytes"),
    ("a file less", lambda folder: (folder / "a.whl").unlink(), True, "missing files: ['a.whl']"),
    ("a file more", lambda folder: (folder / "evil.deb").write_bytes(b""), True, "does not name: ['evil.deb']"),
    ("no checksums", lambda folder: (folder / release.SUMS).unlink(), True, "no SHA256SUMS"),
    ("a line that is no checksum", lambda folder: replace(folder, release.SUMS, "  a.whl", "  ../a.whl"), True, "no checksum"),
    ("a statement about other bytes", other_digest, True, "differ about a.whl"),
    ("two statements", two_statements, True, "found 2"),
    ("a statement of another kind", no_provenance, True, "no in-toto statement"),
    ("a statement that is no JSON", lambda folder: ((folder / "halyard-1.intoto.json").write_text("[1"), sums_again(folder)), True,
     "is no in-toto statement"),
    ("a statement that is a list", lambda folder: ((folder / "halyard-1.intoto.json").write_text("[1]"), sums_again(folder)), True,
     "is no in-toto statement"),
    ("a file and its checksum", lambda folder: ((folder / "notes.txt").write_bytes(b"x"), replace(
        folder, "halyard-1.intoto.json", hashlib.sha256(b"notes.txt").hexdigest(), hashlib.sha256(b"x").hexdigest()), sums_again(folder)), False,
     "is not the signature of this SHA256SUMS"),
    ("no signature", lambda folder: (folder / release.verify.SIGNATURE).unlink(), False, "there is no SHA256SUMS.sig"),
)


def verify(folder, *arguments):
    return subprocess.run([sys.executable, SOURCE / "packaging" / "verify.py", folder, *arguments], text=True, capture_output=True)


def check_verification(checks, folder):
    if not shutil.which("ssh-keygen"):
        print("signatures are not tested: there is no ssh-keygen")
        return
    for name in ("key", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    signers = {}
    for name in ("key", "other"):
        signers[name] = folder / f"signers-{name}"
        signers[name].write_text(f"releases@example.org {(folder / f'{name}.pub').read_text()}")
    made = folder / "made"
    made.mkdir()
    for name in ("a.whl", "notes.txt"):
        (made / name).write_bytes(name.encode())
    statement = provenance.statement(sorted(made.iterdir()), "0123456789abcdef0123456789abcdef01234567")
    (made / "halyard-1.intoto.json").write_text(json.dumps(statement))
    sums_again(made)
    release.verify.sign(made, str(folder / "key"))
    trusted = f"--signers={signers['key']}"
    good = verify(made, trusted)
    checks.check("a signed release", None if good.returncode == 0 and good.stdout ==
                 "3 files as they were made from commit 0123456789abcdef0123456789abcdef01234567, signed by releases@example.org\n" else "refused", good)
    good = verify(made)
    checks.check("without a look at the signature", None if good.returncode == 0 and "no signature was checked" in good.stdout else "refused", good)
    wrong = verify(made, f"--signers={signers['other']}")
    checks.check("another signer", None if wrong.returncode == 1 and "by none of the signers" in wrong.stderr else "taken", wrong)
    wrong = verify(made, "--signers=nowhere")
    checks.check("no file of signers", None if wrong.returncode == 1 and "there is no 'nowhere'" in wrong.stderr else "taken", wrong)
    wrong = verify(made, "--sign")
    checks.check("a wrong flag", None if wrong.returncode != 0 and "usage" in wrong.stderr else "taken", wrong)
    for name, forge, is_plain, message in FORGERIES:
        forged = folder / "forged"
        shutil.rmtree(forged, ignore_errors=True)
        shutil.copytree(made, forged)
        forge(forged)
        wrong = verify(forged, trusted)
        checks.check(f"signed, {name}", None if wrong.returncode == 1 and "Traceback" not in wrong.stderr else "taken", wrong)
        if is_plain:
            wrong = verify(forged)
        else:
            plain = verify(forged)
            checks.check(f"unsigned, {name}", None if plain.returncode == 0 else "refused, though only the signature tells", plain)
        checks.check(f"the message, {name}", None if message in wrong.stderr else f"expected '{message}'", wrong)


def main(checks, folder):
    check_version(checks)
    check_sbom(checks, folder)
    check_archives(checks, folder)
    check_verification(checks, folder)
