"""usage: fuzz/keep.py FROM TO BYTES  copies the smallest inputs of a merged corpus, up to so many bytes together, and removes the rest of TO"""
import hashlib
import pathlib
import shutil
import sys


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    merged, kept, left = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    chosen = {}
    for path in sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
        data = path.read_bytes()
        if len(data) > left:
            break
        left -= len(data)
        chosen[hashlib.sha1(data).hexdigest()[:16]] = data
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for name, data in chosen.items():
        (kept / name).write_bytes(data)
    print(f"{kept}: {len(chosen)} inputs of {sum(map(len, chosen.values()))} bytes, of {len(list(merged.iterdir()))}")


if __name__ == "__main__":
    main()
