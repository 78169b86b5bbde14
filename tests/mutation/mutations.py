"""Small changes of C++ text: where they can be planted, and a text that has several of them behind a switch.

A host is an expression that can be written twice: a condition, a returned value, an assigned value, a call. A mutation is one
change in a host. planted() replaces each host by `(halyard_planted(N) ? (changed) : (as it was))`, so that one object file has
all mutations of a file, and a number given at run time selects one.
"""
import bisect
import dataclasses
import re

# What a mutation replaces, by kind: a pattern of masked text (comments and strings are blank) and its replacement.
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
          "LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}
RULES = (
    ("comparison", re.compile(r"(?<= )(<=|>=|==|!=|<|>)(?= )"), lambda found: TURNED[found]),
    # A comparison in code that the JIT writes: CreateICmpULT, ICMP_SLE.
    ("comparison", re.compile(r"(?<=CreateICmp)[US]?(LT|LE|GT|GE|EQ|NE)(?=\()|(?<=ICMP_)[US]?(LT|LE|GT|GE|EQ|NE)\b"),
     lambda found: found[:-2] + TURNED[found[-2:]]),
    ("logic", re.compile(r"(?<= )(&&|\|\|)(?= )"), lambda found: TURNED[found]),
    ("negation", re.compile(r"(?<![\w)\]!])!(?=[\w(*])"), lambda found: ""),
    ("bound", re.compile(r"(?<=[+-] )1(?![\w.'])"), lambda found: "0"),
    ("bound", re.compile(r"(?<![\w.'])(?<![+-] )[1-9]\d*(?=u?\b(?![.'\w]))"), lambda found: str(int(found) + 1)),
    ("status", re.compile(r"\bCode::[A-Z_]+\b"),
     lambda found: "Code::DATA_LOSS" if found != "Code::DATA_LOSS" else "Code::ABORTED"),
)
REQUIRES = re.compile(r"(?:\w+\.)?require\(")  # writes a check of the JIT
LEAVES = re.compile(r"(\s|\[\[\w+\]\]|\{)*(return|RAISE\w*|co_return|continue|break|goto)\b")
WORD = re.compile(r"\w")


@dataclasses.dataclass(frozen=True)
class Mutation:
    path: str
    line: int
    kind: str
    host: tuple  # (begin, end) in the text
    begin: int
    end: int
    replacement: str
    is_condition: bool
    was: str  # the line's text, without blanks around
    column: int  # in that text
    shown: str  # what is replaced

    def change(self) -> str:
        return {"check": "never holds", "step": "not called"}.get(self.kind, f"{self.shown} -> {self.replacement or 'nothing'}")

    def key(self) -> str:
        """Names the change without its line number, which other changes move."""
        return f"{self.path}: `{self.was}` at {self.column}: {self.change()}"


def masked(text: str) -> str:
    """The text with comments, strings, characters and preprocessor lines blank, in the same places."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|'
                         r"^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)

    def blank(match):
        found = match[0]
        inner = re.sub(r"[^\n]", " ", found)
        return f'"{inner[1:-1]}"' if found[0] in "\"'" else inner

    return pattern.sub(blank, text)


OPENING, CLOSING = "([{", ")]}"


def end_of(mask: str, begin: int, stops: str) -> int:
    """Where one of the stops, or the bracket that closes what is open at `begin`, first stands outside of brackets."""
    depth = 0
    for at in range(begin, len(mask)):
        letter = mask[at]
        if depth == 0 and (letter in stops or letter in CLOSING):
            return at
        if letter in OPENING:
            depth += 1
        elif letter in CLOSING:
            depth -= 1
    return len(mask)


def last_top_level(mask: str, begin: int, end: int, separator: str) -> int:
    """Behind the last separator outside of brackets, or `begin`."""
    depth, found = 0, begin
    for at in range(begin, end):
        if mask[at] in OPENING:
            depth += 1
        elif mask[at] in CLOSING:
            depth -= 1
        elif depth == 0 and mask.startswith(separator, at):
            found = at + len(separator)
    return found


def statement_start(mask: str, at: int) -> int:
    return max(mask.rfind(letter, 0, at) for letter in ";{}") + 1


def in_enum(mask: str, at: int) -> bool:
    """Whether the innermost open brace is that of an enumeration."""
    brace = mask.rfind("{", 0, at)
    return brace >= 0 and "}" not in mask[brace:at] and re.search(r"\benum\b[^;{}]*$", mask[:brace]) is not None


def without_tables(mask: str) -> str:
    """The mask with the tables that a lambda makes at compile time blank: what is planted there is never made."""
    for match in re.finditer(r"\bconstexpr auto \w+ = \[\] \{", mask):
        end = end_of(mask, match.end(), "")
        if mask.startswith("}();", end):
            mask = mask[:match.end()] + re.sub(r"[^\n]", " ", mask[match.end():end]) + mask[end:]
    return mask


def hosts(mask: str):
    """(begin, end, is a condition, a check may be removed) of every host."""
    for match in re.finditer(r"\b(if|while) \(", mask):
        begin, end = match.end(), end_of(mask, match.end(), "")
        condition = last_top_level(mask, begin, end, ";")
        declared = last_top_level(mask, condition, end, " = ")
        if declared == condition:
            yield condition, end, True, match[1] == "if" and bool(LEAVES.match(mask, end + 1))
    for match in re.finditer(r"\bfor \(", mask):
        end = end_of(mask, match.end(), "")
        first = end_of(mask, match.end(), ";")
        if first < end:
            yield first + 1, end_of(mask, first + 1, ";"), True, False
    for match in re.finditer(r"\b(?:co_)?return(?= )", mask):
        yield match.end(), end_of(mask, match.end(), ";"), False, False
    for match in re.finditer(r" (?:=|\+=|-=) ", mask):
        start = mask[statement_start(mask, match.start()):match.start()]
        if not in_enum(mask, match.start()) and not re.search(r"\b(constexpr|using|static_assert|enum|template|operator|requires)\b|\[[=&]?$", start):
            yield match.end(), end_of(mask, match.end(), ";,"), False, False
    for match in re.finditer(r"(?<=[;{})])\s+(?!(?:if|for|while|switch|return|sizeof|assert|HANDLER)\b)[A-Za-z_][\w:.>\[\]-]*\(", mask):
        begin = match.start() + len(match[0]) - len(match[0].lstrip())
        end = end_of(mask, begin, ";,")
        if end < len(mask) and mask[end] == ";":
            yield begin, end, False, False


def mutations(path: str, text: str) -> list:
    """Every mutation of a file's text, in its order."""
    mask = without_tables(masked(text))
    starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def line_of(at):
        return bisect.bisect_right(starts, at)

    def made(kind, host, begin, end, replacement, is_condition):
        line = line_of(begin)
        was = text[starts[line - 1]:].split("\n", 1)[0]
        column = begin - starts[line - 1] - (len(was) - len(was.lstrip()))
        return Mutation(path, line, kind, host, begin, end, replacement, is_condition, was.strip(), column, text[begin:end])

    found, spans = {}, []
    for begin, end, is_condition, is_check in sorted(set(hosts(mask)), key=lambda host: host[1] - host[0]):
        inside = mask[begin:end]
        if ";" in inside or not inside.strip() or inside.lstrip().startswith("{") or "constexpr" in inside:
            continue
        if any(begin < other_end and other_begin < end for other_begin, other_end in spans):
            continue  # a part of it is a host
        here = []
        for kind, pattern, replace in RULES:
            for match in pattern.finditer(mask, begin, end):
                here.append(made(kind, (begin, end), match.start(), match.end(), replace(match[0]), is_condition))
        if is_check:
            here.append(made("check", (begin, end), begin, end, "false", True))
        elif REQUIRES.match(mask, begin):
            here.append(made("check", (begin, end), begin, end, "static_cast<void>(0)", False))
        if here:
            spans.append((begin, end))
            for mutation in here:
                found.setdefault((mutation.begin, mutation.end), mutation)
    for match in re.finditer(r"(?<=[;{}\n])\s*(HALYARD_TRY\()", mask):
        end = end_of(mask, match.end(), "")
        if mask[end + 1:end + 2] != ";" or re.match(r";\s*else\b", mask[end + 1:]):
            continue
        begin = match.start(1)
        if not any(begin < other_end and other_begin < end for other_begin, other_end in spans):
            spans.append((begin, end))
            found[begin, end] = made("step", (begin, end + 1), begin, end + 1, "", False)
    return sorted(found.values(), key=lambda mutation: (mutation.begin, mutation.end))


def planted(text: str, numbered: dict) -> str:
    """The text with the mutations {number: mutation} behind switches; every line keeps its number."""
    by_host = {}
    for number, mutation in numbered.items():
        by_host.setdefault(mutation.host, []).append((number, mutation))
    for (begin, end), chosen in sorted(by_host.items(), reverse=True):
        original = text[begin:end]
        flat = re.sub(r"//[^\n]*", "", original).replace("\n", " ").strip()
        result = ""
        for number, mutation in chosen:
            if mutation.kind == "step":
                result = f"if (!halyard_planted({number})) {original}"
                continue
            changed = text[begin:mutation.begin] + mutation.replacement + text[mutation.end:end]
            changed = re.sub(r"//[^\n]*", "", changed).replace("\n", " ").strip()
            result += f"halyard_planted({number}) ? " + (f"static_cast<bool>({changed}) : " if mutation.is_condition else f"({changed}) : ")
        if chosen[0][1].kind != "step":
            last = f"static_cast<bool>({flat})" if chosen[0][1].is_condition else f"({flat})"
            blank = " " if original[:1] == " " else ""
            result = f"{blank}({result}{last})" + "\n" * original.count("\n")
        text = text[:begin] + result + text[end:]
    return text


def lines_of(text: str, function: str) -> set:
    """The lines of the definitions of a function, which begin in one line and end with a brace as far to the right."""
    found, lines = set(), text.splitlines()
    for first, line in enumerate(lines):
        if not re.match(rf"[^/]*[\w>&*] [&*]*(?:\w+::)?{function}\(", line) or re.match(r"\s*(return|else)\b", line):
            continue
        statement = "\n".join(lines[first:first + 6])
        if "{" not in statement or ";" in statement[:statement.index("{")]:
            continue
        if line.endswith("}"):
            found.add(first + 1)
            continue
        closing = line[:len(line) - len(line.lstrip())] + "}"
        last = next((at for at in range(first, len(lines)) if lines[at] == closing), first)
        found |= set(range(first + 1, last + 2))
    return found
