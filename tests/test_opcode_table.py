"""The opcode table of the machine is the one of the specification, row by row; skipped where that is not reachable.

The specification lies beside the fixtures: HALYARD_FIXTURES/../spec/isa.json.
"""

import json
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parent.parent)).resolve()
TABLE = SOURCE / "vm" / "src" / "vm" / "format" / "opcodes.inc"

SETS = {"CORE": "core", "F32": "ext_f32", "F64": "ext_f64"}
# Operand macro: (kind, access, MOVE has an effect).
OPERANDS = {
    "IN": ("reg", "read", False),
    "IN_MOVE": ("reg", "read", True),
    "OUT": ("reg", "write", False),
    "OUT_MOVE": ("reg", "write", True),
    "INS": ("reglist", "read", False),
    "INS_MOVE": ("reglist", "read", True),
    "OUTS": ("reglist", "write", False),
    "IMM": ("imm", "read", False),
    "GLOBAL_BYTES": ("global_bytes", "read", False),
    "GLOBAL_REF": ("global_ref", "read", False),
    "RODATA": ("rodata", "read", False),
    "TYPE": ("type", "read", False),
    "FUNC": ("func", "read", False),
    "STRING": ("string", "read", False),
    "BLOCK": ("block", "read", False),
    "REMAP": ("remap", "readwrite", True),
    "CASES": ("cases", "readwrite", True),
    "U16S": ("u16list", "read", False),
}


def rows_of_the_table() -> list[dict]:
    rows = []
    for line in TABLE.read_text().splitlines():
        if not line.startswith("OP("):
            continue
        found = re.fullmatch(r'OP\((\w+), 0x(\w\w), (\w+), "([^"]+)", (\d+), ([\w |]+),\s*(.*)\)', line)
        assert found, f"a row in an unknown form: {line}"
        operand_set, byte, identifier, mnemonic, since, flags, operands = found.groups()
        # The identifier is the mnemonic as C++ takes it.
        assert identifier.rstrip("_") == mnemonic.replace(".", "_"), line
        row = {
            "set": SETS[operand_set],
            "opcode": int(byte, 16),
            "mnemonic": mnemonic,
            "since": int(since),
            "terminator": "TERMINATOR" in flags,
            "marker": "MARKER" in flags,
            "prefix": "PREFIX" in flags,
            "operands": [],
        }
        for macro, arguments in re.findall(r"(\w+)\(([^)]*)\)", operands):
            kind, access, move = OPERANDS[macro]
            parts = [part.strip() for part in arguments.split(",")]
            bank = parts[0] if len(parts) == 2 else "any" if macro == "OUTS" else None
            row["operands"].append({"name": parts[-1], "kind": kind, "bank": bank, "access": access, "move": move})
        rows.append(row)
    return rows


def rows_of_the_specification(path: pathlib.Path) -> list[dict]:
    rows = []
    for entry in json.loads(path.read_text()):
        row = {key: entry[key] for key in ("set", "opcode", "mnemonic", "since", "terminator")}
        row["marker"] = bool(entry.get("marker"))
        row["prefix"] = "prefix_set" in entry
        row["operands"] = [
            {
                "name": operand["name"],
                "kind": operand["kind"],
                # What an edge or a table moves has no bank of its own.
                "bank": None if operand["kind"] in ("remap", "cases", "u16list") else operand["bank"],
                # The table says of a list what it names: what discard.refs empties is read like what a call moves.
                "access": "read"
                if operand["kind"] == "reglist" and operand["access"] == "readwrite"
                else operand["access"],
                "move": bool(operand.get("move")),
            }
            for operand in entry["operands"]
        ]
        rows.append(row)
    return rows


def main() -> int:
    fixtures = os.environ.get("HALYARD_FIXTURES")
    path = pathlib.Path(fixtures, "..", "spec", "isa.json") if fixtures else None
    if path is None or not path.is_file():
        print("skipped: HALYARD_FIXTURES is not set, or there is no spec/isa.json beside it")
        return 77
    table = {(row["set"], row["opcode"]): row for row in rows_of_the_table()}
    specification = {(row["set"], row["opcode"]): row for row in rows_of_the_specification(path)}
    failed = 0
    for key in sorted(table.keys() | specification.keys()):
        if table.get(key) != specification.get(key):
            failed += 1
            print(f"{key}:\n  table         {table.get(key)}\n  specification {specification.get(key)}")
    print(f"{len(table)} opcodes, {failed} differ")
    return 1 if failed or len(table) != len(rows_of_the_table()) else 0


if __name__ == "__main__":
    sys.exit(main())
