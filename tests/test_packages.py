"""The Debian packages, as README.md and docs/install.md say: `./dev package` makes them, twice with the same bytes; lintian has no
warning, files lie where Debian puts them; in a bare Debian made by mmdebstrap they install, serve (packages/session.sh), and leave nothing when they are purged. That
is done in this machine's release of Debian and in the one after it, each where a mirror has it; a package that needs a library
which the later one no longer has stays out there, and is named.

HALYARD_PACKAGE_SUITE names another suite, such as trixie, and only that one is tested."""

import os
import pathlib
import re
import shutil
import subprocess

import vmrun
from installed import SOURCE, cache, run

MULTIARCH = "/usr/lib/[a-z0-9_]+-linux-gnu[a-z]*"
DOC = "/usr/share/doc/{name}/(copyright|changelog.gz)"
# What each package may hold, as one expression for a whole path.
FILES = {
    "libhalyard0": f"{MULTIARCH}/(libhalyard.so.[0-9.]+|halyard/drivers/halyard-driver-local.so)",
    "halyard-tools": "/usr/bin/TOOL|/usr/share/man/man1/TOOL.1.gz|/usr/share/bash-completion/completions/TOOL|"
                     "/usr/share/zsh/vendor-completions/_TOOL|".replace("TOOL", "(vm-(run|serve|check|diff|dump|as|cc)|hal-info)") +
                     "/usr/lib/systemd/system/halyard-serve.(service|socket)|/usr/share/doc/halyard/.*",
    "halyard-bench": "/usr/bin/vm-bench|/usr/share/man/man1/vm-bench.1.gz|"
                     "/usr/share/(bash-completion/completions/|zsh/vendor-completions/_)vm-bench",
    "halyard-vulkan": f"{MULTIARCH}/halyard/drivers/halyard-driver-vulkan.so",
    "halyard-remote": f"{MULTIARCH}/halyard/drivers/halyard-driver-remote.so|/usr/bin/vm-device|/usr/share/man/man1/vm-device.1.gz|"
                      "/usr/share/(bash-completion/completions/|zsh/vendor-completions/_)vm-device|"
                      "/usr/lib/systemd/system/halyard-device.(service|socket)",
    "halyard-jit": f"{MULTIARCH}/halyard/halyard-jit-llvm(-codegen)?.so",
    "halyard-emit": f"{MULTIARCH}/halyard/halyard-emit-llvm.so",
    "halyard-serve-grpc": f"{MULTIARCH}/halyard/vm-serve-grpc.so|/usr/share/halyard/inference.proto",
    "halyard-mpi": f"{MULTIARCH}/halyard/channels/openmpi/halyard-channel-mpi.so",
    "halyard-mpi-mpich": f"{MULTIARCH}/halyard/channels/mpich/halyard-channel-mpi.so",
    "libhalyard-dev": f"/usr/include/halyard/.*|{MULTIARCH}/(libhalyard.so|cmake/Halyard/.*|pkgconfig/halyard.*.pc)|"
                      "/usr/bin/(hal-cts|vulkan-pack)|/usr/share/halyard/examples/.*|"
                      "/usr/share/man/man1/(hal-cts|vulkan-pack).1.gz|/usr/share/.*/_?(hal-cts|vulkan-pack)",
    "python3-halyard": "/usr/lib/python3/dist-packages/(halyard/.*|halyard-[0-9.]+.dist-info/(METADATA|INSTALLER))",
}
# The suites to test, by that of this machine.
SUITES = {"bookworm": ("bookworm", "trixie")}
NEEDED = ("libhalyard0", "halyard-tools", "halyard-vulkan", "libhalyard-dev")


def check_files(package: pathlib.Path, name: str) -> None:
    allowed = re.compile(f"(?:{FILES[name]}|{DOC.format(name=name)})")
    for line in run("dpkg-deb", "-c", package).splitlines():
        mode, _, _, _, _, path = line.split(maxsplit=5)
        path = path.split(" -> ")[0].removeprefix(".")
        if not mode.startswith("d"):
            assert allowed.fullmatch(path), f"{name} holds {path}, which is not expected in it"


def bare_debian(suite: str, packages: dict[str, pathlib.Path]) -> str:
    """The session in a bare Debian; returns the reason why there is none, or an empty text."""
    if subprocess.run(["mmdebstrap", "--simulate", "--variant=minbase", "--quiet", suite, "-"], capture_output=True).returncode != 0:
        return f"mmdebstrap cannot make a {suite} here: no mirror, or no right to make namespaces"
    command = ["mmdebstrap", "--variant=minbase", "--format=null", "--quiet",
               "--customize-hook=mkdir $1/packages",
               "--customize-hook=copy-in " + " ".join(map(str, packages.values())) + " /packages",
               f"--customize-hook=copy-in {SOURCE / 'tests' / 'packages' / 'session.sh'} /tmp",
               "--customize-hook=chroot $1 sh /tmp/session.sh", suite, "-"]
    done = subprocess.run(command, text=True, capture_output=True)
    output = done.stdout + done.stderr
    print(f"-- {suite}\n{output}")
    assert done.returncode == 0, f"the session in the bare {suite} failed; its output is above"
    assert "== clean" in output, f"the session in the bare {suite} did not come to its end"
    return ""


def check_same(first: pathlib.Path, second: pathlib.Path) -> None:
    names = sorted(path.name for path in first.glob("*.deb"))
    assert names == sorted(path.name for path in second.glob("*.deb")), "other packages the second time"
    different = [name for name in names if (first / name).read_bytes() != (second / name).read_bytes()]
    assert not different, f"not the same bytes the second time: {different}"
    print(f"{len(names)} packages have the same bytes when they are made again")


def main(folder):
    if cache("HALYARD_SANITIZE") or cache("CMAKE_BUILD_TYPE") != "Release":
        vmrun.skip("packages are made of release builds")
    if not shutil.which("dpkg-deb"):
        vmrun.skip("there is no dpkg-deb: not a Debian")
    if os.getuid() != 0 and not all(map(shutil.which, ("lintian", "mmdebstrap", "dpkg-shlibdeps"))):
        vmrun.skip("lintian, mmdebstrap or dpkg-dev is not installed, and only root can install them")
    os.chmod(folder, 0o755)  # mmdebstrap's helpers may be other users
    first, again = folder / "first", folder / "second"
    run(SOURCE / "dev", "package", first, cwd=SOURCE)
    os.umask(0o027)
    run(SOURCE / "dev", "package", again, cwd=SOURCE, env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    os.umask(0o022)
    check_same(first, again)
    packages = {path.name.split("_")[0]: path for path in sorted(first.glob("*.deb"))}
    assert not set(NEEDED) - set(packages), f"packages are missing: {sorted(set(NEEDED) - set(packages))}"
    ordinary = {name: path for name, path in packages.items() if not name.endswith("-dbgsym")}
    for name, path in ordinary.items():
        check_files(path, name)
    run("lintian", "--allow-root", "--fail-on", "error,warning", *ordinary.values())
    print("the files are where Debian puts them, and lintian has no warning")

    own = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
    chosen = os.environ.get("HALYARD_PACKAGE_SUITE")
    suites = (chosen,) if chosen else SUITES.get(own, (own,))
    reasons = [reason for reason in (bare_debian(suite, ordinary) for suite in suites) if reason]
    print("\n".join(reasons))
    if len(reasons) == len(suites):
        vmrun.skip("no bare Debian could be made")
