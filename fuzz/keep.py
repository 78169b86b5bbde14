"""usage: fuzz/keep.py FROM TO BYTES  keeps in TO some small inputs of a merged corpus, of so many bytes together at most"""
import hashlib
import pathlib
import shutil
import sys

MOST = 24  # files


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    merged, kept, limit = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    inputs = sorted({path.read_bytes() for path in merged.iterdir()} - {b""}, key=lambda data: (len(data), data))
    total, fitting = 0, 0
    while fitting < len(inputs) and total + len(inputs[fitting]) <= limit:
        total += len(inputs[fitting])
        fitting += 1
    # Of all sizes among the small ones.
    count = min(MOST, fitting)
    chosen = [inputs[(i + 1) * fitting // count - 1] for i in range(count)]
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for data in chosen:
        (kept / hashlib.sha1(data).hexdigest()[:16]).write_bytes(data)
    print(f"{kept}: {len(chosen)} inputs of {sum(map(len, chosen))} bytes, of {len(inputs)}")


if __name__ == "__main__":
    main()
