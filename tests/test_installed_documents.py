"""The documents that are installed: every link leads to a file of the prefix and to a heading in it, every path that is named
is there, also by headers, examples, manual pages and CMake files; and the program that they begin with runs."""
import pathlib
import re

import vmrun
from installed import BUILD, SOURCE, cache, run

# [text](target), [name]: target, <img src="target">.
LINK = re.compile(r"""!?\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]:[ \t]+(\S+)|<(?:a|img)\b[^>]*\b(?:href|src)="([^"]+)\"""",
                  re.MULTILINE)
# Paths of an installed Halyard; in examples, which are copied out, there are no others.
INSTALLED = re.compile(r"`((?:share|include|bin|lib)/[\w./-]+)`")
OF_THE_TREE = re.compile(r"`((?:docs|drivers|hal|tools|tests|modules|vm|base)/[\w./-]*\w)`")


def text_of(path):
    """Without code, in which brackets are code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path):
    """The names of its headings, as web pages make them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE):
        words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def check_links(checks, prefix, document):
    name = document.relative_to(prefix)
    for target in map("".join, LINK.findall(re.sub(r"`[^`\n]*`", "", text_of(document)))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (document.parent / path).resolve() if path else document
        found = None
        if not there.exists():
            found = "nothing is there"
        elif not there.is_relative_to(prefix):
            found = "it leads out of the prefix"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            found = "there is no such heading"
        checks.check(f"{name}: {target}", found)


def headings(path):
    return {re.sub(r"^[\d.]+ ", "", heading.replace("`", "")) for heading in re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)}


def check_mentions(checks, prefix, file):
    """What other files name: documents, a heading with them (hal-types.md, "Element types"), and headers."""
    name = file.relative_to(prefix)
    text = file.read_text(encoding="utf-8", errors="replace")
    text = text.replace("\\-", "-")  # in manual pages
    text = re.sub(r"\n[ \t]*(?:\*|//)?[ \t]*", " ", text)  # a citation may go on in the next line of a comment
    documents = prefix / "share/doc/halyard"
    for path, heading in re.findall(r'(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.md)\b(?:, "([^"]+)")?', text):
        there = [at for at in (documents / path, file.parent / path) if at.exists()]
        found = None if there else "nothing is there"
        if there and heading and not any(each.startswith(heading) for each in headings(there[0])):
            found = f"it has no heading '{heading}'"
        checks.check(f"{name}: {path} {heading}", found)
    for path in re.findall(r"[<\"\s(](halyard/\w+\.hp?p?)\b", text):
        checks.check(f"{name}: {path}", None if (prefix / "include" / path).exists() else "this header is not installed")


def check_paths(checks, prefix, document):
    name = document.relative_to(prefix)
    lib = cache("CMAKE_INSTALL_LIBDIR")
    text = document.read_text(encoding="utf-8")
    for path in INSTALLED.findall(text):
        if re.match("lib/halyard/channels/", path) and not pathlib.Path(BUILD, path).exists():
            continue  # for an MPI that was not there when this was built
        there = prefix / re.sub(r"^lib/", lib + "/", path)
        checks.check(f"{name}: `{path}`", None if there.exists() else "nothing is there")
    for path in OF_THE_TREE.findall(text):
        if "examples" in name.parts[:3]:
            checks.check(f"{name}: `{path}`", "it is a path of the source tree, which readers of this do not have")


def main(checks, folder):
    vmrun.need_tool("vm-run")
    prefix = folder / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    documents = sorted((prefix / "share").rglob("*.md"))
    checks.check("documents are installed", None if len(documents) > 30 else f"there are {len(documents)}")
    for document in documents:
        check_links(checks, prefix, document)
        check_paths(checks, prefix, document)
    others = [path for folder in ("include", "share/halyard", "share/man", cache("CMAKE_INSTALL_LIBDIR") + "/cmake",
                                  cache("CMAKE_INSTALL_LIBDIR") + "/pkgconfig")
              for path in sorted((prefix / folder).rglob("*")) if path.is_file() and path.suffix not in (".md", ".gz")]
    checks.check("other texts are installed", None if len(others) > 30 else f"there are {len(others)}")
    for other in others:
        check_mentions(checks, prefix, other)
    written = {path.relative_to(SOURCE / "docs") for path in (SOURCE / "docs").rglob("*.md")}
    missing = [str(path) for path in written if not (prefix / "share/doc/halyard/docs" / path).exists()]
    checks.check("all of docs/ is there", f"{missing} are not" if missing else None)

    program = prefix / "share/doc/halyard/examples/elementwise_mul.vmasm"
    printed = run(prefix / "bin/vm-run", "--device=local-sync", f"--module={program}", "--function=mul",
                  "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2")
    checks.check("the program runs", None if "8xf32=2 4 6 8 10 12 14 16" in printed else printed)
    says_so = "put your own format here" in program.read_text(encoding="utf-8")
    checks.check("the program says where the format stands", None if says_so else "it does not")
    kernels = prefix / "share/halyard/examples/hal-cts-kernels"
    run(prefix / "bin/vm-as", kernels / "device_code.vmasm", f"--output={folder}/kernels.vmfb")
    cts = run(prefix / "bin/hal-cts", f"--driver={prefix / cache('CMAKE_INSTALL_LIBDIR')}/halyard/drivers/halyard-driver-local.so",
              f"--executable=vmvx-bytecode-fb={folder}/kernels.vmfb", "--filter=dispatch.workgroups_of_several")
    checks.check("the kernels are those of the cases", None if ", 0 failed, 0 skipped" in cts else cts)
