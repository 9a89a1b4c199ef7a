#!/usr/bin/env python3
"""Checks the source rules that no compiler and no clang-tidy check covers.

Usage: tools/check_forbidden.py [FILE...]     (default: every file of the project)

Prints file:line: what is wrong and why; exits with 1 when there is anything.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent

CODE = (".h", ".cc", ".cu", ".cuh", ".in")
MAX_LINES = 500
MAX_CUDA_LINES = 600  # one kernel may need them
# File names of all stages' product code together: who knows one stage finds the way in all others.
MAX_FILE_WORDS = 40
WHOLE_IN_ONE = {"include/fz.h"}  # the C interface, which its users and bindings read as one file
SKIPPED_FOLDERS = {".git", "build", "__pycache__"}


@dataclass(frozen=True)
class Rule:
    """A pattern in code (comments taken out), where it may stand nevertheless, and why not."""

    pattern: str
    reason: str
    within: tuple[str, ...] = ("",)  # path prefixes that the rule looks at
    allowed: tuple[str, ...] = ()  # path prefixes that it leaves out
    tests: bool = True  # whether it also holds for tests of a stage
    marker: str = ""  # a comment on the same line that lifts it


APPLICATIONS = ("cli/", "tests/", "examples/", "bench/")
LIBM = "log|log2|log10|log1p|exp|exp2|expm1|pow|sin|cos|tan|cbrt|hypot|fma|lround|llround|lrint|llrint|rint|nearbyint"

# Of a stage's folder only the headers with a stage's name are installed.
INSTALLED_STAGE_HEADERS = tuple(
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "modules").glob("*/*/*.h"))
    if path.stem == path.parent.name or path.stem.endswith("_stage") or path.parent.name == "signed_map"
)

RULES = (
    Rule(
        r"\b__CUDACC__\b|\b__CUDA_ARCH__\b",
        "only the shared primitives look at the compiler; codec text is the same on both sides",
        allowed=tuple(f"src/shared/{name}.h" for name in ("host_device", "fp", "fp_fused", "bits", "team"))
        + ("src/backends/cuda/block_barrier.cuh",)  # an instruction of newer devices
        + ("examples/custom_gpu_stage/offset_map.h",),  # has public headers only
    ),
    Rule(
        r"\bcuda(Malloc|Free)\w*\s*\(",
        "device memory comes from the pool of the CUDA backend",
        allowed=("src/backends/cuda/", "tests/", "examples/", "bench/"),
        tests=False,
    ),
    Rule(
        rf"(?<![\w.>:])(?:std::|::)?(?:__)?(?:{LIBM})[fl]?\s*\(",
        "libm differs between host and device; use fz::fp and integer bit work, or for reading "
        "old streams say so: // legacy libm: <why>",
        marker=r"//\s*legacy libm:\s*\S",
        within=("modules/",),
        tests=False,
    ),
    Rule(
        r"-use_fast_math|--use_fast_math|-ffast-math|-Ofast\b",
        "value-changing optimisation breaks the error bound and equal bytes",
    ),
    Rule(
        r"\batomicAdd\b",
        "no position or byte may depend on the order of atomics; "
        "where the order cannot matter, say so: // order-free: <why>",
        marker=r"//\s*order-free:\s*\S",
    ),
    Rule(
        r"(?<![\w.>])(?:std::)?(?:f?printf|puts|abort|_?[eE]xit|quick_exit|terminate)\s*\("
        r"|\bstd::(?:cout|cerr|clog)\b",
        "the library neither prints nor ends the process; throw fz::Error or use log.h",
        within=("include/", "src/", "modules/"),
        allowed=("src/core/log.cc",),
        tests=False,
    ),
    Rule(
        r"\bstd::runtime_error\b",
        "one exception type: throw fz::Error through FZ_REQUIRE",
        allowed=("include/fz/error.h", *APPLICATIONS),
        tests=False,
    ),
    Rule(
        r"\bFZ_HAVE_\w+",
        "an installed header must not depend on how the library was built: a program would see "
        "another class than the library",
        within=("include/", *INSTALLED_STAGE_HEADERS),
    ),
    Rule(
        r"\b\w*(?:eb|bound|tol)\w*\b[^;\n]*\*\s*1\.0\d*[1-9]|\b1\.0\d*[1-9]f?\s*\*[^;\n]*\b\w*(?:eb|bound|tol)\w*\b",
        "an error bound has no slack",
    ),
)

# A machine's own folders have no place in the project. (Written so that this line passes.)
MACHINE_PATH = re.compile(r"(?<![\w.}$>])/(?:wor[k]|hom[e]|roo[t]|User[s]|scratc[h])/\w")


def layer(path: str) -> str:
    """The layer a file belongs to; see LAYERS."""
    parts = PurePosixPath(path).parts
    if path.startswith("include/"):
        high = path == "include/fzgpumodules.h" or path.startswith("include/pipeline/")
        return "public pipeline" if high else "public"
    if parts[0] == "modules":
        if is_test(path):
            return "top"
        return "codec" if re.search(r"[/_]codec[a-z_]*\.h$", path) else "stage"
    if path.startswith("src/backends/cuda/groups/") and path.endswith((".cu.in", ".cuh")):
        return "groups"  # where ops of several stages become kernels
    if parts[0] == "src" and len(parts) > 2:
        return {"shared": "shared", "core": "core", "backends": "core"}.get(parts[1], "pipeline")
    return "top"


def room(path: str) -> int:
    """The rank in ROOMS of a file of src/pipeline, -1 of any other."""
    parts = PurePosixPath(path).parts
    if parts[:2] != ("src", "pipeline"):
        return -1
    if parts[2] in ROOMS:
        return ROOMS.index(parts[2])
    stem = parts[2].split(".")[0]
    rooms = [name for name, stems in FILES_OF_ROOMS.items() if stem in stems]
    return ROOMS.index(rooms[0] if rooms else "calls")


# Which layers a layer may include. "top" (tools, tests, examples, bindings) may include all.
LAYERS = {
    "shared": {"shared"},
    "public": {"public"},
    "codec": {"shared", "codec", "public"},
    "core": {"shared", "public", "core"},
    "stage": {"shared", "public", "core", "codec", "stage"},
    "public pipeline": {"public", "public pipeline"},
    "pipeline": {"shared", "public", "core", "public pipeline", "pipeline"},
}
# Rooms of src/pipeline from the bottom up; each may include those before it. Files beside the
# folders are the ground, or what calls work on (core), or the calls themselves.
ROOMS = ("ground", "plan", "run", "frame", "core", "device", "calls")
FILES_OF_ROOMS = {
    "ground": {"graph", "perf", "pipeline_access", "pool_buffer", "stat"},
    "core": {"dag", "pipeline_core"},
}
# The umbrella is the one public header that names stages, through the generated list.
UMBRELLA = "include/fzgpumodules.h"

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
TOOLKIT = re.compile(r"^\s*#\s*include\s*<(?:cuda|cub/|thrust/|cooperative_groups|nvrtc)", re.M)
COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S
)


def is_test(path: str) -> bool:
    return path.startswith("tests/") or "/tests/" in path or re.search(r"_(test|bench)[a-z_]*\.(cc|cu|h)$", path) is not None


def without_comments(text: str) -> str:
    """The code with comments blanked, line numbers kept."""

    def blank(match: re.Match) -> str:
        found = match.group()
        return re.sub(r"[^\n]", " ", found) if found.startswith("/") else found

    return COMMENT_OR_TEXT.sub(blank, text)


def stage_folder(path: str) -> str:
    """modules/<category>/<stage> of a file in there, else nothing."""
    parts = PurePosixPath(path).parts
    return "/".join(parts[:3]) if len(parts) > 3 and parts[0] == "modules" else ""


def included_file(includer: str, name: str) -> str:
    """The project file behind a quoted include, or nothing."""
    folder = str(PurePosixPath(includer).parent)
    for base in ("include", "modules", "src", folder, "tests"):
        if (ROOT / base / name).is_file():
            return f"{base}/{name}"
    return ""


class Checker:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def report(self, path: str, line: int, what: str) -> None:
        self.problems.append(f"{path}:{line}: {what}")

    def check(self, path: str) -> None:
        data = (ROOT / path).read_bytes()
        if b"\0" in data or path.endswith(".bin"):
            return
        try:
            text = data.decode("ascii")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self.report(path, line, "sources are ASCII only")
            text = data.decode("utf-8", errors="replace")
        self.check_text(path, text)
        if path.endswith(CODE):
            code = without_comments(text)
            self.check_rules(path, text, code)
            self.check_includes(path, code)

    def check_text(self, path: str, text: str) -> None:
        lines = text.split("\n")
        if text and not text.endswith("\n"):
            self.report(path, len(lines), "no newline at the end of the file")
        max_lines = MAX_CUDA_LINES if path.endswith((".cu", ".cuh")) else MAX_LINES
        if path.endswith((*CODE, ".py")) and len(lines) - 1 > max_lines and path not in WHOLE_IN_ONE:
            self.report(path, max_lines, f"{len(lines) - 1} lines; at most {max_lines}: split the file")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                self.report(path, number, "white space at the end of the line")
            if MACHINE_PATH.search(line):
                self.report(path, number, "a path of one machine")

    def check_rules(self, path: str, text: str, code: str) -> None:
        original = text.split("\n")
        for rule in RULES:
            if not path.startswith(rule.within) or (rule.allowed and path.startswith(rule.allowed)):
                continue
            if is_test(path) and not rule.tests:
                continue
            for number, line in enumerate(code.split("\n"), 1):
                found = re.search(rule.pattern, line)
                if found and not (rule.marker and re.search(rule.marker, original[number - 1])):
                    self.report(path, number, f"'{found.group().strip()}': {rule.reason}")

    def check_includes(self, path: str, code: str) -> None:
        own_layer = layer(path)
        if path.startswith("include/") or own_layer in ("shared", "codec"):
            for match in TOOLKIT.finditer(code):
                number = code.count("\n", 0, match.start()) + 1
                self.report(path, number, "this header must compile without the CUDA toolkit")
        for match in INCLUDE.finditer(code):
            number = code.count("\n", 0, match.start(1)) + 1
            target = included_file(path, match.group(1))
            if not target:
                continue
            own, other = stage_folder(path), stage_folder(target)
            if own and other and own != other and not is_test(path):
                self.report(path, number, f"{own} includes {other} (stages do not see each other)")
            elif own_layer in LAYERS and layer(target) not in LAYERS[own_layer] and path != UMBRELLA:
                self.report(
                    path, number, f"{own_layer} code includes {target} ({layer(target)}): wrong way"
                )
            elif 0 <= room(path) < room(target):
                self.report(
                    path, number, f"{ROOMS[room(path)]} includes {target} ({ROOMS[room(target)]}): wrong way"
                )


def file_words(names: list[str]) -> set[str]:
    """The words of the names of stages' files, those that name a stage left out."""
    paths = [PurePosixPath(name) for name in names if name.startswith("modules/")]
    paths = [p for p in paths if len(p.parts) > 3 and not is_test(str(p)) and p.suffix in (*CODE, ".def")]
    own = {p.parts[2] for p in paths} | {p.stem[: -len("_stage")] for p in paths if p.stem.endswith("_stage")}
    own |= {f"{name}_stage" for name in own}
    return {word for p in paths if p.stem not in own for word in p.stem.split("_")}


def all_files(root: Path = ROOT) -> list[str]:
    """Tracked files and new ones that git does not ignore; every file outside a repository."""
    git = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    ) if (root / ".git").exists() else None
    if git is not None and git.returncode == 0:
        names = git.stdout.splitlines()
    else:
        names = [
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if not SKIPPED_FOLDERS.intersection(path.relative_to(root).parts)
        ]
    return sorted(name for name in set(names) if (root / name).is_file())


def main(arguments: list[str]) -> int:
    names = [Path(name).resolve().relative_to(ROOT).as_posix() for name in arguments]
    checker = Checker()
    for name in names or all_files():
        checker.check(name)
    words = file_words([] if names else all_files())
    if len(words) > MAX_FILE_WORDS:
        text = ", ".join(sorted(words))
        checker.report("modules", 1, f"{len(words)} words in file names, at most {MAX_FILE_WORDS}: {text}")
    for problem in checker.problems:
        print(problem)
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
