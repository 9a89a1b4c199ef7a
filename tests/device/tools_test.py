#!/usr/bin/env python3
"""The command line tools on a GPU: the same archives as on the CPU, and every command runs.

Usage: tools_test.py FOLDER [unittest arguments]    (FOLDER has fz and fzgmod-cli)
tools/gpu_tools calls it on a machine that has a GPU.
"""

import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

FOLDER = pathlib.Path()
BACKEND = os.environ.get("FZ_TEST_BACKEND", "cuda")  # "cpu" tries the test itself
WORKERS = 12  # processes at once: starting one on a GPU takes most of its time


def field(shape, dtype):
    """Smooth, with some noise and values of all magnitudes."""
    n = math.prod(shape)
    x = np.arange(n)
    values = 20 + 5 * np.sin(x / 170) + np.random.default_rng(5).normal(scale=0.01, size=n)
    values[::97] *= 10.0 ** (x[::97] % 13 - 6)
    return values.astype(dtype).reshape(shape)


class DeviceCase(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="fz_device_", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def run_tool(self, tool, *words, code=0):
        done = subprocess.run(
            [FOLDER / tool, *map(str, words)], cwd=self.folder, capture_output=True, timeout=100, check=False
        )
        self.assertEqual(done.returncode, code, (tool, *words, done.stderr.decode(errors="replace")[-2000:]))
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def fz(self, *words, code=0):
        return self.run_tool("fz", *words, code=code)

    def get(self, name):
        return (self.folder / name).read_bytes()

    def all_of(self, task, rows):
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
            for result in [workers.submit(task, *row) for row in rows]:
                result.result()


class ArchiveTest(DeviceCase):
    def test_every_preset_type_and_kind_of_bound_gives_the_archive_of_the_cpu(self):
        presets = json.loads(self.fz("presets", "--json")[0])
        for dtype, suffix in (("f4", "f32"), ("f8", "f64")):
            (self.folder / f"a.{suffix}").write_bytes(field((30, 70, 90), dtype).tobytes())

        def both(preset, kind, suffix):
            name, source = f"{preset}_{kind}_{suffix}", f"a.{suffix}"
            words = ("compress", "-q", "-p", preset, "-b", f"{kind}:1e-2", "-d", "90x70x30")
            for way, backend in (("own", "cpu"), ("other", BACKEND)):
                self.fz(*words, "--backend", backend, "-o", f"{name}.{way}", source)
            self.assertEqual(self.get(f"{name}.own"), self.get(f"{name}.other"), name)
            for way, backend in (("own", "cpu"), ("other", BACKEND)):
                self.fz("decompress", "-q", "--backend", backend, "-o", f"{name}.{way}.raw", f"{name}.other")
            self.assertEqual(self.get(f"{name}.own.raw"), self.get(f"{name}.other.raw"), name)

        self.all_of(both, [(p["name"], kind, t) for p in presets for kind in p["bounds"] for t in ("f32", "f64")])

    def test_verify_test_and_info_run_on_the_gpu(self):
        np.save(self.folder / "a.npy", field((64, 100, 50), "f4"))
        _, said = self.fz("compress", "--backend", BACKEND, "--verify", "-v", "-b", "range:1e-4", "a.npy")
        self.assertIn("verified: all 320000 values", said)
        out, _ = self.fz("verify", "--backend", BACKEND, "--json", "a.npy.fzm", "a.npy")
        self.assertEqual(json.loads(out)[0]["violations"], 0)
        self.assertEqual(self.fz("test", "--backend", BACKEND, "a.npy.fzm")[0], "a.npy.fzm: ok\n")
        self.fz("test", "--backend", BACKEND, "--max-memory", "1k", "a.npy.fzm", code=5)
        (info,) = json.loads(self.fz("info", "--json", "a.npy.fzm")[0])
        self.assertEqual((info["type"], info["dims"]), ("float32", [50, 100, 64]))
        self.fz("decompress", "--backend", BACKEND, "-o", "b.npy", "a.npy.fzm")
        self.assertEqual(np.load(self.folder / "b.npy").shape, (64, 100, 50))
        damaged = bytearray(self.get("a.npy.fzm"))
        damaged[len(damaged) // 2] ^= 1
        (self.folder / "damaged.fzm").write_bytes(damaged)
        self.fz("test", "--backend", BACKEND, "damaged.fzm", code=3)
        self.assertIn(BACKEND, self.fz("--version")[0])
        self.assertRegex(self.fz("stages")[0], rf"(?m)^Huffman +coder +[a-z,]*{BACKEND} +decompress ")

    def test_values_that_a_preset_refuses_are_an_error_of_the_bound(self):
        (self.folder / "a.f32").write_bytes(np.array([1, 1e30], "f4").tobytes())
        self.fz("compress", "--backend", BACKEND, "-p", "cuszp2", "-b", "abs:1e-3", "a.f32", code=4)
        self.fz("compress", "--backend", BACKEND, "-p", "cuszp2", "-b", "rel:1e-3", "a.f32", code=1)


class BenchTest(DeviceCase):
    def test_presets_and_bounds_as_one_table(self):
        depth = 64 if BACKEND == "cuda" else 2  # a GPU needs something to do
        dims = f"1024x512x{depth}"
        (self.folder / "a.f32").write_bytes(field((depth, 512, 1024), "f4").tobytes())
        words = ("bench", "--backend", BACKEND, "-d", dims, "-n", "5")
        words += tuple(itertools.chain(*(("-p", p) for p in ("pfpl", "cuszp2", "cusz", "fzgpu"))))
        words += ("-b", "range:1e-3", "-b", "abs:0.01", "a.f32")
        table, _ = self.fz(*words)
        print(table)
        self.assertIn(f"backend {BACKEND}", table)
        rows = json.loads(self.fz(*words, "--json")[0])
        self.assertEqual(len(rows), 8)
        for row in rows:
            name = (row["pipeline"], row["bound"])
            self.assertEqual((row["backend"], row["violations"]), (BACKEND, 0), name)
            for way in ("compress", "decompress"):
                times = row[way]
                self.assertGreater(times["call"]["gb_per_s"], 0, name)
                self.assertLessEqual(times["call"]["median_s"], times["with_transfers"]["median_s"], name)
                self.assertTrue(times["stages"], name)
            self.assertGreater(row["copy"]["gb_per_s"], row["compress"]["call"]["gb_per_s"] / 10, name)
        self.fz("compress", "-q", "--backend", "cpu", "-p", "cusz", "-b", "abs:0.01", "-d", dims, "a.f32")
        sizes = {row["archive_bytes"] for row in rows if (row["pipeline"], row["bound"]) == ("cusz", "abs:0.01")}
        self.assertEqual(sizes, {len(self.get("a.f32.fzm"))})


class ReportTest(DeviceCase):
    def figures(self, page):
        text = self.get(page).decode()
        return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)[1])

    def test_a_report_with_a_sweep(self):
        (self.folder / "a.f32").write_bytes(field((30, 70, 90), "f4").tobytes())
        words = ("-q", "-p", "cuszp2", "-b", "range:1e-3", "-d", "90x70x30")
        self.fz("compress", *words, "--backend", BACKEND, "--report", "a.html", "--sweep", "a.f32")
        self.fz("compress", *words, "--backend", "cpu", "-o", "cpu.fzm", "a.f32")
        self.assertEqual(self.get("a.f32.fzm"), self.get("cpu.fzm"))
        figures = self.figures("a.html")
        points = figures["sweep"]["points"]
        self.assertGreater(len(points), 2)
        self.assertEqual([point["violations"] for point in points], [0] * len(points))
        self.assertTrue(any(stage["compress_ms"] for stage in figures["stages"]), figures["stages"])
        self.fz("verify", "--backend", BACKEND, "--report", "b.html", "a.f32.fzm", "a.f32")
        self.assertEqual(self.figures("b.html")["error"]["violations"], 0)


class CompatTest(DeviceCase):
    """fzgmod-cli takes a GPU by itself."""

    def test_all_modes(self):
        source = field((30, 70, 90), "f4")
        (self.folder / "a.f32").write_bytes(source.tobytes())
        tool = lambda *words, **options: self.run_tool("fzgmod-cli", *words, **options)[0]
        said = tool("-z", "-i", "a.f32", "-l", "90x70x30", "-m", "abs", "-e", "1e-2", "-R", "--profile", "--warmup")
        self.assertIn("[Compress Report]", said)
        self.assertIn("LorenzoQuant", said)
        self.assertRegex(said, r"[0-9.]+ ?ms")
        for strategy in ("minimal", "preallocate"):
            tool("-z", "-i", "a.f32", "-l", "90x70x30", "-m", "abs", "-e", "1e-2", "--strategy", strategy, "-o", strategy)
            self.assertEqual(self.get(strategy), self.get("a.f32.fzm"))
        said = tool("-x", "-i", "a.f32.fzm", "-o", "b.f32", "--compare", "a.f32", "--profile")
        self.assertIn("Max Abs Error", said)
        self.assertRegex(said, r"[0-9.]+ ?ms")
        back = np.frombuffer(self.get("b.f32"), "f4").astype("f8")
        self.assertLessEqual(np.abs(back - source.ravel().astype("f8")).max(), 1e-2)
        for stages in ("lorenzo->bitshuffle->rze", "quantizer->diff->bitshuffle->rze", "lorenzo->huffman", "lorenzo->rle"):
            tool("-z", "-i", "a.f32", "--stages", stages, "-m", "noa", "-e", "1e-3", "-o", "c.fzm")
            self.fz("verify", "--backend", "cpu", "c.fzm", "a.f32")
        said = tool("-b", "-i", "a.f32", "-l", "90x70x30", "--runs", "3", "--profile", "-R")
        self.assertIn("[benchmark] decompress summary", said)
        self.assertIn("[Quality Report]", said)
        self.fz("verify", "--backend", "cpu", "a.f32.fzm", "a.f32")


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
