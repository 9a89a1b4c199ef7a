"""Cases of results asked for instead of bounds."""

import json
from pathlib import Path

from cli_support import BOUND, USAGE, CliCase, wave, one

__all__ = ["TargetTest"]


class TargetTest(CliCase):
    def compressed(self, *options, count=3000):
        self.put("a.f32", wave(count))
        return self.fz("compress", "-p", "cusz", *options, "a.f32").stderr.decode()

    def info(self):
        return one(self.fz("info", "--json", "a.f32.fzm").stdout)

    def test_a_result_is_reached_and_its_bound_stated(self):
        message = self.compressed("-b", "psnr:60", "--verify")
        self.assertRegex(message, r"psnr:60 by abs:[0-9.e-]+: psnr:60\.\d+ \((1 trial|\d trials)\)")
        info = self.info()
        self.assertEqual(info["bound"]["mode"], "abs")
        report = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout)
        self.assertGreaterEqual((report[0] if isinstance(report, list) else report)["psnr"], 60)
        message = self.compressed("-f", "-b", "ratio:4", count=20000)
        info = self.info()
        self.assertGreaterEqual(info["original_bytes"], 4 * info["archive_bytes"])
        self.assertIn("ratio:4 by abs:", message)

    def test_a_result_out_of_reach_leaves_no_file(self):
        self.put("a.f32", wave(100))
        self.fails(BOUND, "compress", "-b", "ratio:1e6", "a.f32", says=["no bound reaches ratio:1000000", "the best was"])
        self.assertEqual(self.names(), ["a.f32"])
        self.fails(USAGE, "compress", "-b", "psnr:much", "a.f32", says=["psnr:80"])
        self.fails(USAGE, "bench", "-b", "psnr:60", "a.f32", says=["names a result"])

    def test_a_fill_value_that_nobody_declared_is_refused(self):
        field = wave(6000)
        for i in range(0, len(field), 3):
            field[i] = 1e20
        self.put("a.f32", field)
        for target in ("psnr:60", "ratio:4"):
            for chunks in ((), ("--chunk", "8K")):
                words = ("compress", "-b", target, *chunks, "a.f32")
                self.fails(BOUND, *words, says=[f"{target} is refused: 1e+20 occurs 2000 times", "--fill 1e+20 if it means missing"])
                self.assertEqual(self.names(), ["a.f32"])
                self.fz("compress", "--fill", "1e20", *words[1:])
                self.assertLess(self.info()["bound"]["absolute"], 10)
                self.fz("compress", "-f", "--fill", "none", *words[1:])
                Path(self.folder, "a.f32.fzm").unlink()
