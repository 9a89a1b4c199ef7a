"""The tables of docs/choosing.md, from the figures that tools/ratios keeps."""

import json
import math
import re
from pathlib import Path

import ratio_picture

PAGE = "docs/choosing.md"
RESULTS = "bench/results/ratios.json"
MADE_RESULTS = "bench/results/ratios_made.json"
WRITER = "tools/ratios --write and tools/ratio_speed --write"
PRESETS = ("best", "auto", "balanced", "fast", "pfpl")
PEERS = ("SZ3", "SZ3, best mode", "SPERR", "zfp")
BOUNDS = ("1e-2", "1e-3", "1e-4", "1e-5")
MADE_PRESETS = ("best", "auto", "balanced")
MADE_BOUNDS = ("1e-2", "1e-3", "1e-4")
MADE_GOALS = {"sines": "2,000", "smooth": "5,500", "turbulence": "450"}  # of best at 1e-2, 161^3
TABLE = re.compile(r"(<!-- table (ratios|made) -->\n).*?(<!-- end -->)", re.DOTALL)


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def lines_of(first: str, columns: tuple) -> list[str]:
    return [f"| {first} | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]


def mean(values: list) -> float | None:
    """Geometric; of all fields or of none."""
    return None if None in values else math.exp(sum(math.log(v) for v in values) / len(values))


def table_ratios(root: Path) -> str:
    data = json.loads((root / RESULTS).read_text())
    ratios = {(row["field"], row["bound"], row["by"]): row["ratio"] for row in data["ratios"]}
    fields = list(dict.fromkeys(row["field"] for row in data["ratios"]))
    columns = (*PRESETS, *PEERS)
    lines = lines_of("bound, share of the range", columns)
    for bound in BOUNDS:
        means = [mean([ratios[f, bound, by] for f in fields]) for by in columns]
        lines.append(f"| {bound}, mean of {len(fields)} | {' | '.join(number(m) for m in means)} |")
    some = [f for f in fields if ratios[f, BOUNDS[0], "SPERR"] is not None]
    for bound in BOUNDS:
        means = [mean([ratios[f, bound, by] for f in some]) for by in columns]
        lines.append(f"| {bound}, the {len(some)} that SPERR takes | {' | '.join(number(m) for m in means)} |")
    for field in fields:
        row = " | ".join(number(ratios[field, "1e-3", by]) for by in columns)
        lines.append(f"| 1e-3, {field} | {row} |")
    return "\n".join(lines) + "\n"


def table_made(root: Path) -> str:
    data = json.loads((root / MADE_RESULTS).read_text())
    ratios = {(row["field"], row["extent"], row["bound"], row["by"]): row["ratio"] for row in data["ratios"]}
    columns = (*MADE_PRESETS, "SZ3")
    lines = lines_of("bound, field", (*columns, "goal of best"))
    for bound in MADE_BOUNDS:
        for field, extent in dict.fromkeys((row["field"], row["extent"]) for row in data["ratios"]):
            cells = [number(ratios[field, extent, bound, by]) for by in columns]
            has_goal = bound == "1e-2" and extent == 161
            cells.append(MADE_GOALS.get(field, "") if has_goal else "")
            lines.append(f"| {bound}, {field} {extent}^3 | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_tables(root: Path) -> str:
    """The page with the tables of the figures."""
    tables = {"ratios": table_ratios, "made": table_made}
    text = (root / PAGE).read_text(encoding="utf-8")
    return TABLE.sub(lambda m: m[1] + tables[m[2]](root) + m[3], text)


def is_current(root: Path) -> bool:
    """Whether the page has these tables and the picture of its figures."""
    return (root / PAGE).read_text(encoding="utf-8") == with_tables(root) and ratio_picture.is_current(root)


def write(root: Path) -> None:
    (root / PAGE).write_text(with_tables(root), encoding="utf-8")
