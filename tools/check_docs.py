#!/usr/bin/env python3
"""Checks that the documents speak of what exists.

Usage: tools/check_docs.py [DOCUMENT...]     (default: every document of the project)

In README.md, CONTRIBUTING.md, docs/*.md and the SPEC.md and NOTES.md of the stages:
  - relative links lead to a file, and their anchors to a heading;
  - back-quoted files exist: a path of the tree, the end of one (`fz/stream.h`) or a pattern
    (`*_codec.h`, `<stage>_op.cuh`);
  - back-quoted names of ours occur in the sources: functions, types, constants, FZ_ names, options,
    `make` targets and sub-commands of `fz`;
  - commands and includes in blocks of code name existing files and targets.
Names that begin with my_ or mine are examples. A paragraph of a NOTES.md that names a commit speaks
of the past and may name what is gone.

  - in docs/ and README.md no paragraph or item has more than 120 words (tables and code left out);
  - docs/performance.md stays under 10 kB;
  - its tables and those of docs/missing_values.md and docs/choosing.md (and the picture there) are
    those of bench/results.
Prints file:line: what is wrong; exits with 1 when there is something.
"""

import argparse
import builtins
import fnmatch
import re
import sys
from pathlib import Path, PurePosixPath

import missing_values_tables
import performance_tables
import ratio_tables
from check_forbidden import all_files

ROOT = Path(__file__).resolve().parent.parent
MAX_WORDS = 120
PAGES_OF_RESULTS = (performance_tables, missing_values_tables, ratio_tables)
MAX_BYTES = {"docs/performance.md": 10_000}
FILE_ENDS = (".h", ".cc", ".cu", ".cuh", ".cpp", ".c", ".f90", ".py", ".md", ".toml", ".cmake")

DOCUMENT = re.compile(r"(README|CONTRIBUTING)\.md|docs/[^/]+\.md|modules/.+/(SPEC|NOTES)\.md")
PAST = re.compile(r"\bcommit [0-9a-f]{7,40}\b")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([^`\n]+)`")
INCLUDE = re.compile(r'^\s*#include ["<]((?:fz|pipeline|stage|mem)/[\w./]+|fz\w*\.h)[">]')
# A name that can be looked up: one with a hump, an underscore inside, or a call.
NAME = re.compile(r"(?<![\w.-])[A-Za-z]\w*(?:(?:::|\.)[A-Za-z]\w*)*(?P<call>\(\)?)?")
HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")

# Names of other projects, which our sources need not contain.
FOREIGN = re.compile(
    r"cuda[A-Z]|nvrtc|H5|MPI_|HDF5_|XDG_|std::|np\.|numpy|numcodecs\.|cupy|torch|zarr\.|xarray|dask|"
    r"__|_FillValue|to_zarr"
)
# How a kind of name is written; nothing is called so.
SPELLINGS = {"CamelCase", "camelBack", "snake_case", "FZ_MACRO", "kConstant"}
# Options of other programs, and programs whose options are not looked at.
FOREIGN_OPTIONS = {"--config-settings", "--fmad"}
FOREIGN_PROGRAM = re.compile(r"(git|pip|cmake|ctest|mpiexec|h5repack|pre-commit) ")


def is_example(word: str) -> bool:
    return any(part.startswith(("my_", "mine")) for part in re.split(r"[/.=:]", word))


class Tree:
    """The files of the project and the words of its sources."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = all_files(root)
        self.folders = {str(parent) for name in self.files for parent in PurePosixPath(name).parents}
        self.top = {name.split("/")[0] for name in self.files if "/" in name}
        self.words: set[str] = set()
        self.options: set[str] = set()
        self.commands: set[str] = set()
        for name in self.files:
            if not name.endswith(".md") and "/golden" not in name:
                self.read_source(name)
        self.targets = self.make_targets()

    def read_source(self, name: str) -> None:
        data = (self.root / name).read_bytes()
        if b"\0" in data:
            return
        text = data.decode("utf-8", errors="replace")
        self.words.update(re.findall(r"[A-Za-z_]\w*", text))
        self.options.update(OPTION.findall(text))
        if name.startswith("cli/"):
            self.commands.update(re.findall(r'add_subcommand\(\s*"(\w+)"', text))

    def make_targets(self) -> set[str]:
        makefile = self.root / "Makefile"
        text = makefile.read_text() if makefile.is_file() else ""
        return set(re.findall(r"^([a-z][\w-]*):", text, re.M))

    def has_file(self, path: str) -> bool:
        """Whether a path, the end of one, or a pattern for either names something of the tree."""
        path = path.rstrip("/")
        pattern = re.sub(r"<[^<>]*>", "*", path)
        if "*" in pattern:
            return any(fnmatch.fnmatch(f"/{name}", f"*/{pattern}") for name in self.files)
        if path in self.folders or path in self.files:
            return True
        # A header may be generated from a template.
        ends = (f"/{path}", f"/{PurePosixPath(path).name}.in")
        return any(f"/{name}".endswith(ends) for name in self.files)


class Paragraphs:
    """A document in parts: (first line, text, whether it is code)."""

    def __init__(self, text: str) -> None:
        self.parts: list[tuple[int, str, bool]] = []
        self.start, self.lines, self.in_code = 1, [], False
        fenced, in_list = False, False
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("```"):
                self.close()
                fenced = not fenced
            elif fenced:
                self.add(number, line, code=True)
            elif not line.strip():
                self.close()
            elif line.startswith("    ") and not in_list:
                self.add(number, line, code=True)
            else:
                begins = re.match(r"\s*(?:[-*+]|\d+\.) |\||#", line)
                in_list = bool(begins and line.lstrip()[0] not in "|#") or (in_list and line[0] == " ")
                if begins or self.in_code:
                    self.close()
                self.add(number, line, code=False)
        self.close()

    def add(self, number: int, line: str, code: bool) -> None:
        if not self.lines:
            self.start, self.in_code = number, code
        self.lines.append(line)

    def close(self) -> None:
        if self.lines:
            self.parts.append((self.start, "\n".join(self.lines), self.in_code))
        self.lines, self.in_code = [], False


def anchors(text: str) -> set[str]:
    """What a link may name behind '#', by the rule of the usual renderers."""
    titles = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Checker:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.errors: list[str] = []

    def check(self, path: str) -> None:
        text = (self.tree.root / path).read_text(encoding="utf-8")
        for line, part, is_code in Paragraphs(text).parts:
            problems = self.code_problems(part) if is_code else self.prose_problems(path, part)
            self.errors += [f"{path}:{line}: {problem}" for problem in problems]
            if path.startswith(("docs/", "README")) and not is_code and not part.startswith("|"):
                self.check_length(path, line, part)
        n_bytes = len(text.encode())
        if n_bytes >= MAX_BYTES.get(path, n_bytes + 1):
            self.errors.append(f"{path}:1: {n_bytes} bytes; it must stay under {MAX_BYTES[path]}")
        for page in PAGES_OF_RESULTS:
            if path == page.PAGE and not page.is_current(self.tree.root):
                self.errors.append(f"{path}:1: the tables are not those of {page.RESULTS}; run {page.WRITER}")

    def check_length(self, path: str, line: int, part: str) -> None:
        n_words = len(part.split())
        if n_words > MAX_WORDS:
            self.errors.append(f"{path}:{line}: a paragraph of {n_words} words; at most {MAX_WORDS}")

    def prose_problems(self, path: str, part: str) -> list[str]:
        problems = [f"link to {target}: {why}" for target in LINK.findall(part)
                    if (why := self.link_problem(path, target))]
        if not PAST.search(part) or not path.endswith("NOTES.md"):
            for quoted in QUOTED.findall(part):
                problems += [f"`{quoted}`: {why}" for why in self.quoted_problems(path, quoted)]
        return problems

    def link_problem(self, path: str, target: str) -> str:
        if re.match(r"[a-z]+:", target):
            return ""
        name, _, anchor = target.partition("#")
        file = self.tree.root / PurePosixPath(path).parent / name if name else self.tree.root / path
        if not file.exists():
            return "no such file"
        if anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            return f"no heading gives #{anchor}"
        return ""

    def quoted_problems(self, path: str, quoted: str) -> list[str]:
        problems = self.command_problems(quoted)
        for word in quoted.split():
            word = word.strip("\"'(),;:")
            if self.is_path(word):
                if not self.has_file(path, word):
                    problems.append(f"no file {word}")
                quoted = quoted.replace(word, " ")
        for option in [] if FOREIGN_PROGRAM.match(quoted) else OPTION.findall(quoted):
            if option not in self.tree.options and option not in FOREIGN_OPTIONS:
                problems.append(f"no option {option}")
        return problems + self.name_problems(quoted)

    def has_file(self, path: str, word: str) -> bool:
        return is_example(word) or self.tree.has_file(word) or (
            self.tree.has_file(str(PurePosixPath(path).parent / word)))

    def is_path(self, word: str) -> bool:
        """Whether a word looks like a file or folder of the tree."""
        if not re.fullmatch(r"[\w.*/<>-]+", word):
            return False
        return word.split("/")[0] in self.tree.top and "/" in word or (
            word.endswith(FILE_ENDS) and not word.startswith((".", "/", "build/")))

    def command_problems(self, text: str) -> list[str]:
        problems = []
        for line in text.split("\n"):
            words = line.strip().removeprefix("$ ").split("#")[0].split("|")[0].split("&&")[0].split()
            if len(words) > 1 and words[0] == "make":
                problems += [f"no target {word} in the Makefile" for word in words[1:]
                             if re.fullmatch(r"[a-z][\w-]*", word) and word not in self.tree.targets]
            if len(words) > 1 and words[0] == "fz" and self.tree.commands:
                if re.fullmatch(r"[a-z]+", words[1]) and words[1] not in self.tree.commands:
                    problems.append(f"fz has no command {words[1]}")
        return problems

    def name_problems(self, text: str) -> list[str]:
        problems = []
        for found in NAME.finditer(re.sub(r"\"[^\"]*\"", " ", text)):
            name = found.group().rstrip("()")
            last = re.split(r"::|\.", name)[-1]
            if not found.group("call") and not HUMP.search(last):
                continue
            if FOREIGN.match(name) or last in SPELLINGS or is_example(name) or hasattr(builtins, last):
                continue
            if last not in self.tree.words:
                problems.append(f"{last} does not occur in the sources")
        return problems

    def code_problems(self, text: str) -> list[str]:
        problems = self.command_problems(text)
        for line in text.split("\n"):
            include = INCLUDE.match(line)
            words = [include.group(1)] if include else [
                word for word in re.findall(r"(?<![\w./-])[\w.-]+/[\w./-]*\w", line)
                if word.split("/")[0] in self.tree.top - {"fz"}]
            problems += [f"no file {word}" for word in words
                         if not is_example(word) and not self.tree.has_file(word)]
        return problems


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="*", metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    checker = Checker(Tree(ROOT))
    names = [Path(name).resolve().relative_to(ROOT).as_posix() for name in options.documents]
    for name in names or [name for name in checker.tree.files if DOCUMENT.fullmatch(name)]:
        checker.check(name)
    for problem in checker.errors:
        print(problem)
    return 1 if checker.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
