"""docs/images/ratio_speed.svg: ratio against speed, from bench/results/ratio_speed.json."""

import json
import math
from pathlib import Path

RESULTS = "bench/results/ratio_speed.json"
PICTURE = "docs/images/ratio_speed.svg"
CHOICES = ("best", "auto", "balanced", "fast", "pfpl")  # what docs/choosing.md recommends
WIDTH, HEIGHT = 900, 900
PANEL_WIDTH, PANEL_HEIGHT = 830, 350
LEFT, TOPS = 52, (62, 488)
FONT, LETTER, BOLD_LETTER = 12, 6.7, 7.6  # pixels; widths of a letter on the safe side
RADIUS = 5
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
STYLE = """
text { font: 12px sans-serif; fill: #24292f; }
.title { font-weight: bold; font-size: 14px; }
.back { fill: #ffffff; }
.frame { fill: none; stroke: #8c959f; }
.grid { stroke: #d8dee4; }
.leader { stroke: #8c959f; stroke-width: 0.8; }
.copy { stroke: #57606a; stroke-dasharray: 6 4; }
.choice { fill: #0969da; }
.family { fill: #8250df; }
.peer { fill: #bc4c00; }
text.choice { font-weight: bold; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.back { fill: #0d1117; }
.grid { stroke: #30363d; }
.copy { stroke: #9198a1; }
.choice { fill: #58a6ff; }
.family { fill: #bc8cff; }
.peer { fill: #f0883e; }
}
"""


class Axis:
    """A logarithmic scale between two pixels."""

    def __init__(self, values: list, first: float, last: float, margin: float) -> None:
        low, high = math.log(min(values)), math.log(max(values))
        gap = margin * (high - low)
        self.low, self.high, self.first, self.last = low - gap, high + gap, first, last

    def at(self, value: float) -> float:
        return self.first + (math.log(value) - self.low) / (self.high - self.low) * (self.last - self.first)

    def ticks(self, wanted: tuple) -> list:
        return [t for t in wanted if self.low <= math.log(t) <= self.high]


def kind_of(name: str) -> str:
    return "peer" if name in ("SZ3", "zfp") else "choice" if name in CHOICES else "family"


def overlap(a: tuple, b: tuple) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def crosses(start: tuple, end: tuple, box: tuple) -> bool:
    """Whether a line meets a box, looked at in steps of a pixel or so."""
    n = 1 + int(math.dist(start, end))
    points = ((start[0] + (end[0] - start[0]) * i / n, start[1] + (end[1] - start[1]) * i / n) for i in range(n + 1))
    return any(box[0] < x < box[2] and box[1] < y < box[3] for x, y in points)


def label_boxes(x: float, y: float, name: str):
    """Where a label may stand, the best first: (box, whether it needs a line to its point)."""
    width = (BOLD_LETTER if kind_of(name) == "choice" else LETTER) * len(name) + 2
    height = FONT + 1
    for distance in (RADIUS + 4, 16, 26, 38, 52, 68, 86, 106, 130):
        for step in (0, 8, 12, 4, 15, 1, 7, 9, 14, 2, 6, 10, 13, 3, 5, 11):
            angle = 2 * math.pi * step / 16
            cx = x + math.cos(angle) * (distance + width / 2)
            cy = y + math.sin(angle) * (distance + height / 2)
            yield (cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2), distance > RADIUS + 4


def nearest(box: tuple, x: float, y: float) -> tuple:
    """The point of a box next to another."""
    return min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])


def placed(points: list, frame: tuple, taken: list) -> list:
    """A free box for the label of every (x, y, name)."""
    dots = [(x - RADIUS - 1, y - RADIUS - 1, x + RADIUS + 1, y + RADIUS + 1) for x, y, _ in points]
    boxes, lines, result = list(taken), [], []
    for own, (x, y, name) in enumerate(points):
        others = [dot for dot in dots if not overlap(dot, dots[own])]
        for box, needs_line in label_boxes(x, y, name):
            end = nearest(box, x, y)
            inside = box[0] > frame[0] and box[1] > frame[1] and box[2] < frame[2] and box[3] < frame[3]
            if not inside or any(overlap(box, b) for b in boxes + dots):
                continue
            if any(crosses(*line, box) for line in lines):
                continue
            if needs_line and any(crosses((x, y), end, b) for b in boxes + others):
                continue
            boxes.append(box)
            if needs_line:
                lines.append(((x, y), end))
            result.append((x, y, name, box, needs_line))
            break
        else:
            raise SystemExit(f"ratio_picture: no room for the label {name}")
    return result


def marker(x: float, y: float, name: str) -> str:
    if kind_of(name) == "peer":
        r = RADIUS + 1
        return f'<path class="peer" d="M{x:.1f} {y - r:.1f}l{r} {r}l-{r} {r}l-{r} -{r}z"/>'
    return f'<circle class="{kind_of(name)}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>'


def grid(across: Axis, up: Axis, top: float) -> list[str]:
    left, right, bottom = LEFT, LEFT + PANEL_WIDTH, top + PANEL_HEIGHT
    parts = []
    for tick in across.ticks((1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)):
        x = across.at(tick)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{tick:g}</text>')
    for tick in up.ticks(TICKS):
        y = up.at(tick)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}"/>')
    return parts


def panel(data: dict, way: str, top: float) -> list[str]:
    left, right, bottom = LEFT, LEFT + PANEL_WIDTH, top + PANEL_HEIGHT
    across = Axis([p["ratio"] for p in data["points"]], left, right, 0.12)
    speeds = [p[f"{w}_gbs"] for p in data["points"] for w in ("compress", "decompress")]
    up = Axis([*speeds, data["copy_gbs"]], bottom, top, 0.08)
    parts = grid(across, up, top)
    parts.append(f'<text class="title" x="{left}" y="{top - 12}">{way}, GB/s on one thread</text>')
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 38}" text-anchor="middle">'
                 f'ratio at 1e-3 of the range, mean of {data["n_fields"]} real fields</text>')
    y = up.at(data["copy_gbs"])
    parts.append(f'<path class="copy" d="M{left} {y:.1f}H{right}"/>')
    name = f'memcpy {data["copy_gbs"]:.1f}'
    box = (left + 4, y - FONT - 5, left + 8 + LETTER * len(name), y + 3)
    parts.append(f'<text x="{left + 6}" y="{y - 5:.1f}">{name}</text>')
    points = [(across.at(p["ratio"]), up.at(p[f"{way}_gbs"]), p["by"]) for p in data["points"]]
    order = ("choice", "peer", "family")
    points.sort(key=lambda p: (order.index(kind_of(p[2])), p[2]))
    labels = placed(points, (left, top, right, bottom), [box])
    for x, y, name, box, needs_line in labels:
        if needs_line:
            end = nearest(box, x, y)
            parts.append(f'<path class="leader" d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}"/>')
    for x, y, name, box, _ in reversed(labels):  # the choices on top
        parts.append(marker(x, y, name))
        parts.append(f'<text class="{kind_of(name)}" x="{(box[0] + box[2]) / 2:.1f}" y="{box[3] - 3:.1f}" '
                     f'text-anchor="middle">{name}</text>')
    return parts


def picture(data: dict) -> str:
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
             f'height="{HEIGHT}" role="img">', "<title>Ratio against speed of presets and peers</title>",
             f"<style>{STYLE}</style>", f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>']
    for way, top in zip(("compress", "decompress"), TOPS):
        parts += panel(data, way, top)
    x = LEFT + RADIUS
    for kind, text in (("choice", "presets to choose from"), ("family", "presets named after papers, and parts"),
                       ("peer", "others")):
        parts.append(marker(x, 16, {"choice": "best", "family": "cusz", "peer": "SZ3"}[kind]))
        parts.append(f'<text x="{x + 12}" y="20">{text}</text>')
        x += 40 + LETTER * len(text)
    return "\n".join([*parts, "</svg>"]) + "\n"


def text_for(root: Path) -> str:
    return picture(json.loads((root / RESULTS).read_text()))


def is_current(root: Path) -> bool:
    return (root / PICTURE).read_text(encoding="utf-8") == text_for(root)


def write(root: Path) -> None:
    (root / PICTURE).write_text(text_for(root), encoding="utf-8")
