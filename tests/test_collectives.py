"""Programs of several ranks under each MPI that is there (Open MPI, MPICH): the shared fixtures, the channels' exerciser, whose
hashes must be those of threads of one process, what vm-run does with ranks, and failures. Skipped where no MPI is installed."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import vmrun
from perfetto import Trace
sys.path.insert(0, vmrun.fixtures() or "")

EXERCISE = os.path.join(vmrun.BUILD, "tests", "channels_exercise")
VM_RUN = os.path.join(vmrun.BIN, "vm-run")
ALL_REDUCE = os.path.join(vmrun.SOURCE, "examples", "collectives", "all_reduce.vmasm")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "HALYARD_DRIVER_PATH": vmrun.DRIVERS}
LONGEST = 300  # seconds, for programs that hang
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}


def mpis():
    """The MPIs that have both a provider in this build and a launcher."""
    folder = os.path.join(vmrun.BUILD, "lib", "halyard", "channels")
    return [name for name, command in LAUNCHERS.items()
            if os.path.exists(os.path.join(folder, name, "halyard-channel-mpi.so")) and shutil.which(command[0])]


def states_of_children(process):
    """The states of the processes that it has started: "S", "Z" (ended, and not waited for)."""
    states = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                state, parent = vmrun.read_text(f"/proc/{entry}/stat").rpartition(")")[2].split()[:2]
            except OSError:
                continue  # it has ended
            if int(parent) == process:
                states.append(state)
    return states


class LauncherHangs(Exception):
    """All ranks have ended, and their launcher has not."""


def wait_for(process, timeout):
    begin = looked = time.monotonic()
    ended = None  # since when there are no ranks
    has_begun = False
    while process.poll() is None:
        now = time.monotonic()
        if now - begin > timeout:
            process.kill()
            raise subprocess.TimeoutExpired(process.args, timeout)
        if now - looked > 1:
            looked = now
            states = states_of_children(process.pid)
            has_begun = has_begun or bool(states)
            if not has_begun or any(state != "Z" for state in states):
                ended = None
            elif ended is None:
                ended = now
            elif now - ended > 15:
                process.kill()
                raise LauncherHangs
        time.sleep(0.02)


def launch(mpi, *programs, timeout=LONGEST, **environment):
    """Runs one program for each group (count, command...)."""
    command = list(LAUNCHERS[mpi])
    for place, (count, *program) in enumerate(programs):
        command += ([":"] if place else []) + ["-n", str(count), *program]
    for attempt in range(5):
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            begin = time.monotonic()
            process = subprocess.Popen(command, cwd=vmrun.SOURCE, env={**ENVIRONMENT, **environment},
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            try:
                wait_for(process, timeout)
            except LauncherHangs:
                # On a loaded machine mpirun of Open MPI 4.1.4 sometimes waits for itself at its end (PMIx_server_finalize of
                # PMIx 4.2.2 uses a mutex that it has freed). Nothing of this project runs at that
                # time: all ranks have ended. Their results are lost, so they run again.
                process.wait()
                print(f"{LAUNCHERS[mpi][0]} has not ended after its ranks; once more: {' '.join(command)}")
                continue
            out.seek(0)
            err.seek(0)
            done = subprocess.CompletedProcess(command, process.returncode, out.read(), err.read())
            done.seconds = time.monotonic() - begin
            return done
    raise AssertionError("the launcher has hung five times")


def by_rank(text, count):
    """The lines of each rank, which carry it where there are several."""
    if count == 1:
        return [text.splitlines()]
    lines = [[] for _ in range(count)]
    for line in text.splitlines():
        found = re.match(r"rank (\d+): (.*)", line)
        if found:
            lines[int(found[1])].append(found[2])
    return lines


def values(lines):
    kept = (re.sub(r"^result\[\d+\]: (?!hal\.)", "", line) for line in lines if not line.startswith("EXEC "))
    return [line for line in kept if not re.fullmatch(r"result\[\d+\]: hal\.buffer_view", line)]


def check_fixtures(checks, mpi, quick):
    from run import same
    folder = os.path.join(vmrun.fixtures(), "collectives")
    cases = json.loads(vmrun.read_text(os.path.join(folder, "expected.json")))
    for place, case in enumerate(cases):
        for module in case["modules"]:
            if quick and (place + len(module)) % 4:
                continue
            device = "local-task" if place % 2 else "local-sync"
            programs = [[1, VM_RUN, f"--device={device}", f"--module={os.path.join(folder, module)}",
                         f"--function={case['function']}", "--output_max_element_count=100000",
                         *(f"--input={value}" for value in rank["inputs"])] for rank in case["ranks"]]
            done = launch(mpi, *programs)
            wrong = None if done.returncode == 0 else f"exit code {done.returncode}"
            if not wrong:
                for number, (rank, lines) in enumerate(zip(case["ranks"], by_rank(done.stdout, case["world"]))):
                    found = values(lines)
                    if len(found) != len(rank["expected"]) or not all(
                            same(e, a, case["rtol"]) for e, a in zip(rank["expected"], found)):
                        wrong = f"rank {number}: expected {rank['expected']}, found {found}"[:500]
            checks.check(f"{mpi} {case['name']} of {module}", wrong, done)


def check_same_bits(checks, available):
    for count in 1, 2, 3, 4, 7:
        local = subprocess.run([EXERCISE, "local", str(count)], text=True, capture_output=True, timeout=900)
        checks.check(f"{count} threads", None if local.returncode == 0 else "failed", local)
        for mpi in available:
            done = launch(mpi, [count, EXERCISE, "mpi"])
            found = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
            wrong = None
            if done.returncode != 0 or found != sorted(local.stdout.splitlines()):
                wrong = f"expected {local.stdout}"
            checks.check(f"{count} ranks of {mpi} compute the bits of {count} threads", wrong, done)


def devices():
    """Those that run programs with collectives here; the last one may be Vulkan's."""
    found = ["local-sync", "local-task"]
    return found + ["vulkan"] if "\nvulkan://" in "\n" + vmrun.run("hal-info").stdout else found


def check_devices(checks, available):
    """Collectives that a device executes as recordings give the bits of those without a device."""
    local = subprocess.run([EXERCISE, "local", "3"], text=True, capture_output=True, timeout=LONGEST)
    expected = sorted(local.stdout.splitlines())
    for device in devices():
        done = subprocess.run([EXERCISE, "local", "3", f"--device={device}"], env=ENVIRONMENT, text=True, capture_output=True,
                              timeout=LONGEST)
        checks.check(f"3 threads on {device}", None if sorted(done.stdout.splitlines()) == expected else
                     f"expected {local.stdout}", done)
        for mpi in available:
            done = launch(mpi, [3, EXERCISE, "mpi", f"--device={device}"])
            found = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
            checks.check(f"3 ranks of {mpi} on {device}", None if done.returncode == 0 and found == expected else
                         f"expected {local.stdout}", done)
    if "vulkan" in devices():
        for mpi in available:
            done = launch(mpi, [2, VM_RUN, "--device=vulkan://%l", f"--module={ALL_REDUCE}", "--function=sum", "--input=4xf32=%r"])
            lines = by_rank(done.stdout, 2)
            # One device: the second process has no vulkan://1.
            wrong = None if "vulkan://1" in done.stderr or values(lines[1]) == ["4xf32=1 1 1 1"] else f"found {lines}"
            checks.check(f"{mpi}: %l names the device", wrong, done)
            done = launch(mpi, [2, VM_RUN, "--device=vulkan", f"--module={ALL_REDUCE}", "--function=sum", "--input=4xf32=%r"])
            lines = by_rank(done.stdout, 2)
            checks.check(f"{mpi}: a program on vulkan", None if values(lines[0]) == values(lines[1]) == ["4xf32=1 1 1 1"] else
                         f"found {lines}", done)


def lacks(text, *parts):
    missing = [part for part in parts if part not in text]
    return f"lacks {missing}" if missing else None


def check_failures(checks, mpi):
    for how, parts in {
            "late": ["DEADLINE_EXCEEDED", "all_reduce sum f32 x 1000000, number 1, of channel 'default' (rank 0 of 2) waited "
                     "longer than its time limit of 500 ms for rank 1"],
            "fails": ["DATA_LOSS", "rank 1 of channel 'default' (rank 1 of 2) has failed: its input is gone"],
            "fails-early": ["DATA_LOSS", "rank 1 of channel 'default/another' (rank 1 of 2) has failed: its input is gone"],
            "fails-at-length": ["DATA_LOSS", "rank 1 of channel 'default' (rank 1 of 2) has failed: its input is gone..."],
            "behind": ["DEADLINE_EXCEEDED", "all_reduce sum f32 x 1000000, number 2, of channel 'default' (rank 0 of 2) waited "
                       "longer than its time limit of 500 ms behind a split which waits for rank 1"],
            "rejoins": ["first: DEADLINE_EXCEEDED", "second: DEADLINE_EXCEEDED"],
            "unreceived": ["DEADLINE_EXCEEDED", "send to 1 f32 x 3, number 1, of channel 'default' (rank 0 of 2) waited longer "
                           "than its time limit of 500 ms for rank 1 to receive"],
            "ends": ["UNAVAILABLE", "all_reduce sum f32 x 1000000, number 1, of channel 'default' (rank 0 of 2) waited for "
                     "rank 1, whose program has ended"]}.items():
        # So that the shared memory of Open MPI does not copy a long text before the receiver looks.
        done = launch(mpi, [2, EXERCISE, "mpi", how], OMPI_MCA_btl_vader_single_copy_mechanism="none")
        checks.check(f"{mpi}: {how}", "succeeded" if done.returncode == 0 else lacks(done.stderr, *parts), done)
    done = launch(mpi, [3, EXERCISE, "mpi", "closes"])
    checks.check(f"{mpi}: channels that are closed while splits wait", None if done.returncode == 0 else "failed", done)
    # A rank that dies early has opened its channel for the others or not.
    for how, commands in {"dies-first": ["the opening of 'default' of channel 'all'", "all_reduce sum f32 x 100, number 0, of channel 'default'"],
                          "dies": ["all_reduce sum f32 x 1000000, number 1, of channel 'default'"]}.items():
        # So many seconds between the request to end and the end.
        done = launch(mpi, [3, EXERCISE, "mpi", how], OMPI_MCA_odls_base_sigkill_timeout="5")
        wrong = "succeeded" if done.returncode == 0 else None
        # MPICH's launcher kills the others at once; Open MPI's asks them to end, which the exerciser ignores.
        if not wrong and mpi == "openmpi" and not re.search(
                "(" + "|".join(map(re.escape, commands)) + r") \(rank [02] of 3\) waited for rank 1, whose process, \d+, has been killed", done.stderr):
            wrong = "no rank says which one it waited for, and in which command"
        checks.check(f"{mpi}: {how}: a rank that is killed ends the others", wrong, done)


def check_waiting(checks, mpi):
    """A rank that waits 2 s for another one computes hardly more than its MPI did to begin: it does not spin."""
    for where in "start", "middle", "end":
        done = launch(mpi, [2, EXERCISE, "mpi", f"waits-{where}"])
        found = re.search(r"rank 0: computed for (\d+) ms", done.stdout)
        wrong = None if done.returncode == 0 and found else "failed"
        if not wrong and int(found[1]) > 800:
            wrong = f"computed for {found[1]} ms while it waited for 2 s"
        checks.check(f"{mpi}: waits at the {where} without spinning", wrong, done)


def check_thread_levels(checks, mpi, folder):
    """What MPI gives is respected: to a program of Halyard's, and to one that initializes MPI itself."""
    tests = os.path.join(vmrun.BUILD, "tests", mpi)
    local = subprocess.run([EXERCISE, "local", "3"], text=True, capture_output=True, timeout=900)
    for level, number in ("funneled", 1), ("serialized", 2):
        done = launch(mpi, [3, "env", f"LD_PRELOAD={tests}/thread_level.so", f"HALYARD_TEST_THREAD_LEVEL={level}", EXERCISE,
                            "mpi"])
        found = sorted(line for line in done.stdout.splitlines() if line.startswith("rank "))
        wrong = None if done.returncode == 0 and f"thread_level: {number}\n" in done.stderr else "failed"
        if not wrong and found != sorted(local.stdout.splitlines()):
            wrong = f"expected {local.stdout}"
        checks.check(f"{mpi}: an MPI that gives {level}", wrong, done)
    named = os.path.join(folder, "named.vmasm")
    with open(ALL_REDUCE) as source, open(named, "w") as target:
        text = source.read()
        create = "@hal.channel.create(%r0, %i2:3, %i4:5, %r1, %r1,"
        assert create in text
        text = text.replace(create, create.replace("%r1", "%r3", 1))
        call = "  %r2 = vm.call @hal.channel.create"
        text = text.replace(call, "  %r3 = vm.const.ref.rodata 0\n" + call)
        target.write(text.replace("vm.import @hal.devices.get", 'vm.rodata[0] = "mine"\nvm.import @hal.devices.get'))
    for level in "single", "funneled", "serialized", "multiple":
        done = launch(mpi, [3, "env", f"HALYARD_DRIVER_PATH={vmrun.DRIVERS}", os.path.join(tests, "embedder"), level, ALL_REDUCE,
                            named])
        wrong = None if done.returncode == 0 else "failed"
        if not wrong and level == "multiple" and sorted(done.stdout.split("\n")) != ["", "rank 0: 4", "rank 1: 2", "rank 2: 4"]:
            wrong = "the sums on the program's communicator are wrong"
        if not wrong and level == "single" and done.stdout.count("refused level 0") != 3:
            wrong = "single was not refused"
        checks.check(f"{mpi}: a program that initializes MPI itself: {level}", wrong, done)


def vm_run(*arguments):
    return [VM_RUN, "--device=local-task", f"--module={ALL_REDUCE}", "--function=sum", *arguments]


def check_vm_run(checks, mpi, folder):
    def write(rank, numbers):
        vmrun.write(os.path.join(folder, f"in.{rank}.bin"), struct.pack(f"<{len(numbers)}f", *numbers))
    write(0, [1, 2, 3])
    write(1, [10, 20, 30])
    traces = os.path.join(folder, "trace.%r.perfetto")
    done = launch(mpi, [2, *vm_run(f"--input=3xf32=@{folder}/in.%r.bin", f"--output=@{folder}/out.%r.of.%n.bin",
                                   f"--trace={traces}")])
    wrong = None if done.returncode == 0 else "failed"
    for rank in 0, 1:
        path = os.path.join(folder, f"out.{rank}.of.2.bin")
        if not wrong and (not os.path.exists(path) or struct.unpack("<3f", open(path, "rb").read()) != (11, 22, 33)):
            wrong = f"the result of rank {rank} is not there, or wrong"
    checks.check(f"{mpi}: %r and %n name files", wrong, done)
    bytes_of = [open(os.path.join(folder, f"trace.{rank}.perfetto"), "rb").read() for rank in (0, 1)]
    checks.check(f"{mpi}: traces name the channel and its collectives",
                 None if all(b"channel 'default'" in text and b"all_reduce sum f32 x 3" in text for text in bytes_of)
                 else "one of them does not")
    joined = os.path.join(folder, "joined.perfetto")
    vmrun.write(joined, b"".join(bytes_of))
    trace = Trace(joined, processes=2)
    processes = [track for track in trace.tracks.values() if track.kind == "process"]
    collectives = [event for event in trace.slices() if event.name == "all_reduce sum f32 x 3"]
    checks.check(f"{mpi}: traces of ranks are one trace when joined",
                 None if len({track.process for track in processes}) == len(processes) == 2
                 and len({event.track for event in collectives}) == len(collectives) == 2
                 else f"found {processes}, {collectives}")
    captures = os.path.join(folder, "capture.%r.hycap")
    done = launch(mpi, [2, *vm_run(f"--input=3xf32=@{folder}/in.%r.bin", f"--capture={captures}")])
    checks.check(f"{mpi}: captures are written", None if done.returncode == 0 else "failed", done)
    for rank in 0, 1:
        printed = vmrun.run("hal-info", "print", captures.replace("%r", str(rank)))
        checks.check(f"{mpi}: a capture names its collectives", lacks(
            printed.stdout, "collective channel0 all_reduce sum f32 x 3 send slot0[0, +12) receive slot1[0, +12)"), printed)
        replayed = vmrun.run("hal-info", "replay", captures.replace("%r", str(rank)))
        checks.check(f"{mpi}: a capture with collectives is not replayed", "succeeded" if replayed.returncode == 0 else lacks(
            replayed.stdout + replayed.stderr, "UNIMPLEMENTED; collectives cannot be executed again: that needs the other ranks"),
            replayed)
    done = launch(mpi, [2, *vm_run("--input=2xf32=%r")])
    lines = by_rank(done.stdout, 2)
    checks.check(f"{mpi}: lines carry the rank", None if values(lines[0]) == values(lines[1]) == ["2xf32=1 1"] else
                 f"found {lines}", done)
    done = launch(mpi, [1, *vm_run("--input=4xf32=1")], [1, *vm_run("--input=2xf32=1")])
    checks.check(f"{mpi}: counts that disagree",
                 "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "INVALID_ARGUMENT; expected the same collective of every rank as number 0 of channel "
                       "'default'", "all_reduce sum f32 x 2", "all_reduce sum f32 x 4"), done)
    done = launch(mpi, [1, *vm_run("--input=4xf32=1")], [1, *vm_run("--input=nonsense")])
    checks.check(f"{mpi}: a rank that fails ends all", "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "vm-run: rank 1: INVALID_ARGUMENT"), done)
    done = launch(mpi, [2, *vm_run("--input=1xf32=1", "--rank=%r", "--rank_count=3")])
    checks.check(f"{mpi}: another number of ranks than the launcher's",
                 "succeeded" if done.returncode == 0 else lacks(done.stderr, "--rank=%r: expected a number"), done)
    done = launch(mpi, [2, *vm_run("--input=1xf32=1", "--rank_count=3")])
    checks.check(f"{mpi}: another number of ranks than the launcher's",
                 "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "FAILED_PRECONDITION; expected to be rank -1 of 3", "of 2"), done)


# What a launcher of another MPI, or one that has ended, leaves in the environment of a process that MPI takes for the only one.
SAID_BY_OTHERS = {
    "srun without PMIx": {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "4",
                          "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"},
    "variables of Open MPI that are left over": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"},
}


def check_singletons(checks, mpi):
    provider = os.path.join(vmrun.BUILD, "lib", "halyard", "channels", mpi, "halyard-channel-mpi.so")
    for what, said in SAID_BY_OTHERS.items():
        # Found for the first channel; named by the environment; named by a flag, with half of the expected place.
        for how, flags, named in (("found", [], {}), ("by the environment", [], {"HALYARD_CHANNEL_PROVIDER": provider}),
                                  ("by a flag", [f"--channel_provider={provider}"], {}),
                                  ("with a rank", [f"--channel_provider={provider}", "--rank=1"], {})):
            if how == "found" and mpi not in what.lower().replace(" ", "") and "srun" not in what:
                continue
            done = subprocess.run(vm_run("--input=4xf32=1", *flags), cwd=vmrun.SOURCE, text=True, capture_output=True,
                                  timeout=LONGEST, env={**ENVIRONMENT, **said, **named})
            checks.check(f"{mpi}: {what}, the provider {how}", "succeeded" if done.returncode == 0 else
                         lacks(done.stderr, "FAILED_PRECONDITION", "rank 1 of 4", "rank 0 of 1"), done)
    done = subprocess.run(vm_run("--input=4xf32=1", f"--channel_provider={provider}", "--rank=0", "--rank_count=1"),
                          cwd=vmrun.SOURCE, text=True, capture_output=True, timeout=LONGEST,
                          env={**ENVIRONMENT, **SAID_BY_OTHERS["srun without PMIx"]})
    checks.check(f"{mpi}: a place that is given, and is MPI's", None if done.returncode == 0 else "failed", done)


def check_start(checks, mpi):
    """A rank that ends before MPI_Init: the others wait no longer than they may."""
    limited = "exec " + " ".join(vm_run("--input=4xf32=1", "--channel_timeout=1s"))
    rank = "OMPI_COMM_WORLD_RANK" if mpi == "openmpi" else "PMI_RANK"
    done = launch(mpi, [2, "bash", "-c", f"[ ${rank} = 1 ] || {limited}"], timeout=900)
    checks.check(f"{mpi}: a rank that does not come to MPI_Init", "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "DEADLINE_EXCEEDED", "MPI_Init within 1000 ms", "rank 1 has not come"), done)


def vm_bench(*arguments):
    return [os.path.join(vmrun.BIN, "vm-bench"), "--device=local-sync", f"--module={ALL_REDUCE}", "--function=sum",
            "--benchmark_min_time=0.02s", "--benchmark_format=json", *arguments]


def check_vm_bench(checks, mpi, folder):
    """One document, with the slowest rank in each row; all ranks make the same calls, so that none waits for ever."""
    path = os.path.join(folder, "rows.%n.json")
    done = launch(mpi, [3, *vm_bench("--input=%nxf32=%r", "--benchmark_repetitions=2", f"--benchmark_out={path}")])
    wrong = None if done.returncode == 0 else "failed"
    if not wrong:
        document = json.loads(done.stdout)
        names = [row["name"] for row in document["benchmarks"] if row["run_type"] == "iteration"]
        ranks = [row["rank"] for row in document["benchmarks"]]
        if names.count("BM_sum/process_time/real_time") != 2 or names.count("init") != 2:
            wrong = f"found rows {names}"
        elif document["context"]["ranks"] != "3" or any(rank not in (0, 1, 2) for rank in ranks):
            wrong = f"found ranks {ranks}"
        elif not os.path.exists(path.replace("%n", "3")):
            wrong = "the file is not there"
    checks.check(f"{mpi}: vm-bench reports the slowest rank, once", wrong, done)
    done = launch(mpi, [1, *vm_bench("--input=4xf32=1")], [1, *vm_bench("--input=5xf32=1")])
    checks.check(f"{mpi}: vm-bench: ranks that disagree", "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "vm-bench: rank ", "expected the same collective of every rank"), done)
    done = launch(mpi, [2, *vm_bench("--input=4xf32=1", "--against=vm-bench")])
    checks.check(f"{mpi}: vm-bench: flags for one rank alone", "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "INVALID_ARGUMENT; --against must not be given with several ranks"), done)
    done = launch(mpi, [2, *vm_bench("--input=4xf32=1", "--rank_count=3")])
    checks.check(f"{mpi}: vm-bench: another number of ranks than the launcher's", "succeeded" if done.returncode == 0 else
                 lacks(done.stderr, "FAILED_PRECONDITION; expected to be rank -1 of 3"), done)


def check_perceptron(checks, mpi):
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "collectives", "perceptron.vmasm"))
    command = re.search(r"^// run: vm-run (.*)$", text, re.MULTILINE)[1].split()
    expected = re.search(r"^// expect: (2x3xf32=.*)$", text, re.MULTILINE)[1]
    for count in 1, 2, 4:
        done = launch(mpi, [count, VM_RUN, *command])
        found = [values(lines) for lines in by_rank(done.stdout, count)]
        checks.check(f"{mpi}: the perceptron on {count} ranks",
                     None if found == [[expected]] * count else f"expected {expected}, found {found}", done)


def main(checks, folder):
    available = mpis()
    if not available:
        vmrun.skip("no MPI with a provider and a launcher is here")
    check_same_bits(checks, available)
    check_devices(checks, available)
    for mpi in available:
        check_vm_run(checks, mpi, folder)
        check_vm_bench(checks, mpi, folder)
        check_failures(checks, mpi)
        check_singletons(checks, mpi)
        check_start(checks, mpi)
        check_waiting(checks, mpi)
        check_thread_levels(checks, mpi, folder)
        check_perceptron(checks, mpi)
    if vmrun.fixtures():
        for mpi in available:
            check_fixtures(checks, mpi, quick=not os.environ.get("HALYARD_ALL_FIXTURES"))
