#!/usr/bin/env python3
"""The tables of docs/performance.md, from the JSON that the benchmarks write.

Usage:
  tools/performance_tables.py            check that the page has the tables of bench/results
  tools/performance_tables.py --write    put them there
  tools/performance_tables.py --record NAME RAW.json --machine TEXT --command TEXT
                                         keep what fz_bench or fz_gpu_bench wrote with --json as
                                         bench/results/NAME.json, with date and commit

A table stands between <!-- table NAME --> and <!-- end -->. Goals are in bench/results/goals.json.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/performance.md"
RESULTS = "bench/results"
WRITER = "tools/performance_tables.py --write"
ELSEWHERE = ("missing_values", "ratios", "ratios_made", "ratio_speed", "exam")  # figures of other pages
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->\n)", re.S)
CHANGED = "*"  # a row whose kernels are not those that were measured


def short(name: str) -> str:
    """A row's name without what every row shares, and dims that do not depend on the machine."""
    name = name.split(", fusion ")[0].replace(" error_bound=0.01", "")
    name = re.sub(r"\b\d+x\d+x1\b", "2-D", name)
    name = re.sub(r"\b\d+x\d+x\d+\b", "3-D", name)
    name = re.sub(r"\b\d{7,}$", "1-D", name)
    name = re.sub(r"\b(linear)_mode=true \w+=Guarantee", r"\1", name)
    return name.replace("error_bound_mode=", "").replace("error_bound=", "").replace(" (reads twice)", "")


def rate(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def cell(row: dict, way: str, copy: str = "") -> str:
    text = rate(row[f"{way}_gbs"])
    if copy:
        text += f" ({row[f'{way}_percent_of_{copy}']:.0f})"
    return text + (CHANGED if way in row.get("measured_before_change", []) else "")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"|{'|'.join(line)}|\n" for line in lines)


class Results:
    def __init__(self, root: Path) -> None:
        folder = root / RESULTS
        self.files = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
        self.goals = self.files.pop("goals", {})
        for name in ELSEWHERE:
            self.files.pop(name, None)

    def rows(self, name: str, part: str) -> list[dict]:
        return self.files[name][part]

    def goal(self, part: str, row: dict) -> str:
        """The first goal whose pattern occurs in the row's name."""
        name = f"{row['name']} {row.get('preset', '')}"
        return next((goal for pattern, goal in self.goals[part].items() if re.search(pattern, name)), "")

    def sources(self) -> str:
        head = ["results", "machine", "date", "commit", "command"]
        return table(head, [[f"{name}.json", data["machine"], data["date"], data["commit"],
                             f"`{data['command']}`"] for name, data in self.files.items()])

    def stages(self) -> str:
        gpu = {short(row["name"]): row for row in self.rows("gpu", "stages")}
        rows = []
        for row in self.rows("cpu_stages", "stages"):
            other = gpu[short(row["name"])]
            rows.append([short(row["name"]), f"{row['ratio']:.2f}", cell(row, "encode", "memcpy"),
                         cell(row, "decode", "memcpy"), cell(other, "encode", "copy"),
                         cell(other, "decode", "copy")])
        return table(["stage", "ratio", "CPU encode", "decode", "GPU encode", "decode"], rows)

    def presets_cpu(self) -> str:
        two = {short(row["name"]): row for row in self.rows("cpu_presets_2_threads", "presets")}
        rows = []
        for row in self.rows("cpu_presets", "presets"):
            name = short(row["name"])
            rows.append([name, cell(row, "encode", "memcpy"), cell(row, "decode", "memcpy"),
                         self.goal("presets_cpu", row), cell(two[name], "encode"),
                         cell(two[name], "decode")])
        return table(["preset", "compress", "decompress", "goal %", "2 threads: compress",
                      "decompress"], rows)

    def groups(self) -> str:
        wide = {row["name"]: row for row in self.rows("gpu", "groups")}
        rows = []
        for name, row in wide.items():
            if not name.endswith(" float32"):
                continue
            double = wide[name.replace(" float32", " float64")]
            rows.append([f"{name.removesuffix(' float32')}{preset_of(row)}",
                         *(cell(r, way, "copy") for r in (row, double) for way in ("compress", "decompress")),
                         self.goal("groups", row)])
        return table(["chain", "f32 compress", "decompress", "f64 compress", "decompress",
                      "goal, f32"], rows)

    def presets_gpu(self) -> str:
        return table(["preset", "ratio", "compress", "decompress"],
                     [[row["name"].removesuffix(" float32"), f"{row['ratio']:.2f}", cell(row, "encode"),
                       cell(row, "decode")] for row in self.rows("gpu", "presets")])

    def small(self) -> str:
        return table(["call", "ratio", "compress us", "decompress us", "goal us"],
                     [[row["name"], f"{row['ratio']:.2f}", f"{row['compress_us']:.1f}",
                       f"{row['decompress_us']:.1f}", self.goal("small", row)]
                      for row in self.rows("gpu", "small")])


def preset_of(row: dict) -> str:
    return f" ({row['preset']})" if row.get("preset") else ""


TABLES = ("sources", "stages", "presets_cpu", "groups", "presets_gpu", "small")


def with_tables(text: str, results: Results) -> str:
    """The page with the tables of the results in place of those that it has."""
    found = [name for _, name, _ in TABLE.findall(text)]
    if sorted(found) != sorted(TABLES):
        raise SystemExit(f"{PAGE}: has the tables {', '.join(found)}; it needs {', '.join(TABLES)}")
    return TABLE.sub(lambda m: m[1] + getattr(results, m[2])() + m[3], text)


def is_current(root: Path) -> bool:
    text = (root / PAGE).read_text(encoding="utf-8")
    return with_tables(text, Results(root)) == text


def dump(data: dict) -> str:
    """JSON with one row of a table per line."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list):
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def record(name: str, raw: Path, machine: str, command: str) -> None:
    commit = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], text=True)
    head = {"machine": machine, "date": datetime.date.today().isoformat(), "commit": commit.strip(),
            "command": command}
    (ROOT / RESULTS / f"{name}.json").write_text(dump({**head, **json.loads(raw.read_text())}))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    parser.add_argument("--record", nargs=2, metavar=("NAME", "RAW"), help="keep the JSON of a benchmark")
    parser.add_argument("--machine", default="", help="for --record: what it ran on")
    parser.add_argument("--command", default="", help="for --record: the command line")
    options = parser.parse_args(arguments)
    if options.record:
        if not options.machine or not options.command:
            parser.error("--record needs --machine and --command")
        record(options.record[0], Path(options.record[1]), options.machine, options.command)
    page = ROOT / PAGE
    if options.write:
        page.write_text(with_tables(page.read_text(encoding="utf-8"), Results(ROOT)), encoding="utf-8")
    elif not options.record and not is_current(ROOT):
        print(f"{PAGE}: its tables are not those of {RESULTS}; run tools/performance_tables.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
