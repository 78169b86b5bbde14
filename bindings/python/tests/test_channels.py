"""Programs of several ranks: threads of this process, and processes whose communicator mpi4py has made."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import halyard

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parents[3]))
BUILD = pathlib.Path(os.environ.get("HALYARD_BUILD", SOURCE / "build" / "release"))
ALL_REDUCE = SOURCE / "examples" / "collectives" / "all_reduce.vmasm"

# Each rank on the communicator of the ranks of its parity.
RANK = """
import sys
from mpi4py import MPI
import halyard
world = MPI.COMM_WORLD
half = world.Split(world.rank % 2, -world.rank)
channels = halyard.Channels()
assert channels.world()["rank"] == world.rank and channels.world()["count"] == world.size
channels.set_timeout(60)
channels.import_communicator("mine", MPI._handleof(half))
half.Free()
model = halyard.load(open(sys.argv[1], "rb").read(), device="local-sync", channels=channels)
y = model.sum([float(world.rank + 1), 10.0])
expected = [sum(rank + 1.0 for rank in range(world.rank % 2, world.size, 2)), 10.0 * len(range(world.rank % 2, world.size, 2))]
assert y.tolist() == expected, (y.tolist(), expected)
sys.stdout.write(f"rank {world.rank} is done\\n")
del model, channels
"""


def test_threads_are_ranks():
    ranks = halyard.Channels.local(3)
    assert [rank.world()["rank"] for rank in ranks] == [0, 1, 2] and ranks[0].world()["count"] == 3
    sums = [None] * 3

    def run(number):
        model = halyard.load(ALL_REDUCE, device="local-sync", channels=ranks[number])
        sums[number] = model.sum([float(number), 1.0]).tolist()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(run, range(3)))  # raises their errors
    assert sums == [[3.0, 3.0]] * 3


def test_one_rank():
    channels = halyard.Channels()
    assert channels.world()["count"] == 1
    with pytest.raises(halyard.UnimplementedError, match="takes no communicators"):
        channels.import_communicator("mine", 1)
    with pytest.raises(halyard.FailedPreconditionError, match="rank 1 of 2"):
        halyard.Channels(rank=1, rank_count=2)
    with pytest.raises(TypeError, match="halyard.Channels"):
        halyard.load(ALL_REDUCE, device="local-sync", channels=7)
    with pytest.raises(ValueError):
        channels.set_timeout(-1)
    with pytest.raises(halyard.InvalidArgumentError):
        halyard.Channels.local(0)


def test_a_communicator_of_mpi4py(tmp_path):
    if subprocess.run([sys.executable, "-c", "import mpi4py"], capture_output=True).returncode != 0:
        pytest.skip("mpi4py is not installed (package python3-mpi4py)")
    # Debian's mpi4py is one of Open MPI.
    library = BUILD / "lib" / "halyard" / "channels" / "openmpi" / "halyard-channel-mpi.so"
    if not library.exists() or not shutil.which("mpirun.openmpi"):
        pytest.skip("there is no Open MPI with a provider")
    text = ALL_REDUCE.read_text()
    text = text.replace("@hal.channel.create(%r0, %i2:3, %i4:5, %r1,", "@hal.channel.create(%r0, %i2:3, %i4:5, %r3,")
    text = text.replace("  %r2 = vm.call @hal.channel.create", "  %r3 = vm.const.ref.rodata 0\n  %r2 = vm.call @hal.channel.create")
    text = text.replace("vm.import @hal.devices.get", 'vm.rodata[0] = "mine"\nvm.import @hal.devices.get')
    module = tmp_path / "named.vmfb"
    module.write_bytes(halyard.assemble(text))
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    output = tmp_path / "output"
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with open(output, "w") as file:
        process = subprocess.Popen(["mpirun.openmpi", "--oversubscribe", "-n", "3", sys.executable, str(script), str(module)],
                                   env=environment, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            code = process.wait(timeout=100)
        except subprocess.TimeoutExpired:  # Open MPI 4.1.4 may wait for itself when all ranks have ended
            process.kill()
            code = 0
    text = output.read_text()
    assert code == 0 and sorted(re.findall(r"rank \d is done", text)) == [f"rank {i} is done" for i in range(3)], text


FIXTURES = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE.parent / "shared" / "fixtures")) / "collectives"


def numbers(np, text):
    """'2x2xf32=[1 2][3 4]' or '4xf32=1,2,3,4' as an array."""
    sizes, name, elements = re.fullmatch(r"((?:\d+x)*)(\w+)=(.*)", text).groups()
    shape = [int(size) for size in sizes.split("x")[:-1]]
    dtype = {"f16": np.float16, "f32": np.float32, "i32": np.int32}[name]
    values = [float(element) for element in re.split(r"[\s,\[\]]+", elements) if element]
    return np.array(values * (int(np.prod(shape)) if len(values) == 1 else 1), dtype).reshape(shape)


@pytest.mark.skipif(not FIXTURES.exists(), reason="the shared fixtures are not here")
@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_compiled_programs_by_threads(device):
    np = pytest.importorskip("numpy")
    for case in json.loads((FIXTURES / "expected.json").read_text()):
        ranks = halyard.Channels.local(case["world"])
        module = case["modules"][0]
        found = [None] * len(ranks)

        def run(number):
            model = halyard.load(FIXTURES / module, device=device, channels=ranks[number])
            result = model[case["function"]](*(numbers(np, text) for text in case["ranks"][number]["inputs"]))
            found[number] = result if isinstance(result, tuple) else (result,)

        with ThreadPoolExecutor(len(ranks)) as threads:
            list(threads.map(run, range(len(ranks))))  # raises their errors
        for number, rank in enumerate(case["ranks"]):
            for text, result in zip(rank["expected"], found[number], strict=True):
                expected = numbers(np, text)
                array = np.asarray(result)
                assert not isinstance(result, halyard.Tensor) or array.dtype == expected.dtype, (case["name"], number)
                assert array.shape == expected.shape, (case["name"], number)
                np.testing.assert_allclose(array.astype(np.float64), expected.astype(np.float64), rtol=case["rtol"] or 1e-6)
