"""Element types: every row of base/include/halyard/element_types.inc is complete, and the places that are written by hand
have all rows and no others. CONTRIBUTING.md, "Add an element type", names them.
"""

import re
import sys

from installed import SOURCE

TABLE = "base/include/halyard/element_types.inc"
COLUMNS = ["symbol", "numerical", "bits", "text", "declared", "numpy", "buffer", "npy", "safetensors", "protocol",
           "collective", "format"]
ABSENT = {"": "", "collective": "NONE", "format": "kNoFormat"}
INTEGERS = ["Integer", "IntegerSigned", "IntegerUnsigned"]

# What a row may lack, by column: a condition, and why.
MAY_LACK = {
    "declared": [(lambda row: row["numerical"] == "Opaque", "functions declare no bytes")],
    "numpy": [(lambda row: row["numerical"] == "Opaque", "numpy calls bytes void"),
              (lambda row: row["bits"] < 8, "numpy has no elements below a byte")],
    "buffer": [(lambda row: not row["numpy"], "numpy lacks the type"),
               (lambda row: row["npy"].startswith("V"), "the package ml_dtypes has it, numpy does not")],
    "npy": [(lambda row: not row["numpy"], "numpy lacks the type"),
            (lambda row: row["numerical"] == "Integer", "written as the type with a sign")],
    "safetensors": [(lambda row: not row["numpy"], "the format has whole bytes of numbers"),
                    (lambda row: row["numerical"] == "IntegerSigned", "the row without a sign has the name")],
    "protocol": [(lambda row: not row["numpy"], "the protocol has whole bytes of numbers"),
                 (lambda row: row["numerical"] == "IntegerSigned", "the row without a sign has the name"),
                 (lambda row: row["numerical"] == "FloatComplex" or row["numerical"].startswith("Float8"),
                  "the protocol lacks complex numbers and floats of 8 bits")],
    "collective": [(lambda row: not row["numpy"], "channels reduce whole bytes of numbers"),
                   (lambda row: row["numerical"] in ("Integer", "Boolean", "FloatComplex"), "channels lack the type"),
                   (lambda row: row["symbol"] == "F8E8M0FNU", "channels lack the type")],
    "format": [(lambda row: "Float" not in row["numerical"] or row["bits"] > 16, "not a small float")],
}


def rows_of_the_table():
    text = (SOURCE / TABLE).read_text()
    rows = []
    for line in re.findall(r"^HALYARD_ELEMENT_TYPE\((.*)\)$", text, re.MULTILINE):
        fields = [field.strip().strip('"') for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            sys.exit(f"FAILED: {TABLE}: {line}: {len(fields)} columns; expected {len(COLUMNS)}: {', '.join(COLUMNS)}")
        rows.append({**dict(zip(COLUMNS, fields)), "bits": int(fields[2])})
    numerical = {name: (int(value, 16), dlpack) for name, value, dlpack in
                 re.findall(r'^HALYARD_NUMERICAL_TYPE\((\w+), +(0x\w+), "\*?\w*", +(\w+),', text, re.MULTILINE)}
    for row in rows:
        value, row["dlpack"] = numerical[row["numerical"]]
        row["number"] = value << 24 | row["bits"]
    return rows


def incomplete(rows):
    """What rows lack without a reason, have against it, or share."""
    found = []
    for row in rows:
        for column, reasons in MAY_LACK.items():
            has = row[column] != ABSENT.get(column, "")
            reason = next((why for condition, why in reasons if condition(row)), None)
            if not has and not reason:
                found.append(f"{row['symbol']} has no {column}")
            if has and reason and column != "declared":
                found.append(f"{row['symbol']} has {column} {row[column]}, but: {reason}")
    for column in ("symbol", "text", "number", "safetensors", "protocol", "collective", "format"):
        values = [row[column] for row in rows if row[column] != ABSENT.get(column, "")]
        found += [f"two rows have {column} {value}" for value in sorted(set(values)) if values.count(value) > 1]
    return found


def differing(place, expected, found):
    """Both: sets of texts."""
    return ([f"{place} lacks {each}" for each in sorted(expected - found)] +
            [f"{place} has {each}, which the table does not" for each in sorted(found - expected)])


def pairs(path, pattern):
    return set(re.findall(pattern, (SOURCE / path).read_text()))


def places(rows):
    found = []
    header = "bindings/c/include/halyard/element_type.h"
    found += differing(header, {f"{row['symbol']} = 0x{row['number']:08X}, {row['text']}" for row in rows},
                       {f"{symbol} = {number}, {text}" for symbol, number, text in
                        pairs(header, r"HALYARD_ELEMENT_(\w+) = (0x\w+), +/\* ([\w*]+)")})
    found += differing("ElementType of halyard/cpp/tensor.hpp", {row["symbol"] for row in rows} | {"NONE"},
                       pairs("bindings/cpp/include/halyard/cpp/tensor.hpp", r"\w+ = HALYARD_ELEMENT_(\w+),"))
    page = "docs/spec/hal-types.md"
    found += differing(page, {f"0x{row['number']:08X} {row['text']}" for row in rows},
                       {f"{number} {text}" for number, text in pairs(page, r"\| (0x\w{8}) \| ([*a-z]\w*)(?: \(also x8\))? \|")})
    small = "base/include/halyard/small_floats.hpp"
    found += differing(small, {row["format"] for row in rows} - {"kNoFormat"}, pairs(small, r"constexpr Format (\w+) ="))
    tests = "base/tests/small_floats_test.cpp"
    found += differing(tests, {row["format"] for row in rows} - {"kNoFormat"}, pairs(tests, r'case_of<(\w+)>\("'))
    values = "bindings/python/src/values.c"
    found += differing(values, {f"{row['dlpack']} {row['bits']}" for row in rows if row["format"] != "kNoFormat"},
                       {f"{code} {bits}" for code, bits in pairs(values, r"\{kDl(\w+), (\d+), \d")})
    numbers = (SOURCE / "hal/include/halyard/channel.h").read_text().partition("HALYARD_REDUCTION_AVERAGE")[2]
    found += differing("hal/include/halyard/channel.h", {row["collective"] for row in rows} - {"NONE"},
                       set(re.findall(r"HALYARD_COLLECTIVE_(\w+) = \d+,", numbers.partition("};\n\n")[0])))
    return found


def main():
    rows = rows_of_the_table()
    failures = incomplete(rows) + places(rows)
    # The checks notice a row that lacks a name, and a row that no other place has.
    for column in MAY_LACK:
        planted = [dict(row) for row in rows]
        row = next(row for row in planted if row[column] != ABSENT.get(column, ""))
        row[column] = ABSENT.get(column, "")
        if incomplete(planted) == incomplete(rows):
            failures.append(f"a row without {column} was not noticed")
    new = {**rows[-1], "symbol": "F8E2M5", "text": "f8E2M5", "number": 0x2F000008, "format": "kF8E2M5",
           "dlpack": "Float8E2M5", "collective": "FLOAT_8_E2M5"}
    if len(places([*rows, new])) != len(places(rows)) + 7:
        failures.append("a row that is in the table alone was not noticed in every place")
    print(f"{len(rows)} element types")
    return failures
