"""Cases of `fz compress`."""

import array
import json
import math
import os
import pty
import struct
import subprocess
import unittest

from cli_support import BOUND, CORRUPT, IO, NO_DEVICE, OK, USAGE, CliCase, max_error, npy, wave, one

__all__ = ["CompressTest", "CompressNpyTest", "DefaultPresetTest"]


class CompressTest(CliCase):
    def compressed(self, *options, name="a.f32", count=3000, typecode="f", preset=("-p", "cusz")):
        """Compresses with cusz, decodes, and gives field, decoded field and stderr."""
        field = wave(count, typecode)
        self.put(name, field)
        bound = () if "-b" in options or "--bound" in options or "-c" in (*preset, *options) else ("-b", "range:1e-4")
        done = self.fz("compress", *preset, *bound, *options, name)
        self.fz("decompress", "-fq", "-o", "back.raw", name + ".fzm")
        return field, self.values("back.raw", typecode), done.stderr.decode()

    def info(self, name="a.f32.fzm"):
        return one(self.fz("info", "--json", name).stdout)

    def test_writes_beside_the_source_and_keeps_it(self):
        field, _, _ = self.compressed()
        self.assertEqual(self.names(), ["a.f32", "a.f32.fzm", "back.raw"])
        self.assertEqual(self.get("a.f32"), field.tobytes())

    def test_absolute_bound_holds_exactly(self):
        field, back, _ = self.compressed("-b", "abs:1e-3")
        self.assertLessEqual(max_error(field, back), 1e-3)
        bound = self.info()["bound"]
        self.assertEqual((bound["mode"], bound["requested"]), ("abs", 1e-3))

    def test_range_bound_holds_exactly(self):
        field, back, _ = self.compressed("--bound", "range:1e-3")
        self.assertLessEqual(max_error(field, back), 1e-3 * (max(field) - min(field)))
        self.assertEqual(self.info()["bound"]["mode"], "range")

    def test_rel_is_refused_where_it_would_not_be_for_each_value(self):
        self.put("a.f32", wave(100))
        self.fails(USAGE, "compress", "-p", "cusz", "-b", "rel:1e-3", "a.f32", says=["each value", "-p pfpl"])
        self.assertEqual(self.names(), ["a.f32"])

    def test_f64_by_option_and_by_name(self):
        field, back, message = self.compressed("-t", "f64", "-b", "abs:1e-4", name="a.raw", typecode="d")
        self.assertLessEqual(max_error(field, back), 1e-4)
        self.assertIn("f64 (-t)", message)
        _, _, message = self.compressed(name="b.f64", typecode="d")
        self.assertIn("f64 (by its name)", message)
        self.assertEqual(self.info("b.f64.fzm")["type"], "float64")

    def test_dims_are_read_back_x_first(self):
        _, _, message = self.compressed("-d", "100x30")
        self.assertIn("100 x 30 (x y, x fastest) = 3000 values, 12000 bytes: size matches", message)
        self.assertEqual(self.info()["dims"], [100, 30, 1])
        _, _, message = self.compressed("-f", "--dims", "10X30x10")
        self.assertIn("10 x 30 x 10 (x y z, x fastest)", message)
        self.assertEqual(self.info()["ndim"], 3)

    def test_dims_must_match_the_size(self):
        self.put("a.f32", wave(3000))
        self.fails(USAGE, "compress", "-d", "100x31", "a.f32", says=["100 x 31", "3100 values", "12000 bytes"])
        self.fails(USAGE, "compress", "-d", "1500", "a.f32", says="-t f64")
        self.fails(USAGE, "compress", "-t", "f64", "-d", "3000", "a.f32", says="-t f32")
        self.put("odd.f32", b"12345")
        self.fails(USAGE, "compress", "odd.f32", says=["5 bytes", "not a multiple of 4 bytes"])

    def test_dims_must_be_extents(self):
        self.put("a.f32", wave(30))
        for text in ("x", "3x", "0x30", "1x1x1x1x1x1x1x1x30", "-3", "3.0", "3y10", "4294967296x4294967296x2"):
            self.fails(USAGE, "compress", f"--dims={text}", "a.f32", says=f"-d '{text}'")

    def test_bound_must_make_sense(self):
        self.put("a.f32", wave(30))
        for text, says in (
            ("1e-3", "abs:1e-3"),
            ("abs:", "above 0"),
            ("abs:0", "above 0"),
            ("abs:-1", "above 0"),
            ("abs:inf", "above 0"),
            ("abs:nan", "above 0"),
            ("abs:1e-3x", "above 0"),
            ("rnage:1", "did you mean 'range'"),
            ("snr:80", "did you mean 'psnr'"),
        ):
            self.fails(USAGE, "compress", "-b", text, "a.f32", says=says)

    def test_type_and_backend_must_be_known(self):
        self.put("a.f32", wave(30))
        self.fails(USAGE, "compress", "-t", "u8", "a.f32", says="f32 or f64")
        self.fails(USAGE, "compress", "--backend", "cdua", "a.f32", says="did you mean 'cuda'")

    def test_preset_must_exist(self):
        self.put("a.f32", wave(30))
        self.fails(USAGE, "compress", "-p", "cuzs", "-b", "range:1e-3", "a.f32", says="did you mean 'cusz'")
        self.fails(USAGE, "compress", "-p", "zzzzzzzzz", "-b", "range:1e-3", "a.f32", says="fz presets")

    def test_settings_reach_their_stage(self):
        self.compressed("--set", "predict.quant_radius=256", "--set", "bklen=2048")
        stages = self.info()["stages"]
        self.assertEqual(stages[0]["params"]["quant_radius"], 256)
        self.assertEqual(stages[1]["params"]["bklen"], 2048)

    def test_settings_must_make_sense(self):
        self.put("a.f32", wave(30))
        base = ("compress", "-p", "cusz", "-b", "range:1e-4", "a.f32", "--set")
        for text in ("radius", "=3", "predict.quant_radius="):
            self.fails(USAGE, *base, text, says="stage.key=value")
        self.fails(USAGE, *base, "predict.quantradius=3", says="quantradius")
        self.fails(USAGE, *base, "nobody.quant_radius=3", says="nobody")
        self.fails(USAGE, *base, "quant_radius=lots", says="quant_radius")
        self.fails(USAGE, *base, "error_bound=1", says="leave one out")

    def test_config_file(self):
        toml = self.fz("presets", "--show", "cusz").stdout
        self.put("mine.toml", toml.replace(b"512", b"256"))
        field = wave(600)
        self.put("a.f32", field)
        self.fz("compress", "--no-fallback", "-c", "mine.toml", "-b", "abs:0.01", "-d", "20x30", "a.f32")
        info = self.info()
        self.assertEqual(info["stages"][0]["params"]["quant_radius"], 256)
        self.assertEqual(info["dims"], [20, 30, 1])
        self.put("shaped.toml", b"[pipeline]\ndims = [30, 20]\n" + toml)
        self.fz("compress", "-f", "-c", "shaped.toml", "a.f32")
        self.assertEqual(self.info()["dims"], [30, 20, 1])

    def test_config_file_must_be_good(self):
        self.put("a.f32", wave(30))
        self.put("bad.toml", b"[[stage]]\nname = 'x'\ntype = 'Nope'\n")
        self.fails(USAGE, "compress", "-c", "bad.toml", "a.f32", says=["bad.toml:3", "Nope"])
        self.put("empty.toml", b"")
        self.fails(USAGE, "compress", "-c", "empty.toml", "a.f32", says="[[stage]]")
        self.fails(IO, "compress", "-c", "absent.toml", "a.f32", says="absent.toml")
        self.fails(USAGE, "compress", "-c", "bad.toml", "-p", "cusz", "a.f32", says="--preset")

    def test_existing_files_need_force(self):
        self.put("a.f32", wave(30))
        self.put("a.f32.fzm", b"old")
        self.fails(IO, "compress", "-p", "cusz", "-b", "range:1e-4", "a.f32", says=["exists", "-f"])
        self.assertEqual(self.get("a.f32.fzm"), b"old")
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "-f", "a.f32")
        self.fz("test", "a.f32.fzm")

    def test_output_option(self):
        self.put("a.f32", wave(30))
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "-o", "b.fzm", "a.f32")
        self.fz("compress", "-t", "f32", "-p", "cusz", "-b", "range:1e-4", "-o", "-", "a.f32", stdout=subprocess.DEVNULL)
        (self.folder / "out").mkdir()
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "--output", "out", "a.f32")
        self.assertEqual(self.names(), ["a.f32", "b.fzm", "out"])
        self.assertTrue((self.folder / "out" / "a.f32.fzm").exists())
        self.fails(IO, "compress", "-p", "cusz", "-b", "range:1e-4", "-o", "none/b.fzm", "a.f32", says="none/b.fzm")
        self.fails(USAGE, "compress", "-p", "cusz", "-b", "range:1e-4", "-f", "-o", "a.f32", "a.f32", says="input itself")
        self.fails(USAGE, "compress", "-t", "f32", "-p", "cusz", "-b", "range:1e-4", "-o", "out", "-", says="folder", stdin=b"1234")

    def test_devices_and_links_stay_what_they_are(self):
        self.put("a.f32", wave(30))
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "-o", "/dev/null", "a.f32")
        self.assertFalse(os.path.isfile("/dev/null"))
        self.put("real.fzm", b"old")
        os.symlink("real.fzm", self.folder / "link.fzm")
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "-f", "-o", "link.fzm", "a.f32")
        self.assertTrue((self.folder / "link.fzm").is_symlink())
        self.fz("test", "real.fzm")
        self.fails(IO, "compress", "-p", "cusz", "-b", "range:1e-4", "-o", "/dev/full", "a.f32", says="/dev/full")

    def test_standard_streams(self):
        field = wave(500)
        for words in (["-"], []):
            packed = self.fz("compress", "-q", "-t", "f32", "-p", "cusz", "-b", "abs:1e-3", *words, stdin=field.tobytes()).stdout
            back = array.array("f", self.fz("decompress", "-q", "-", stdin=packed).stdout)
            self.assertLessEqual(max_error(field, back), 1e-3)
        self.fz("compress", "-t", "f32", "-p", "cusz", "-b", "abs:1e-3", "-o", "s.fzm", "-", stdin=field.tobytes())
        self.assertEqual(self.get("s.fzm"), packed)

    def test_several_files_and_the_first_failure_counts(self):
        self.put("a.f32", wave(30))
        self.put("b.f32", wave(40))
        self.put("odd.f32", b"123")
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "a.f32", "b.f32")
        self.assertIn("b.f32.fzm", self.names())
        message = self.fz("compress", "-fp", "cusz", "-b", "range:1e-4", "absent.f32", "odd.f32", "a.f32", code=IO).stderr.decode()
        for part in ("absent.f32: cannot", "odd.f32: 3 bytes", "a.f32 -> a.f32.fzm"):
            self.assertIn(part, message)
        self.fails(USAGE, "compress", "-o", "x.fzm", "a.f32", "b.f32", says="2 inputs")
        self.fails(USAGE, "compress", "-t", "f32", "a.f32", "-", says="only input")

    def test_bad_inputs(self):
        self.fails(IO, "compress", "-p", "cusz", "-b", "range:1e-4", "absent.f32", says="absent.f32")
        (self.folder / "dir").mkdir()
        self.fails(IO, "compress", "-p", "cusz", "-b", "range:1e-4", "dir", says="folder")
        self.put("a.fzm", wave(3))
        self.fails(USAGE, "compress", "-p", "cusz", "-b", "range:1e-4", "a.fzm", says="already")
        self.fz("compress", "-t", "f32", "-p", "cusz", "-b", "range:1e-4", "-f", "a.fzm")
        self.assertIn("a.fzm.fzm", self.names())

    def test_never_binary_to_a_terminal(self):
        self.put("a.f32", wave(30))
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had: {error}")
        try:
            self.fails(USAGE, "compress", "-t", "f32", "-p", "cusz", "-b", "range:1e-4", "-f", "-o", "-", "a.f32", stdout=follower, says="terminal")
            self.fails(USAGE, "compress", "-p", "cusz", "-b", "range:1e-4", stdin_file=follower, says="terminal")
        finally:
            os.close(leader)
            os.close(follower)

    def test_quiet_verbose_and_threads(self):
        self.put("a.f32", wave(3000))
        self.assertEqual(self.fz("compress", "-q", "-p", "cusz", "-b", "range:1e-4", "a.f32").stderr, b"")
        first = self.get("a.f32.fzm")
        message = self.fz("compress", "-fv", "-T", "1", "-p", "cusz", "-b", "range:1e-4", "a.f32").stderr.decode()
        self.assertIn("GB/s", message)
        self.assertIn("LorenzoQuant, Huffman", message)
        self.assertRegex(message, r"\n  ran on (cpu|cuda): .+\n")
        self.assertEqual(self.get("a.f32.fzm"), first)
        message = self.fz("decompress", "-fv", "a.f32.fzm").stderr.decode()
        self.assertRegex(message, r"\n  ran on (cpu|cuda): .+\n")
        self.fails(USAGE, "compress", "-q", "-v", "a.f32", says="leave one out")
        for text in ("-1", "many", "100000"):
            self.fails(USAGE, "compress", f"--threads={text}", "a.f32", says="--threads")

    def test_verify_says_what_it_checked(self):
        _, _, message = self.compressed("--verify", "-b", "abs:0.01")
        # LorenzoQuant holds values to the largest float that is not above the bound.
        self.assertIn("verified: all 3000 values meet |x - x'| <= 0.0099999", message)
        _, _, message = self.compressed("-f", "--verify", "-p", "speed", "-b", "abs:0.01", preset=())
        self.assertIn("verified: all 3000 values meet |x - x'| <= 0.01,", message)

    def test_verify_holds_the_archive_to_what_it_promises(self):
        field = wave(3000)
        field[7] = 1e20
        self.put("a.f32", field)
        words = ("compress", "-fp", "speed", "-b", "range:1e-3", "--set", "quantizer.value_base=35", "--verify", "a.f32")
        self.assertIn("<= 0.035,", self.fz(*words).stderr.decode())

    def test_verify_never_takes_an_infinite_bound(self):
        self.put("a.f64", array.array("d", [-1.7e308, 1.7e308, 0.0, 1.0] * 100))
        for preset in ("pfpl", "cusz"):
            message = self.fz("compress", "-fp", preset, "-b", "range:1e-3", "--verify", "a.f64").stderr.decode()
            self.assertIn("verified", message)
            self.assertNotIn("inf", message)
        self.assertNotIn(b"inf", self.fz("verify", "-b", "range:10", "a.f64.fzm", "a.f64").stdout.splitlines()[0])

    def test_wrapped_values_are_promised_nothing(self):
        self.put("a.f32", array.array("f", [1.0, 2.0, 1e30, 3.0] * 10))
        wrap = ("compress", "--no-fallback", "-fp", "cuszp", "-b", "abs:0.01", "--set", "linear_policy=Wrap")
        self.assertIn("bound none (values may miss it)", self.fz(*wrap, "a.f32").stderr.decode())
        self.assertIn(b"none stated (lossy)", self.fz("info", "a.f32.fzm").stdout)
        self.assertEqual((self.info()["bound"], self.info()["lossless"]), (None, False))
        self.fails(USAGE, "verify", "a.f32.fzm", "a.f32", says=["no bound", "-b"])
        self.fails(BOUND, *wrap, "--verify", "a.f32", says="10 of 40 values")
        self.put("mine.toml", self.fz("presets", "cuszp").stdout)
        wrap = ("compress", "--no-fallback", "-fc", "mine.toml", "--set", "linear_policy=Wrap", "--verify", "a.f32")
        self.fails(USAGE, *wrap, says=["no bound", "-b"])

    def test_special_values_pass_verify(self):
        nan = struct.unpack("<f", b"\x01\x00\xc0\x7f")[0]
        field = array.array("f", [1.0, 0.5, float("inf"), -float("inf"), nan, -0.0, 1e-42] * 50)
        self.put("a.f32", field)
        self.fz("compress", "-p", "cusz", "-b", "abs:0.01", "--verify", "a.f32")

    def test_empty_input(self):
        self.put("a.f32", b"")
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "--verify", "a.f32")
        self.fz("decompress", "-o", "b.f32", "a.f32.fzm")
        self.assertEqual(self.get("b.f32"), b"")

    def test_an_empty_field_has_no_absolute_bound(self):
        self.put("a.f32", b"")
        message = self.fz("compress", "-p", "speed", "-b", "range:1e-3", "a.f32").stderr.decode()
        self.assertTrue(message.rstrip().endswith("bound range:0.001"), message)

    def test_shape_is_said_to_match_only_when_it_was_given(self):
        toml = self.fz("presets", "--show", "cusz").stdout
        self.put("shaped.toml", b"[pipeline]\ndims = [30, 20]\n" + toml)
        self.put("a.f32", wave(600))
        message = self.fz("compress", "-c", "shaped.toml", "a.f32").stderr.decode()
        self.assertIn("600 values, 2400 bytes, shape as shaped.toml says\n", message)
        self.assertIn("  shape 30 x 20 (shaped.toml)\n", message)
        message = self.fz("compress", "-f", "-p", "cusz", "-b", "range:1e-4", "a.f32").stderr.decode()
        self.assertIn("600 (one axis, no -d given) = 600 values, 2400 bytes\n", message)
        self.assertNotIn("size matches", message)

    def warnings(self, *words):
        lines = self.fz("compress", "-f", *words).stderr.decode().splitlines()
        return [line for line in lines if line.startswith("fz: warning: ")]

    def test_growing_data_is_worth_a_warning(self):
        self.put("zeros.f32", bytes(40000))
        (line,) = self.warnings("--no-fallback", "-b", "rel:1e-3", "zeros.f32")
        for part in ("zeros.f32: the archive is larger than the data (ratio 0.4", "-b abs"):
            self.assertIn(part, line)
        self.assertEqual(self.warnings("-b", "abs:1e-3", "zeros.f32"), [])
        self.assertEqual(self.warnings("-q", "--no-fallback", "-b", "rel:1e-3", "zeros.f32"), [])
        self.put("small.f32", wave(30))
        (line,) = self.warnings("-b", "rel:1e-3", "small.f32")
        self.assertIn("its header alone takes", line)

    def test_the_smaller_of_a_lossy_and_a_lossless_archive_is_kept(self):
        for typecode, name in (("f", "mask.f32"), ("d", "mask.f64")):
            # Outliers of a size that no code holds, in a pattern that lossless coders like.
            values = (round(20 * math.sin(i / 40)) if i // 100 % 20 >= 7 else 2.0**100 for i in range(60000))
            self.put(name, array.array(typecode, values))
            self.fz("compress", "-f", "-p", "pfpl", "-b", "abs:4e-3", "--no-fallback", "-o", "lossy.fzm", name)
            self.assertLess(len(self.get("lossy.fzm")), len(self.get(name)))
            message = self.fz("compress", "--verify", "-p", "pfpl", "-b", "abs:4e-3", name).stderr.decode()
            self.assertIn("stored without loss: with this bound 'pfpl' would have made more bytes\n", message)
            self.assertLess(len(self.get(name + ".fzm")), len(self.get("lossy.fzm")))
            self.fz("decompress", "-fo", "back", name + ".fzm")
            self.assertEqual(self.get("back"), self.get(name))
            self.assertIn("without loss, as with this bound it would have been larger\n", self.fz("info", name + ".fzm").stdout.decode())
            self.put(name, wave(60000, typecode))  # no problem, the same bytes as ever
            self.fz("compress", "-f", "-b", "range:1e-4", "-o", "wave.fzm", name)
            self.assertNotIn("stored", self.fz("info", "wave.fzm").stdout.decode())
            self.fz("compress", "-f", "-b", "range:1e-4", "--no-fallback", "-o", "same.fzm", name)
            self.assertEqual(self.get("wave.fzm"), self.get("same.fzm"))

    def test_a_bound_above_the_values_is_worth_a_warning(self):
        field = wave(3000)
        field[7] = 1e20
        self.put("fill.f32", field)
        (line,) = self.warnings("-b", "range:1e-3", "fill.f32")
        for part in ("the bound 1e+17", "median |x| 2", "-b abs"):
            self.assertIn(part, line)
        (line,) = self.warnings("-b", "abs:1000", "fill.f32")
        self.assertIn("unit of the data", line)
        self.assertEqual(self.warnings("-b", "abs:1", "fill.f32"), [])

    def test_doubtful_input_is_worth_a_warning(self):
        self.put("a.f32", wave(3000))
        self.assertIn("its name says f32, but it was read as f64", self.warnings("-t", "f64", "a.f32")[0])
        self.fz("compress", "-qf", "-p", "speed", "-b", "range:1e-3", "-o", "packed.f32", "a.f32")
        self.assertIn("begins like an fz archive", self.warnings("packed.f32")[0])

    def test_hints_belong_to_the_error(self):
        self.put("a.f32", wave(30))
        toml = self.fz("presets", "--show", "cusz").stdout.decode()
        self.put("hint.toml", ("[pipeline]\ninput_size = 4\n" + toml).encode())
        self.put("syntax.toml", b"[[stage\n")
        self.put("cycle.toml", b"""
stage = [
  { name = "a", type = "RZE", inputs = [{ from = "b" }] },
  { name = "b", type = "RZE", inputs = [{ from = "a" }] },
]
""")
        for name, says in (("hint.toml", "input_size"), ("syntax.toml", "syntax.toml:1"), ("cycle.toml", "cycle")):
            self.assertNotIn("list what there is", self.fails(USAGE, "compress", "-c", name, "a.f32", says=says))
        self.put("huge.f32", array.array("f", [1.0, 2.0**100]))
        self.fails(BOUND, "compress", "-p", "cuszp", "-b", "abs:1e-3", "huge.f32", says=["the first is value 1", "a larger -b"])
        self.fails(IO, "compress", "-c", "/tmp", "a.f32", says="'/tmp' is a folder")
        message = self.fails(IO, "compress", "absent.f32", says="check the path")
        self.assertNotIn("free space", message)

    def test_no_device_has_its_code(self):
        if b"cuda" in self.fz("--version").stdout:
            raise unittest.SkipTest("there is a device")
        self.put("a.f32", wave(30))
        self.fails(NO_DEVICE, "compress", "-p", "cusz", "-b", "range:1e-4", "--backend", "cuda", "a.f32", says="--backend cpu")
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "--backend", "cpu", "a.f32")
        self.fails(NO_DEVICE, "test", "--backend", "cuda", "a.f32.fzm", says="--backend cpu")


class CompressNpyTest(CliCase):
    def compress(self, content, *options, code=OK, says=""):
        self.put("a.npy", content)
        words = ("compress", "-f", "-p", "cusz", "-b", "range:1e-4", *options, "a.npy")
        if code != OK:
            return self.fails(code, *words, says=says)
        self.fz(*words)
        return one(self.fz("info", "--json", "a.npy.fzm").stdout)

    def test_shape_and_type_come_from_the_file(self):
        self.assertEqual(self.compress(npy(wave(60), "(3, 4, 5)"))["dims"], [5, 4, 3])
        self.assertEqual(self.compress(npy(wave(60), "(12, 5)"))["dims"], [5, 12, 1])
        self.assertEqual(self.compress(npy(wave(60), "(60,)"))["dims"], [60, 1, 1])
        self.assertEqual(self.compress(npy(wave(1), "()"))["dims"], [1, 1, 1])
        self.assertEqual(self.compress(npy(wave(60), "(60L,)"))["dims"], [60, 1, 1])
        self.assertEqual(self.compress(npy(wave(60, "d"), "(60,)", version=2))["type"], "float64")
        self.assertEqual(self.compress(npy(wave(60), "(60,)", version=3))["type"], "float32")
        self.assertEqual(self.compress(npy(wave(0), "(0, 7)"))["original_bytes"], 0)

    def test_more_axes_are_folded(self):
        self.assertEqual(self.compress(npy(wave(120), "(2, 3, 4, 5)"))["dims"], [5, 4, 6])

    def test_type_and_dims_may_be_repeated_but_not_changed(self):
        good = npy(wave(60), "(12, 5)")
        self.compress(good, "-t", "f32", "-d", "5x12")
        self.compress(good, "-t", "f64", code=USAGE, says="leave -t out")
        self.compress(good, "-d", "12x5", code=USAGE, says="leave -d out")

    def test_other_kinds_are_refused_with_a_way_out(self):
        field = wave(60)
        self.compress(npy(field, "(60,)", descr="'<i4'"), code=USAGE, says="<i4")
        self.compress(npy(field, "(60,)", descr="[('a', '<f4')]"), code=USAGE, says="structured")
        self.compress(npy(field, "(60,)", version=9), code=USAGE, says="version 9")

    def test_broken_files_are_corrupt(self):
        good = npy(wave(60), "(60,)")
        for content in (
            b"",
            b"not numpy at all",
            good[:7],
            good[:9],
            good[:40],
            good[:-1],
            good + b"1234",
            npy(wave(60), "(61,)"),
            npy(wave(60), "[60]"),
            npy(wave(60), "(sixty,)"),
            npy(wave(60), "(4294967296, 4294967296, 4294967296)"),
            npy(wave(60), "(60,)", order="Maybe"),
            good.replace(b"'shape'", b"'shame'"),
            good.replace(b"'descr'", b"'decsr'"),
        ):
            self.compress(content, code=CORRUPT, says="broken .npy")

    def test_from_standard_input(self):
        packed = self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "-", stdin=npy(wave(60), "(12, 5)"))
        info = one(self.fz("info", "--json", "-", stdin=packed.stdout).stdout)
        self.assertEqual(info["dims"], [5, 12, 1])


class DefaultPresetTest(CliCase):
    """pfpl, the default: needs the Quantizer stage."""

    def test_every_bound_holds_exactly(self):
        field = wave(5000)
        self.put("a.f32", field)
        span = max(field) - min(field)
        for bound, limit in (("abs:1e-3", 1e-3), ("range:1e-4", 1e-4 * span), ("rel:1e-3", None)):
            self.fz("compress", "-f", "-b", bound, "--verify", "a.f32")
            self.fz("decompress", "-f", "-o", "b.f32", "a.f32.fzm")
            back = self.values("b.f32")
            if limit is not None:
                self.assertLessEqual(max_error(field, back), limit)
            for x, y in zip(field, back):
                if limit is None:
                    self.assertLessEqual(max_error([x], [y]), 1e-3 * abs(x))
            self.fz("verify", "-b", bound, "a.f32.fzm", "a.f32")

    def test_of_a_bound_relative_to_each_value_is_pfpl(self):
        self.put("a.f64", wave(500, "d"))
        message = self.fz("compress", "--verify", "-b", "rel:1e-3", "a.f64").stderr.decode()
        self.assertIn("bound rel:0.001", message)
        self.assertIn("* |x|", message)

    def test_special_values_come_back(self):
        nan = struct.unpack("<f", b"\x01\x00\xc0\x7f")[0]
        field = array.array("f", [1.0, 0.5, float("inf"), -float("inf"), nan, -0.0, 1e-42] * 50)
        self.put("a.f32", field)
        for bound in ("abs:0.01", "rel:0.01", "range:0.01"):
            self.fz("compress", "-f", "-b", bound, "--verify", "a.f32")

    def test_a_broken_bound_is_found_before_the_file_has_its_name(self):
        toml = self.fz("presets", "--show", "pfpl").stdout.decode()
        toml = toml.replace('"REL"', '"ABS"\nlinear_mode = true\nlinear_policy = "Wrap"')
        toml = toml.replace('"uint32"\nerror', '"uint16"\nerror').replace("quant_radius = 1073741824\n", "")
        head, _ = toml.split("[[stage]]\nname = \"difference\"")
        self.put("wrap.toml", head.encode())
        self.put("a.f32", array.array("f", [1.0, 2.0, 1e9]))
        self.fails(BOUND, "compress", "-c", "wrap.toml", "-b", "abs:1e-3", "--verify", "a.f32", says="index 2")
        self.assertNotIn("a.f32.fzm", self.names())
