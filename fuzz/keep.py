"""usage: fuzz/keep.py CONTROL TO BYTES  keeps in the folder TO those inputs that reach most with so many bytes together at most

CONTROL is what libFuzzer leaves with `-set_cover_merge=1 -merge_control_file=CONTROL`: which features each input reaches.
"""
import hashlib
import pathlib
import shutil
import sys

MOST = 24  # files


def read_control(path):
    """{bytes of an input: features that it reaches}, and how many inputs libFuzzer has looked at."""
    lines = pathlib.Path(path).read_text(errors="surrogateescape").splitlines()
    count = int(lines[0])
    names, reached = lines[2:2 + count], {}
    for line in lines[2 + count:]:
        kind, number, *features = line.split()
        if kind == "FT":
            data = pathlib.Path(names[int(number)]).read_bytes()
            reached.setdefault(data, set()).update(features)
    reached.pop(b"", None)
    return reached, count


def chosen(reached, limit, before):
    """The inputs that reach the most new features for each byte, one after another. Of those alike, one that is kept already."""
    left, seen, total, made = dict(reached), set(), 0, []
    while len(made) < MOST:
        fitting = [(len(features - seen) / len(data), data in before, -len(data), data) for data, features in left.items()
                   if total + len(data) <= limit and features - seen]
        if not fitting:
            break
        data = max(fitting)[-1]
        seen |= left.pop(data)
        total += len(data)
        made.append(data)
    return made, len(seen)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    kept, limit = pathlib.Path(sys.argv[2]), int(sys.argv[3])
    reached, count = read_control(sys.argv[1])
    before = {path.read_bytes() for path in kept.iterdir()} if kept.is_dir() else set()
    inputs, features = chosen(reached, limit, before)
    if not inputs:
        sys.exit(f"keep: {sys.argv[1]} names no input that reaches anything; {kept} stays as it is")
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for data in inputs:
        (kept / hashlib.sha1(data).hexdigest()[:16]).write_bytes(data)
    everything = len(set().union(*reached.values()))
    print(f"{kept}: {len(inputs)} inputs of {sum(map(len, inputs))} bytes reach {features} of {everything} features that {count} inputs reach")


if __name__ == "__main__":
    main()
