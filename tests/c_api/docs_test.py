#!/usr/bin/env python3
"""What docs/c_api.md shows is what the examples are and print.

Usage: docs_test.py DOCS EXAMPLE_SOURCE PROGRAM...
"""

import re
import subprocess
import sys
from pathlib import Path


def main() -> None:
    docs, source, *programs = sys.argv[1:]
    text = Path(docs).read_text()
    snippet = re.search(r"```c\n(.*?)```", text, re.S).group(1)
    assert snippet in Path(source).read_text(), "the snippet is not in the example"
    assert programs
    for program in programs:
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        shown = "".join(f"    {line}\n" for line in printed.splitlines())
        assert f"&& ./{Path(program).name}\n{shown}" in text, f"{program} prints\n{printed}"


main()
