#!/usr/bin/env python3
"""The page of --report without a browser: numbers, pictures, escaping, options.

Usage: report_test.py PATH_TO_FZ [unittest arguments]
"""

import array
import cmath
import hashlib
import html
import json
import math
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import unittest
import zlib

import report_support as support
from report_support import ReportCase

class NumbersTest(ReportCase):
    def test_error_figures_are_those_of_the_values(self):
        for name in ("grid.f32", "cube.f32", "gaps.f32"):
            data, decoded, page = self.page(name)
            pairs = [(x, y) for x, y in zip(data, decoded) if math.isfinite(x)]
            errors = [abs(x - y) for x, y in pairs]
            finite = [x for x, _ in pairs]
            mse = math.fsum(e * e for e in errors) / len(errors)
            spread = max(finite) - min(finite)
            figures = page.figures
            self.assertEqual(figures["error"]["max_error"], max(errors))
            self.assertEqual(figures["error"]["violations"], 0)
            self.assertAlmostEqual(figures["error"]["mse"] / mse, 1, delta=1e-9)
            psnr = 20 * math.log10(spread) - 10 * math.log10(mse)
            self.assertAlmostEqual(figures["error"]["psnr"], psnr, delta=1e-6)
            self.assertAlmostEqual(figures["field"]["psnr_without_fill"], psnr, delta=1e-6)
            for key, numbers in (("original", finite), ("reconstruction", [y for _, y in pairs])):
                moments = figures["field"][key]
                mean = math.fsum(numbers) / len(numbers)
                deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in numbers) / len(numbers))
                self.assertEqual((moments["min"], moments["max"]), (min(numbers), max(numbers)))
                self.assertAlmostEqual(moments["mean"] / mean, 1, delta=1e-10)
                self.assertAlmostEqual(moments["deviation"] / deviation, 1, delta=1e-10)
            # What JSON says stands on the page too, digit by digit.
            self.assertIn(repr(max(errors)), page.text)

    def test_archive_and_field_are_identified(self):
        data, _, page = self.page("grid.f32")
        archive = (self.folder / "grid.f32.fzm").read_bytes()
        self.assertEqual(page.figures["archive"]["sha256"], hashlib.sha256(archive).hexdigest())
        self.assertIn(hashlib.sha256(archive).hexdigest(), page.text)
        self.assertEqual(page.figures["field"]["crc32"], f"{zlib.crc32(data.tobytes()):08x}")
        self.assertEqual(page.figures["archive"]["bytes"], len(archive))
        self.assertEqual(page.figures["archive"]["ratio"], len(data.tobytes()) / len(archive))
        self.assertIn("fz compress -q -f -p pfpl -b range:1e-3", page.text)

    def test_digest_is_right_for_every_length_around_a_block(self):
        # The archive's length differs by a byte now and then; these cover both paddings.
        lengths = set()
        for n in range(1, 40, 3):
            support.write_field(self.folder, "n.f32", [math.sin(3.7 * i) for i in range(n)])
            self.fz("compress", "-q", "-f", "-p", "pfpl", "-b", "abs:1e-3", "--report", "n.html", "n.f32")
            self.fz("verify", "-q", "-f", "--report", "v.html", "n.f32.fzm", "n.f32")
            archive = (self.folder / "n.f32.fzm").read_bytes()
            lengths.add(len(archive) % 64 >= 56)
            for name in ("n.html", "v.html"):
                page = support.Page(self.folder / name)
                self.assertEqual(page.figures["archive"]["sha256"], hashlib.sha256(archive).hexdigest())
        self.assertEqual(lengths, {True, False})

    def test_histograms_count_every_value_once(self):
        data, decoded, page = self.page("grid.f32")
        values = page.figures["value_histogram"]["original"]
        low, high, counts = values["low"], values["high"], values["counts"]
        expected = [0] * len(counts)
        for v in data:
            expected[min(len(counts) - 1, math.floor((v / 2 - low / 2) / (high / 2 - low / 2) * len(counts)))] += 1
        self.assertEqual(counts, expected)
        errors = page.figures["error_histogram"]
        bound = page.figures["error"]["bound"]["absolute"]
        n_bins = len(errors["in_bounds"]["counts"])
        expected = [0] * n_bins
        for x, y in zip(data, decoded):
            part = (x / 2 - y / 2) / (bound / 2)
            expected[max(0, min(n_bins - 1, math.floor((part / 2 + 0.5) * n_bins)))] += 1
        self.assertEqual(errors["in_bounds"]["counts"], expected)
        self.assertEqual((errors["below"], errors["above"]), (0, 0))
        self.assertEqual(sum(expected), len(data))

    def test_spectrum_of_a_series_is_that_of_a_slow_transform(self):
        values = [math.sin(i / 5) + 0.1 * math.cos(2 * i) for i in range(100)]
        data = support.write_field(self.folder, "s.f64", values)
        self.fz("compress", "-q", "-b", "abs:0.01", "-t", "f64", "--report", "page.html", "s.f64")
        spectrum = support.Page(self.folder / "page.html").figures["spectrum"]
        self.assertEqual((spectrum["axes"], spectrum["extents"][0], spectrum["segments"]), (1, 64, 2))
        sums, total = [0.0] * 32, 0.0
        for start in (0, 32):
            part = data[start : start + 64]
            mean = sum(part) / 64
            windowed = [(v - mean) * (0.5 - 0.5 * math.cos(2 * math.pi * i / 64)) for i, v in enumerate(part)]
            power = [
                abs(sum(v * cmath.exp(-2j * math.pi * i * k / 64) for i, v in enumerate(windowed))) ** 2
                for k in range(64)
            ]
            total += sum(power)
            for k in range(1, 33):
                sums[k - 1] += (power[k] + power[-k % 64]) / 2
        for ours, theirs in zip(spectrum["original"], sums):
            self.assertAlmostEqual(ours, theirs / total, delta=1e-12)

    def test_spectrum_of_a_grid_finds_its_waves(self):
        wave = [math.sin(2 * math.pi * 8 * x / 64) * math.cos(2 * math.pi * 6 * y / 64) for y in range(64) for x in range(64)]
        support.write_field(self.folder, "w.f32", wave)
        self.fz("compress", "-q", "-b", "abs:1e-4", "-d", "64x64", "--report", "page.html", "w.f32")
        spectrum = support.Page(self.folder / "page.html").figures["spectrum"]
        self.assertEqual(spectrum["extents"], [64, 64, 1])
        strongest = max(range(32), key=lambda k: spectrum["original"][k])
        self.assertEqual(spectrum["frequency"][strongest], 10 / 64)  # 8 and 6 make 10

    def test_what_is_no_value_is_counted_and_left_out(self):
        data, _, page = self.page("gaps.f32")
        field = page.figures["field"]
        self.assertEqual(field["nan"], sum(math.isnan(v) for v in data))
        self.assertEqual(field["finite_without_fill"], sum(math.isfinite(v) for v in data))
        data, _, page = self.page("fill.f32")
        field = page.figures["field"]
        n_fill = sum(v > 1e19 for v in data)
        self.assertEqual((field["fill"], field["fill_value"]), (n_fill, data[0]))
        self.assertLess(field["original"]["max"], 301)
        self.assertEqual(sum(page.figures["value_histogram"]["original"]["counts"]), len(data) - n_fill)

    def test_all_declared_fill_values_are_left_out_whatever_they_look_like(self):
        values = [280 + math.sin(i / 9) for i in range(4800)]
        values[::6] = [-9999.0] * 800
        values[1::6] = [280.5] * 800  # in the middle of the others
        values[2::48] = [math.nan] * 100
        support.write_field(self.folder, "d.f32", values)
        words = ("-d", "80x60", "--fill", "-9999", "--fill", "280.5")
        for preset, bound in (("pfpl", "range:1e-3"), ("quantizer_lorenzo_bitpack", "range:1e-8")):
            self.fz("compress", "-q", "-f", "-p", preset, "-b", bound, *words, "--report", "page.html", "d.f32")
            page = support.Page(self.folder / "page.html")
            field = page.figures["field"]
            self.assertEqual((field["fill"], field["declared_fill_values"]), (1600, [-9999.0, 280.5]))
            self.assertIsNone(field["fill_value"])
            self.assertEqual((field["nan"], field["finite_without_fill"]), (100, 4800 - 1700))
            self.assertGreater(field["original"]["min"], 278)
            self.assertEqual(sum(page.figures["value_histogram"]["original"]["counts"]), 3100)
            self.assertIn("declared fill value", (self.folder / "page.html").read_text())
            self.fz("verify", "-q", "-f", "--fill", "-9999", "--fill", "280.5", "--report", "page.html", "d.f32.fzm", "d.f32")
            self.assertEqual(support.Page(self.folder / "page.html").figures["field"], field)
        done = support.run(support.BINARY, self.folder, "info", "--json", "d.f32.fzm")
        self.assertTrue(json.loads(done.stdout)[0]["fallback"])

    def test_stage_bytes_lead_from_the_field_to_the_archive(self):
        data, _, page = self.page("cube.f32")
        stages = page.figures["stages"]
        self.assertEqual(stages[0]["bytes_in"], len(data.tobytes()))
        for stage in stages:
            for source in stage["reads"]:
                self.assertLessEqual(stage["bytes_in"], stages[source]["bytes_out"])
            self.assertGreaterEqual(stage["compress_ms"], 0)
            self.assertGreaterEqual(stage["decompress_ms"], 0)
        self.assertEqual([s["name"] for s in stages], ["Quantizer", "Difference", "Bitshuffle", "RZE"])

    def test_a_frame_that_another_pipeline_made_has_its_own_stages(self):
        # Noise that no stage makes smaller is stored as it is.
        noise = random.Random(3)
        support.write_field(self.folder, "noise.f32", [noise.random() for _ in range(3000)])
        for bound in ((), ("-b", "abs:1e-12")):
            self.fz("compress", "-q", "-f", *bound, "--report", "page.html", "noise.f32")
            page = support.Page(self.folder / "page.html")
            info = json.loads(support.run(support.BINARY, self.folder, "info", "--json", "noise.f32.fzm").stdout)[0]
            stages = page.figures["stages"]
            self.assertEqual([s["name"] for s in stages], [s["name"] for s in info["stages"]])
            self.assertEqual([s["compress_ms"] for s in stages], [None] * len(stages))
            self.assertIn("decompress", page.text)

    def test_large_fields_are_counted_whole_and_measured_in_part(self):
        # Zeros, so that the file takes no room on the disk.
        with open(self.folder / "zeros.f32", "wb") as file:
            file.truncate(4 * 4096 * 8448)
        words = ("-p", "cuszp3", "-b", "abs:0.5", "-d", "4096x8448", "--sweep=0.5", "--report", "page.html")
        self.fz("compress", "-q", *words, "zeros.f32")
        page = support.Page(self.folder / "page.html")
        self.assertEqual(page.figures["field"]["values"], 4096 * 8448)
        self.assertEqual(page.figures["field"]["finite_without_fill"], 4096 * 8448)
        self.assertEqual(sum(page.figures["error_histogram"]["in_bounds"]["counts"]), 4096 * 8448)
        self.assertEqual(page.figures["stages_values"], 4096 * 8192)
        self.assertEqual(page.figures["stages"][0]["bytes_in"], 4 * 4096 * 8192)
        self.assertEqual(page.figures["sweep"]["values"], 4096 * 8192)
        self.assertEqual(page.text.count("values from the middle of the field"), 2)

    def test_sweep_bounds_are_kept_and_rates_rise(self):
        data, _, page = self.page("cube.f32", "--sweep")
        points = page.figures["sweep"]["points"]
        self.assertEqual([p["bound"] for p in points], [3.16e-3, 1e-3, 3.16e-4, 1e-4, 3.16e-5, 1e-5, 3.16e-6])
        own = points[3]
        self.assertEqual(own["ratio"], page.figures["archive"]["ratio"])
        self.assertEqual(own["psnr"], page.figures["field"]["psnr_without_fill"])
        for loose, tight in zip(points, points[1:]):
            self.assertLess(loose["bits_per_value"], tight["bits_per_value"])
            self.assertLess(loose["psnr"], tight["psnr"])
        for point in points:
            self.assertLessEqual(point["max_error"], point["absolute"])
            self.assertEqual(point["violations"], 0)
        _, _, page = self.page("grid.f32", "--sweep=0.01,1e-3")
        self.assertEqual([p["bound"] for p in page.figures["sweep"]["points"]], [0.01, 0.001])


    def test_relative_bounds_come_with_the_relative_error(self):
        data, decoded, page = self.page("series.f64")
        relative = [abs(x - y) / abs(x) for x, y in zip(data, decoded)]
        self.assertEqual(page.figures["error"]["max_relative_error"], max(relative))
        self.assertEqual(page.figures["error"]["max_relative_error_index"], relative.index(max(relative)))
        self.assertIn(f"{max(relative)!r} at index {relative.index(max(relative))}", page.text)

    def test_there_is_no_psnr_without_values(self):
        for name in ("empty.f32", "nothing.f32"):
            _, _, page = self.page(name)
            self.assertIsNone(page.figures["error"]["psnr"])
            self.assertIsNone(page.figures["field"]["psnr_without_fill"])
            self.assertIn("n/a", page.text)


class JudgementTest(ReportCase):
    """A kept bound is no praise; what else there is to say stands at the top."""

    def judged(self, values, *words, dims=None):
        support.write_field(self.folder, "a.f32", values)
        shape = ("-d", dims) if dims else ()
        self.fz("compress", "-q", "-f", *shape, *words, "--report", "page.html", "a.f32")
        page = support.Page(self.folder / "page.html")
        for one in page.figures["judgements"]:
            self.assertIn(one["text"], html.unescape((self.folder / "page.html").read_text()))
        return page, {one["about"]: one["severity"] for one in page.figures["judgements"]}

    def source(self):
        return (self.folder / "page.html").read_text()

    GRID = [280 + 20 * math.sin(x / 9) * math.cos(y / 7) for y in range(48) for x in range(64)]

    def test_a_good_archive_has_a_tick_and_nothing_else(self):
        _, said = self.judged(self.GRID, "-b", "range:1e-4", "-p", "pfpl", dims="64x48")
        self.assertEqual(said, {})
        self.assertIn('class="verdict ok"', self.source())

    def test_one_value_for_all_is_a_loss(self):
        _, said = self.judged(self.GRID, "-b", "abs:100", "-p", "pfpl", dims="64x48")
        self.assertEqual(said["constant"], "loss")
        self.assertIn('class="verdict no"', self.source())
        self.assertNotIn('class="verdict ok"', self.source())

    def test_lost_structure_is_said_by_gradients(self):
        fine = [v + 0.2 * math.sin(2.5 * i) for i, v in enumerate(self.GRID)]
        _, said = self.judged(fine, "-b", "abs:1", "-p", "pfpl", dims="64x48")
        self.assertIn(said["gradients"], ("doubt", "loss"))
        _, said = self.judged(fine, "-b", "abs:0.001", "-p", "pfpl", dims="64x48")
        self.assertNotIn("gradients", said)

    def test_a_ratio_near_one_is_a_doubt(self):
        noise = random.Random(2)
        _, said = self.judged([noise.random() for _ in range(5000)], "-b", "abs:1e-9", "-p", "pfpl")
        self.assertEqual(said["ratio"], "doubt")
        self.assertIn('class="verdict doubt"', self.source())
        self.assertNotIn('class="verdict ok"', self.source())

    def test_missing_values_are_noted_and_undeclared_fill_values_doubted(self):
        gaps = [float("nan") if i % 10 == 0 else v for i, v in enumerate(self.GRID)]
        _, said = self.judged(gaps, "-b", "abs:0.01", "-p", "pfpl", dims="64x48")
        self.assertEqual(said, {"missing": "note"})
        filled = [1e20 if i % 10 == 0 else v for i, v in enumerate(self.GRID)]
        _, said = self.judged(filled, "-b", "abs:0.01", "-p", "pfpl", dims="64x48")
        self.assertEqual(said["fill"], "doubt")
        _, said = self.judged(filled, "-b", "abs:0.01", "--fill", "1e20", "-p", "pfpl", dims="64x48")
        self.assertEqual(said, {"missing": "note"})


class PictureTest(ReportCase):
    def test_pictures_show_the_values(self):
        data, decoded, page = self.page("grid.f32")
        original, reconstruction, error = page.pictures()
        low, high = min(data), max(data)
        bound = page.figures["error"]["bound"]["absolute"]
        for picture, values in ((original, data), (reconstruction, decoded)):
            self.assertEqual((picture.width, picture.height), (64, 48))
            for i, value in enumerate(values):
                part = min(1.0, max(0.0, (value - low) / (high - low)))
                self.assertAlmostEqual(picture.rows[i // 64][i % 64], part * 248, delta=0.5001)
        for i, (x, y) in enumerate(zip(data, decoded)):
            self.assertAlmostEqual(error.rows[i // 64][i % 64], ((x - y) / bound + 1) / 2 * 248, delta=0.5001)

    def test_missing_values_are_transparent_and_large_fields_shrink(self):
        data, _, page = self.page("fill.f32")
        for picture in page.pictures():
            seen = [picture.rows[i // 64][i % 64] for i in range(len(data))]
            for index, value in zip(seen, data):
                self.assertEqual(picture.alpha[index] == 0 if index < len(picture.alpha) else False, value > 1e19)
        _, _, page = self.page("large.f32")
        self.assertEqual({(p.width, p.height) for p in page.pictures()}, {(367, 350)})
        self.assertIn("A pixel stands for 3 \u00d7 2 values", page.text)
        _, _, page = self.page("cube.f32")
        self.assertIn("The plane z = 10", page.text)

    def test_colour_maps_are_even(self):
        _, _, page = self.page("grid.f32")
        original, _, error = page.pictures()
        steps = [support.lightness(c) for c in original.palette[:249]]
        self.assertTrue(all(b - a > -0.35 for a, b in zip(steps, steps[1:])), "lightness falls")
        self.assertGreater(steps[-1] - steps[0], 70)
        sides = [support.lightness(c) for c in error.palette[:249]]
        self.assertEqual(max(range(249), key=sides.__getitem__), 124)
        for i in range(124):
            self.assertAlmostEqual(sides[i], sides[248 - i], delta=6)


class PageTest(ReportCase):
    def test_every_kind_of_field_gives_a_sound_page(self):
        for name, (values, dims, bound) in support.fields().items():
            support.write_field(self.folder, name, values)
            self.fz(*support.compress_words(name, dims, bound, "a.html"))
            self.fz("verify", "-q", "-f", "--report", "b.html", name + ".fzm", name)
            for path in ("a.html", "b.html"):
                page = support.Page(self.folder / path)
                for tag, attrs in page.tags:
                    for key in ("d", "x", "y", "width", "height", "cx", "cy", "viewBox", "style", "transform"):
                        self.assertNotRegex(attrs.get(key) or "", r"(?i)nan|inf", (name, tag, key))
                    if attrs.get("role") == "img":
                        self.assertTrue(attrs.get("aria-label"), (name, tag))
                self.assertEqual(page.figures["field"]["values"], len(values))
                self.assertEqual(page.figures["error"]["violations"], 0)

    def test_nothing_is_loaded_from_anywhere(self):
        _, _, page = self.page("cube.f32", "--sweep")
        csp = [a["content"] for a in page.attributes("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        self.assertEqual(len(csp), 1)
        self.assertTrue(csp[0].startswith("default-src 'none';"))
        self.assertNotIn("script-src", csp[0])
        without_pictures = re.sub(r"base64,[A-Za-z0-9+/=]*", "", page.source)
        found = re.search(r"(?i)https?:|//[a-z]|@import|javascript:|url\((?!#)", without_pictures)
        self.assertIsNone(found)
        for tag, attrs in page.tags:
            for key in ("src", "href", "action", "data", "srcset"):
                if attrs.get(key) is not None:
                    self.assertRegex(attrs[key], r"^(data:|#)", (tag, key))
            self.assertFalse([k for k in attrs if k.startswith("on")], (tag, attrs))
        self.assertEqual([a.get("type") for a in page.attributes("script")], ["application/json"])
        self.assertEqual(page.attributes("link"), [{"rel": "icon", "href": "data:,"}])

    def test_hostile_names_are_text(self):
        _, _, page = self.page(support.HOSTILE)
        self.assertEqual(page.attributes("img"), [])
        self.assertIn(support.HOSTILE, page.text)
        self.assertEqual(page.figures["field"]["name"], support.HOSTILE)
        name = b"\xff\n</script><script>alert(1)</script>\x1b.f32"
        path = os.path.join(os.fsencode(self.folder), name.replace(b"/", b"_"))
        with open(path, "wb") as file:
            file.write(array.array("f", [1, 2, 3]).tobytes())
        self.fz("compress", "-q", "-b", "abs:1", "--report", "raw.html", os.path.basename(path))
        source = (self.folder / "raw.html").read_bytes()
        self.assertEqual(len(re.findall(rb"<script", source)), 1)
        self.assertNotIn(b"\x1b", source)

    def test_names_that_are_no_utf8_leave_the_page_valid(self):
        # Lone, overlong, surrogate, too large, cut off; then characters that have to stay.
        name = b"\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82 \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80.f32"
        with open(os.path.join(os.fsencode(self.folder), name), "wb") as file:
            file.write(array.array("f", [1, 2, 3]).tobytes())
        self.fz("compress", "-q", "-b", "abs:1", "--report", "raw.html", name)
        page = support.Page(self.folder / "raw.html")  # decodes strictly
        self.assertIn("\ufffd" * 12 + " \u00e9\u20ac\U0001f600.f32", page.text)


class OptionsTest(ReportCase):
    def setUp(self):
        super().setUp()
        support.write_field(self.folder, "a.f32", support.fields()["series.f64"][0])
        shutil.copy(self.folder / "a.f32", self.folder / "b.f32")

    def test_report_implies_the_check_and_says_where_it_is(self):
        text = self.fz("compress", "-b", "abs:0.01", "--report", "r.html", "a.f32")
        self.assertIn("verified: all 4000 values", text)
        self.assertIn("report: r.html", text)

    def test_existing_pages_stay_without_force(self):
        self.fz("compress", "-q", "-b", "abs:0.01", "a.f32")
        (self.folder / "r.html").write_text("mine")
        self.assertIn("use -f", self.fz("compress", "-b", "abs:1", "-o", "x.fzm", "--report", "r.html", "a.f32", code=2))
        self.assertFalse((self.folder / "x.fzm").exists())
        self.assertIn("use -f", self.fz("verify", "--report", "r.html", "a.f32.fzm", "a.f32", code=2))
        self.assertEqual((self.folder / "r.html").read_text(), "mine")
        self.fz("verify", "-q", "-f", "--report", "r.html", "a.f32.fzm", "a.f32")
        self.assertIn("decompress", support.Page(self.folder / "r.html").text)

    def test_a_page_that_cannot_be_written_leaves_the_archive_and_says_so(self):
        message = self.fz("compress", "-q", "-b", "abs:1", "--report", "absent/page.html", "a.f32", code=2)
        self.assertIn("report 'absent/page.html': ", message)
        self.assertIn("the archive 'a.f32.fzm' is complete", message)
        self.fz("test", "-q", "a.f32.fzm")
        words = ("compress", "-q", "-f", "-b", "abs:1", "--chunk", "4K", "--report", "absent/page.html")
        message = self.fz(*words, "a.f32", code=2)
        self.assertIn("report 'absent/page.html': ", message)
        self.assertIn("the archive 'a.f32.fzm' is complete", message)
        self.fz("test", "-q", "a.f32.fzm")

    def test_several_files_need_a_folder(self):
        self.assertIn("name a folder", self.fz("compress", "--report", "r.html", "a.f32", "b.f32", code=1))
        (self.folder / "pages").mkdir()
        self.fz("compress", "-q", "-b", "abs:1", "--report", "pages", "a.f32", "b.f32")
        self.assertEqual(sorted(os.listdir(self.folder / "pages")), ["a.f32.html", "b.f32.html"])

    def test_sweep_needs_a_report_and_numbers(self):
        self.assertIn("--report", self.fz("compress", "--sweep", "a.f32", code=1))
        for text in ("0", "1e-3,", "x", "-1", "inf", ",".join(["1"] * 33)):
            said = self.fz("compress", f"--sweep={text}", "--report", "r.html", "a.f32", code=1)
            self.assertIn("--sweep", said)
        self.assertFalse((self.folder / "r.html").exists())

    def test_archive_and_report_cannot_share_standard_output(self):
        self.fz("compress", "-o", "-", "--report", "-", "a.f32", code=1)
        done = support.run(support.BINARY, self.folder, "compress", "-q", "-b", "abs:1", "--report", "-", "a.f32")
        self.assertTrue(done.stdout.startswith(b"<!doctype html>"))

    def test_a_broken_bound_is_shown_and_still_an_error(self):
        self.fz("compress", "-q", "-b", "abs:0.1", "a.f32")
        self.fz("verify", "-q", "-b", "abs:0.01", "--report", "r.html", "a.f32.fzm", "a.f32", code=4)
        page = support.Page(self.folder / "r.html")
        beyond = page.figures["error_histogram"]
        self.assertGreater(page.figures["error"]["violations"], 0)
        self.assertEqual(beyond["below"] + beyond["above"], page.figures["error"]["violations"])
        self.assertRegex(page.text, r"values break \|x - x'\| <= 0\.01")

    def test_a_bound_that_cannot_be_kept_is_a_row_of_the_sweep(self):
        self.fz("compress", "-q", "-p", "cuszp", "-b", "abs:0.1", "--report", "r.html", "--sweep=0.1,1e-12", "a.f32")
        points = support.Page(self.folder / "r.html").figures["sweep"]["points"]
        self.assertNotIn("refused", points[0])
        self.assertIn("bound", points[1]["refused"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    support.BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
