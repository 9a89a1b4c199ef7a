"""Cases of fzgmod-cli, the compatible command line."""

import re
import resource
import unittest

import cli_support
from cli_support import CliCase, max_error, wave

__all__ = ["CompatTest"]


@unittest.skipUnless(cli_support.FZGMOD, "fzgmod-cli was not named")
class CompatTest(CliCase):
    def fails_with(self, *words, says):
        done = self.tool(*words, code=1)
        message = done.stderr.decode()
        self.assertTrue(message.startswith("[fzgmod-cli] error: "), message)
        self.assertIn(says, message)
        self.assertTrue(done.stdout.startswith(b"Usage: fzgmod-cli"))

    def labels(self, text):
        return [line.split(":")[0].strip() for line in text.splitlines() if " : " in line or line.startswith("[")]

    def test_round_trip_with_the_defaults(self):
        field = wave(3001)
        self.put("a.f32", field)
        self.assertEqual(self.tool("-z", "-i", "a.f32").stdout, b"")
        self.tool("-x", "-i", "a.f32.fzm", "-o", "b.f32")
        back = self.values("b.f32")
        self.assertEqual(len(back), 3001)
        self.assertLessEqual(max_error(field, back), 1e-3 * max(map(abs, field)))
        stages = re.findall(r"(?m)^  (\w+) ", self.fz("info", "a.f32.fzm").stdout.decode().split("stages:")[1])
        self.assertEqual(stages[:3], ["LorenzoQuant", "Bitshuffle", "RZE"])

    def test_reports_have_their_labels(self):
        self.put("a.f32", wave(3000))
        text = self.tool("-z", "-i", "a.f32", "--report").stdout.decode()
        self.assertEqual(
            self.labels(text), ["[Compress Report]", "Input size", "Compressed size", "Ratio", "Time", "Throughput"]
        )
        text = self.tool("-x", "-i", "a.f32.fzm", "--compare", "a.f32", "-R").stdout.decode()
        quality = ["Value Range", "Max Abs Error", "PSNR", "NRMSE"]
        self.assertEqual(self.labels(text), ["[Decompress Report]", "Output size", "Time", "Throughput", *quality])
        text = self.tool("-b", "-i", "a.f32", "--runs", "2", "-R").stdout.decode()
        summary = ["runs", "host ms mean", "dag ms mean", "throughput GB/s", "host ms median"]
        self.assertEqual(
            self.labels(text),
            ["[benchmark] compress summary", *summary, "[benchmark] decompress summary", *summary,
             "[Quality Report]", "Input size", "Compressed size", "Ratio", *quality],
        )

    def test_a_limit_of_file_sizes_is_an_error_and_no_signal(self):
        self.put("a.f32", wave(300000))
        limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        done = self.tool("-z", "-i", "a.f32", code=1, preexec_fn=limited)
        self.assertIn(b"[fzgmod-cli] error: ", done.stderr)
        self.assertEqual(self.names(), ["a.f32"])

    def test_profile_prints(self):
        self.put("a.f32", wave(3000))
        said = self.tool("-z", "-i", "a.f32", "--profile", "--warmup").stdout
        self.assertIn(b"whole call", said)
        for name in (b"LorenzoQuant", b"Bitshuffle", b"RZE"):
            self.assertIn(name, said)
        self.assertIn(b"whole call", self.tool("-x", "-i", "a.f32.fzm", "-o", "b", "--profile").stdout)
        self.assertIn(b" ms ", self.tool("-b", "-i", "a.f32", "--runs=1", "--profile").stdout)

    def test_every_stage_and_setting(self):
        field = wave(3000)
        self.put("a.f32", field)
        for chain, options in (
            ("lorenzo->huffman", ("-r", "512")),
            ("lorenzo->huf", ()),
            ("quantizer->bshuf->rze", ("--chunk-size", "8192", "--rze-levels", "3")),
            ("lorenzo->diff->rle", ("--strategy", "minimal", "--pool-mult", "2")),
            ("Quantizer -> difference -> none -> rle", ("--strategy=PREALLOCATE",)),
        ):
            self.tool("-z", "-i", "a.f32", "-o", "o.fzm", "--stages", chain, "-m", "abs", "-e", "0.01", *options)
            self.tool("-x", "-i", "o.fzm", "-o", "b.f32")
            self.assertLessEqual(max_error(field, self.values("b.f32")), 0.01)

    def test_spellings(self):
        self.put("a.f64", wave(60, "d"))
        self.tool("--COMPRESS", "--input=a.f64", "--dtype", "f64", "--error_bound", "1e-4", "--Mode=NOA", "--xyz", "5*4-3")
        info = self.fz("info", "--json", "a.f64.fzm").stdout.decode()
        for part in ('"float64"', '"requested": 0.0001', '"mode": "range"'):
            self.assertIn(part, info)
        self.assertRegex(re.sub(r"\s", "", info), r'"dims":\[5,4,3\]')
        self.tool("-z=true", "-x", "-b=1", "-i", "a.f64", "-t", "f64", "--runs", "9", "--runs", "1")

    def test_config(self):
        self.put("a.f32", wave(60))
        self.put("p.toml", self.fz("presets", "--show", "speed").stdout)
        done = self.tool("-z", "-i", "a.f32", "-c", "p.toml", "-o", "o.fzm", "-e", "1")
        self.assertIn("--error-bound has no effect with -c", done.stderr.decode())
        self.assertIn(b"Quantizer", self.fz("info", "o.fzm").stdout)

    def test_errors(self):
        self.put("a.f32", wave(60))
        self.put("empty.f32", b"")
        self.put("odd.f32", b"12345")
        self.tool("-z", "-i", "a.f32")
        self.assertEqual(self.tool("--help").stdout, self.tool("-h").stdout)
        self.fails_with(says="no arguments")
        self.fails_with("-i", "a.f32", says="no mode")
        self.fails_with("-z", says="no input")
        self.fails_with("-x", "-i", "a.f32.fzm", says="needs an output")
        self.fails_with("-z", "-i", "a.f32", "extra", says="unexpected argument 'extra'")
        self.fails_with("-z", "-i", "a.f32", "--reprot", says="did you mean '--report'")
        self.fails_with("-z", "-i", "a.f32", "-q", "3", says="unknown option '-q'")
        self.fails_with("-z=yes", "-i", "a.f32", says="switch")
        self.fails_with("-z", "-i", says="needs a value")
        self.fails_with("-z", "-i", "a.f32", "-e", "small", says="invalid number 'small'")
        self.fails_with("-z", "-i", "a.f32", "-e", "-1", says="above 0")
        self.fails_with("-z", "-i", "a.f32", "-m", "psnr", says="rel, abs, noa")
        self.fails_with("-z", "-i", "a.f32", "--strategy", "minimum", says="did you mean 'minimal'")
        self.fails_with("-z", "-i", "a.f32", "--stages", "lorenz->rze", says="did you mean 'lorenzo'")
        self.fails_with("-z", "-i", "a.f32", "--stages", "none", says="empty")
        self.fails_with("-z", "-i", "a.f32", "-t", "i32", says="f32 and f64 only")
        self.fails_with("-z", "-i", "a.f32", "-l", "7x7", says="49 values")
        self.fails_with("-z", "-i", "empty.f32", says="is empty")
        self.fails_with("-z", "-i", "odd.f32", says="not a multiple")
        self.fails_with("-z", "-i", "absent.f32", says="absent.f32")
        self.fails_with("-z", "-i", "a.f32", "-o", "no/where.fzm", says="no/where.fzm")
        self.fails_with("-x", "-i", "a.f32", "-o", "b", says="frame")
        self.fails_with("-x", "-i", "a.f32.fzm", "--compare", "odd.f32", says="size mismatch")

    def test_manual_has_every_option(self):
        manual = self.fz("generate", "fzgmod-man").stdout.decode().replace("\\-", "-")
        for option in re.findall(r"(?m)(?<=[ ,])(--?[a-zA-Z][a-z-]*)", self.tool("-h").stdout.decode().split("Options:")[1].split("Examples")[0]):
            self.assertIn(option, manual)
