"""The opcode table of the machine: the encodings are those that compilers have written since bytecode 15, and the tables of the
specification are made from it.

opcodes.txt has the encodings as they were found in released modules, one opcode a line, and does not follow the table: a
number, an order of operands or a kind of register that changes by accident is found here. A new opcode gets a line there.

    test_opcode_table.py --write    writes the tables of docs/spec/isa.md anew
"""

import re
import sys

from installed import SOURCE

TABLE = SOURCE / "vm" / "src" / "vm" / "format" / "opcodes.inc"
FROZEN = SOURCE / "tests" / "opcodes.txt"
PAGE = SOURCE / "docs" / "spec" / "isa.md"

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
        found = re.fullmatch(r'OP\((\w+), 0x(\w\w), (\w+), "([^"]+)", (\d+), ([\w |]+),\s*(.*?)\)  // (\S.*)', line)
        assert found, f"a row in an unknown form, or that does not say what the instruction does: {line}"
        operand_set, byte, identifier, mnemonic, since, flags, operands, does = found.groups()
        # The identifier is the mnemonic with underscores for dots, and one at the end of a word of C++.
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
            "does": does,
        }
        for macro, arguments in re.findall(r"(\w+)\(([^)]*)\)", operands):
            kind, access, move = OPERANDS[macro]
            parts = [part.strip() for part in arguments.split(",")]
            bank = parts[0] if len(parts) == 2 else "any" if macro == "OUTS" else None
            row["operands"].append({"name": parts[-1], "kind": kind, "bank": bank, "access": access, "move": move})
        rows.append(row)
    return rows


# What the specification calls a kind of operand (its section 2); None: by the bank.
KINDS = {
    "reg": None,
    "reglist": "regs<{}>",
    "imm": "#{}",
    "global_bytes": "gbyte",
    "global_ref": "gref",
    "rodata": "rodata",
    "type": "type",
    "func": "func",
    "string": "string",
    "block": "block",
    "remap": "remap",
    "cases": "cases",
    "u16list": "u16s",
}
# A part of section 4: its number, the operand set, and the text after its name.
PARTS = (
    ("4.1", "core", ""),
    ("4.2", "ext_f32", " (prefix E0; function requirement EXT_F32)"),
    ("4.3", "ext_f64", " (prefix E1; function requirement EXT_F64)"),
)


def operand_text(operand: dict) -> str:
    kind = (KINDS[operand["kind"]] or "{}").format(operand["bank"])
    arrow = "→ " if operand["access"] == "write" else ""
    return f"{arrow}{operand['name']}:{kind}{'ᴹ' if operand['move'] else ''}"


def frozen_line(row: dict) -> str:
    """An opcode as opcodes.txt has it."""
    marks = [name for name in ("terminator", "marker", "prefix") if row[name]]
    operands = ", ".join(operand_text(operand) for operand in row["operands"])
    return f"{row['set']} {row['opcode']:02X} {row['mnemonic']} since {row['since']} {' '.join(marks)} | {operands}"


def page_row(row: dict) -> str:
    does = row["does"].replace("|", "\\|")
    operands = ", ".join(operand_text(operand) for operand in row["operands"]) or "–"
    since = row["since"] if row["since"] > 15 else ""
    terminator = " **T**" if row["terminator"] else ""
    return f"| {row['opcode']:02X} | `{row['mnemonic']}`{terminator} | {operands} | {does} | {since} |"


def page_tables(rows: list[dict]) -> str:
    parts = []
    for number, operand_set, more in PARTS:
        lines = [page_row(row) for row in rows if row["set"] == operand_set]
        head = "| Op | Mnemonic | Operands in encoding order | What it does | Since |\n|---|---|---|---|---|\n"
        parts.append(f"### {number} {operand_set}{more}\n\n{head}" + "\n".join(lines) + "\n")
    return "\n".join(parts) + "\n"


def differing_encodings(rows: list[dict], frozen: list[str]) -> list[str]:
    """What is in one and not in the other."""
    table = [frozen_line(row) for row in rows]
    only_table = [f"only in opcodes.inc: {line}" for line in table if line not in frozen]
    only_frozen = [f"only in opcodes.txt: {line}" for line in frozen if line not in table]
    twice = [f"twice: {line}" for line in sorted(set(table)) if table.count(line) > 1]
    return only_table + only_frozen + twice


def main() -> int:
    rows = rows_of_the_table()
    page = PAGE.read_text()
    begin, end = page.index("### 4.1 core"), page.index("## 5. Semantics")
    written = page[:begin] + page_tables(rows) + page[end:]
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written)
        return 0
    frozen = [line for line in FROZEN.read_text().splitlines() if line and not line.startswith("#")]
    differences = differing_encodings(rows, frozen)
    if written != page:
        differences.append(f"{PAGE.relative_to(SOURCE)} is not what opcodes.inc says; run tests/test_opcode_table.py --write")
    # The comparison notices a difference.
    moved = [dict(row) for row in rows]
    moved[1] = dict(moved[1], opcode=0xDF)
    if len(differing_encodings(moved, frozen)) != len(differing_encodings(rows, frozen)) + 2:
        differences.append("an opcode with another number was not noticed")
    if page_tables(moved) == page_tables(rows):
        differences.append("the page does not depend on the table")
    print("\n".join(differences))
    print(f"{len(rows)} opcodes, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
