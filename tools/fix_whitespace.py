#!/usr/bin/env python3
"""Takes white space off line ends and gives every text file exactly one newline at its end.

Usage: tools/fix_whitespace.py FILE...     (exits with 1 when it changed something)
"""

import re
import sys
from pathlib import Path


def fixed(data: bytes) -> bytes:
    if b"\0" in data:
        return data
    text = re.sub(rb"[ \t\r]+$", b"", data, flags=re.M).rstrip(b"\n")
    return text + b"\n" if text else b""


def main(names: list[str]) -> int:
    changed = 0
    for name in names:
        path = Path(name)
        before = path.read_bytes()
        after = fixed(before)
        if after != before:
            path.write_bytes(after)
            print(f"fixed {name}")
            changed = 1
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
