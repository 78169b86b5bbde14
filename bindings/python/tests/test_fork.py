"""Processes that multiprocessing starts: with fork they inherit models and devices, with the other methods they load their own."""
import multiprocessing
import os
import subprocess
import sys

import pytest

import halyard
from conftest import BUILD
from test_async import FINITE

PROGRAM = '''
import multiprocessing, os, sys
sys.path.insert(0, {package!r})
import halyard

DEVICE, METHOD = sys.argv[1:3]

def load():
    return halyard.load({example!r}, device=DEVICE)

def answer(model, **options):
    """What a call gives, or the name of its exception."""
    try:
        return model.mul([2.0] * 8, [3.0] * 8, **options).tolist()[0]
    except halyard.Error as error:
        return error.name

model = load() if __name__ == "__main__" or METHOD == "fork" else None

def inherited(_):
    return answer(model)

def limited(_):
    return answer(model, timeout=60)

def own(_):
    return answer(load(), timeout=60)

def raising(_):
    load().mul([2.0], [3.0])

if __name__ == "__main__":
    multiprocessing.set_start_method(METHOD)
    print(answer(model), answer(model, timeout=60))
    with multiprocessing.Pool(2) as pool:
        for work in (inherited, limited, own) if METHOD == "fork" else (own,):
            print(work.__name__, *pool.map(work, range(4)))
        try:
            pool.map_async(raising, range(2)).get(timeout=60)
        except halyard.Error as error:
            print("raised", error.name)
    if METHOD == "fork":
        child = os.fork()
        if child == 0:
            del model  # releases what it inherited
            os._exit(0)
        print("released", os.waitpid(child, 0)[1])
    print(answer(model), answer(model, timeout=60))
'''


def run(tmp_path, example, device, method):
    script = tmp_path / "processes.py"
    script.write_text(PROGRAM.format(package=str(halyard.__path__[0] + "/.."), example=example("elementwise_mul")))
    done = subprocess.run([sys.executable, script, device, method], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


REFUSED = "FAILED_PRECONDITION"


@pytest.mark.parametrize("device, answer", [("local-sync", "6.0"), ("local-task", REFUSED)])
def test_fork(tmp_path, example, device, answer):
    four = " ".join(["6.0"] * 4)
    assert run(tmp_path, example, device, "fork") == [
        "6.0 6.0",
        "inherited " + " ".join([answer] * 4),
        "limited " + " ".join([REFUSED] * 4),  # nothing measures the time in the child
        "own " + four,
        "raised INVALID_ARGUMENT",
        "released 0",
        "6.0 6.0"]


@pytest.mark.parametrize("method", [name for name in multiprocessing.get_all_start_methods() if name != "fork"])
@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_other_start_methods(tmp_path, example, device, method):
    assert run(tmp_path, example, device, method) == ["6.0 6.0", "own " + " ".join(["6.0"] * 4), "raised INVALID_ARGUMENT", "6.0 6.0"]


CTRL_C_IN_A_CHILD = """
import os, signal, sys, time
import halyard

def load(work):
    return halyard.load(halyard.assemble(sys.argv[2]), functions=[halyard.function("0i_i", name="work")(work)])

def wait_for_signal(x):
    os.write(ready, b"!")
    time.sleep(240)
    return x

def interrupt_child(x):
    os.read(is_ready, 1)
    os.kill(child, signal.SIGINT)
    print("child", os.waitpid(child, 0)[1])
    time.sleep(0.5)  # a cancellation of this call would take effect now
    return x

load(lambda x: x).f(1)  # installs the handler of Ctrl-C
is_ready, ready = os.pipe()
child = os.fork()
if child == 0:
    try:
        if sys.argv[1] == "calls":
            load(wait_for_signal).f(1)
        else:
            wait_for_signal(1)
    except KeyboardInterrupt:
        os._exit(3)
    os._exit(1)
print("parent", load(interrupt_child).f(7))
"""


@pytest.mark.parametrize("what", ["calls", "sleeps"])
def test_ctrl_c_in_a_child_does_not_reach_the_parent(what):
    done = subprocess.run([sys.executable, "-c", CTRL_C_IN_A_CHILD, what, FINITE], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert (done.stdout.splitlines(), done.returncode) == ([f"child {3 << 8}", "parent 7"], 0), done.stderr
