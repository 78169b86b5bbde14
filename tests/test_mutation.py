"""`./dev mutate` (tests/mutation): which changes it finds in sources, the text with the changes behind switches, and what a program
made of that text does for each number."""
import os
import re
import subprocess
import sys

from installed import SOURCE

sys.path.insert(0, str(SOURCE / "tests" / "mutation"))
import guards  # noqa: E402
import mutations  # noqa: E402
import mutate  # noqa: E402

TEXT = r"""#include <vector>
// a < b in a comment, "if (x) return;"
#define LIMIT (1 < 2)
enum Kind { kFirst = 1, kSecond = 2 };
constexpr int kSize = 3;
constexpr auto kTable = [] {
  for (int i = 1; i < 2; ++i) return i == 1;
  return false;
}();
static const char* kText = "a < b";
std::vector<int> values(int count) { return std::vector<int>(count); }
int clamp(int value, int low) {
  if (value < low && !values(low).empty()) return low;
  for (int i = 0; i < 2; ++i)
    value += 1;  // not a < b
  if (int other = value; other >= 10)
    return 10;
  const auto twice = [&](int it) { return it == 0 ? 0 : it * 2; };
  return twice(value) -
         1;
}
"""
# kind, line, change
EXPECTED = [
    ("check", 13, "never holds"), ("comparison", 13, "< -> <="), ("logic", 13, "&& -> ||"), ("negation", 13, "! -> nothing"),
    ("comparison", 14, "< -> <="), ("bound", 14, "2 -> 3"), ("bound", 15, "1 -> 2"),
    ("check", 16, "never holds"), ("comparison", 16, ">= -> >"), ("bound", 16, "10 -> 11"), ("bound", 17, "10 -> 11"),
    ("comparison", 18, "== -> !="), ("bound", 18, "2 -> 3"), ("bound", 20, "1 -> 2"),
]
MAIN = """
#include <cstdio>
int main() { for (int value : {-3, 0, 4, 9}) std::printf("%d ", clamp(value, 1)); }
"""
# The JIT writes checks with calls.
EMITTED = """\
void Guard::index(Value* index) {
  guard.require(b.CreateICmpULT(index, b.getInt64(8)));
  if (compare->getPredicate() == CmpInst::ICMP_SGE) use(index);
}
bool Guard::is_small(int x) const { return x < 4; }
"""
EXPECTED_EMITTED = [("check", 2, "never holds"), ("comparison", 2, "ULT -> ULE"), ("bound", 2, "8 -> 9"), ("comparison", 3, "== -> !="),
                    ("comparison", 3, "SGE -> SGT"), ("comparison", 5, "< -> <="), ("bound", 5, "4 -> 5")]
# Inputs of the text masked() that are hard to read.
MASKED = {
    "int a = 1'000; // x": "int a = 1'000;     ",
    'f("a\\"b", \'\\\'\', 2)': 'f("    ", "  ", 2)',
    "/* a\nb */c": "    \n    c",
    "#define A \\\n  1\nb": "           \n   \nb",
}


def planted_program(checks, folder, found):
    """A program with all changes: without a number it does what the text says, with one something else."""
    numbered = dict(enumerate(found, 1))
    text = mutations.planted(TEXT, numbered)
    checks.check("lines keep their numbers", None if text.count("\n") == TEXT.count("\n") else text)
    source, program = folder / "planted.cpp", folder / "planted"
    source.write_text(text + MAIN)
    place = SOURCE / "tests" / "mutation"
    runtime = folder / "runtime.o"
    for command in (["cc", "-c", place / "planted.c", "-o", runtime],
                    ["g++", "-std=c++20", "-w", "-include", place / "planted.h", source, runtime, "-o", program]):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            return checks.check("it compiles", done.stderr[:2000])
    reached = folder / "reached"
    reached.write_bytes(bytes(65536))

    def output(number):
        environment = {**os.environ, "HALYARD_MUTANT": str(number), "HALYARD_MUTANTS_REACHED": str(reached)}
        return subprocess.run([program], env=environment, capture_output=True, text=True, timeout=900).stdout

    original = output(0)
    checks.check("without a change", None if original == "1 1 11 10 " else f"it prints {original}")
    same = [found[number - 1].change() + f" in line {found[number - 1].line}" for number in numbered if output(number) == original]
    # The changes of a limit that these numbers do not meet.
    checks.check("each change has an effect", None if len(same) <= 4 else f"these have none: {same}")
    missing = [number for number in numbered if not reached.read_bytes()[number]]
    checks.check("all are reached", f"not {missing}" if missing else None)


def check_command_line(checks):
    def run(*arguments):
        return subprocess.run([sys.executable, SOURCE / "tests/mutation/mutate.py", *arguments], capture_output=True, text=True, cwd=SOURCE, timeout=60)

    listed = run("modules/src/modules/gguf.cpp", "--list", "--count=5")
    checks.check("--list", None if listed.returncode == 0 and listed.stdout.endswith("5 changes\n") else "no five changes", listed)
    checks.check("the same again", None if run("modules/src/modules/gguf.cpp", "--list", "--count=5").stdout == listed.stdout else "others")
    other = run("modules/src/modules/gguf.cpp", "--list", "--count=5", "--seed=2")
    checks.check("another seed", None if other.stdout != listed.stdout else "the same changes")
    for arguments, message in ((("nowhere",), "there is no 'nowhere'"), (("docs",), "no tests are known for docs"),
                               (("channels",), "no tests are known for channels/"), (("vm", "--count=-1"), "--count is -1"),
                               (("modules/src/modules/gguf.cpp", "--build=tests"), "not a configured build")):
        wrong = run(*arguments)
        checks.check(" ".join(arguments), None if wrong.returncode == 1 and message in wrong.stderr else f"expected '{message}'", wrong)
    helped = run("--help")
    checks.check("--help", None if helped.returncode == 0 and "usage: ./dev mutate" in helped.stdout else "no help", helped)


def main(checks, folder):
    for text, expected in MASKED.items():
        masked = mutations.masked(text)
        checks.check(f"masked {text!r}", None if len(masked) == len(text) and masked.split() == expected.split() else f"it is {masked!r}")
    found = mutations.mutations("a.cpp", TEXT)
    listed = [(it.kind, it.line, it.change()) for it in found]
    checks.check("the changes", None if sorted(listed) == sorted(EXPECTED) else f"missing {set(EXPECTED) - set(listed)}, other {set(listed) - set(EXPECTED)}")
    emitted = [(it.kind, it.line, it.change()) for it in mutations.mutations("b.cpp", EMITTED)]
    checks.check("changes of written code", None if sorted(emitted) == sorted(EXPECTED_EMITTED) else f"they are {emitted}")
    lines = {name: mutations.lines_of(EMITTED, name) for name in ("index", "is_small", "require", "use")}
    checks.check("lines of functions", None if lines == {"index": {1, 2, 3, 4}, "is_small": {5}, "require": set(), "use": set()} else f"{lines}")
    checks.check("keys are unique", None if len({it.key() for it in found}) == len(found) else "they are not")
    planted_program(checks, folder, found)
    check_command_line(checks)
    for prefix in guards.GUARDS:
        checks.check(f"the guard of {prefix}", None if (SOURCE / prefix).exists() else "it guards nothing")
    for name in guards.PLACES:
        found = mutate.changes([name])
        checks.check(f"places of {name}", None if len(found) > 50 and all(guards.guard_of(it.path) for it in found) else f"{len(found)} changes")
    known = {it.key() for path in {key.split(":", 1)[0] for key in mutate.equivalent()}
             for it in mutations.mutations(path, (SOURCE / path).read_text())}
    gone = sorted(set(mutate.equivalent()) - known)
    checks.check("changes in equivalent.txt are still there", f"not {gone}" if gone else None)
    checks.check("each has a reason", None if all(len(why.split()) > 2 for why in mutate.equivalent().values()) else "one has none")
