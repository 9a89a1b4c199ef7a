"""Cases of `fz bench`."""

import array
import json
import subprocess

from cli_support import BOUND, IO, USAGE, CliCase, wave

__all__ = ["BenchTest"]


class BenchTest(CliCase):
    def bench(self, *words, **kwargs):
        return self.fz("bench", "-n", "3", "--warmup", "1", *words, **kwargs)

    def test_one_table_of_all_presets_and_bounds(self):
        self.put("a.f32", wave(20000))
        text = self.bench("-p", "pfpl,cusz", "-b", "range:1e-3", "-b", "abs:0.5", "a.f32").stdout.decode()
        rows = [line.split()[:2] for line in text.splitlines()[1:5]]
        self.assertEqual(rows, [[p, b] for p in ("pfpl", "cusz") for b in ("range:0.001", "abs:0.5")])
        self.assertIn("3 runs after 1 to warm up; backend cpu", text)
        self.assertNotIn(" ms ", text)
        self.assertIn(" ms ", self.bench("--per-stage", "-p", "pfpl,cusz", "a.f32").stdout.decode())

    def test_json_has_everything(self):
        self.put("a.f32", wave(20000))
        (row,) = json.loads(self.bench("--json", "-T", "1", "-p", "cusz", "-b", "abs:1e-3", "a.f32").stdout)
        self.assertEqual((row["command"], row["code"], row["runs"], row["warmup"]), ("bench", 0, 3, 1))
        self.assertEqual((row["pipeline"], row["backend"], row["threads"]), ("cusz", "cpu", 1))
        self.assertEqual((row["original_bytes"], row["violations"]), (80000, 0))
        self.assertLessEqual(row["max_error"], 1e-3)
        self.fz("compress", "-p", "cusz", "-b", "abs:1e-3", "a.f32")
        self.assertEqual(row["archive_bytes"], len(self.get("a.f32.fzm")))
        for way in ("compress", "decompress"):
            call = row[way]["call"]
            self.assertTrue(0 < call["p5_s"] <= call["median_s"] <= call["p95_s"])
            self.assertAlmostEqual(call["gb_per_s"], 80000e-9 / call["median_s"], places=6)
            self.assertEqual(row[way]["with_transfers"], call)
            self.assertEqual([s["name"] for s in row[way]["stages"]][:1] != [], True)
        self.assertGreater(row["copy"]["median_s"], 0)

    def test_other_pipelines_inputs_and_a_made_field(self):
        self.put("a.f64", wave(500, "d"))
        self.put("b.f64", wave(500, "d"))
        text = self.bench("--stages", "quant->bitshuffle->rze", "a.f64", "b.f64").stdout.decode()
        self.assertEqual([line for line in text.splitlines() if line.endswith(".f64")], ["a.f64", "b.f64"])
        self.put("mine.toml", self.fz("presets", "--show", "speed").stdout)
        self.assertIn("mine.toml", self.bench("-c", "mine.toml", "-t", "f64", "a.f64").stdout.decode())
        done = self.bench("-d", "20x30x4", "-p", "cuszp3")
        self.assertIn("made field: f32 (made), 20 x 30 x 4", done.stderr.decode())
        self.assertEqual(self.bench("-q", "-d", "100", "-p", "speed").stderr, b"")

    def test_failures_do_not_stop_the_others(self):
        field = wave(100)
        field[3] = 1e30
        self.put("a.f32", field)
        done = self.bench("-p", "cuszp,speed", "-b", "abs:0.1", "a.f32", code=BOUND)
        self.assertIn("failed, see its error", done.stdout.decode())
        self.assertRegex(done.stdout.decode(), r"(?m)^speed .* GB|^speed +abs:0\.1 +\d")
        self.assertIn("value 3 = 1.0", done.stderr.decode())
        rows = json.loads(self.bench("--json", "-p", "cuszp", "-b", "abs:0.1", "a.f32", code=BOUND).stdout)
        self.assertIn("value 3 = 1.0", rows[0]["message"])
        self.assertEqual(rows[0]["code"], BOUND)
        self.bench("absent.f32", code=IO)

    def test_missing_values_are_those_of_compress(self):
        field = wave(6000)
        for i in range(0, len(field), 3):
            field[i] = float("nan") if i % 2 else -9999
        self.put("a.f32", field)
        for preset in ("fast", "cuszp", "pfpl"):
            words = ("-p", preset, "-b", "range:1e-3", "--fill", "-9999", "a.f32")
            (row,) = json.loads(self.bench("--json", *words).stdout)
            self.fz("compress", "-q", "-f", *words)
            self.assertEqual(row["archive_bytes"], len(self.get("a.f32.fzm")))
            self.assertEqual(row["violations"], 0)

    def test_a_range_that_a_fill_value_sets_is_refused(self):
        field = wave(6000)
        for i in range(0, len(field), 3):
            field[i] = -9999
        self.put("a.f32", field)
        self.assertIn("--fill -9999", self.bench("-p", "pfpl", "a.f32", code=BOUND).stderr.decode())
        self.bench("-p", "pfpl", "--fill", "none", "a.f32")
        self.bench("-p", "pfpl", "-b", "abs:0.1", "a.f32")
        self.assertIn("--fill -9999", self.fz("suggest", "-b", "range:1e-3", "a.f32", code=BOUND).stderr.decode())
        self.fz("suggest", "-b", "range:1e-3", "--fill", "-9999", "--seconds", "0.1", "a.f32")

    def test_slow_speeds_have_more_decimals(self):
        self.put("a.f32", wave(40))
        self.assertRegex(self.bench("-p", "best", "-b", "abs:0.1", "a.f32").stdout.decode(), r" 0\.0\d\d\d ")

    def test_errors_follow_the_table_that_points_to_them(self):
        self.put("b.f32", array.array("f", [1e30] * 100))
        text = self.bench("-p", "cuszp", "-b", "abs:0.1", "b.f32", code=BOUND, stderr=subprocess.STDOUT).stdout.decode()
        self.assertLess(text.index("failed, see its error"), text.index("fz: b.f32 cuszp: "))

    def test_the_median_of_two_runs_lies_between_them(self):
        self.put("a.f32", wave(20000))
        (row,) = json.loads(self.fz("bench", "--json", "-n", "2", "-p", "speed", "a.f32").stdout)
        for times in (row["copy"], row["compress"]["call"], row["decompress"]["call"]):
            self.assertEqual(times["median_s"], times["p5_s"] / 2 + times["p95_s"] / 2)

    def test_mistakes(self):
        self.put("a.f32", wave(100))
        self.fails(USAGE, "bench", "-p", "pfpl,cuzs", "a.f32", says="did you mean 'cusz'")
        self.fails(USAGE, "bench", "-n", "0", "a.f32", says="--runs")
        self.fails(USAGE, "bench", "-b", "1e-3", "a.f32", says="abs:1e-3")
