"""usage: packaging/verify.py FOLDER [--signers=FILE]

Checks the files of a release: their checksums (SHA256SUMS), that no file is missing or unknown, that the statement of their
origin (*.intoto.json) names the same files and digests, and with --signers the signature of the checksums (SHA256SUMS.sig).

  --signers=FILE  who may sign, one `NAME KEY` a line, as `man ssh-keygen` describes allowed signers
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
NAMESPACE = "halyard-release"


class Wrong(Exception):
    """Why a release is not what its maker made."""


def sign(folder: pathlib.Path, key: str) -> None:
    """Writes the signature of the checksums, with a key of OpenSSH (`ssh-keygen -t ed25519`) or one that its agent holds."""
    (folder / SIGNATURE).unlink(missing_ok=True)
    done = subprocess.run(["ssh-keygen", "-Y", "sign", "-f", key, "-n", NAMESPACE, folder / SUMS], capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"the checksums could not be signed with {key}: {done.stderr.strip()}")


def check_signature(folder: pathlib.Path, signers: pathlib.Path) -> str:
    """The name of the signer."""
    signature = folder / SIGNATURE
    if not (folder / SUMS).exists():
        raise Wrong(f"there is no {SUMS} in {folder}")
    if not signature.exists():
        raise Wrong(f"there is no {SIGNATURE}; expected the signature of {SUMS}")
    if not signers.exists():
        raise Wrong(f"there is no '{signers}'; expected a file of allowed signers")
    text = (folder / SUMS).read_text()
    found = subprocess.run(["ssh-keygen", "-Y", "find-principals", "-f", signers, "-s", signature], capture_output=True, text=True)
    if found.returncode != 0:
        raise Wrong(f"{SIGNATURE} is by none of the signers in {signers}")
    name = found.stdout.split("\n")[0].strip()
    done = subprocess.run(["ssh-keygen", "-Y", "verify", "-f", signers, "-I", name, "-n", NAMESPACE, "-s", signature],
                          input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"{SIGNATURE} is not the signature of this {SUMS} by {name}: {(done.stderr or done.stdout).strip()}")
    return name


def check_sums(folder: pathlib.Path) -> dict[str, str]:
    """The digest of each file."""
    sums = folder / SUMS
    if not sums.exists():
        raise Wrong(f"there is no {SUMS} in {folder}")
    stated = {}
    for line in sums.read_text().splitlines():
        match = re.fullmatch(r"([0-9a-f]{64})  ([\w.+~-]+)", line)
        if not match or match[2] in stated:
            raise Wrong(f"{SUMS} has a line that is no checksum, or a name twice: {line!r}")
        stated[match[2]] = match[1]
    there = {path.name for path in folder.iterdir()} - {SUMS, SIGNATURE}
    if there != set(stated):
        raise Wrong(f"missing files: {sorted(set(stated) - there)}; files that {SUMS} does not name: {sorted(there - set(stated))}")
    for name, digest in stated.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise Wrong(f"{name} has other bytes than those that {SUMS} names")
    return stated


def check_origin(folder: pathlib.Path, stated: dict[str, str]) -> str:
    """The commit."""
    names = [name for name in stated if name.endswith(".intoto.json")]
    if len(names) != 1:
        raise Wrong(f"expected one statement of origin (*.intoto.json), found {len(names)}")
    try:
        return commit_of(json.loads((folder / names[0]).read_text()), names[0], stated)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Wrong(f"{names[0]} is no in-toto statement: {type(error).__name__}: {error}") from error


def commit_of(statement: dict, own_name: str, stated: dict[str, str]) -> str:
    if statement.get("_type") != "https://in-toto.io/Statement/v1" or statement.get("predicateType") != "https://slsa.dev/provenance/v1":
        raise Wrong(f"{own_name} is no in-toto statement with a provenance of SLSA")
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    expected = {name: digest for name, digest in stated.items() if name != own_name}
    if subjects != expected:
        different = sorted(name for name in subjects.keys() | expected.keys() if subjects.get(name) != expected.get(name))
        raise Wrong(f"{own_name} and {SUMS} differ about {', '.join(different)}")
    dependencies = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    commits = [entry["digest"]["gitCommit"] for entry in dependencies if "gitCommit" in entry.get("digest", {})]
    if len(commits) != 1:
        raise Wrong(f"{own_name} names {len(commits)} commits; expected one")
    return commits[0]


def main() -> None:
    signers = [argument[len("--signers="):] for argument in sys.argv[1:] if argument.startswith("--signers=")]
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if len(folders) != 1 or len(signers) > 1 or len(sys.argv) != 2 + len(signers):
        sys.exit(__doc__)
    folder = pathlib.Path(folders[0])
    try:
        signer = check_signature(folder, pathlib.Path(signers[0])) if signers else ""
        stated = check_sums(folder)
        commit = check_origin(folder, stated)
    except Wrong as wrong:
        sys.exit(f"verify: {wrong}")
    print(f"{len(stated)} files as they were made from commit {commit}" + (f", signed by {signer}" if signer else "; no signature was checked"))


if __name__ == "__main__":
    main()
