"""Large programs beside the shared fixtures, and their weights of half a gigabyte, which are written once for each
build. Not a test: shared by the test and the benchmark."""
import fcntl
import os
import subprocess
import sys
import tempfile

import vmrun

SCRIPT = "large.py"
PROGRAMS = {"berttiny": "berttiny.irpa", "resnet18": "resnet18.irpa", "gpt2": "gpt2.safetensors"}
MOBILENET = {"mobilenetv2": "mobilenetv2.irpa"}  # among the programs of bytecode kernels only
# MiB that a process running one may have in memory, all included, with its weights mapped.
MOST_MEMORY = {"berttiny": 34, "resnet18": 57, "gpt2": 497}


class Missing(Exception):
    """Why they are not available."""


def source():
    """The folder of the programs, their inputs and cases."""
    fixtures = os.environ.get("HALYARD_FIXTURES", os.path.join(vmrun.SOURCE, "..", "shared", "fixtures"))
    folder = os.path.abspath(os.path.join(fixtures, "..", "large"))
    if not os.path.exists(os.path.join(folder, "cases.json")):
        raise Missing("the large programs are not here; HALYARD_FIXTURES names the folder beside theirs")
    return folder


def python_with_numpy():
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            return python
    raise Missing("numpy is not here, which writes their weights; it is in the Debian package python3-numpy")


def write_weights(folder, script, programs):
    """Each file of the programs (NAME: FILE) is written atomically, even with several writers."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, weights in programs.items():
            if os.path.exists(os.path.join(folder, weights)):
                continue
            with tempfile.TemporaryDirectory(dir=folder) as written:
                done = subprocess.run([python_with_numpy(), script, name, written], capture_output=True, text=True,
                                      env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
                if done.returncode != 0:
                    raise RuntimeError(f"{script} {name} failed: {done.stderr[-2000:]}")
                os.rename(os.path.join(written, weights), os.path.join(folder, weights))


def link_files(files, made):
    """Links to the files in the folder that is made of them, even with several processes that do so."""
    for target in files:
        link = os.path.join(made, os.path.basename(target))
        if os.path.islink(link) and os.readlink(link) == target:
            continue
        fresh = f"{link}.{os.getpid()}"
        os.symlink(target, fresh)
        os.rename(fresh, link)


def folder():
    """One folder with the programs, their inputs, cases and weights."""
    programs = source()
    made = os.path.join(vmrun.BUILD, "large")
    write_weights(made, os.path.join(programs, SCRIPT), PROGRAMS)
    link_files([os.path.join(programs, name) for name in os.listdir(programs)], made)
    return made


def bytecode_folder():
    """The same of the programs whose kernels are bytecode."""
    programs = folder()
    models = os.path.join(source(), "..", "models")
    if not os.path.exists(os.path.join(models, "cases.json")):
        raise Missing("the programs of bytecode kernels are not here; they are in the folder 'models' beside the fixtures")
    made = os.path.join(vmrun.BUILD, "models")
    write_weights(made, os.path.join(programs, SCRIPT), MOBILENET)
    link_files([*(os.path.abspath(os.path.join(models, name)) for name in os.listdir(models)),
                *(os.path.join(programs, weights) for weights in PROGRAMS.values())], made)
    return made
