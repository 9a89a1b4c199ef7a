#!/usr/bin/env python3
"""The table of tools/exam says what its figures say, and the README has it."""

import importlib.machinery
import importlib.util
import json
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import exam_page  # noqa: E402

loader = importlib.machinery.SourceFileLoader("exam", str(ROOT / "tools/exam"))
exam = importlib.util.module_from_spec(importlib.util.spec_from_loader("exam", loader))
loader.exec_module(exam)


def run(field: str, by: str, ratio: float, **more) -> dict:
    return {"field": field, "by": by, "n_bytes": 1_000_000, "ratio": ratio, "compress_s": 0.01, "decompress_s": 0.002,
            "n_missing": 0, "n_missing_lost": 0, "n_beyond": 0, **more}


DATA = {"n_fields": 2, "bound": "1e-3", "rounds": 5, "copy_mbs": 9000, "machine": "<a machine>", "date": "today",
        "programs": [{"name": "fz best", "runs_on": "CPU", "lossless": False},
                     {"name": "other", "runs_on": "CPU", "lossless": True}],
        "runs": [run("a", "fz best", 4), run("b", "fz best", 9, n_missing=7),
                 run("a", "other", 2, n_beyond=3), run("b", "other", 8, n_missing=7, n_missing_lost=1)]}


class Exam(unittest.TestCase):
    def test_means_are_geometric_and_speeds_are_of_all_bytes(self):
        row = exam_page.summary(DATA)[0]
        self.assertAlmostEqual(row["ratio"], 6)
        self.assertAlmostEqual(row["compress"], 100)
        self.assertAlmostEqual(row["decompress"], 500)

    def test_broken_bounds_and_lost_gaps_are_counted_by_field(self):
        ours, other = exam_page.as_text(DATA).splitlines()[1:]
        self.assertIn("2 of 2", ours)
        self.assertIn("1 of 1", ours)
        self.assertIn("1 of 2", other)
        self.assertIn("0 of 1", other)
        self.assertIn("other (lossless)", other)

    def test_the_page_marks_what_failed_and_escapes_text(self):
        page = exam_page.as_page(DATA)
        self.assertEqual(page.count("<td class=bad>"), 4)  # two cells of the table, two ratios
        self.assertIn("&lt;a machine&gt;", page)
        self.assertEqual(page.count("<circle"), 4)

    def test_a_difference_that_rounds_to_the_bound_is_compared_exactly(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no numpy")
        # 1 + 2^-53 - 2^-60 rounds to 1: the first pair is beyond the bound, the second within it.
        values = numpy.array([1.0, 1.0])
        back = numpy.array([-(2.0**-53) + 2.0**-60, 2.0**-60])
        valid = numpy.array([True, True])
        self.assertEqual(exam.n_beyond(values, back, valid, 1.0), 1)
        self.assertEqual(exam.n_beyond(values, numpy.array([numpy.nan, 1.5]), valid, 1.0), 1)

    def test_the_readme_has_the_table_of_the_kept_figures(self):
        kept = json.loads(exam.RESULTS.read_text())
        self.assertIn(exam_page.as_markdown(kept), exam.PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
