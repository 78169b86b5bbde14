"""Describes the public headers for abidiff: a small library with one variable that contains every public type, and an
enumeration of every public number. Structs that grow (they begin with struct_size) are described field by field,
because abidiff cannot distinguish an appended field from a change: each offset is a number with the field's type in its
name, or, for other types than numbers, also a member of the variable; the struct itself has no members. All other
structs never change.

    python3 tests/abi/surface.py FILE      writes the description of the headers as they are (./dev abi does)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parent.parent.parent)).resolve()
BASELINE = SOURCE / "tests" / "abi" / "baseline.xml"
LAYERS = ("base", "vm", "hal", "bindings/c")
PROGRAM = "".join(f"#include <halyard/{name}.h>\n" for name in ("status", "abi", "value", "driver", "module", "halyard",
                                                                "memory", "fence", "signature"))
# What says which release this is, or how it was compiled, and may change.
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


def describe(code, headers, folder, name):
    """What abidw says of a library made of this code."""
    source, library, description = (folder / (name + suffix) for suffix in (".c", ".so", ".xml"))
    source.write_text(code)
    cc(headers, "-g", "-shared", "-fPIC", source, "-o", library)
    subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed",
                    "--type-id-style", "hash", library, "--out-file", description], check=True)
    return description


class Types:
    """The types of a description by their ids."""

    def __init__(self, description):
        self.root = xml.etree.ElementTree.parse(description).getroot()
        self.by_id = {element.get("id"): element for element in self.root.iter() if element.get("id")}

    def number(self, type_id):
        """"uint32_t"; None for what is no number."""
        element = self.by_id[type_id]
        name = element.get("name")
        while element.tag == "typedef-decl":
            element = self.by_id[element.get("type-id")]
        return name.replace(" ", "_") if element.tag == "type-decl" else None

    def fields(self, struct):
        """Names and numbers of fields, those of members without a name included."""
        for variable in (member.find("var-decl") for member in struct.findall("data-member")):
            if variable.get("name"):
                yield variable.get("name"), self.number(variable.get("type-id"))
            else:
                yield from self.fields(self.by_id[variable.get("type-id")])

    def growing(self):
        """Structs that begin with struct_size, with their fields."""
        for struct in self.root.iter("class-decl"):
            found = list(self.fields(struct))
            if struct.get("name", "").startswith("halyard_") and found and found[0][0] == "struct_size":
                yield struct.get("name"), found

    def numbers(self):
        """The enumeration of numbers: values by names. (abidiff compares enumerations by value alone.)"""
        return {item.get("name"): int(item.get("value")) for enumeration in self.root.iter("enum-decl")
                if enumeration.get("name") == "abi_numbers" for item in enumeration.iter("enumerator")}

    def members(self, name):
        """Names of the members of a struct, in order; none where there is no such struct."""
        for struct in self.root.iter("class-decl"):
            if struct.get("name") == name:
                return [field for field, _ in self.fields(struct)]
        return []


def make_small(description, structs):
    """Takes out what growing structs hold, and what every description says alike."""
    tree = xml.etree.ElementTree.parse(description)
    for element in tree.getroot().iter():
        element.attrib.pop("path", None)  # of the folder that it was made in
        element.text = element.tail = "\n"
        for attribute, common in (("visibility", "default"), ("access", "public")):
            if element.get(attribute) == common:
                del element.attrib[attribute]
        if element.tag == "class-decl" and element.get("name") in structs:
            for member in list(element):
                element.remove(member)
            element.attrib.pop("size-in-bits", None)
            element.set("is-declaration-only", "yes")
    text = xml.etree.ElementTree.tostring(tree.getroot(), encoding="unicode")
    description.write_text(re.sub(r"\n+", "\n", text))


def write(folder, baseline, headers=None, renew=False):
    """Writes the description of the public headers (this tree's, or those of a copy) to the folder. It has the members
    that the baseline has, in their order, and what is new behind them only to renew it. Gives the file, the names of the functions, and what the
    baseline has and the headers have not, or have with another number."""
    headers = headers or SOURCE
    code = cc(headers, "-E", "-P", "-x", "c", "-", text=PROGRAM)
    macros = cc(headers, "-E", "-dM", "-x", "c", "-", text=PROGRAM)
    called = functions(code)
    members = {f"type_{name}": name for name in sorted(set(re.findall(r"\bhalyard_\w+_(?:t|fn)\b", code)))}
    members |= {f"function_{name}": f"__typeof__({name})" for name in called}
    pointers = "".join(f"{what}* {name};\n" for name, what in members.items())
    structs = dict(Types(describe(PROGRAM + pointers, headers, folder, "types")).growing())
    numbers = [f"abi_{name} = {name}" for name in constants(code, macros)]
    for struct, found in sorted(structs.items()):
        for field, number in found:
            if not number:
                members[f"field_{struct}__{field}"] = f"__typeof__(((struct {struct}*)0)->{field})"
            numbers.append(f"abi_{struct}__{field}__{number or 'type'} = (int)__builtin_offsetof(struct {struct}, {field})")
    wanted = Types(baseline).members("abi_surface")
    if renew:
        wanted += [name for name in members if name not in wanted]
    gone = [name for name in wanted if name not in members]
    surface = "".join(f"  {members[name]}* {name};\n" for name in wanted if name in members)
    enumeration = ",\n".join("  " + number for number in numbers)
    description = describe(f"{PROGRAM}struct abi_surface {{\n{surface}}} abi_surface;\n"
                           f"enum abi_numbers {{\n{enumeration}\n}} abi_numbers;\n", headers, folder, "surface")
    now = Types(description).numbers()
    for name, value in Types(baseline).numbers().items():
        if now.get(name) != value:
            gone.append(f"{name.removeprefix('abi_')} = {value} (now {now.get(name, 'nothing')})")
    make_small(description, structs)
    return description, called, gone


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        description, called, gone = write(pathlib.Path(folder), BASELINE, renew=True)
        for what in gone:
            print("no longer there:", what)
        pathlib.Path(sys.argv[1]).write_bytes(description.read_bytes())
    print(f"{sys.argv[1]}: {len(called)} functions, {pathlib.Path(sys.argv[1]).stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
