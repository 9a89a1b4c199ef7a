#!/usr/bin/env python3
"""The sources of the documentation site: README, docs/ and reference pages, with links between them.

Usage: tools/site_pages.py FOLDER    (tools/site calls it, and builds what it leaves there)
"""

import re
import shutil
import sys
from pathlib import Path

import site_api

ROOT = Path(__file__).resolve().parent.parent
# What stands in the menu, by reader. A page of docs/ that is in none of them is an error.
MENU = {
    "First steps": ("installing", "tutorial", "choosing", "exam", "missing_values"),
    "On the command line": ("cli", "archives", "report"),
    "In Python": ("python", "api_python"),
    "In C, C++ and Fortran": ("c_api", "api_c", "api_cpp"),
    "In HDF5 and on clusters": ("hdf5", "scaling"),
    "On a GPU": ("gpu", "fusion", "performance"),
    "Reference": ("stages", "config", "format", "numerics", "reliability"),
    "For contributors": ("contributing", "architecture", "add_a_stage", "releasing", "changelog", "third_party"),
}
OUTSIDE = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog", "THIRD_PARTY.md": "third_party"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$|(?:^ {4}[^\n]*\n)+)", re.M | re.S)

CONF = """
project = "fz"
html_title = "fz {version}"
extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
"""


def moved(target: str, folder: Path, known: set) -> str | None:
    """Where a link of a page in a folder leads on the site; nothing for files that are not on it."""
    path, _, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return target
    place = (folder / path).resolve()
    if not place.exists():
        raise SystemExit(f"site: {folder}: a link to {path}, which does not exist")
    place = place.relative_to(ROOT)
    if str(place) == "README.md":
        name = "index.md"
    elif str(place) in OUTSIDE:
        name = f"{OUTSIDE[str(place)]}.md"
    elif place.parts[0] == "docs" and (place.suffix != ".md" or place.stem in known):
        name = str(Path(*place.parts[1:]))
    else:
        return None
    return f"{name}#{anchor}" if anchor else name


def on_site(text: str, folder: Path, known: set) -> str:
    """A page with its links turned; what leads out of the site becomes plain text."""

    def turned(match: re.Match) -> str:
        target = moved(match[3], folder, known)
        return f"{match[1]}[{match[2]}]({target})" if target else match[2]

    parts = FENCE.split(text)
    return "".join(part if i % 2 else LINK.sub(turned, part) for i, part in enumerate(parts))


def menu(names: set) -> str:
    parts = []
    for title, pages in MENU.items():
        there = "\n".join(page for page in pages if page in names)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{there}\n```")
    return "\n\n".join(parts) + "\n"


def version() -> str:
    return re.search(r"project\(fz VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def make(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "docs/images", folder / "images")
    sources = {page.stem: page for page in (ROOT / "docs").glob("*.md")}
    sources.update({name: ROOT / path for path, name in OUTSIDE.items()})
    include = ROOT / "include"
    cpp = [str(p.relative_to(include)) for p in sorted(include.glob("**/*.h")) if p.name not in ("fz.h", "fz_batch.h")]
    made = {"api_c": site_api.header_page("C reference", include, ["fz.h", "fz_batch.h"], "c"),
            "api_cpp": site_api.header_page("C++ reference", include, cpp, "cpp"),
            "api_python": site_api.python_page(ROOT / "python/fz")}
    names = {*sources, *made}
    unlisted = names - {page for pages in MENU.values() for page in pages}
    if unlisted:
        raise SystemExit(f"site: {', '.join(sorted(unlisted))}: in no part of the menu of tools/site_pages.py")
    for name, path in sources.items():
        text = on_site(path.read_text(encoding="utf-8"), path.parent, names)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    for name, text in made.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    start = on_site((ROOT / "README.md").read_text(encoding="utf-8"), ROOT, names)
    (folder / "index.md").write_text(f"{start}\n{menu(names)}", encoding="utf-8")
    (folder / "conf.py").write_text(CONF.format(version=version()), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    make(Path(sys.argv[1]))
