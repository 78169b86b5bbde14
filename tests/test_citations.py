"""Citations in comments are valid: `isa.md, section 5.2`, `hal-types.md, "Element types"`, ruling 11, rule R34.

Every page that a source names must exist, with that section or heading. The check is tested with planted wrong
citations, which it must all find.
"""

import pathlib
import re
import subprocess

from installed import SOURCE

SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".inc", ".fbs", ".py", ".cmake", ".vmasm", ".md", ".txt", ".map"}

PAGE = re.compile(r'(?<![\w./-])(?:docs/)?(?:spec/)?([a-z][a-z0-9]*(?:-[a-z0-9]+)*\.md)\b')
# What may follow a page's name: `, section 3`, ` sections 3 and 5.9`, `, "Heading"`, ` ("One", "Two")`, ` 3.2`.
PLACES = re.compile(r'`?(?:,| )\s*\(?(?:(?:sections?|§)\s*((?:\d+(?:\.\d+)*)(?:(?:, | and |, and )\d+(?:\.\d+)*)*)'
                    r'|((?:"[^"]+")(?:(?:, | and )"[^"]+")*))')
RULING = re.compile(r'\b[Rr]ulings? (\d+)(?:(?:, | and )(\d+))*')
RULE = re.compile(r'\bR(\d{1,3})\b')


def sources():
    names = subprocess.run(["git", "-C", SOURCE, "ls-files"], capture_output=True, text=True)
    files = [SOURCE / name for name in names.stdout.splitlines()] if names.returncode == 0 else SOURCE.rglob("*")
    return [file for file in files if file.suffix in SUFFIXES and file.is_file() and "build" not in file.parts]


def pages():
    """{file name: its text} of every page; of two with one name, the specification's."""
    found = {}
    for file in sorted(SOURCE.rglob("*.md"), key=lambda path: "spec" in path.parts):
        if "build" not in file.relative_to(SOURCE).parts:
            found[file.name] = file.read_text()
    return found


def headings(text):
    return re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)


def has_section(text, number):
    return any(re.match(rf"{re.escape(number)}[. ]", heading + " ") for heading in headings(text))


def has_heading(text, wanted):
    plain = wanted.replace("`", "").lower()
    return any(re.sub(r"^[\d.]+ ", "", heading.replace("`", "").lower()).startswith(plain) for heading in headings(text))


def unwrapped(text):
    """One line: a citation may be broken over lines of a comment."""
    return re.sub(r"\n[ \t]*(?://+|#|\*(?!/)|\||;)?[ \t]*", " ", text)


def wrong_citations(text, known):
    wrong = []
    text = unwrapped(text)
    for match in PAGE.finditer(text):
        page = match[1]
        if page not in known:
            wrong.append(f"{page}: there is no such page")
            continue
        places = PLACES.match(text, match.end())
        if not places:
            continue
        for number in re.findall(r"\d+(?:\.\d+)*", places[1] or ""):
            if not has_section(known[page], number):
                wrong.append(f"{page}, section {number}: the page has no such section")
        for heading in re.findall(r'"([^"]+)"', places[2] or ""):
            if not has_heading(known[page], heading.rstrip(",.")):
                wrong.append(f'{page}, "{heading}": the page has no such heading')
    rulings = known.get("rulings.md", "")
    for match in RULING.finditer(text):
        for number in re.findall(r"\d+", match[0]):
            if not re.search(rf"^\| {number} \|", rulings, re.MULTILINE):
                wrong.append(f"ruling {number}: rulings.md has no such ruling")
    return wrong


PLANTED = {
    "// Specified by nothing.md.": "nothing.md",
    "// Specified by isa.md, section 99.": "section 99",
    "// isa.md, sections 4 and\n// 5.77, say so": "section 5.77",
    '// hal-types.md,\n// "No such heading"': "No such heading",
    '// hal-types.md ("Element types", "Nor this")': "Nor this",
    "// (ruling 4711)": "ruling 4711",
}


def main():
    known = pages()
    failures, citations = [], 0
    for text, expected in PLANTED.items():
        found = wrong_citations(text, known)
        if len(found) != 1 or expected not in found[0]:
            failures.append(f"planted {text!r}: expected '{expected}' to be found, found {found}")
    if wrong_citations('// isa.md, section 4; hal-types.md, "Element types"; ruling 5', known):
        failures.append("right citations are taken for wrong ones")
    rules = set(RULE.findall(known.get("driver-abi.md", "")))
    for file in sources():
        if file.name == pathlib.Path(__file__).name:
            continue
        text = file.read_text(errors="replace")
        citations += len(PAGE.findall(text))
        for wrong in wrong_citations(text, known):
            failures.append(f"{file.relative_to(SOURCE)}: {wrong}")
        # Rules of the driver ABI, where they are named as such.
        for number in re.findall(r"\[R(\d+)\]", text):
            if number not in rules:
                failures.append(f"{file.relative_to(SOURCE)}: [R{number}]: driver-abi.md has no such rule")
    if citations < 100:
        failures.append(f"only {citations} citations were found; has their form changed?")
    print(f"{citations} citations")
    return failures
