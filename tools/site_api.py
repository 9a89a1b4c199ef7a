"""Reference pages from the sources: C and C++ headers, and the Python package. Needs no packages."""

import ast
import re
import textwrap
from pathlib import Path

COMMENT = re.compile(r"^\s*(///<?|/\*\*?|\*/|\*|//)\s?")


def comment_text(lines: list[str]) -> str:
    """The words of a comment. Angle brackets would be taken for HTML."""
    words = [re.sub(r"\s*\*/$", "", COMMENT.sub("", line)).rstrip() for line in lines]
    return "\n".join(words).strip().replace("<", "&lt;")


def declaration(lines: list[str], at: int) -> tuple[str, int]:
    """The declaration that begins at a line, without the body of a function, and where it ends. A
    struct, class or enum keeps its body, as its members are what a reader looks for."""
    has_members = re.match(r"\s*(template <.*>\s*)?(typedef\s+)?(struct|class|enum)\b", lines[at]) is not None
    if lines[at].lstrip().startswith("#define"):
        end = at
        while lines[end].endswith("\\"):
            end += 1
        return "\n".join(lines[at : end + 1]), end + 1
    depth, text = 0, []
    for end in range(at, len(lines)):
        code = re.sub(r"//.*$|/\*.*?\*/", "", lines[end])
        opens = "{" in code and not has_members and depth == 0
        text.append(lines[end] if depth == 0 or has_members else "")
        if opens:
            text[-1] = lines[end][: lines[end].index("{")].rstrip() + ";"
        depth += code.count("{") - code.count("}")
        if depth <= 0 and (code.rstrip().endswith((";", "}")) or opens):
            return "\n".join(line for line in text if line.strip()), end + 1
    return "\n".join(text), len(lines)


def header_entries(source: str) -> list[tuple[str, str]]:
    """(comment, declaration) of all that a header documents at the outer level."""
    lines = source.splitlines()
    entries, at = [], 0
    while at < len(lines):
        line = lines[at].strip()
        if not line.startswith(("///", "/*")) or line.startswith("///<"):
            at += 1
            continue
        first = at
        if line.startswith("/*"):
            while "*/" not in lines[at]:
                at += 1
            at += 1
        else:
            while at < len(lines) and lines[at].strip().startswith("///"):
                at += 1
        comment = comment_text(lines[first:at])
        if at >= len(lines) or not lines[at].strip() or lines[at].startswith(("namespace", "#include", "#if", "extern", "}")):
            entries.append((comment, ""))
            continue
        code, at = declaration(lines, at)
        entries.append((comment, textwrap.dedent(code)))
    return entries


def header_page(title: str, include: Path, names: list[str], language: str) -> str:
    parts = [f"# {title}", "Made from the comments of the installed headers."]
    for name in names:
        entries = header_entries((include / name).read_text(encoding="utf-8"))
        if not entries:
            continue
        parts.append(f"## `{name}`")
        for comment, code in entries:
            if code:
                parts.append(f"```{language}\n{code}\n```")
            parts.append(comment)
    return "\n\n".join(part for part in parts if part) + "\n"


def signature(node: ast.FunctionDef) -> str:
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    text = f"{node.name}({ast.unparse(node.args)}){result}"
    if len(text) > 100:
        inside = ",\n    ".join(re.split(r", (?![^\[]*\])", ast.unparse(node.args)))
        text = f"{node.name}(\n    {inside},\n){result}"
    return text


def python_entry(node: ast.FunctionDef | ast.ClassDef, prefix: str, level: int) -> list[str]:
    text = ast.get_docstring(node) or ""
    head = f"{'#' * level} `{prefix}{node.name}`"
    if isinstance(node, ast.FunctionDef):
        return [head, f"```python\n{signature(node)}\n```", f"```text\n{text}\n```" if text else ""]
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    parts = [head, f"```python\nclass {node.name}{f'({bases})' if bases else ''}\n```",
             f"```text\n{text}\n```" if text else ""]
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and (not member.name.startswith("_") or member.name == "__getitem__"):
            parts += python_entry(member, f"{prefix}{node.name}.", level + 1)
    return parts


def public_names(package: Path) -> list[str]:
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [element.value for element in node.value.elts]
    raise ValueError(f"{package / '__init__.py'} has no __all__")


def definitions(path: Path) -> dict:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def python_page(package: Path) -> str:
    found: dict = {}
    for path in sorted(package.glob("*.py")):
        if path.stem.startswith("_") or path.stem == "errors":
            found.update(definitions(path))
    parts = ["# Python reference", "Made from the docstrings of the package.", "## `fz`"]
    for name in public_names(package):
        if name in found:
            parts += python_entry(found[name], "fz.", 3)
    for path in sorted(package.glob("[a-z]*.py")):
        if path.stem == "errors":
            continue
        public = {name: node for name, node in definitions(path).items() if not name.startswith("_")}
        if public:
            parts.append(f"## `fz.{path.stem}`")
            for node in public.values():
                parts += python_entry(node, f"fz.{path.stem}.", 3)
    return "\n\n".join(part for part in parts if part) + "\n"
