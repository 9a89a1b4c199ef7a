"""Cases of what could lose data or mislead: warnings, names, inputs of other kinds, advice."""

import array
import gzip
import io
import json
import os
import random
import resource
import subprocess
import zipfile

import cli_support
from cli_support import BOUND, IO, USAGE, CliCase, npy, wave, one

__all__ = ["LossWarningTest", "EmptyValueTest", "SameNameTest", "OtherFormatTest", "FileSizeLimitTest", "LateFileTest", "GrowthTest", "AdviceTest"]


class WarningCase(CliCase):
    def warnings(self, *words):
        lines = self.fz(*words).stderr.decode().splitlines()
        return [line for line in lines if line.startswith("fz: warning: ")]


class LossWarningTest(WarningCase):
    CONSTANT = "the field is constant, so range:E means an absolute E; use abs: for another bound"

    def test_range_of_a_constant_field_is_absolute_and_said(self):
        self.put("small.f32", array.array("f", [2.5e-4] * 5000))
        lines = self.warnings("compress", "-b", "range:1e-3", "small.f32")
        self.assertEqual(len(lines), 2, lines)
        self.assertIn(self.CONSTANT, lines[0])
        self.assertIn("may all decode to 0", lines[1])
        self.assertNotIn("fill values", lines[1])
        for preset in ("pfpl", "cusz", "cuszp2"):  # some round the bound to f32
            self.put("large.f32", array.array("f", [float("nan"), 7.0, 7.0] if preset == "pfpl" else [7.0] * 3000))
            lines = self.warnings("compress", "-f", "-p", preset, "-b", "range:1e-3", "large.f32")
            self.assertIn(self.CONSTANT, lines[0], preset)

    def test_no_other_field_is_called_constant(self):
        self.put("one.f32", array.array("f", [3.0, 4.0] * 3000))  # a range of 1: E times it is E as well
        self.put("nan.f32", array.array("f", [float("nan")] * 3000))
        self.put("none.f32", b"")
        self.put("same.f32", array.array("f", [3.0] * 3000))
        for bound, name in [("range:1e-3", "one.f32"), ("range:1e-3", "nan.f32"), ("range:1e-3", "none.f32"), ("abs:1e-3", "same.f32")]:
            self.assertNotIn("constant", " ".join(self.warnings("compress", "-b", bound, name)), name)

    def test_help_and_manual_say_it(self):
        for words in (("compress", "--help"), ("generate", "man")):
            self.assertIn("of a constant field: E itself", self.fz(*words).stdout.decode().replace("\\", ""))

    def test_quiet_does_not_hide_that_values_may_be_lost(self):
        field = wave(5000)
        field[7] = 1e20
        self.put("fill.f32", field)
        (line,) = self.warnings("compress", "-q", "-b", "range:1e-3", "fill.f32")
        self.assertIn("may all decode to 0", line)
        self.assertIn("--set value_base=N, N being the range of the other values", line)
        self.put("same.f32", array.array("f", [3.0] * 3000))
        (line,) = self.warnings("compress", "-q", "-b", "range:1e-3", "same.f32")
        self.assertIn("constant", line)

    def test_a_range_that_a_repeated_value_sets_is_refused(self):
        for typecode in "fd":
            field = wave(5000, typecode)
            for i in range(0, 5000, 3):
                field[i] = 1e20
            name = "a.f32" if typecode == "f" else "a.f64"
            self.put(name, field)
            for words in ((), ("-q",), ("--verify",)):
                self.fails(BOUND, "compress", *words, "-b", "range:1e-3", name, says=["1e+20 occurs 1667 times in 5000 values", "the range 1e+20 instead of 1", "as fill values do; --fill 1e+20 if it means missing, --fill none if it is data; or an absolute bound, such as -b abs:0.01"])
            self.assertNotIn(name + ".fzm", self.names())
            said = self.fz("compress", "-f", "--verify", "-b", "range:1e-3", "--fill", "1e20", "-o", "filled.fzm", name).stderr.decode()
            self.assertIn("1667 of 5000 values missing (33.3 %), 1667 of them the fill value 1e+20", said)
            self.assertIn("verified", said)
            self.fz("compress", "-q", "-f", "-b", "range:1e-3", "--fill", "none", "-o", "filled.fzm", name)
            self.fz("compress", "-q", "-b", "abs:0.01", name)
            self.fails(BOUND, "convert", "-p", "pfpl", "-b", "range:1e-3", name + ".fzm", "b.fzm", says="fill values")
        self.put("clipped.f32", array.array("f", (min(max(x - 20, 0), 1) for x in wave(5000))))
        self.fz("compress", "--verify", "-b", "range:1e-3", "clipped.f32")

    def test_an_undeclared_fill_value_under_an_absolute_bound_is_worth_a_warning(self):
        field = wave(5000)
        for i in range(0, 5000, 50):
            field[i] = 1e20
        self.put("a.f32", field)
        (line,) = self.warnings("compress", "-b", "abs:0.01", "a.f32")
        self.assertIn("1e+20 occurs 100 times in 5000 values", line)
        self.assertIn("as fill values do; it is kept within the bound, with --fill 1e+20 bit for bit", line)
        for words in (("--fill", "1e20"), ("--fill", "none"), ("-q",)):
            self.assertEqual(self.warnings("compress", "-f", "-b", "abs:0.01", *words, "a.f32"), [])

    def test_fill_takes_numbers_or_none(self):
        self.put("a.f32", wave(100))
        self.fails(USAGE, "compress", "--fill", "land", "a.f32", says="--fill takes a number or 'none', not 'land'")
        self.fails(USAGE, "compress", "--fill", "1", "--fill", "none", "a.f32", says="leave the others out")
        many = [word for i in range(9) for word in ("--fill", str(i))]
        self.fails(USAGE, "compress", *many, "a.f32", says="at most 8 fill values")
        self.assertNotIn("a.f32.fzm", self.names())

    def test_missing_values_are_shown_and_left_out_of_statistics(self):
        field = wave(5000)
        for i in range(0, 5000, 4):
            field[i] = -9999 if i % 8 else float("nan")
        self.put("a.f32", field)
        self.fz("compress", "-q", "-b", "range:1e-3", "--fill", "-9999", "a.f32")
        self.assertIn("1250 of 5000 values missing (25.0 %), 625 of them the fill value -9999", self.fz("info", "a.f32.fzm").stdout.decode())
        said = self.fz("verify", "a.f32.fzm", "a.f32").stdout.decode()
        self.assertRegex(said, r"fill: +625 of 625 kept bit for bit")
        self.assertRegex(said, r"NaN: +625 of 625 kept bit for bit")
        (info,) = json.loads(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.assertEqual(info["missing"], {"count": 1250, "filled": 625, "fill": [-9999.0]})
        report = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout.decode())
        self.assertLess(report["value_range"], 100)

    def test_an_archive_without_loss_counts_its_missing_values(self):
        noise = random.Random(3)
        self.put("a.f32", array.array("f", [1e20 if i % 4 == 0 else noise.random() for i in range(5000)]))
        self.fz("compress", "-q", "-p", "quantizer_lorenzo_bitpack", "-b", "range:1e-7", "--fill", "1e20", "--verify", "a.f32")
        self.assertIn("missing:    1250 of 5000 values missing (25.0 %), 1250 of them the fill value 1e+20", self.fz("info", "a.f32.fzm").stdout.decode())
        info = one(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.assertEqual((info["fallback"], info["missing"]), (True, {"count": 1250, "filled": 1250, "fill": [1e20]}))
        report = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout)
        self.assertEqual(report["fill"], {"values": 1250, "kept": 1250})
        self.assertLessEqual(report["value_range"], 1.0)

    def test_an_archive_without_loss_or_mask_records_no_fill_values_and_verify_takes_them(self):
        noise = random.Random(3)
        self.put("a.f32", array.array("f", [1e20 if i % 4 == 0 else noise.random() for i in range(5000)]))
        self.fz("compress", "-q", "-p", "pfpl", "-b", "abs:1e-9", "a.f32")
        self.assertIn("missing:    not recorded, as every value is stored with all its bits", self.fz("info", "a.f32.fzm").stdout.decode())
        info = one(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.assertEqual((info["fallback"], info["missing"]), (True, None))
        plain = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout)
        self.assertEqual(plain["fill"]["values"], 0)
        self.assertGreater(plain["value_range"], 1e19)
        declared = one(self.fz("verify", "--json", "--fill", "1e20", "a.f32.fzm", "a.f32").stdout)
        self.assertEqual(declared["fill"], {"values": 1250, "kept": 1250})
        self.assertLessEqual(declared["value_range"], 1.0)
        self.fails(USAGE, "verify", "--fill", "land", "a.f32.fzm", "a.f32", says="--fill takes a number or 'none', not 'land'")

    def test_convert_warns_as_compress_does(self):
        noise = random.Random(1)
        self.put("a.f32", array.array("f", (noise.uniform(-1, 1) * 10 ** noise.uniform(-30, 30) for _ in range(3000))))
        self.fz("compress", "-q", "-b", "rel:1e-2", "a.f32")
        (line,) = self.warnings("convert", "-p", "pfpl", "-b", "abs:1e-36", "a.f32.fzm", "b.fzm")
        self.assertIn("larger than the data", line)
        (line,) = self.warnings("convert", "-p", "pfpl", "-b", "rel:1e-3", "a.f32.fzm", "c.fzm")
        self.assertIn("larger than the old one", line)
        self.assertEqual(self.warnings("convert", "-q", "-p", "pfpl", "-b", "rel:1e-3", "a.f32.fzm", "d.fzm"), [])
        (line,) = self.warnings("convert", "-q", "-p", "pfpl", "-b", "abs:1e35", "a.f32.fzm", "e.fzm")
        self.assertIn("may all decode to 0", line)


class EmptyValueTest(CliCase):
    def test_an_empty_value_is_refused(self):
        self.put("a.f32", wave(300))
        for option in ("-b", "-p", "-c", "--stages", "-t", "-d", "-o", "--report", "--set", "--backend"):
            self.fails(USAGE, "compress", option, "", "a.f32", says=[option, "empty"])
        for word in ("--bound=", "--dims="):
            self.fails(USAGE, "compress", word, "a.f32")
        self.assertEqual(self.names(), ["a.f32"])
        self.fz("compress", "-q", "a.f32")
        self.fails(USAGE, "decompress", "-o", "", "a.f32.fzm", says=["-o", "empty"])
        self.fails(USAGE, "verify", "-b", "", "a.f32.fzm", "a.f32", says=["-b", "empty"])


class SameNameTest(CliCase):
    def setUp(self):
        super().setUp()
        for folder in ("b", "out"):
            (self.folder / folder).mkdir()
        self.put("a.f32", wave(300))
        self.put("b/a.f32", wave(400))

    def test_two_inputs_with_one_archive_are_refused_before_any_work(self):
        self.fails(USAGE, "compress", "-f", "-o", "out", "a.f32", "b/a.f32", says=["a.f32", "b/a.f32", "out/a.f32.fzm"])
        self.assertEqual(list((self.folder / "out").iterdir()), [])
        self.put("a.f32.fzm", b"old")
        (self.folder / "b" / "a.f32.fzm").symlink_to("../a.f32.fzm")
        self.fails(USAGE, "compress", "-f", "a.f32", "b/a.f32", says="both")
        self.assertEqual(self.get("a.f32.fzm"), b"old")

    def test_two_archives_with_one_result(self):
        self.fz("compress", "-q", "a.f32", "b/a.f32")
        self.fails(USAGE, "decompress", "-f", "-o", "out", "a.f32.fzm", "b/a.f32.fzm", says=["out/a.f32", "both"])
        self.assertEqual(list((self.folder / "out").iterdir()), [])

    def test_two_pages_or_an_archive_and_a_page_with_one_name(self):
        self.fails(USAGE, "compress", "-f", "--report", "out", "a.f32", "b/a.f32", says="out/a.f32.html")
        self.fails(USAGE, "compress", "-o", "x", "--report", "./x", "a.f32", says="both")
        self.assertEqual(self.names(), ["a.f32", "b", "out"])

    def test_other_names_pass(self):
        self.fz("compress", "-q", "a.f32", "b/a.f32")
        self.fz("compress", "-q", "-o", "/dev/null", "--report", "/dev/null", "a.f32")


class OtherFormatTest(CliCase):
    def test_files_of_other_formats_are_not_taken_as_raw(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("x.npy", npy(wave(100), "(100,)"))
        starts = {
            "z.npz": packed.getvalue(),
            "a.gz": gzip.compress(wave(100).tobytes()),
            "a.zst": b"\x28\xb5\x2f\xfd",
            "a.bz2": b"BZh91AY&SY",
            "a.xz": b"\xfd7zXZ\x00",
            "a.png": b"\x89PNG\r\n\x1a\n",
            "a.nc": b"CDF\x01",
            "b.nc": b"CDF\x05",
            "a.mat": b"MATLAB 5.0 MAT-file",
            "a.fits": b"SIMPLE  =",
            "a.dat": b"\x93NUMPY",
        }
        for name, content in starts.items():
            self.put(name, content + bytes(-len(content) % 4 + 400))
            self.fails(USAGE, "compress", name, says=["it is a", "-t"])
            self.fails(USAGE, "convert", name, "x.npy", says="it is a")
            self.assertNotIn(name + ".fzm", self.names())
            self.fz("compress", "-q", "-t", "f32", name)
        self.fails(USAGE, "compress", "-", says="unpack", stdin=gzip.compress(b"x" * 400))

    def test_a_name_that_says_the_type_counts(self):
        self.put("a.f32", b"CDF\x01" + bytes(400))
        self.fz("compress", "-q", "a.f32")


class FileSizeLimitTest(CliCase):
    IN_MEMORY = False

    def limited(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    def test_a_limit_of_file_sizes_is_an_error_with_a_message(self):
        self.put("a.f32", wave(30000))
        self.fz("compress", "-q", "-b", "abs:1", "a.f32")
        names = self.names()
        for words in (
            ("compress", "-b", "abs:1e-6", "-o", "x", "a.f32"),
            ("decompress", "-o", "x", "a.f32.fzm"),
            ("convert", "a.f32", "x.npy"),
        ):
            self.fails(IO, *words, says="File too large", preexec_fn=self.limited)
        if cli_support.MAKE_HDF5:
            self.fails(IO, "convert", "a.f32", "x.h5:/a", says="cannot be written", preexec_fn=self.limited)
        self.assertEqual(self.names(), names)


class LateFileTest(CliCase):
    def started(self, *words, first):
        """The tool, reading standard input, of which it has taken some."""
        process = subprocess.Popen(
            [os.path.abspath(cli_support.BINARY), *words],
            cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        process.stdin.write(first)  # more than a pipe holds, so it returns when the names are checked
        process.stdin.flush()
        return process

    def test_a_file_that_comes_while_the_work_goes_on_is_kept(self):
        data = wave(100000).tobytes()
        archive = self.fz("compress", "-q", "-b", "abs:1e-6", "-t", "f32", "-o", "-", "-", stdin=data).stdout
        for words, taken in ((("compress", "-b", "abs:1", "-t", "f32"), data), (("decompress",), archive)):
            self.assertGreater(len(taken), 200000)
            for force in (False, True):
                process = self.started(*words, *(["-f"] if force else []), "-o", "late", "-", first=taken[:-1])
                self.put("late", b"mine")
                _, said = process.communicate(taken[-1:], timeout=120)
                self.assertEqual(process.returncode, 0 if force else IO, said)
                self.assertEqual(self.get("late") != b"mine", force)
                self.assertEqual(self.names(), ["late"])
                if not force:
                    self.assertIn(b"File exists", said)
                (self.folder / "late").unlink()


class GrowthTest(CliCase):
    def test_what_would_grow_is_stored_without_loss(self):
        noise = random.Random(1)
        data = bytes(noise.randrange(256) for _ in range(40000))
        self.put("noise.f32", data)
        for words in (("-b", "abs:1e-3"), ("-b", "abs:1e-3", "--stages", "quantizer->bitshuffle->rze"), ("-b", "abs:1e-3", "-p", "cusz")):
            self.fz("compress", "-f", "--no-fallback", *words, "-o", "plain.fzm", "noise.f32")
            self.assertGreater(len(self.get("plain.fzm")), 40592)
            message = self.fz("compress", "-f", "--verify", *words, "noise.f32").stderr.decode()
            self.assertIn("stored without loss", message)
            self.assertIn("verified: all 10000 values", message)
            self.assertEqual(len(self.get("noise.f32.fzm")), 40592)
            self.assertIn("stored:     without loss", self.fz("info", "noise.f32.fzm").stdout.decode())
            info = one(self.fz("info", "--json", "noise.f32.fzm").stdout)
            self.assertTrue(info["lossless"] and info["fallback"])
            self.assertIsNotNone(info["bound"])
            self.fz("test", "noise.f32.fzm")
            self.fz("verify", "noise.f32.fzm", "noise.f32")
            self.fz("decompress", "-f", "-o", "back.f32", "noise.f32.fzm")
            self.assertEqual(self.get("back.f32"), data)
        self.fz("compress", "-f", "-b", "abs:1e-3", "--report", "page.html", "noise.f32")
        self.assertIn(b"Bitshuffle", self.get("page.html"))


class AdviceTest(WarningCase):
    def test_a_book_that_is_too_short(self):
        self.put("a.f32", wave(3000))
        self.fails(
            USAGE, "compress", "-p", "cusz", "-b", "abs:1e-6", "--set", "bklen=8", "a.f32", says=["symbol", "larger --set bklen=N"]
        )

    def test_growth_with_pfpl_does_not_advise_pfpl(self):
        noise = random.Random(1)
        self.put("a.f32", array.array("f", (noise.uniform(-1, 1) * 10 ** noise.uniform(-30, 30) for _ in range(3000))))
        for words in (("-p", "pfpl"), ()):
            (line,) = self.warnings("compress", "-f", *words, "-b", "abs:1e-36", "a.f32")
            self.assertIn("larger than the data", line)
            self.assertNotIn("-p pfpl", line)

    def test_kinds_of_bounds_have_the_names_of_the_option(self):
        self.put("a.f32", wave(300))
        for preset in ("cuszp", "cuszp2"):
            self.fails(USAGE, "compress", "-p", preset, "-b", "rel:1e-2", "a.f32", says=["abs:E", "range:E", "-p pfpl"])

    def test_bounds_written_otherwise(self):
        self.fails(USAGE, "compress", "-b", "abs=1", "a.f32", says="write abs:1 (")
        self.fails(USAGE, "compress", "-b", "range1e-3", "a.f32", says="write range:1e-3 (")
        self.fails(USAGE, "compress", "-b", "1e-3", "a.f32", says="write abs:1e-3, rel:1e-3 or range:1e-3")
        self.fails(USAGE, "compress", "-b", "abs", "a.f32", says="as in abs:1e-3")
        self.fails(USAGE, "compress", "-b", "abs:0", "a.f32", says="above 0, as in abs:1e-3; -b lossless keeps every bit")
        self.fails(USAGE, "compress", "-b", "tight", "a.f32", says="as in abs:1e-3")

    def test_gpu_is_called_cuda(self):
        for word in ("gpu", "GPU", "nvidia"):
            self.fails(USAGE, "compress", "--backend", word, "a.f32", says="did you mean 'cuda'?")

    def test_variables_say_how_to_run_and_never_change_the_bytes(self):
        _, name = self.archive()
        whole = self.get(name)
        for variable, values in {"FZ_FUSION": ["off", "auto", ""], "FZ_BACKEND": ["cpu", "auto", ""]}.items():
            for value in values:
                self.fz("compress", "-fqp", "cusz", "-b", "range:1e-4", "a.f32", env={**os.environ, variable: value})
                self.assertEqual(self.get(name), whole, (variable, value))
            for value in ("OFF", "gpu"):
                message = [f"{variable} is '{value}'; it must be", "set the variable to one of these or unset it"]
                self.fails(USAGE, "compress", "-f", "a.f32", env={**os.environ, variable: value}, says=message)

    def test_complex_arrays_have_two_parts(self):
        self.put("c.npy", npy(wave(200), "(100,)", "'<c8'"))
        message = self.fails(USAGE, "compress", "c.npy", says=["array.real", "array.imag"])
        self.assertNotIn("astype", message)

    def test_help_says_what_happens_without_a_bound(self):
        for command in ("compress", "convert"):
            text = " ".join(self.fz(command, "--help").stdout.decode().split())
            self.assertIn("the word lossless, which is also what happens without -b", text)
