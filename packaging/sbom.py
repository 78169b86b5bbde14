"""usage: packaging/sbom.py FILE...  writes an SPDX 2.3 document (JSON) about the files of a release to standard output.

The document lists the files with their checksums, and each library that they contain or load, with the version of the
Debian package on this machine. The same files on the same machine give the same document."""

import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.parse

from version import SOURCE, version

LICENCE = "Apache-2.0 WITH LLVM-exception"
# Debian package, its SPDX licence, its relationship to Halyard.
COMPONENTS = [
    ("libffi-dev", "MIT", "STATIC_LINK"),
    ("libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1", "STATIC_LINK"),
    ("libfmt-dev", "MIT", "STATIC_LINK"),
    ("libflatbuffers-dev", "Apache-2.0", "STATIC_LINK"),
    ("libboost1.81-dev", "BSL-1.0", "STATIC_LINK"),
    ("libhwy-dev", "Apache-2.0", "STATIC_LINK"),
    ("nlohmann-json3-dev", "MIT", "STATIC_LINK"),
    ("zlib1g-dev", "Zlib", "DYNAMIC_LINK"),
    ("libssl-dev", "Apache-2.0", "DYNAMIC_LINK"),
    ("libbenchmark-dev", "Apache-2.0", "DYNAMIC_LINK"),
    ("spirv-tools", "Apache-2.0", "STATIC_LINK"),
    ("libvulkan-dev", "Apache-2.0", "BUILD_DEPENDENCY_OF"),
    ("libgrpc++-dev", "Apache-2.0", "DYNAMIC_LINK"),
    ("libopenmpi-dev", "BSD-3-Clause", "DYNAMIC_LINK"),
    ("libmd-dev", "BSD-3-Clause", "DYNAMIC_LINK"),
    ("llvm-19-dev", "Apache-2.0 WITH LLVM-exception", "STATIC_LINK"),
    ("liblld-19-dev", "Apache-2.0 WITH LLVM-exception", "STATIC_LINK"),
    ("libgtest-dev", "BSD-3-Clause", "TEST_DEPENDENCY_OF"),
    ("g++", "GPL-3.0-or-later WITH GCC-exception-3.1", "BUILD_TOOL_OF"),
]


def installed(package: str) -> str:
    """The version of an installed Debian package; empty if it is not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", package], capture_output=True, text=True)
    state, _, number = done.stdout.partition(" ")
    return number if state == "installed" else ""


def package_url(name: str, number: str) -> str:
    return f"pkg:deb/debian/{urllib.parse.quote(name, safe='')}@{urllib.parse.quote(number, safe='')}"


def document(files: list[pathlib.Path]) -> dict:
    release = version()
    checksums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    seed = hashlib.sha256(json.dumps(sorted(checksums.items())).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    packages = [{"SPDXID": "SPDXRef-halyard", "name": "halyard", "versionInfo": release, "downloadLocation": "NOASSERTION",
                 "licenseDeclared": LICENCE, "licenseConcluded": LICENCE, "copyrightText": "NOASSERTION",
                 "filesAnalyzed": False}]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-halyard"}]
    for name, licence, relation in COMPONENTS:
        number = installed(name)
        if not number:
            continue
        identifier = "SPDXRef-" + name.replace("+", "p").replace(".", "-")
        packages.append({"SPDXID": identifier, "name": name, "versionInfo": number, "downloadLocation": "NOASSERTION",
                         "licenseDeclared": licence, "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
                         "filesAnalyzed": False,
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                           "referenceLocator": package_url(name, number)}]})
        ends = ("SPDXRef-halyard", identifier) if relation.endswith("LINK") else (identifier, "SPDXRef-halyard")
        relations.append({"spdxElementId": ends[0], "relationshipType": relation, "relatedSpdxElement": ends[1]})
    entries = []
    for index, path in enumerate(sorted(files, key=lambda path: path.name)):
        entries.append({"SPDXID": f"SPDXRef-File-{index}", "fileName": f"./{path.name}",
                        "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(path.read_bytes()).hexdigest()},
                                      {"algorithm": "SHA256", "checksumValue": checksums[path.name]}],
                        "licenseConcluded": LICENCE, "copyrightText": "NOASSERTION"})
        relations.append({"spdxElementId": "SPDXRef-halyard", "relationshipType": "CONTAINS",
                          "relatedSpdxElement": f"SPDXRef-File-{index}"})
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"halyard-{release}",
            "documentNamespace": f"https://spdx.org/spdxdocs/halyard-{release}-{seed[:32]}",
            "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Organization: Halyard"]},
            "packages": packages, "files": entries, "relationships": relations}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    json.dump(document([pathlib.Path(name) for name in sys.argv[1:]]), sys.stdout, indent=1)
    print()
