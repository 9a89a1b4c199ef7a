#!/usr/bin/env python3
"""Runs the examples of a document and compares what they print with what it says.

Usage: tools/run_document.py [--write] DOCUMENT.md

Blocks marked python run one after the other in one namespace; a block marked text right after one
is what it prints. Blocks marked console hold commands ("$ ...") and their output. All run in an
empty folder that has the files of examples/python. FZ_CLI names the tool `fz`; without it commands
that need it are left out. --write puts the real output into the document and the pictures that the
examples make into docs/images.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.M | re.S)


def run_python(code: str, names: dict) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<document>", "exec"), names)
    return printed.getvalue()


def run_console(text: str) -> str:
    """The commands of the block, each followed by what it really prints."""
    path = os.pathsep.join([os.path.dirname(os.environ.get("FZ_CLI", "")), os.environ["PATH"]])
    path = os.pathsep.join([str(Path(sys.executable).parent), path])
    result = ""
    for line in text.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                line[2:], shell=True, capture_output=True, text=True, check=True,
                env={**os.environ, "PATH": path},
            )  # fmt: skip
            result += line + "\n" + done.stdout
    return result


def needs_missing_tool(text: str) -> bool:
    return "$ fz " in text and not os.environ.get("FZ_CLI")


def rewritten(document: str) -> str:
    """The document with the output that its examples have now."""
    names: dict = {"__name__": "__main__"}
    result, end, printed = "", 0, None
    for block in BLOCK.finditer(document):
        kind, text = block.groups()
        between = document[end : block.start()]
        result += between
        end = block.end()
        if kind == "text" and printed is not None and not between.strip():
            text = printed
        if kind == "python":
            printed = run_python(text, names)
            follows = re.match(r"\s*```text\n", document[end:])
            if printed and not follows:
                raise SystemExit(f"the document leaves out what this prints:\n{text}---\n{printed}")
        else:
            printed = None
        if kind == "console" and not needs_missing_tool(text):
            text = run_console(text)
        result += f"```{kind}\n{text}```\n"
    return result + document[end:]


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    path = Path(next(a for a in arguments if not a.startswith("--"))).resolve()
    document = path.read_text(encoding="ascii")
    with tempfile.TemporaryDirectory() as folder:
        for helper in (ROOT / "examples" / "python").glob("*.py"):
            shutil.copy(helper, folder)
        os.chdir(folder)
        sys.path.insert(0, folder)
        found = rewritten(document)
        pictures = [Path(folder) / name for name in re.findall(r"\(images/([\w.]+)\)", document)]
        for picture in pictures:
            if not picture.is_file():
                raise SystemExit(f"{path.name} shows {picture.name}, and no example makes it")
            if write:
                shutil.copy(picture, ROOT / "docs" / "images")
        os.chdir(ROOT)
    if write:
        path.write_text(found, encoding="ascii")
    elif found != document:
        for old, new in zip(document.splitlines(), found.splitlines()):
            if old != new:
                print(f"{path.name} says: {old}\nit is:  {new}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
