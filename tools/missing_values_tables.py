#!/usr/bin/env python3
"""The tables of docs/missing_values.md, from bench/results/missing_values.json.

tools/missing_values measures, and --check and --write of it use this module; so does
tools/check_docs.py. A table stands between <!-- table NAME --> and <!-- end -->.
"""

import json
from pathlib import Path

from performance_tables import TABLE, table

PAGE = "docs/missing_values.md"
RESULTS = "bench/results/missing_values.json"
WRITER = "tools/missing_values --write"
GOAL = 97  # percent of the ratio of the filled field
ONE_BOUND = "1e-3"  # where one bound has to do


def ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


class Figures:
    def __init__(self, root: Path) -> None:
        self.data = json.loads((root / RESULTS).read_text())
        self.fields = {field["field"]: field for field in self.data["fields"]}
        self.bounds = list(dict.fromkeys(row["bound"] for row in self.data["presets"]))
        self.presets = list(dict.fromkeys(row["by"] for row in self.data["presets"]))
        self.peers = list(dict.fromkeys(row["by"] for row in self.data["peers"]))
        self.rows = {(row["field"], row["by"], row["bound"]): row
                     for row in self.data["presets"] + self.data["peers"]}

    def names(self, is_made: bool) -> list[str]:
        return [name for name, field in self.fields.items() if field["made"] == is_made]

    def n_values(self, name: str) -> int:
        x, y, z = self.fields[name]["dims"]
        return x * y * z

    def ratio_of(self, row: dict) -> float:
        width = int(self.fields[row["field"]]["type"][1:]) // 8
        return self.n_values(row["field"]) * width / row["bytes"]

    def share(self, row: dict) -> float:
        """Percent of the ratio of the same field with its gaps filled."""
        return 100 * row["filled_bytes"] / row["bytes"]

    def strict_share(self, row: dict) -> float:
        """The same if the filled field had to pay for its valid values and the mask only."""
        valid = 1 - self.fields[row["field"]]["missing"] / self.n_values(row["field"])
        return 100 * (row["filled_bytes"] * valid + row["mask_bytes"]) / row["bytes"]

    def mark(self, row: dict) -> str:
        """What did not survive."""
        marks = [] if row["mask"] == "kept" else [f"mask {row['mask']}"]
        marks += [f"{row['beyond']} beyond the bound"] if row["beyond"] else []
        return f", {', '.join(marks)}" if marks else ""

    def own_ratio(self, row: dict) -> str:
        """Of fz, with a star where the field was smaller without loss."""
        return ratio(self.ratio_of(row)) + ("*" if row["lossless"] else "")

    def preset_cell(self, row: dict) -> str:
        return f"{self.own_ratio(row)} ({self.share(row):.0f}){self.mark(row)}"

    # Tables

    def source(self) -> str:
        data = self.data
        return table(["machine", "date", "commit", "command", "beside fz"],
                     [[data["machine"], data["date"], data["commit"], f"`{data['command']}`", data["peers_are"]]])

    def fields_and_masks(self) -> str:
        rows = []
        for name, field in self.fields.items():
            mask_bytes = max(row["mask_bytes"] for row in self.data["presets"] if row["field"] == name)
            what = "NaN" if field["fill"] is None else f"{field['fill']:g}"
            shape = " x ".join(str(n) for n in field["dims"] if n > 1)
            rows.append([f"{name}{' (made)' if field['made'] else ''}", shape, what,
                         f"{100 * field['missing'] / self.n_values(name):.1f} %",
                         f"{8 * mask_bytes / self.n_values(name):.3f}"])
        return table(["field", "shape", "missing", "share", "mask, bits per value"], rows)

    def presets_on(self, name: str) -> str:
        rows = [[preset, *(self.preset_cell(self.rows[name, preset, bound]) for bound in self.bounds)]
                for preset in self.presets]
        return table(["preset", *self.bounds], rows)

    def real_fields(self) -> str:
        return "\n".join(f"{name}:\n\n{self.presets_on(name)}" for name in self.names(False))

    def made_fields(self) -> str:
        names = self.names(True)
        rows = []
        for preset in self.presets:
            cells = []
            for name in names:
                runs = [self.rows[name, preset, bound] for bound in self.bounds]
                row = self.rows[name, preset, ONE_BOUND]
                mark = next((self.mark(run) for run in runs if self.mark(run)), "")
                cells.append(f"{self.own_ratio(row)} ({min(self.share(run) for run in runs):.0f}){mark}")
            rows.append([preset, *cells])
        return table(["preset", *names], rows)

    def below_goal(self) -> str:
        """How many of the runs of a preset are below the goal, by either way of counting."""
        rows = []
        for preset in self.presets:
            runs = [row for row in self.data["presets"] if row["by"] == preset]
            plain, strict = [self.share(row) for row in runs], [self.strict_share(row) for row in runs]
            rows.append([preset, str(len(runs)), str(sum(share < GOAL for share in plain)), f"{min(plain):.1f}",
                         str(sum(share < GOAL for share in strict)), f"{min(strict):.1f}"])
        return table(["preset", "runs", f"below {GOAL} %", "lowest", f"strict: below {GOAL} %", "lowest"], rows)

    def beside_others(self) -> str:
        rows = []
        for name in self.fields:
            for bound in self.bounds if not self.fields[name]["made"] else [ONE_BOUND]:
                best = min((self.rows[name, preset, bound] for preset in self.presets), key=lambda row: row["bytes"])
                own = [self.rows[name, "pfpl", bound], best]
                others = [self.rows[name, peer, bound] for peer in self.peers]
                cells = [f"{ratio(self.ratio_of(row))}{self.mark(row)}" for row in own + others]
                cells[1] += f" ({best['by']})"
                rows.append([name, bound, *cells])
        return table(["field", "bound", "fz pfpl", "fz, best preset", *self.peers], rows)


TABLES = ("source", "fields_and_masks", "real_fields", "made_fields", "below_goal", "beside_others")


def with_tables(text: str, figures: Figures) -> str:
    """The page with the tables of the figures in place of those that it has."""
    found = [name for _, name, _ in TABLE.findall(text)]
    if sorted(found) != sorted(TABLES):
        raise SystemExit(f"{PAGE}: has the tables {', '.join(found)}; it needs {', '.join(TABLES)}")
    return TABLE.sub(lambda m: m[1] + getattr(figures, m[2])() + m[3], text)


def is_current(root: Path) -> bool:
    text = (root / PAGE).read_text(encoding="utf-8")
    return with_tables(text, Figures(root)) == text


def write(root: Path) -> None:
    page = root / PAGE
    page.write_text(with_tables(page.read_text(encoding="utf-8"), Figures(root)), encoding="utf-8")


def check(root: Path) -> int:
    if is_current(root):
        return 0
    print(f"{PAGE}: its tables are not those of {RESULTS}; run {WRITER}")
    return 1
