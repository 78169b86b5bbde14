"""usage: fuzz/hours.py add RUNS [DAY]  adds runs to the record, fuzz/hours.tsv, and writes its table, fuzz/hours.md
       fuzz/hours.py table             writes the table
       fuzz/hours.py next COUNT        names the targets that have run the least

RUNS is a file of lines `NAME <tab> CLOCK <tab> PROCESSOR <tab> EXECUTIONS <tab> FINDINGS <tab> CALLS`, as `./dev fuzz` writes them:
seconds of the clock, seconds of processors, how often the target ran, whether the run ended with a finding, and for a target that
compiles code how many calls of that code it compared with the reference machine. The record has the sums for each target and day.
"""
import collections
import datetime
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
RECORD, TABLE = HERE / "hours.tsv", HERE / "hours.md"
FIELDS = ("day", "target", "clock", "processor", "executions", "findings", "calls")
GOAL = 60  # minutes for each target


def targets():
    return sorted(path.stem.removeprefix("target_") for path in HERE.glob("target_*.cpp"))


def record():
    """{(day, target): [clock, processor, executions, findings, calls]}"""
    lines = RECORD.read_text().splitlines()
    names = lines[0].split("\t")
    if names not in (list(FIELDS), list(FIELDS[:-1])):  # without calls, as it was written before they were counted
        sys.exit(f"hours: {RECORD} begins with '{lines[0]}'; expected the names {' '.join(FIELDS)}, with tabs")
    missing = [0] * (len(FIELDS) - len(names))
    return {(day, target): [int(number) for number in numbers] + missing
            for day, target, *numbers in (line.split("\t") for line in lines[1:])}


def read_runs(path):
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        name, *numbers = line.split("\t")
        if name not in targets() or len(numbers) != len(FIELDS) - 2 or not all(part.isdigit() for part in numbers):
            sys.exit(f"hours: {path}:{number} is '{line}'; expected the name of a target and five whole numbers, with tabs")
        yield name, [int(part) for part in numbers]


def add(path, day):
    rows = record()
    for name, numbers in read_runs(path):
        rows[day, name] = [old + new for old, new in zip(rows.get((day, name), [0] * len(numbers)), numbers)]
    lines = ["\t".join(map(str, (day_, name, *numbers))) for (day_, name), numbers in sorted(rows.items())]
    RECORD.write_text("\n".join(["\t".join(FIELDS), *lines]) + "\n")


def totals():
    """{target: [seconds that count, executions, findings, calls, last day]}. A run counts with its time by the clock or of the processor, whichever is less:
    a loaded machine stretches the one, threads the other."""
    sums = {name: [0, 0, 0, 0, ""] for name in targets()}
    for (day, name), (clock, processor, *counts) in sorted(record().items()):
        if name in sums:
            more = (min(clock, processor), *counts)
            sums[name] = [*(old + new for old, new in zip(sums[name], more)), day]
    return sums


def kept(name):
    files = [path for path in (HERE / "corpus" / name).glob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def table():
    sums = totals()
    done = sum(seconds >= GOAL * 60 for seconds, *_ in sums.values())
    text = f"""# Hours of fuzzing

How long each target has explored, by `./dev fuzz --minutes=N`. The goal is {GOAL} minutes for each: {done} of
{len(sums)} have them. A run counts with its time by the clock or of the processors, whichever is less. "Findings" are runs that ended with
one. Of a target that compiles code, the calls that it compared stand beside its executions. `hours.py` writes this table from
`hours.tsv`, which has a line for each target and day.

| target | minutes | executions | findings | inputs kept in `corpus` | last day |
|---|---|---|---|---|---|
"""
    for name, (seconds, executions, findings, calls, day) in sums.items():
        count, size = kept(name)
        compared = f" ({calls:,} calls)" if calls else ""
        text += f"| `{name}` | {seconds / 60:.1f} | {executions:,}{compared} | {findings} | {count} ({size:,} bytes) | {day} |\n"
    return text


def main():
    match sys.argv[1:]:
        case ["add", path, *day] if len(day) <= 1:
            add(path, day[0] if day else datetime.datetime.now(datetime.UTC).date().isoformat())
            TABLE.write_text(table())
        case ["table"]:
            TABLE.write_text(table())
        case ["next", count] if count.isdigit():
            order = collections.OrderedDict(sorted(totals().items(), key=lambda item: (item[1][0], item[0])))
            print("\n".join(list(order)[:int(count)]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
