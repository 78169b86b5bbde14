"""The files for OSS-Fuzz (fuzz/oss-fuzz): the script is a shell script that finds every target, its options and their dictionaries;
the packages of the image are those that the build asks for; every target has a corpus, within its limit."""
import os
import re
import subprocess

import vmrun
from installed import SOURCE

FOLDER = SOURCE / "fuzz" / "oss-fuzz"
MOST_BYTES, MOST_IN_ALL = 3000, 64 << 10


def options(name):
    text = (SOURCE / "dev").read_text()
    function = re.search(r"^fuzz_options\(\) \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)[0]
    return subprocess.run(["bash", "-c", f"{function}fuzz_options {name}"], capture_output=True, text=True, check=True).stdout.split()


def main(checks, folder):
    targets = sorted(path.stem.removeprefix("target_") for path in (SOURCE / "fuzz").glob("target_*.cpp"))
    script = FOLDER / "build.sh"
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    checks.check("the script", None if done.returncode == 0 and os.access(script, os.X_OK) else "it is no shell script that can be run", done)
    listing = re.search(r"^list\(\) .*$", script.read_text(), re.MULTILINE)[0]
    listed = subprocess.run(["bash", "-c", f"source={SOURCE}\n{listing}\nlist"], capture_output=True, text=True, check=True).stdout.split()
    checks.check("its targets", None if listed == [name for name in targets if name != "jit"] else f"they are {listed}")
    for name in targets:
        files = [option[len("-dict="):] for option in options(name) if option.startswith("-dict=")]
        missing = [file for file in files if file != "build/fuzz/assembler.dict" and not (SOURCE / file).exists()]
        checks.check(f"the dictionary of {name}", f"there is no {missing}" if missing else None)
    image = (FOLDER / "Dockerfile").read_text()
    needed = re.findall(r"^ *require\((\S+)", (SOURCE / "cmake" / "Dependencies.cmake").read_text(), re.MULTILINE)
    missing = [package for package in needed if package not in ("libgtest-dev",) and re.sub(r"1\.\d+", "", package).rstrip("-dev") not in re.sub(r"1\.\d+", "", image)]
    checks.check("the packages of the image", f"it lacks {missing}" if missing else None)
    project = (FOLDER / "project.yaml").read_text()
    for key in ("homepage", "language", "primary_contact", "main_repo", "fuzzing_engines", "sanitizers"):
        checks.check(f"'{key}' of the project", None if re.search(rf"^{key}:", project, re.MULTILINE) else "it is missing")
    total = 0
    for name in targets:
        files = [path for path in (SOURCE / "fuzz" / "corpus" / name).glob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        total += size
        checks.check(f"the corpus of {name}", None if files and size <= MOST_BYTES else f"{len(files)} files of {size} bytes; expected 1 to {MOST_BYTES} bytes")
    strangers = sorted({path.name for path in (SOURCE / "fuzz" / "corpus").iterdir()} - set(targets))
    checks.check("corpora of targets that are there", f"{strangers} are not" if strangers else None)
    checks.check("all corpora", None if total <= MOST_IN_ALL else f"{total} bytes; expected at most {MOST_IN_ALL}")
