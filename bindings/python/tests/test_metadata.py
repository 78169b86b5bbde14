"""What pip and importlib.metadata are told about the package."""

import email
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import halyard
from conftest import BUILD, SOURCE

BACKEND = SOURCE / "bindings/python/build_backend/halyard_backend.py"


@pytest.fixture(scope="module")
def backend():
    spec = importlib.util.spec_from_file_location("halyard_backend", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(message):
    assert (message["Name"], message["Version"], message["Requires-Python"]) == ("halyard", halyard.__version__, ">=3.11")
    assert message["License"] == "Apache-2.0 WITH LLVM-exception" and message["Author"] and "@" in message["Maintainer-email"] and "IREE" in message["Summary"]
    assert "Typing :: Typed" in message.get_all("Classifier") and "vmfb" in message["Keywords"]
    assert set(message.get_all("Provides-Extra")) == {"numpy", "ml-dtypes"}
    assert "numpy ; extra == 'numpy'" in message.get_all("Requires-Dist")


def test_metadata(backend):
    message = email.message_from_string(backend.metadata())
    check(message)
    description = message.get_payload()
    assert description.startswith("# Python") and "halyard.load" in description
    # Relative links lead nowhere on other pages.
    assert not [target for target in re.findall(r"\]\(([^)]*)\)", re.sub(r"```.*?```", "", description, flags=re.DOTALL))
                if not target.startswith("http")]


def test_a_wheel_is_complete(backend, tmp_path):
    wheel = tmp_path / "halyard-0-py3-none-any.whl"
    backend.write_wheel(wheel, {"halyard/__init__.py": b"x = 1\n"})
    with zipfile.ZipFile(wheel) as archive:
        info = f"halyard-{halyard.__version__}.dist-info"
        names = archive.namelist()
        assert {f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "LICENSE")} <= set(names)
        message = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        check(message)
        assert message.get_all("License-File") == ["LICENSE"]
        rows = [line.rsplit(",", 2)[0] for line in archive.read(f"{info}/RECORD").decode().splitlines()]
        assert sorted(rows) == sorted(names)


# ---- Installations without pip: packages of Debian and ./dev install

@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of Python packages in a prefix."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    folder = re.search(r"^HALYARD_PYTHON_INSTALL:\w+=(.*)$", cache, re.MULTILINE)[1]
    if not folder or not shutil.which("cmake"):
        pytest.skip("this build does not install the Python package")
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix, "--component", "python"], check=True, capture_output=True)
    return prefix / folder


def test_an_installation_is_listed(installed):
    distribution, = importlib.metadata.distributions(name="halyard", path=[str(installed)])
    check(distribution.metadata)
    assert distribution.version == halyard.__version__ and distribution.read_text("INSTALLER") == "cmake\n"
    assert (installed / "halyard" / "py.typed").exists() and (installed / "halyard" / "__init__.pyi").exists()


def test_pip_lists_an_installation(installed):
    pip = shutil.which("pip3") or shutil.which("pip")
    if pip is None:
        pytest.skip("no pip")
    done = subprocess.run([pip, "list", "--path", installed, "--disable-pip-version-check"], capture_output=True, text=True)
    assert re.search(rf"^halyard +{re.escape(halyard.__version__)}$", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_an_installation_is_imported(installed):
    """With libhalyard in lib of its prefix, as ./dev install puts it."""
    library = installed.parents[1]
    for file in (BUILD / "lib").glob("libhalyard.so*"):
        shutil.copy2(file, library, follow_symlinks=True)
    shutil.copytree(BUILD / "lib" / "halyard" / "drivers", library / "halyard" / "drivers")
    text = ("import halyard; print(halyard.__file__); model = halyard.load(%r, device='local-sync'); "
            "print(model.mul([1.0] * 8, [2.0] * 8).tolist(), [row['path'] for row in halyard.drivers()][:1])")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HALYARD_", "PYTHONPATH"))}
    done = subprocess.run([sys.executable, "-c", text % str(SOURCE / "examples" / "elementwise_mul.vmasm")], capture_output=True, text=True,
                          env={**environment, "PYTHONPATH": str(installed), "HOME": str(installed)})
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stdout and str([2.0] * 8) in done.stdout


def test_where_dev_installs(tmp_path):
    """The folder of the Python of the prefix, or one that is named after its version."""
    script = (SOURCE / "dev").read_text()
    function = re.search(r"^python_folder\(\) \{.*?^\}$", script, re.MULTILINE | re.DOTALL)[0]

    def folder(python, prefix):
        return subprocess.run(["bash", "-c", f"{function}\npython_folder {python} {prefix}"], capture_output=True, text=True, check=True).stdout.strip()

    version = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    assert folder(sys.executable, tmp_path) == version
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    assert folder(tmp_path / "venv/bin/python3", tmp_path / "venv") == version
    import sysconfig

    own = sysconfig.get_path("platlib")
    if own.startswith("/usr/local/"):  # Debian's
        assert folder(sys.executable, "/usr/local") == own.removeprefix("/usr/local/")
