"""Describes the public headers in lines of text, one fact a line: numbers, functions, types, and the fields of structs with
their offsets. A struct that begins with struct_size may grow, so its description has no size. What was compiled against the
headers still works with later ones if each line of the description (baseline.txt) is also in theirs.

    python3 tests/abi/surface.py FILE      writes the description of the headers as they are (./dev abi does)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parent.parent.parent)).resolve()
BASELINE = SOURCE / "tests" / "abi" / "baseline.txt"
LAYERS = ("base", "vm", "hal", "bindings/c")
PROGRAM = "".join(f"#include <halyard/{name}.h>\n" for name in ("status", "abi", "value", "driver", "module", "program", "halyard",
                                                                "memory", "fence", "signature"))
# The version, the compiler's options and include guards may change.
FREE = re.compile(r"HALYARD_(VERSION_\w+|SANITIZER_KIND|API|\w+_H_)$")


def cc(headers, *arguments, text=None):
    command = ["cc", "-std=c11", *(f"-I{headers / layer / 'include'}" for layer in LAYERS), *map(str, arguments)]
    return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


def functions(code):
    """The functions that libhalyard's headers declare."""
    return sorted(set(re.findall(r'visibility\("default"\)\)\)\s+[^;{}()]*?\b(halyard_\w+)\s*\(', code)))


def constants(code, macros):
    """Names of numbers: enumerators, and macros that are one number."""
    names = {name for body in re.findall(r"\benum\b[^{};]*\{([^}]*)\}", code)
             for name in re.findall(r"\b(HALYARD_\w+)\s*(?==|,|$)", body)}
    names |= set(re.findall(r"#define (HALYARD_\w+) (?:0x)?[0-9a-fA-F]+u?\n", macros))
    return sorted(name for name in names if not FREE.match(name))


def number(value):
    return str(value) if abs(value) < 1 << 16 else hex(value)


class Types:
    """The types in the debug information of C code, with their texts as C writes them."""

    def __init__(self, code, headers, folder):
        compiled = folder / "surface.o"
        cc(headers, "-g", "-c", "-x", "c", "-", "-o", compiled, text=code)
        listing = subprocess.run(["readelf", "--debug-dump=info", compiled], text=True, check=True, stdout=subprocess.PIPE).stdout
        self.entries = {}  # by their place in the listing: tag, attributes, entries inside
        path = []
        for line in listing.splitlines():
            if entry := re.match(r" <(\w+)><(\w+)>: Abbrev Number: \w+ \(DW_TAG_(\w+)\)", line):
                depth, place, tag = int(entry[1], 16), int(entry[2], 16), entry[3]
                self.entries[place] = {"tag": tag, "inside": []}
                path[depth:] = [self.entries[place]]
                if depth:
                    path[depth - 1]["inside"].append(self.entries[place])
            elif attribute := re.match(r" +<\w+> +DW_AT_(\w+) *: (?:\(.*?\):? )?(.*?)\s*$", line):
                path[-1][attribute[1]] = attribute[2]

    def tagged(self, tag):
        return [entry for entry in self.entries.values() if entry["tag"] == tag]

    def target(self, entry):
        """The type of a variable, of what a pointer points to and the like; None for void."""
        return self.entries[int(entry["type"].strip("<>"), 16)] if "type" in entry else None

    def spell(self, entry, declarator=""):
        """A type around a declarator such as "*": "void (*)(int32_t)"."""
        if entry is None:
            return "void" + declarator
        tag, target = entry["tag"], self.target(entry)
        if tag == "pointer_type":
            return self.spell(target, "*" + declarator)
        if tag in ("const_type", "volatile_type", "restrict_type"):
            qualifier = tag.removesuffix("_type")
            if target and target["tag"] == "pointer_type":
                return self.spell(target, f" {qualifier}{declarator}")
            return f"{qualifier} {self.spell(target, declarator)}"
        if declarator.startswith("*") and tag in ("array_type", "subroutine_type"):  # [] and () bind tighter than *
            declarator = f"({declarator})"
        if tag == "array_type":
            counts = (int(bound["upper_bound"], 0) + 1 if "upper_bound" in bound else "" for bound in entry["inside"])
            return self.spell(target, declarator + "".join(f"[{count}]" for count in counts))
        if tag == "subroutine_type":
            return self.spell(target, f" {declarator}".rstrip() + self.parameters(entry))
        kind = {"structure_type": "struct ", "union_type": "union ", "enumeration_type": "enum "}.get(tag, "")
        return kind + entry["name"] + declarator

    def parameters(self, function):
        texts = ["..." if each["tag"] == "unspecified_parameters" else self.spell(self.target(each)) for each in function["inside"]]
        return f"({', '.join(texts) or ('void' if 'prototyped' in function else '')})"

    def fields(self, struct, offset=0):
        """Name, type and offset of each field, those of members without a name or of a type without a name included."""
        for member in struct["inside"]:
            if member["tag"] != "member":
                continue
            of, name, start = self.target(member), member.get("name", ""), offset + int(member.get("data_member_location", "0"), 0)
            if "bit_size" in member:
                raise ValueError(f"{struct['name']}.{name} is a bit-field, whose place this description would not show")
            if of["tag"] in ("structure_type", "union_type") and "name" not in of:
                yield from ((f"{name}.{field}".lstrip("."), *rest) for field, *rest in self.fields(of, start))
            else:
                yield name, self.spell(of), start

    def typedef(self, entry):
        """A line about a typedef. One of the C library is what it is in the end, not what is between."""
        target = self.target(entry)
        while not entry["name"].startswith("halyard_") and target["tag"] == "typedef":
            target = self.target(target)
        return f"type {entry['name']} = {self.spell(target)}"


def describe(folder, headers=SOURCE):
    """The lines that describe the public headers of this tree, or of a copy. Uses the folder for its files."""
    code = cc(headers, "-E", "-P", "-x", "c", "-", text=PROGRAM)
    macros = cc(headers, "-E", "-dM", "-x", "c", "-", text=PROGRAM)
    pointers = {name: name for name in sorted(set(re.findall(r"\bhalyard_\w+_(?:t|fn)\b", code)))}
    pointers |= {name: f"__typeof__({name})" for name in functions(code)}
    # Debug information does not say how types are aligned.
    numbers = {f"align_{name}": f"_Alignof({name}_t)" for name in sorted(set(re.findall(r"\}\s*(halyard_\w+)_t;", code)))}
    numbers |= {f"value_{name}": name for name in constants(code, macros)}
    types = Types(PROGRAM + "".join(f"{what}* pointer_{name};\n" for name, what in pointers.items()) +
                  "enum {" + ",\n".join(f"{name} = {value}" for name, value in numbers.items()) + "} numbers;\n", headers, folder)
    values = {entry["name"]: int(entry["const_value"], 0) for entry in types.tagged("enumerator")}
    lines = [f"constant {name} = {number(values['value_' + name])}" for name in constants(code, macros)]
    lines += sorted(f"macro {name} {text}" for name, text in re.findall(
        r'#define (HALYARD_\w+) ("[^"]*"|U?INT\d+_MAX|\(-?\d+\)|HALYARD_\w+)\n', macros) if not FREE.match(name))
    for variable in types.tagged("variable"):
        function = types.target(types.target(variable)) if variable["name"].startswith("pointer_") else None
        if function and function["tag"] == "subroutine_type":
            name = variable["name"].removeprefix("pointer_")
            lines.append(f"function {name}{types.parameters(function)} -> {types.spell(types.target(function))}")
    lines += sorted(types.typedef(each) for each in types.tagged("typedef") if not each["name"].startswith("__"))
    lines += sorted(f"enum {each['name']} = {types.spell(types.target(each))}" for each in types.tagged("enumeration_type")
                    if "name" in each)
    for struct in sorted(types.tagged("structure_type") + types.tagged("union_type"), key=lambda each: each.get("name", "")):
        if "name" in struct and "declaration" not in struct:
            name, fields = struct["name"], [*types.fields(struct)]
            size = "grows" if fields[0][0] == "struct_size" else f"size {struct['byte_size']}"
            lines.append(f"{struct['tag'].removesuffix('ure_type').removesuffix('_type')} {name} {size} align {values['align_' + name]}")
            lines += [f"field {name}.{field} {of} @{offset}" for field, of, offset in fields]
    return lines


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        lines = describe(pathlib.Path(folder))
    file = pathlib.Path(sys.argv[1])
    for line in file.read_text().splitlines() if file.exists() else []:
        if line not in lines:
            print("no longer there:", line)
    file.write_text("".join(line + "\n" for line in lines))
    print(f"{file}: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
