"""usage: packaging/release.py [--check] [--without-tests] [--sign=KEY] [FOLDER]

Makes a release of the committed tree, after checks: `./dev release`.

Checks: there are no uncommitted changes; CHANGELOG.md has a dated heading for the version in halyard.h; the public
headers have every declaration of tests/abi/baseline.txt; every test passes, including those of the packages. Writes to
FOLDER (build/release-VERSION by default): the source archive, the Debian packages, the wheel, an SBOM (SPDX), the sizes and
exported names of the libraries, a statement of their origin (in-toto, SLSA), and the checksums of all these files. Every date in
them is the date of the last commit. packaging/verify.py checks such a folder.

  --check          makes everything again, from the source archive in another folder, and compares the bytes
  --sign=KEY       signs the checksums with a key of OpenSSH (SHA256SUMS.sig)
  --without-tests  runs only the test of the public headers; for a tree whose tests have passed
"""

import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import measures
import provenance
import verify
from version import SOURCE, version

SUMS = verify.SUMS


def run(*command, cwd=SOURCE, **options) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, text=True, stdout=subprocess.PIPE, **options)
    if done.returncode != 0:
        sys.exit(f"release: {' '.join(map(str, command))} failed; its output is above\n{done.stdout}")
    return done.stdout


def check(number: str) -> None:
    changed = run("git", "status", "--porcelain")
    if changed:
        sys.exit(f"release: there are uncommitted changes; commit or remove them:\n{changed}")
    changes = (SOURCE / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(number)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        sys.exit(f"release: CHANGELOG.md has no heading '## {number} (YYYY-MM-DD)'; expected one for the version in halyard.h")
    tags = run("git", "tag", "--list", f"v{number}").split()
    if tags and run("git", "rev-list", "-n", "1", tags[0]) != run("git", "rev-list", "-n", "1", "HEAD"):
        sys.exit(f"release: v{number} is already the tag of another commit; raise the version in halyard.h")


def source_archive(folder: pathlib.Path, number: str) -> pathlib.Path:
    """The committed files, as halyard-VERSION.tar.gz."""
    data = subprocess.run(["git", "-c", "tar.umask=0022", "archive", "--format=tar", f"--prefix=halyard-{number}/", "HEAD"],
                          cwd=SOURCE, capture_output=True, check=True).stdout
    target = folder / f"halyard-{number}.tar.gz"
    with open(target, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data)
    return target


def make(tree: pathlib.Path, folder: pathlib.Path) -> None:
    """Packages and wheel of the source tree, in the folder."""
    run("./dev", "package", folder, cwd=tree)
    run("./dev", "wheel", folder, cwd=tree)


def digests(folder: pathlib.Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())
            if path.name not in (SUMS, verify.SIGNATURE)}


def made_again(number: str) -> dict[str, str]:
    """The digests of the same files, made again from an unpacked source archive."""
    with tempfile.TemporaryDirectory(prefix="halyard-made-again-") as place:
        folder = pathlib.Path(place, "files")
        folder.mkdir()
        archive = source_archive(folder, number)
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        tree = pathlib.Path(place, f"halyard-{number}")
        make(tree, folder)
        write_documents(folder, number, tree)
        return digests(folder)


def write_documents(folder: pathlib.Path, number: str, tree: pathlib.Path) -> None:
    """What describes the files: the SBOM, the measures and, last, the origin of all of them."""
    write_sbom(folder, number)
    files = [*measures.libraries(tree / "build" / "package"), *folder.glob("*.deb"), *folder.glob("*.whl")]
    (folder / f"halyard-{number}.measures.json").write_text(json.dumps(measures.measure(files), indent=1) + "\n")
    statement = provenance.statement(sorted(folder.iterdir()), provenance.commit())
    (folder / f"halyard-{number}.intoto.json").write_text(json.dumps(statement, indent=1) + "\n")


def compare_measures(folder: pathlib.Path, number: str) -> None:
    before, kept = measures.last()
    now = json.loads((folder / f"halyard-{number}.measures.json").read_text())
    worse = measures.compare(kept.get("lto", {}), now, complete=True)
    if worse:
        sys.exit(f"release: worse than {before}:\n" + "\n".join(worse))


def write_sbom(folder: pathlib.Path, number: str) -> None:
    files = sorted(folder.iterdir())
    (folder / f"halyard-{number}.spdx.json").write_text(run(sys.executable, "packaging/sbom.py", *files))


def main() -> None:
    arguments = sys.argv[1:]
    options = {argument for argument in arguments if argument.startswith("-")}
    folders = [argument for argument in arguments if not argument.startswith("-")]
    keys = [option[len("--sign="):] for option in options if option.startswith("--sign=")]
    if {option.split("=")[0] for option in options} - {"--check", "--without-tests", "--sign"} or len(folders) > 1 or len(keys) > 1:
        sys.exit(__doc__)
    if keys and not pathlib.Path(keys[0]).exists():
        sys.exit(f"release: there is no key '{keys[0]}'; expected a key of OpenSSH (ssh-keygen -t ed25519), or its .pub if an agent has it")
    number = version()
    folder = pathlib.Path(folders[0] if folders else SOURCE / "build" / f"release-{number}").resolve()
    check(number)
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"release: {folder} is not empty; empty it or name another folder")
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    if "--without-tests" in options:
        print(f"release {number}: the public headers", flush=True)
        run("./dev", "build", "release")
        run("ctest", "--test-dir", "build/release", "--output-on-failure", "--no-tests=error", "-R", "^abi$")
    else:
        print(f"release {number}: every test, including those of the public headers and the packages", flush=True)
        run("./dev", "test", "release")
    folder.mkdir(parents=True, exist_ok=True)
    print("release: source archive, packages, wheel, SBOM, measures, origin", flush=True)
    source_archive(folder, number)
    make(SOURCE, folder)
    write_documents(folder, number, SOURCE)
    compare_measures(folder, number)
    made = digests(folder)
    lines = "".join(f"{digest}  {name}\n" for name, digest in made.items())
    (folder / SUMS).write_text(lines)
    print(lines, end="")
    if "--check" in options:
        print("release: everything again, from the source archive in another folder", flush=True)
        again = made_again(number)
        different = sorted(name for name in made.keys() | again.keys() if made.get(name) != again.get(name))
        if different:
            sys.exit(f"release: made again, these files have other bytes: {', '.join(different)}")
        print(f"release: made again, all {len(made)} files have the same bytes")
    if keys:
        verify.sign(folder, keys[0])
        print(f"release: {SUMS} is signed in {verify.SIGNATURE}")
    print(f"release: everything is in {folder}; `git tag v{number}` names the commit")


if __name__ == "__main__":
    main()
