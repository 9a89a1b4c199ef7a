"""Fields and pages that the tests of reports share."""

import array
import base64
import html.parser
import json
import math
import pathlib
import random
import re
import struct
import shutil
import subprocess
import tempfile
import unittest
import zlib

BINARY = ""  # the tool; set by whoever runs the tests
NAN, INF = float("nan"), float("inf")
HOSTILE = "<img src=x onerror=alert(1)> & \"'\u202e.f32"


def fields():
    """Name: (values, dims or None, bound). Every shape and content that a page has to cope with."""
    noise = random.Random(5)
    wave = [20 + 5 * math.sin(i / 17) + 0.5 * math.cos(i / 3) for i in range(4000)]
    grid = [280 + 20 * math.sin(x / 9) * math.cos(y / 7) for y in range(48) for x in range(64)]
    cube = [math.sin(x / 3) + math.sin(y / 4) * z / 20 for z in range(20) for y in range(24) for x in range(32)]
    return {
        "empty.f32": ([], None, "abs:1"),
        "one.f32": ([3.5], None, "abs:0.1"),
        "series.f64": (wave, None, "rel:1e-3"),
        "gaps.f32": ([NAN if i % 50 < 5 else v for i, v in enumerate(wave)], None, "abs:0.01"),
        "grid.f32": (grid, "64x48", "range:1e-3"),
        "cube.f32": (cube, "32x24x20", "range:1e-4"),
        "constant.f32": ([7.0] * 1000, "10x10x10", "abs:0.1"),
        "nothing.f32": ([NAN, INF, -INF] * 200, "20x30", "abs:0.1"),
        "fill.f32": ([1e20 if i % 7 == 0 else v for i, v in enumerate(grid)], "64x48", "abs:0.01"),
        "huge.f64": ([(-1) ** i * 1.7e308 * noise.random() for i in range(4096)], "64x64", "rel:1e-3"),
        "tiny.f64": ([5e-324 * noise.randrange(1000) for i in range(4096)], "64x64", "rel:1e-3"),
        "offset.f64": ([1e9 + 1e-3 * v for v in grid], "64x48", "abs:1e-5"),
        "thin.f32": ([noise.random() for i in range(9000)], "3000x3", "abs:1e-3"),
        "column.f32": ([noise.random() for i in range(900)], "1x900", "abs:1e-3"),
        "large.f32": ([math.sin(i * 1e-3) for i in range(1100 * 700)], "1100x700", "range:1e-3"),
        HOSTILE: (grid, "64x48", "abs:0.01"),
    }


def write_field(folder, name, values):
    data = array.array("d" if name.endswith("f64") else "f", values)
    (pathlib.Path(folder) / name).write_bytes(data.tobytes())
    return data


def compress_words(name, dims, bound, page):
    words = ["compress", "-q", "-f", "-p", "pfpl", "-b", bound, "-t", name[-3:]]
    return [*words, *(["-d", dims] if dims else []), "--report", page, name]


def run(binary, folder, *words):
    return subprocess.run(
        [binary, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600
    )


class Page(html.parser.HTMLParser):
    """A page taken apart: tags with attributes, text, pictures, figures."""

    def __init__(self, path):
        super().__init__()
        self.text = ""
        self.tags = []
        self.source = pathlib.Path(path).read_text(encoding="utf-8", errors="strict")
        match = re.search(r'<script type="application/json" id="figures">(.*?)</script>', self.source, re.S)
        self.figures = json.loads(match.group(1))
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def attributes(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]

    def pictures(self):
        prefix = "data:image/png;base64,"
        return [Picture(base64.b64decode(a["href"][len(prefix) :], validate=True)) for a in self.attributes("image")]


class Picture:
    """An indexed PNG, decoded with nothing but zlib; every checksum is looked at."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        at, packed, self.alpha = 8, b"", []
        while at < len(data):
            length, name = struct.unpack(">I4s", data[at : at + 8])
            content = data[at + 8 : at + 8 + length]
            (crc,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
            assert crc == zlib.crc32(name + content), name
            if name == b"IHDR":
                self.width, self.height, depth, colour = struct.unpack(">IIBB", content[:10])
                assert (depth, colour) == (8, 3)
            elif name == b"PLTE":
                self.palette = [tuple(content[i : i + 3]) for i in range(0, length, 3)]
            elif name == b"tRNS":
                self.alpha = list(content)
            elif name == b"IDAT":
                packed += content
            at += 12 + length
        rows = zlib.decompress(packed)
        stride = self.width + 1
        assert len(rows) == stride * self.height
        assert all(rows[y * stride] == 0 for y in range(self.height))
        # As a plot has it: the lowest row first.
        self.rows = [rows[y * stride + 1 : (y + 1) * stride] for y in reversed(range(self.height))]


def lightness(colour):
    """L* of CIELAB, another model than the one the maps were made with."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    y = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


class ReportCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fz_report_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fz(self, *words, code=0):
        done = run(BINARY, self.folder, *words)
        self.assertEqual(done.returncode, code, (words, done.stderr.decode(errors="replace")))
        return done.stderr.decode(errors="replace")

    def page(self, name, *more):
        """Compresses a field of fields(); gives its values, the decoded ones and the page."""
        values, dims, bound = fields()[name]
        data = write_field(self.folder, name, values)
        self.fz(*compress_words(name, dims, bound, "page.html"), *more)
        self.fz("decompress", "-q", "-f", "-o", "decoded", name + ".fzm")
        decoded = array.array(data.typecode, (self.folder / "decoded").read_bytes())
        return data, decoded, Page(self.folder / "page.html")
