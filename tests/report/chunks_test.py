#!/usr/bin/env python3
"""The page of --report for archives of chunks: made of all values, without the memory for them.

Usage: chunks_test.py PATH_TO_FZ [unittest arguments]
"""

import array
import hashlib
import os
import sys
import unittest
import zlib

import report_support as support
from report_support import ReportCase


class ChunkedArchiveTest(ReportCase):
    def test_an_archive_of_chunks_has_the_figures_of_all_its_values(self):
        values, dims, _ = support.fields()["cube.f32"]
        data = support.write_field(self.folder, "cube.f32", values)
        words = ("-q", "-f", "-p", "pfpl", "-b", "abs:1e-4", "-d", dims, "--report", "page.html", "--sweep=1e-4")
        self.fz("compress", *words, "--chunk", "none", "cube.f32")
        whole = support.Page(self.folder / "page.html").figures
        self.fz("compress", *words, "--chunk", "16x24x4", "cube.f32")
        page = support.Page(self.folder / "page.html")
        self.fz("verify", "-q", "--report", "check.html", "cube.f32.fzm", "cube.f32")
        check = support.Page(self.folder / "check.html").figures
        for key in ("field", "value_histogram", "spectrum"):
            self.assertEqual(page.figures[key], check[key])
        for key in ("values", "crc32", "original", "finite_without_fill"):
            self.assertEqual(page.figures["field"][key], whole["field"][key])
        self.assertEqual(page.figures["error"]["violations"], 0)
        self.assertLessEqual(page.figures["error"]["max_error"], 1e-4)
        archive = (self.folder / "cube.f32.fzm").read_bytes()
        self.assertEqual(page.figures["archive"]["sha256"], hashlib.sha256(archive).hexdigest())
        self.assertEqual(page.figures["archive"]["bytes"], len(archive))
        self.assertEqual(page.figures["archive"]["chunks"], 10)
        # Stages are those of a chunk.
        self.assertEqual(page.figures["stages_values"], 16 * 24 * 4)
        self.assertEqual(page.figures["stages"][0]["bytes_in"], 4 * 16 * 24 * 4)
        self.assertIsNotNone(page.figures["stages"][0]["compress_ms"])
        self.assertIsNone(check["stages"][0]["compress_ms"])
        self.assertEqual(len(page.figures["sweep"]["points"]), 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["check.html", "cube.f32", "cube.f32.fzm", "page.html"])

    def test_originals_of_archives_in_another_order_are_read_by_parts(self):
        values, dims, _ = support.fields()["grid.f32"]
        header = b"{'descr': '>f4', 'fortran_order': False, 'shape': (48, 64), }"
        header = header.ljust(117) + b"\n"
        swapped = array.array("f", values)
        swapped.byteswap()
        npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + swapped.tobytes()
        (self.folder / "grid.npy").write_bytes(npy)
        self.fz("compress", "-q", "-b", "abs:0.01", "--chunk", "64x8", "--report", "page.html", "grid.npy")
        figures = support.Page(self.folder / "page.html").figures
        plain = array.array("f", values)
        self.assertEqual(figures["field"]["crc32"], f"{zlib.crc32(plain.tobytes()):08x}")
        self.assertEqual(figures["archive"]["chunks"], 6)
        self.assertEqual(figures["error"]["violations"], 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    support.BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
