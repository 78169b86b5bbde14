"""The record of fuzzing (fuzz/hours.tsv) and its table: every target is in it, and runs are added up. Which inputs are kept of those
that libFuzzer has merged (fuzz/keep.py)."""
import shutil
import subprocess
import sys

from installed import SOURCE

sys.path.insert(0, str(SOURCE / "fuzz"))
import hours  # noqa: E402
import keep  # noqa: E402

# What inputs reach; the limit of bytes; those that are kept already; those that are kept then.
KEPT = (
    ("the most for each byte comes first", {b"aaaa": {1, 2}, b"b": {1}, b"cc": {2, 3, 4}}, 100, {}, [b"cc", b"b"]),
    ("what reaches nothing new is left out", {b"a": {1}, b"b": {1}, b"ccc": {1, 2}}, 100, {}, [b"b", b"ccc"]),
    ("of two alike the one that is there", {b"a": {1}, b"b": {1}}, 100, {b"a"}, [b"a"]),
    ("no more bytes than the limit", {b"aa": {1, 2, 3}, b"bbb": {4, 5, 6}, b"c": {7}}, 3, {}, [b"aa", b"c"]),
    ("an input of the limit's size", {b"aaa": {1}}, 3, {}, [b"aaa"]),
    ("nothing fits", {b"aaaa": {1}}, 3, {}, []),
)
# The numbers of the lines begin anew in each of libFuzzer's processes; an input may stand there without features.
CONTROL = "4\n0\n{0}/a\n{0}/b\n{0}/c\n{0}/empty\nSTARTED 0 1\nFT 0 7 8\nCOV 0 1\nSTARTED 1 2\nFT 1\nSTARTED 2 1\nSTARTED 3 0\nFT 3 7\n"


def run(script, *arguments):
    return subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True)


def main(checks, folder):
    checks.check("the table", None if hours.TABLE.read_text() == hours.table() else "it is another one; write it with: fuzz/hours.py table")
    known = set(hours.targets())
    strangers = sorted({target for _, target in hours.record()} - known)
    checks.check("targets of the record", f"{strangers} are not there any more" if strangers else None)

    # A copy, so that the record stays.
    for name in ("hours.py", "hours.tsv"):
        shutil.copy(SOURCE / "fuzz" / name, folder)
    for name in ("a", "b"):
        (folder / f"target_{name}.cpp").touch()
    script, record, runs = folder / "hours.py", folder / "hours.tsv", folder / "runs.tsv"
    record.write_text("\t".join(hours.FIELDS) + "\n2026-01-02\ta\t3600\t3601\t1000000\t0\t40\n")
    runs.write_text("b\t60\t90\t5\t1\t0\na\t60\t30\t7\t0\t500\nb\t60\t30\t5\t0\t0\n")
    for _ in range(2):
        done = run(script, "add", runs, "2026-01-03")
        checks.check("runs are added", None if done.returncode == 0 else "it fails", done)
    lines = record.read_text().splitlines()[1:]
    checks.check("one line for each target and day", None if lines == ["2026-01-02\ta\t3600\t3601\t1000000\t0\t40", "2026-01-03\ta\t120\t60\t14\t0\t1000",
                                                                       "2026-01-03\tb\t240\t240\t20\t2\t0"] else f"they are {lines}")
    table = (folder / "hours.md").read_text()
    for row in ("| `a` | 61.0 | 1,000,014 (1,040 calls) | 0 | 0 (0 bytes) | 2026-01-03 |", "| `b` | 4.0 | 20 | 2 | 0 (0 bytes) | 2026-01-03 |", "1 of\n2 have them"):
        checks.check(f"the table has {row!r}", None if row in table else f"it is\n{table}")
    checks.check("who has run the least", None if run(script, "next", 1).stdout == "b\n" else "it is not 'b'")
    before = record.read_text()
    for text in ("c\t1\t1\t1\t0\t0\n", "a\t1\t1\t1\t0\n", "a\t1\t-1\t1\t0\t0\n", "a\t1\t1.5\t1\t0\t0\n", "\n"):
        runs.write_text(text)
        done = run(script, "add", runs, "2026-01-03")
        refused = done.returncode == 1 and f"{runs}:1 is" in done.stderr and record.read_text() == before
        checks.check(f"{text!r} is refused", None if refused else "it is taken, or not named", done)
    record.write_text("\t".join(hours.FIELDS[:-1]) + "\n2026-01-02\ta\t3600\t3601\t1000000\t0\n")
    runs.write_text("a\t1\t1\t1\t0\t7\n")
    done = run(script, "add", runs, "2026-01-02")
    without = done.returncode == 0 and record.read_text() == "\t".join(hours.FIELDS) + "\n2026-01-02\ta\t3601\t3602\t1000001\t0\t7\n"
    checks.check("a record from before calls were counted", None if without else f"it is {record.read_text()!r}", done)
    record.write_text("day\ttarget\n")
    done = run(script, "add", runs, "2026-01-02")
    checks.check("a record with other names", None if done.returncode == 1 and "expected the names" in done.stderr else "it is taken", done)
    checks.check("without arguments", None if run(script).returncode == 1 else "it does something")

    for name, reached, limit, there, expected in KEPT:
        found, features = keep.chosen(reached, limit, there)
        wrong = found != expected or features != len(set().union(*(reached[data] for data in expected)))
        checks.check(name, f"{found}, {features}" if wrong else None)
    many = {bytes([i, i]): {i} for i in range(100)}
    checks.check("no more files than the limit", None if len(keep.chosen(many, 1000, {})[0]) == keep.MOST else "there are more")
    inputs, kept, control = folder / "inputs", folder / "kept", folder / "control"
    inputs.mkdir()
    for name, data in (("a", b"A"), ("b", b"BB"), ("c", b"C"), ("empty", b"")):
        (inputs / name).write_bytes(data)
    control.write_text(CONTROL.format(inputs))
    done = run(SOURCE / "fuzz" / "keep.py", control, kept, 10)
    names = [path.read_bytes() for path in kept.iterdir()] if kept.is_dir() else []
    checks.check("a merged corpus", None if names == [b"A"] and "1 inputs of 1 bytes reach 2 of 2 features" in done.stdout else f"it keeps {names}", done)
    control.write_text("0\n0\n")
    done = run(SOURCE / "fuzz" / "keep.py", control, kept, 10)
    checks.check("a merge of nothing", None if done.returncode == 1 and len(list(kept.iterdir())) == 1 else "what was kept is lost", done)
