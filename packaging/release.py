"""usage: packaging/release.py [FOLDER]

Checks and makes a release of this tree, as it is committed: `./dev release`.

Checked: nothing is uncommitted; CHANGELOG.md has a heading for the version in CMakeLists.txt, with a date; the public
headers keep what tests/abi/baseline.xml holds; every test passes. Made, in FOLDER (build/release-VERSION unless said
otherwise): the source archive, the Debian packages, the wheel, an SBOM (SPDX), and the checksums of all. Every date in
them is the last commit's, so a second run gives the same bytes."""

import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys

from version import SOURCE, version


def run(*command, **options) -> str:
    done = subprocess.run([str(part) for part in command], cwd=SOURCE, text=True, stdout=subprocess.PIPE, **options)
    if done.returncode != 0:
        sys.exit(f"release: {' '.join(map(str, command))} failed; its output is above\n{done.stdout}")
    return done.stdout


def check(number: str) -> None:
    changed = run("git", "status", "--porcelain")
    if changed:
        sys.exit(f"release: there are uncommitted changes; commit them, or remove them:\n{changed}")
    changes = (SOURCE / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(number)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        sys.exit(f"release: CHANGELOG.md has no heading '## {number} (YYYY-MM-DD)'; expected one for the version in CMakeLists.txt")
    tags = run("git", "tag", "--list", f"v{number}").split()
    if tags and run("git", "rev-list", "-n", "1", tags[0]) != run("git", "rev-list", "-n", "1", "HEAD"):
        sys.exit(f"release: v{number} is already the tag of another commit; raise the version in CMakeLists.txt")


def source_archive(folder: pathlib.Path, number: str) -> None:
    data = subprocess.run(["git", "archive", "--format=tar", f"--prefix=halyard-{number}/", "HEAD"], cwd=SOURCE,
                          capture_output=True, check=True).stdout
    with open(folder / f"halyard-{number}.tar.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data)


def main() -> None:
    number = version()
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else SOURCE / "build" / f"release-{number}").resolve()
    check(number)
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    print(f"release {number}: every test, the public headers' among them")
    run("./dev", "test", "release")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"release: {folder} is not empty; remove what is in it, or name another folder")
    print("release: source archive, packages, wheel")
    source_archive(folder, number)
    run("./dev", "package", folder)
    run("./dev", "wheel", folder)
    files = sorted(folder.iterdir())
    (folder / f"halyard-{number}.spdx.json").write_text(run(sys.executable, "packaging/sbom.py", *files))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("".join(lines))
    print("".join(lines), end="")
    print(f"release: everything is in {folder}; `git tag v{number}` names the commit")


if __name__ == "__main__":
    main()
