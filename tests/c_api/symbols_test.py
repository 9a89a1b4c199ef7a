#!/usr/bin/env python3
"""What libfz_c.so shows and calls: the functions of fz.h and fz_batch.h under their version, and nothing that ends
the process.

Usage: symbols_test.py LIBRARY HEADER VERSION_SCRIPT [cuda]

nvcc gives device functions a body for the host that calls exit and that nobody can reach; with
"cuda" that one name is let through.
"""

import re
import subprocess
import sys
from pathlib import Path

ENDS_OR_PRINTS = {"exit", "_exit", "_Exit", "quick_exit", "abort", "printf", "puts", "putchar"}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(library: str, which: str) -> set[str]:
    """The last column of nm: name, name@version or name@@version."""
    lines = output("nm", "--dynamic", which, library).splitlines()
    return {line.split()[-1] for line in lines}


def main() -> None:
    library, header, script, *build = sys.argv[1:]
    headers = [Path(header), Path(header).with_name("fz_batch.h")]
    text = "\n".join(path.read_text() for path in headers)
    declared = set(re.findall(r"^FZ_API [^;(]*?(\w+)\(", text, re.M))
    assert len(declared) > 30, declared
    nodes = re.findall(r"^(FZ_[\d.]+) \{(.*?)^\}", Path(script).read_text(), re.M | re.S)
    listed = {name: node for node, body in nodes for name in re.findall(r"^\s+(fz_\w+);", body, re.M)}
    assert set(listed) == declared, set(listed) ^ declared
    exported = symbols(library, "--defined-only") - {node for node, _ in nodes}
    wanted = {f"{name}@@{node}" for name, node in listed.items()}
    assert exported == wanted, exported ^ wanted

    called = {name.split("@")[0] for name in symbols(library, "--undefined-only")}
    forbidden = ENDS_OR_PRINTS - ({"exit"} if build == ["cuda"] else set())
    assert not called & forbidden, called & forbidden

    dynamic = output("objdump", "-p", library)
    assert re.search(r"SONAME\s+libfz_c\.so\.0$", dynamic, re.M), dynamic
    print(f"{len(exported)} functions, of {len(nodes)} versions")


main()
