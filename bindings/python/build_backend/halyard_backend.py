"""Builds the wheel, for `pip install .` and `./dev wheel`. Needs only Python and what the build of Halyard needs.

The wheel is complete: it has the extension, libhalyard, the drivers, and the libraries that they need and that a Linux
system may lack. They find each other by their places in the wheel, without any environment variable:

    halyard/_halyard.abi3.so
    halyard/_lib/libhalyard.so.0  libmd.so.0 ...
    halyard/_lib/halyard/drivers/halyard-driver-local.so ...

The build folder is build/wheel; HALYARD_WHEEL_BUILD names another one.
"""

import base64
import hashlib
import os
import pathlib
import platform
import re
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "packaging"))
from version import version  # noqa: E402  (the frontend imports this file alone)

EXTENSION = "_halyard.abi3.so"
# Libraries that are not put into the wheel, because every Linux system has them, or must provide its own: the C library,
# the C++ library, and Vulkan's loader.
SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libvulkan)\.so(\.\d+)?$")


def tag():
    return f"cp311-abi3-linux_{platform.machine()}"


def build():
    """Builds the contents of the wheel. Returns the build folder."""
    folder = pathlib.Path(os.environ.get("HALYARD_WHEEL_BUILD", SOURCE / "build" / "wheel"))
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DHALYARD_TESTS=OFF", "-DHALYARD_BENCHMARKS=OFF",
               "-DHALYARD_REPRODUCIBLE=ON",
               # Libraries find each other in their own folder; drivers find them two folders up.
               "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN;$ORIGIN/../.."]
    environment = {**os.environ, "CMAKE_GENERATOR": os.environ.get("CMAKE_GENERATOR", "Ninja")}
    subprocess.run(["cmake", "-S", SOURCE, "-B", folder, *options], check=True, env=environment, stdout=sys.stderr)
    targets = ["halyard", "halyard-python", "halyard-driver-local"]
    known = subprocess.run(["cmake", "--build", folder, "--target", "help"], capture_output=True, text=True).stdout
    if "halyard-driver-vulkan" in known:
        targets.append("halyard-driver-vulkan")
    subprocess.run(["cmake", "--build", folder, "--target", *targets], check=True, stdout=sys.stderr)
    return folder


def needed(library):
    """(name, path) of each library that the file needs, as the loader finds it."""
    text = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)


def contents(folder):
    """{place in the wheel: file}."""
    files = {}
    package = folder / "python" / "halyard"
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            files[f"halyard/{file.relative_to(package)}"] = file
    libraries = {"halyard/_lib/libhalyard.so.0": folder / "lib" / "libhalyard.so.0"}
    for name in ("local", "vulkan"):  # the other drivers are templates
        driver = folder / "lib" / "halyard" / "drivers" / f"halyard-driver-{name}.so"
        if driver.exists():
            libraries[f"halyard/_lib/halyard/drivers/{driver.name}"] = driver
    files.update(libraries)
    for library in libraries.values():
        for name, path in needed(library):
            if not SYSTEM.match(name) and not name.startswith("libhalyard"):
                files[f"halyard/_lib/{name}"] = pathlib.Path(path)
    return files


def stripped(data_path):
    """The bytes of the file; of a library without debug information."""
    data = data_path.read_bytes()
    if not data.startswith(b"\x7fELF"):
        return data
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / data_path.name
        subprocess.run(["strip", "--strip-unneeded", "-o", target, data_path], check=True)
        return target.read_bytes()


def description():
    """docs/python.md, without the links and pictures of the tree, which lead nowhere elsewhere."""
    text = (SOURCE / "docs" / "python.md").read_text()
    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


def metadata():
    """The file METADATA, from pyproject.toml. Version 2.1 of its format, because the pip of Python 3.11 shows no later fields."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    fields = [("Metadata-Version", "2.1"), ("Name", project["name"]), ("Version", version()), ("Summary", project["description"]),
              *[("Author", person["name"]) for person in project["authors"]],
              *[("Maintainer-email", f"{person['name']} <{person['email']}>") for person in project["maintainers"]],
              ("License", project["license"]), *[("License-File", file) for file in project["license-files"]],
              ("Keywords", ",".join(project["keywords"])), *[("Classifier", each) for each in project["classifiers"]],
              ("Requires-Python", project["requires-python"])]
    for extra, packages in project["optional-dependencies"].items():
        name = extra.replace("_", "-")
        fields += [("Provides-Extra", name), *[("Requires-Dist", f"{package} ; extra == '{name}'") for package in packages]]
    fields.append(("Description-Content-Type", "text/markdown"))
    return "".join(f"{key}: {value}\n" for key, value in fields) + "\n" + description()


def write_dist_info(folder):
    """What an installation without pip needs for `pip list` and importlib.metadata. It has no list of files, so pip leaves it
    to whoever installed it."""
    info = pathlib.Path(folder) / f"halyard-{version()}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(re.sub(r"^License-File: .*\n", "", metadata(), flags=re.MULTILINE))
    (info / "INSTALLER").write_text("cmake\n")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(target, files):
    """`files`: {place: bytes}. The same files give the same wheel, byte for byte."""
    info = f"halyard-{version()}.dist-info"
    files = {**files, f"{info}/METADATA": metadata().encode(),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: halyard\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()}
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes()
    record = [f"{name},{digest(data)},{len(data)}" for name, data in files.items()] + [f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            mode = 0o755 if ".so" in name else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


# ---- Functions that pip calls (PEP 517, PEP 660)


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"halyard-{version()}-{tag()}.whl"
    files = {place: stripped(file) for place, file in contents(build()).items()}
    write_wheel(pathlib.Path(wheel_directory) / name, files)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"halyard-{version()}"
    target = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
    subprocess.run(["git", "-C", SOURCE, "archive", f"--prefix={name}/", "-o", target, "HEAD"], check=True)
    return target.name


if __name__ == "__main__" and sys.argv[1:2] == ["--dist-info"]:
    write_dist_info(sys.argv[2])
elif __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    print(folder / build_wheel(folder))
