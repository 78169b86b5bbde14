"""usage: packaging/provenance.py FILE...  writes where the files of a release come from to standard output.

An in-toto statement (https://in-toto.io/Statement/v1) with a predicate of SLSA (https://slsa.dev/provenance/v1): the files with
their digests, the commit, the Debian packages of compilers and libraries, and the command. The same commit on the same machine
gives the same text."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

import sbom
from version import SOURCE, version

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=SOURCE, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def statement(files: list[pathlib.Path], made_from: str) -> dict:
    subjects = [{"name": path.name, "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}} for path in files]
    packages = [(name, sbom.installed(name)) for name, _, _ in sbom.COMPONENTS]
    dependencies = [{"uri": f"git+halyard@{made_from}", "digest": {"gitCommit": made_from}}] if made_from else []
    dependencies += [{"uri": sbom.package_url(name, number)} for name, number in packages if number]
    number = version()
    return {
        "_type": STATEMENT,
        "subject": sorted(subjects, key=lambda subject: subject["name"]),
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": "file:packaging/release.py",
                "externalParameters": {"version": number, "command": "./dev release"},
                "internalParameters": {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "0")},
                "resolvedDependencies": dependencies,
            },
            "runDetails": {"builder": {"id": "file:packaging/README.md", "version": {"halyard": number}}},
        },
    }


def main() -> None:
    files = [pathlib.Path(argument) for argument in sys.argv[1:]]
    if not files:
        sys.exit(__doc__)
    print(json.dumps(statement(files, os.environ.get("HALYARD_COMMIT") or commit()), indent=1))


if __name__ == "__main__":
    main()
