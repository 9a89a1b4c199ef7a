"""The table of tools/exam as text and Markdown, and its page with plots. Needs no packages."""

import html
import math

HEAD = ("program", "ratio", "compress MB/s", "decompress MB/s", "bound kept", "gaps kept", "runs on")
STYLE = """
:root { color-scheme: light dark; --ink: #24292f; --paper: #ffffff; --line: #d8dee4; --fz: #0969da;
  --peer: #bc4c00; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d;
  --fz: #58a6ff; --peer: #f0883e; --bad: #ff7b72; } }
body { font: 16px/1.5 sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { border-bottom: 1px solid var(--line); padding: .3rem .7rem; text-align: right; }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left; }
.bad { color: var(--bad); font-weight: bold; }
svg { width: 100%; height: auto; } svg text { font: 12px sans-serif; fill: var(--ink); }
.grid { stroke: var(--line); } .fz { fill: var(--fz); } .peer { fill: var(--peer); }
"""


def mean_ratio(rows: list[dict]) -> float:
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def speed_mbs(rows: list[dict], way: str) -> float:
    """All fields one after the other."""
    return sum(row["n_bytes"] for row in rows) / sum(row[f"{way}_s"] for row in rows) / 1e6


def of_fields(n_good: int, n_all: int) -> str:
    return f"{n_good} of {n_all}" if n_all else "no gaps"


def summary(data: dict) -> list[dict]:
    """One row for each program, in the order of the figures."""
    rows = []
    for program in data["programs"]:
        own = [row for row in data["runs"] if row["by"] == program["name"]]
        gaps = [row for row in own if row["n_missing"]]
        rows.append({"program": program["name"] + (" (lossless)" if program["lossless"] else ""),
                     "is_fz": program["name"].startswith("fz "), "ratio": mean_ratio(own),
                     "compress": speed_mbs(own, "compress"), "decompress": speed_mbs(own, "decompress"),
                     "n_kept": sum(row["n_beyond"] == 0 for row in own), "n_fields": len(own),
                     "n_gaps_kept": sum(row["n_missing_lost"] == 0 for row in gaps), "n_gaps": len(gaps),
                     "runs_on": program["runs_on"]})
    return rows


def cells(row: dict) -> list[str]:
    return [row["program"], f"{row['ratio']:.2f}", f"{row['compress']:.0f}", f"{row['decompress']:.0f}",
            of_fields(row["n_kept"], row["n_fields"]), of_fields(row["n_gaps_kept"], row["n_gaps"]), row["runs_on"]]


def as_text(data: dict) -> str:
    lines = [HEAD, *(cells(row) for row in summary(data))]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join("  ".join(text.ljust(width) if i in (0, len(HEAD) - 1) else text.rjust(width)
                               for i, (text, width) in enumerate(zip(line, widths))).rstrip() for line in lines) + "\n"


def as_markdown(data: dict) -> str:
    lines = [HEAD, ["---"] * len(HEAD), *(cells(row) for row in summary(data))]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_html_table(data: dict) -> str:
    lines = ["<tr>" + "".join(f"<th>{name}</th>" for name in HEAD) + "</tr>"]
    for row in summary(data):
        bad = {4: row["n_kept"] < row["n_fields"], 5: row["n_gaps_kept"] < row["n_gaps"]}
        lines.append("<tr>" + "".join(f'<td{" class=bad" if bad.get(i) else ""}>{html.escape(text)}</td>'
                                      for i, text in enumerate(cells(row))) + "</tr>")
    return "<div class=wide><table>" + "\n".join(lines) + "</table></div>"


def scatter(data: dict, way: str) -> str:
    """Ratio against speed, both logarithmic."""
    width, height, left, bottom = 900, 360, 60, 310
    rows = summary(data)
    spans = []
    for values in ([row["ratio"] for row in rows], [row[way] for row in rows]):
        low, high = math.log(min(values)), math.log(max(values))
        gap = max(0.15 * (high - low), 0.2)
        spans.append((low - gap, high + gap))

    def across(value):
        return left + (math.log(value) - spans[0][0]) / (spans[0][1] - spans[0][0]) * (width - left - 20)

    def up(value):
        return bottom - (math.log(value) - spans[1][0]) / (spans[1][1] - spans[1][0]) * (bottom - 20)

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="ratio against speed to {way}">']
    for tick in (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000):
        if spans[0][0] <= math.log(tick) <= spans[0][1]:
            x = across(tick)
            parts.append(f'<path class="grid" d="M{x:.1f} 20V{bottom}"/>'
                         f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
    for tick in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000):
        if spans[1][0] <= math.log(tick) <= spans[1][1]:
            y = up(tick)
            parts.append(f'<path class="grid" d="M{left} {y:.1f}H{width - 20}"/>'
                         f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    for row in rows:
        x, y, kind = across(row["ratio"]), up(row[way]), "fz" if row["is_fz"] else "peer"
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
                     f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle">{html.escape(row["program"])}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">ratio</text></svg>')
    return "".join(parts)


def ratios_of_fields(data: dict) -> str:
    names = [program["name"] for program in data["programs"]]
    ratios = {(row["field"], row["by"]): row for row in data["runs"]}
    lines = ["<tr><th>field</th>" + "".join(f"<th>{html.escape(name)}</th>" for name in names) + "<th></th></tr>"]
    for field in dict.fromkeys(row["field"] for row in data["runs"]):
        line = f"<tr><td>{html.escape(field)}</td>"
        for name in names:
            row = ratios[field, name]
            is_bad = row["n_beyond"] or row["n_missing_lost"]
            line += f'<td{" class=bad" if is_bad else ""}>{row["ratio"]:.2f}</td>'
        lines.append(line + "<td></td></tr>")
    return "<div class=wide><table>" + "\n".join(lines) + "</table></div>"


def as_page(data: dict) -> str:
    about = (f"{data['n_fields']} fields, bound {data['bound']} of each field's range, one thread, median of "
             f"{data['rounds']} rounds; memcpy in the same rounds {data['copy_mbs']:.0f} MB/s. "
             f"{data['machine']}, {data['date']}.")
    return "\n".join([
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Exam: fz and its peers</title><style>{STYLE}</style></head><body>",
        f"<h1>fz and its peers</h1><p>{html.escape(about)}</p>", as_html_table(data),
        "<p>Red: values beyond the bound, or missing values that did not come back bit for bit.</p>",
        "<h2>Ratio against speed to compress, MB/s</h2>", scatter(data, "compress"),
        "<h2>Ratio against speed to decompress, MB/s</h2>", scatter(data, "decompress"),
        "<h2>Ratio of each field</h2>", ratios_of_fields(data), "</body></html>"]) + "\n"
