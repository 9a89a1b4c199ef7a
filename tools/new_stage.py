#!/usr/bin/env python3
"""Writes the folder of a new stage, ready to build, and prints the line that registers it.

Usage: tools/new_stage.py coders/my_coder --id 16384 --types int16,int32 [--cuda] [--fused]

The stage copies its input until you write its codec; it passes the conformance suites from the
start, so every step after that is checked. --cuda adds kernels that run the same text on a GPU,
--fused a part in fused groups for a stage that works value by value. The files are made from
tools/stage_template/.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CATEGORIES = {
    "coders": "coder",
    "fused": "fused",
    "predictors": "predictor",
    "quantizers": "quantizer",
    "shufflers": "shuffler",
    "transforms": "transform",
}
TYPES = {
    "uint8": "std::uint8_t",
    "uint16": "std::uint16_t",
    "uint32": "std::uint32_t",
    "uint64": "std::uint64_t",
    "int8": "std::int8_t",
    "int16": "std::int16_t",
    "int32": "std::int32_t",
    "int64": "std::int64_t",
    "float32": "float",
    "float64": "double",
}

FIRST_ID = 16384  # those below belong to the file format that this library follows
LAST_ID = 65535

# What cannot be the name of a namespace inside fz: C++ keywords, and names that fz uses already.
RESERVED = set(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    std fz bits fp detail device test cli
    """.split()
)

TEMPLATES = ROOT / "tools" / "stage_template"
# Files of a stage: the template, the file, and the options that it is for.
FILES = (
    ("stage.h.in", "{}_stage.h", ()),
    ("codec.h.in", "codec.h", ()),
    ("stage.cc.in", "stage.cc", ()),
    ("descriptor.cc.in", "descriptor.cc", ()),
    ("instances.def.in", "instances.def", ()),
    ("cpu/stage.cc.in", "cpu/stage.cc", ()),
    ("cuda/stage.cc.in", "cuda/stage.cc", ("cuda",)),
    ("cuda/kernels.h.in", "cuda/kernels.h", ("cuda",)),
    ("cuda/kernels.cu.in", "cuda/kernels.cu", ("cuda",)),
    ("cuda/op/op.cuh.in", "cuda/op/op.cuh", ("cuda", "fused")),
    ("tests/test.cc.in", "tests/{}_test.cc", ()),
    ("SPEC.md.in", "SPEC.md", ()),
    ("NOTES.md.in", "NOTES.md", ()),
)


def camel(stage: str) -> str:
    return "".join(part.capitalize() for part in stage.split("_"))


def chosen(template: str, options: set[str]) -> str:
    """The template without the lines that other options are for: @if option@, @else@, @end@."""
    kept, takes = [], True
    for line in template.splitlines(keepends=True):
        directive = re.fullmatch(r"@(if (\w+)|else|end)@\n", line)
        if not directive:
            kept += [line] if takes else []
        elif directive.group(2):
            takes = directive.group(2) in options
        else:
            takes = directive.group(1) == "end" or not takes
    return "".join(kept)


def fill(template: str, words: dict[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda match: words[match.group(1)], template)


def width(cpp_type: str) -> int:
    """Bits of a type of TYPES."""
    digits = re.search(r"\d+", cpp_type)
    return int(digits[0]) if digits else {"float": 32, "double": 64}[cpp_type]


def stage_id(text: str) -> int:
    """Decimal or, as in the documents, hexadecimal."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number such as 16384 or 0x4000") from None


def known_stages(root: Path) -> dict[int, str]:
    """Ids and names, from the title lines that every SPEC.md has."""
    known = {}
    for spec in sorted(root.glob("modules/**/SPEC.md")):
        title = re.match(r"# (\w+), stage id (\d+)", spec.read_text(encoding="utf-8"))
        if title:
            known[int(title.group(2))] = title.group(1)
    return known


def problem_with(category: str, stage: str, name: str, number: int, types: list[str], root: Path) -> str:
    """Why there can be no such stage; empty when there can."""
    if category not in CATEGORIES or not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", stage):
        return f"path must be <category>/<snake_case>, category one of {', '.join(CATEGORIES)}"
    if stage in RESERVED:
        return f"'{stage}' is a word of C++ or of fz, and the stage needs a namespace of its name"
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        return f"the name must be CamelCase, not '{name}'"
    for text in types:
        if text not in TYPES:
            return f"unknown type {text}; known: {', '.join(TYPES)}"
        if types.count(text) > 1:
            return f"{text} is listed twice in --types"
    if not FIRST_ID <= number <= LAST_ID:
        return f"the id of a new stage is from {FIRST_ID} (0x4000) to {LAST_ID}, not {number}"
    known = known_stages(root)
    if number in known:
        return f"id {number} is that of {known[number]}"
    if name.lower() in {other.lower() for other in known.values()}:
        return f"there is a stage {name} already"
    if list(root.glob(f"modules/*/{stage}")):
        return f"there is a folder {stage} already"
    return ""


def format_sources(folder: Path) -> None:
    """Long names break lines; nothing happens where the tool is missing."""
    tool = shutil.which("clang-format")
    if tool:
        files = sorted(str(file) for file in folder.rglob("*") if file.suffix in (".h", ".cc", ".cu", ".cuh"))
        subprocess.run([tool, f"--style=file:{ROOT}/.clang-format", "-i", *files], check=True)


def write_stage(options: argparse.Namespace, stage: str, name: str, cpp_types: list[str]) -> None:
    category = options.path.partition("/")[0]
    classes = [f"{name}Stage<{t}>" for t in cpp_types]
    words = {
        "path": options.path,
        "stage": stage,
        "Name": name,
        "category": CATEGORIES[category],
        "id": str(options.id),
        "type_list": ", ".join(cpp_types),
        "stage_list": ", ".join(classes),
        "first_type": cpp_types[0],
        "wide_type": max(cpp_types, key=width),
        "externs": "".join(f"extern template class {c};\n" for c in classes),
        "instances": "\n".join(f"fz::{c}" for c in classes),
        "instantiations": "".join(f"template class {c};\n" for c in classes),
        "instantiate_cpu": "\n".join(f"FZ_INSTANTIATE({t});" for t in cpp_types),
        "instantiate_cuda": "".join(f"template void launch{way}<{t}>(const cuda::Call&);\n"
                                    for t in cpp_types for way in ("Encode", "Decode")),
    }
    with_parts = {option for option in ("cuda", "fused") if getattr(options, option)}
    if width(words["wide_type"]) > 8:  # a byte is never half a value
        with_parts.add("wide")
    folder = options.root / "modules" / category / stage
    for template, pattern, needed in FILES:
        if with_parts.issuperset(needed):
            file = folder / pattern.format(stage)
            file.parent.mkdir(parents=True, exist_ok=True)
            text = (TEMPLATES / template).read_text(encoding="ascii")
            file.write_text(fill(chosen(text, with_parts), words), encoding="ascii")
    format_sources(folder)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("path", help="category/stage, such as coders/my_coder")
    parser.add_argument("--id", type=stage_id, required=True,
                        help=f"stage id in files, {FIRST_ID} (0x4000) or above, used by no other stage")
    parser.add_argument("--types", default="int32", help="element types, comma-separated")
    parser.add_argument("--name", help="name in configuration files (default: from the path)")
    parser.add_argument("--cuda", action="store_true", help="with kernels that run the codec's text on a GPU")
    parser.add_argument("--fused", action="store_true",
                        help="works value by value, and joins fused groups (with --cuda on a GPU too)")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)

    category, _, stage = options.path.partition("/")
    types = options.types.split(",")
    name = options.name or camel(stage)
    problem = problem_with(category, stage, name, options.id, types, options.root)
    if problem:
        parser.error(problem)

    write_stage(options, stage, name, [TYPES[t] for t in types])
    print(f"Written: modules/{category}/{stage}/")
    print("Add this line to modules/CMakeLists.txt:")
    print(f"  {category}/{stage}")
    print("Then write codec.h and SPEC.md, run make format, and make the golden files and the page:")
    print("  make build")
    print("  FZ_UPDATE_GOLDEN=1 FZ_UPDATE_DOCS=1 build/cpu/bin/fz_stage_tests --gtest_filter='Golden.*:Docs.*'")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
