"""Cases of the first minutes: nothing is lost or guessed without being asked, and habits of gzip and zstd."""

import array
import json
import math
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import unittest

import cli_support
from cli_support import BOUND, CORRUPT, IO, MEMORY, OK, USAGE, CliCase, npy, one, wave

__all__ = ["NothingGuessedTest", "PurposeTest", "HabitTest", "OrderTest", "JsonTest", "WordsTest"]


class NothingGuessedTest(CliCase):
    def test_without_a_bound_every_bit_is_kept_and_a_bound_is_advised(self):
        for typecode, name in (("f", "a.f32"), ("d", "a.f64")):
            self.put(name, wave(30000, typecode))
            message = self.fz("compress", "--verify", name).stderr.decode()
            self.assertIn("no bound given, so every bit is kept; with one, such as -b range:1e-3", message)
            self.assertIn("bound none (lossless)", message)
            self.fz("decompress", "-qfo", "back", name + ".fzm")
            self.assertEqual(self.get("back"), self.get(name))
            self.assertLess(len(self.get(name + ".fzm")), len(self.get(name)))
            for words in (("-b", "lossless"), ("-p", "lossless"), ("-q",)):
                message = self.fz("compress", "-f", *words, "-o", "b.fzm", name).stderr.decode()
                self.assertNotIn("no bound given", message)
                self.assertEqual(self.get("b.fzm"), self.get(name + ".fzm"), words)

    def test_lossless_takes_chunks_pipes_and_special_values(self):
        field = wave(200000)
        field[3], field[4], field[5] = math.nan, -math.inf, -0.0
        self.put("a.f32", field)
        self.fz("compress", "-q", "--chunk", "128K", "--verify", "a.f32")
        self.assertEqual(self.fz("decompress", "-o", "-", "a.f32.fzm").stdout, self.get("a.f32"))
        archive = self.fz("compress", "-q", "-t", "f32", "-", stdin=self.get("a.f32")).stdout
        self.assertEqual(self.fz("decompress", "-", stdin=archive).stdout, self.get("a.f32"))

    def test_presets_and_chains_with_loss_need_a_bound(self):
        self.put("a.f32", wave(3000))
        for words in (("-p", "cusz"), ("--fast",), ("--best",), ("-p", "auto")):
            self.fails(USAGE, "compress", *words, "a.f32", says=["needs to know how much may be lost", "-b abs:E", "-p lossless"])
        self.fails(USAGE, "compress", "-b", "lossless", "-p", "best", "a.f32", says="leave one out")
        self.fails(USAGE, "compress", "-b", "abs:1", "-p", "lossless", "a.f32", says="leave one out")
        self.assertEqual(self.names(), ["a.f32"])

    def test_a_type_that_nothing_says_is_refused_with_those_that_fit(self):
        self.put("a.dat", wave(3000))
        self.fails(USAGE, "compress", "-b", "abs:0.1", "a.dat", says=["its 12000 bytes fit -t f32 as 3000 values and -t f64 as 1500 values"])
        self.fails(USAGE, "compress", "-b", "abs:0.1", "-d", "50x30", "a.dat", says="its 12000 bytes fit -t f64 as 1500 values")
        self.fails(USAGE, "compress", "-b", "abs:0.1", "-d", "7x7", "a.dat", says="fit -d 7 x 7 with no type")
        self.put("b.dat", bytes(13))
        self.fails(USAGE, "compress", "b.dat", says="no whole number of values of 4 or 8 bytes")
        self.fails(USAGE, "compress", "-", stdin=bytes(400), says="-t f32 as 100 values")
        self.fails(USAGE, "convert", "a.dat", "a.npy", says="-t f32")
        self.fz("compress", "-q", "-t", "f64", "-b", "abs:0.1", "a.dat")

    def test_reversed_extents_are_worth_a_hint_where_they_suit_far_better(self):
        field = array.array("f", (math.sin(x / 9) * math.cos(y / 7) for y in range(100) for x in range(331)))
        self.put("a.f32", field)
        message = self.fz("compress", "-b", "range:1e-3", "-d", "100x331", "a.f32").stderr.decode()
        self.assertIn("fz: hint: a.f32: a sample is far smaller with the axes the other way round; is it -d 331x100?", message)
        for words in (("-d", "331x100"), ("-q", "-d", "100x331")):
            self.assertNotIn("hint", self.fz("compress", "-f", "-b", "range:1e-3", *words, "a.f32").stderr.decode())

    def test_strict_turns_doubts_into_errors_and_writes_nothing(self):
        field = wave(5000)
        for i in range(0, 5000, 50):
            field[i] = 1e20
        self.put("a.f32", field)
        self.fails(BOUND, "compress", "--strict", "-b", "abs:0.01", "a.f32", says=["--strict: 1e+20 occurs 100 times", "--fill 1e+20"])
        self.fails(BOUND, "compress", "--strict", "--chunk", "8K", "-b", "abs:0.01", "a.f32", says="1e+20 occurs 100 times")
        self.put("same.f32", array.array("f", [3.0] * 3000))
        self.fails(BOUND, "compress", "--strict", "-q", "-b", "range:1e-3", "same.f32", says="--strict: the field is constant")
        self.fails(BOUND, "compress", "--strict", "-t", "f64", "-b", "abs:1e-9", "same.f32", says="--strict: its name says f32")
        self.assertEqual(self.names(), ["a.f32", "same.f32"])
        self.fz("compress", "-q", "--strict", "-b", "abs:0.01", "--fill", "1e20", "a.f32")


class PurposeTest(CliCase):
    def test_flags_are_presets_and_the_default_is_balanced(self):
        self.put("a.f32", wave(20000))
        for words, preset in ((("--fast",), "fast"), (("--best",), "best"), ((), "balanced")):
            self.fz("compress", "-q", "-b", "abs:0.01", *words, "-o", "flag.fzm", "a.f32")
            self.fz("compress", "-q", "-b", "abs:0.01", "-p", preset, "-o", "name.fzm", "a.f32")
            self.assertEqual(self.get("flag.fzm"), self.get("name.fzm"), preset)
            for name in ("flag.fzm", "name.fzm"):
                (self.folder / name).unlink()
        self.fails(USAGE, "compress", "--fast", "--best", "-b", "abs:1", "a.f32", says="--fast and --best both name a pipeline")

    def test_bench_takes_all_presets(self):
        self.put("a.f32", wave(3000))
        text = self.fz("bench", "-q", "-n", "1", "--warmup", "0", "-p", "all", "a.f32").stdout.decode()
        names = [row["name"] for row in json.loads(self.fz("presets", "--json").stdout)]
        for name in names:
            self.assertRegex(text, rf"(?m)^{name} ")

    def test_suggest_ranks_presets_on_a_sample(self):
        self.put("a.f32", array.array("f", (math.sin(x / 9) * math.cos(y / 7) for y in range(200) for x in range(300))))
        rows = json.loads(self.fz("suggest", "-q", "--json", "-b", "range:1e-3", "-d", "300x200", "a.f32").stdout)
        self.assertEqual([row["rank"] for row in rows], list(range(1, len(rows) + 1)))
        ratios = [row["ratio"] for row in rows]
        self.assertEqual(ratios, sorted(ratios, reverse=True))
        self.assertTrue({"fast", "balanced", "best", "auto", "cusz"} <= {row["preset"] for row in rows})
        self.fz("compress", "-q", "-b", "range:1e-3", "-d", "300x200", "-p", rows[0]["preset"], "a.f32")
        self.assertAlmostEqual(240000 / len(self.get("a.f32.fzm")), ratios[0], delta=0.01 * ratios[0])
        text = self.fz("suggest", "-b", "rel:1e-3", "-d", "300x200", "a.f32").stdout.decode()
        self.assertIn("fz compress -p pfpl -b rel:1e-3 ...", text)
        self.assertNotIn("cusz", text)
        self.fails(USAGE, "suggest", "a.f32", says="--bound is required")
        self.fails(IO, "suggest", "-b", "abs:1", "absent.f32", says="absent.f32")

    def test_tune_finds_the_plan_that_compress_finds(self):
        self.put("a.f32", array.array("f", (math.sin(x / 9) * math.cos(y / 7) for y in range(200) for x in range(300))))
        words = ("-b", "range:1e-3", "-d", "300x200", "a.f32")
        for preset in ("best", "auto", "balanced"):
            said = self.fz("tune", "-q", "-p", preset, *words).stdout.decode()
            key, plan = re.fullmatch(r"--set ([\w.]+)='(.*)'\n", said).groups()
            self.fz("compress", "-q", "-f", "-p", preset, *words)
            expected = self.get("a.f32.fzm")
            self.fz("compress", "-q", "-f", "-p", preset, "--set", f"{key}={plan}", *words)
            self.assertEqual(self.get("a.f32.fzm"), expected)
            row = json.loads(self.fz("tune", "-q", "--json", "-p", preset, *words).stdout)[0]
            self.assertEqual(row["settings"], {key: plan})
        self.assertIn("bits", self.fz("tune", "-v", "-p", "best", *words).stderr.decode())
        quick = self.fz("tune", "-p", "pfpl", *words)
        self.assertEqual(quick.stdout, b"")
        self.assertIn("looks for no settings", quick.stderr.decode())
        self.fails(USAGE, "tune", "-b", "psnr:60", "-d", "300x200", "a.f32", says="psnr:")
        self.fails(USAGE, "tune", "-p", "balanced", "-d", "300x200", "a.f32", says="-b abs:E")
        self.fails(USAGE, "tune", "-d", "300x200", "a.f32", says="-b range:1e-3")


class HabitTest(CliCase):
    def test_rm_removes_inputs_whose_results_are_complete(self):
        self.put("a.f32", wave(300))
        self.put("b.f32", bytes(3))
        self.fz("compress", "-q", "--rm", "-b", "abs:1", "a.f32", "b.f32", code=USAGE)
        self.assertEqual(self.names(), ["a.f32.fzm", "b.f32"])
        self.fz("decompress", "-q", "--rm", "a.f32.fzm")
        self.assertEqual(self.names(), ["a.f32", "b.f32"])
        self.fz("compress", "-qk", "-b", "abs:1", "a.f32")
        self.assertEqual(self.names(), ["a.f32", "a.f32.fzm", "b.f32"])
        self.fails(USAGE, "compress", "-k", "--rm", "-b", "abs:1", "a.f32", says="contradict")
        self.fails(USAGE, "compress", "--rm", "-o", "-", "-b", "abs:1", "a.f32", says="--rm")

    def test_recursive_takes_what_it_knows_and_notes_what_it_skips(self):
        (self.folder / "d/e").mkdir(parents=True)
        self.put("d/a.f32", wave(300))
        self.put("d/e/b.npy", npy(wave(60), "(60,)"))
        self.put("d/notes.txt", b"text")
        self.put("d/old.f32.fzm", b"x")
        said = self.fz("compress", "-r", "-b", "abs:1", "d").stderr.decode()
        self.assertIn("fz: d: skipped 2 files; archives and files whose type neither their name nor -t says are left alone", said)
        self.assertTrue((self.folder / "d/a.f32.fzm").exists() and (self.folder / "d/e/b.npy.fzm").exists())
        (self.folder / "d/old.f32.fzm").unlink()
        self.assertEqual(self.fz("test", "-r", "d").stdout, b"d/a.f32.fzm: ok\nd/e/b.npy.fzm: ok\n")
        self.fz("decompress", "-qrf", "d")
        self.fails(IO, "compress", "-b", "abs:1", "d", says="take all with -r")

    def test_no_sync_gives_the_same_files(self):
        self.put("a.f32", wave(3000))
        self.fz("compress", "-q", "-b", "abs:0.1", "-o", "a.fzm", "a.f32")
        trace = shutil.which("strace")
        for words, n_syncs in (((), 2), (("--no-sync",), 0)):
            command = [os.path.abspath(cli_support.BINARY), "compress", "-qf", *words, "-b", "abs:0.1", "-o", "b.fzm", "a.f32"]
            if trace:
                command = [trace, "-f", "-e", "trace=fsync", "-o", "trace.txt", *command]
            done = subprocess.run(command, cwd=self.folder, check=False, capture_output=True)
            if trace and done.returncode == 0:
                self.assertEqual(self.get("trace.txt").count(b"fsync("), n_syncs, words)
            self.assertEqual(self.get("b.fzm"), self.get("a.fzm"))

    def test_address_space_is_memory_and_not_a_full_disk(self):
        with open(self.folder / "big.f32", "wb") as file:
            file.truncate(200 << 20)
        self.fz("compress", "-q", "-b", "abs:1", "--chunk", "none", "big.f32")
        limit = 220 << 20

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        try:
            self.fz("--version", preexec_fn=limited)
        except AssertionError:
            raise unittest.SkipTest("this build needs more address space than the test leaves it")
        message = self.fails(MEMORY, "decompress", "-T", "1", "-o", "back.f32", "big.f32.fzm", preexec_fn=limited)
        self.assertNotIn("free space", message)
        self.assertNotIn("back.f32", self.names())

    def test_hdf5_names_without_a_dataset_are_no_results(self):
        self.put("a.f32", wave(300))
        self.fails(USAGE, "compress", "-b", "abs:1", "-o", "x.h5", "a.f32", says="x.h5")
        self.assertEqual(self.names(), ["a.f32"])

    def test_classic_netcdf_is_named_with_the_ways_out(self):
        self.put("a.nc", b"CDF\x01" + bytes(100))
        for name in ("a.nc",) + (("a.nc:/tos",) if cli_support.MAKE_HDF5 else ()):
            message = self.fz("compress", "-b", "abs:1", name, code=USAGE if name == "a.nc" else IO).stderr.decode()
            self.assertIn("a classic netCDF-3 file", message)
            self.assertIn("convert it with 'nccopy -k nc4 OLD NEW' or 'ncks -4 OLD NEW'", message)

    def test_fish_completes_commands_options_and_presets(self):
        text = self.fz("generate", "fish").stdout.decode()
        self.assertIn("complete -c fz -n __fish_use_subcommand -f -a compress -d ", text)
        self.assertRegex(text, r"__fish_seen_subcommand_from compress' -s p -l preset -x -a 'fast balanced best auto lossless ")
        if shutil.which("fish"):
            self.put("fz.fish", text.encode())
            subprocess.run(["fish", "-n", self.folder / "fz.fish"], check=True)


class OrderTest(CliCase):
    """Values of .npy files keep their indices, whatever order the file has."""

    def back(self, name):
        self.fz("compress", "-qf", "-b", "lossless", "-o", "a.fzm", name)
        self.fz("verify", "-q", "a.fzm", name)
        self.fz("decompress", "-qfo", "back.npy", "a.fzm")
        return self.get("back.npy")

    def test_fortran_and_big_endian_files_come_back_plain(self):
        values = [((i * 31) % 97) / 7 for i in range(2 * 3 * 5)]  # in C order
        plain = npy(array.array("d", values), "(2, 3, 5)")
        fortran = array.array("d", (values[(i * 3 + j) * 5 + k] for k in range(5) for j in range(3) for i in range(2)))
        swapped, both = array.array("d", values), array.array("d", fortran)
        swapped.byteswap()
        both.byteswap()
        self.put("plain.npy", plain)
        wanted = self.back("plain.npy")
        for content in (
            npy(fortran, "(2, 3, 5)", order="True"),
            npy(swapped, "(2, 3, 5)", descr="'>f8'"),
            npy(both, "(2, 3, 5)", descr="'>f8'", order="True"),
        ):
            self.put("other.npy", content)
            self.assertEqual(self.back("other.npy"), wanted)
            self.fz("compress", "-qf", "--chunk", "2x3x2", "-b", "lossless", "-o", "chunks.fzm", "other.npy")
            self.fz("decompress", "-qfo", "back.npy", "chunks.fzm")
            self.assertEqual(self.get("back.npy"), wanted)
        message = self.fz("compress", "-f", "-b", "abs:1", "other.npy").stderr.decode()
        self.assertIn(".npy, stored big-endian, stored in Fortran order", message)


class JsonTest(CliCase):
    """Every command prints an array of objects that begin alike."""

    def rows(self, *words, code=OK):
        rows = json.loads(self.fz(*words, "--json", code=code).stdout)
        self.assertIsInstance(rows, list)
        for row in rows:
            self.assertEqual(list(row)[:4], ["command", "file", "code", "message"], words)
            self.assertEqual(row["message"] is None, row["code"] == OK, words)
        return rows

    def test_every_command_that_works_on_files_has_rows_and_failures_are_rows(self):
        self.put("a.f32", wave(3000))
        self.put("bad.fzm", b"bad")
        rows = self.rows("compress", "-q", "-b", "abs:0.1", "a.f32", "absent.f32", code=IO)
        self.assertEqual([(row["file"], row["code"]) for row in rows], [("a.f32", OK), ("absent.f32", IO)])
        self.assertEqual((rows[0]["output"], rows[0]["pipeline"], rows[0]["shape"]), ("a.f32.fzm", "balanced", [3000]))
        self.assertEqual(rows[0]["archive_bytes"], len(self.get("a.f32.fzm")))
        self.assertIn("cannot open", rows[1]["message"])
        (row,) = self.rows("decompress", "-qf", "a.f32.fzm")
        self.assertEqual((row["output"], row["original_bytes"], row["type"]), ("a.f32", 12000, "float32"))
        rows = self.rows("test", "a.f32.fzm", "bad.fzm", code=CORRUPT)
        self.assertEqual([(row["code"], row.get("original_bytes")) for row in rows], [(OK, 12000), (CORRUPT, None)])
        (row,) = self.rows("info", "a.f32.fzm")
        self.assertEqual(row["bound"]["requested"], 0.1)
        self.put("a.f32", wave(3000))
        (row,) = self.rows("verify", "a.f32.fzm", "a.f32")
        self.assertTrue(row["passed"])
        (row,) = self.rows("verify", "a.f32.fzm", "absent.f32", code=IO)
        (row,) = self.rows("convert", "-q", "a.f32", "a.npy")
        self.assertEqual((row["output"], row["shape"], row["archive_bytes"]), ("a.npy", [3000], None))
        (row,) = self.rows("convert", "-q", "-p", "cusz", "-b", "abs:1", "a.f32.fzm", "b.fzm")
        self.assertEqual((row["pipeline"], row["archive_bytes"]), ("cusz", len(self.get("b.fzm"))))
        (row,) = self.rows("convert", "-q", "absent.f32", "c.npy", code=IO)
        rows = self.rows("bench", "-q", "-n", "1", "-b", "abs:0.1", "a.f32", "absent.f32", code=IO)
        self.assertEqual({(row["file"], row["code"]) for row in rows}, {("a.f32", OK), ("absent.f32", IO)})
        self.fz("compress", "-q", "-b", "abs:0.1", "--chunk", "4K", "-o", "c.fzm", "a.f32")
        self.put("c.part", self.get("c.fzm")[:-100])
        (row,) = self.rows("recover", "-q", "-o", "saved.fzm", "c.part")
        self.assertEqual((row["output"], row["type"]), ("saved.fzm", "float32"))
        self.assertEqual(row["original_bytes"], 4 * row["shape"][0])
        self.assertEqual(row["archive_bytes"], len(self.get("saved.fzm")))
        (info,) = self.rows("info", "saved.fzm")
        self.assertEqual(row["chunks"], info["chunks"])
        self.assertEqual((row["ratio"], row["bound"]["requested"]), (row["original_bytes"] / row["archive_bytes"], 0.1))
        self.assertGreaterEqual(row["seconds"], 0)
        self.rows("suggest", "-q", "-b", "abs:0.1", "a.f32")
        self.rows("presets")
        self.rows("stages")

    def test_chunks_have_the_same_row_and_results_need_a_file(self):
        self.put("a.f32", wave(3000))
        (row,) = self.rows("compress", "-q", "-b", "abs:0.1", "--chunk", "4K", "a.f32")
        self.assertEqual((row["chunks"]["count"], row["original_bytes"]), (3, 12000))
        (row,) = self.rows("decompress", "-q", "--box", "0:10", "-o", "part.f32", "a.f32.fzm")
        self.assertEqual(row["shape"], [10])
        for words in (("compress", "-b", "abs:1", "-o", "-", "a.f32"), ("decompress", "-o", "-", "a.f32.fzm")):
            self.fz(*words, "--json", code=USAGE)


class WordsTest(CliCase):
    def test_words_are_those_of_the_layout(self):
        low, high = struct.unpack("<II", struct.pack("<d", 1e-3))
        (row,) = json.loads(self.fz("hdf5", "words", "--json", "-b", "abs:1e-3", "-p", "best").stdout)
        self.assertEqual((row["filter"], row["words"]), (62074, [1, 0, 12, 0, low, high]))
        text = self.fz("hdf5", "words", "-b", "abs:1e-3", "-p", "best").stdout.decode()
        self.assertIn(f"h5repack -f UD=62074,0,6,1,0,12,0,{low},{high} in.h5 out.h5\n", text)
        self.assertIn(f"nccopy -F '*,62074,1,0,12,0,{low},{high}' in.nc out.nc\n", text)
        line = self.fz("hdf5", "words", "--for", "h5repack", "--strict", "-b", "rel:1e-3").stdout.decode()
        self.assertEqual(line, f"UD=62074,0,6,1,1,7,1,{low},{high}\n")

    def test_a_filter_that_hdf5_does_not_see_is_worth_a_warning(self):
        without = {**os.environ, "HDF5_PLUGIN_PATH": str(self.folder)}
        done = self.fz("hdf5", "words", "--for", "h5repack", "-b", "abs:1e-3", env=without)
        self.assertTrue(done.stdout.startswith(b"UD=62074,0,6,1,0,14,0,"))
        if b"none found" not in self.fz("info", "--hdf5", code=IO, env=without).stdout:
            self.assertIn("would copy without it; set HDF5_PLUGIN_PATH", done.stderr.decode())

    def test_wrong_words_are_refused_before_any_file(self):
        self.fails(USAGE, "hdf5", "words", "-p", "best", says="needs to know how much may be lost")
        self.fails(USAGE, "hdf5", "words", "-b", "abs:1", "-p", "bets", says="did you mean 'best'")
        self.fails(USAGE, "hdf5", "words", "-b", "psnr:60", says="names a result")
        self.fails(USAGE, "hdf5", "words", "-b", "rel:1e-3", "-p", "best", says="takes no rel:E; it takes abs, range")
        self.fails(USAGE, "hdf5", "numbers", says="neither words nor info")

    @unittest.skipIf(os.environ.get("FZ_SANITIZED"), "a filter with sanitizers loads into programs with them only")
    @unittest.skipUnless(shutil.which("h5repack"), "no h5repack here")
    def test_h5repack_takes_them(self):
        plugin = os.path.join(os.path.dirname(os.path.abspath(cli_support.BINARY)), "..", "hdf5_plugin")
        if not cli_support.MAKE_HDF5 or not os.path.isdir(plugin):
            raise unittest.SkipTest("built without the filter")
        self.put("a.npy", npy(wave(6000), "(6000,)"))
        self.fz("convert", "-q", "a.npy", "a.h5:/x")
        words = self.fz("hdf5", "words", "--for", "h5repack", "-b", "abs:0.01").stdout.decode().strip()
        done = subprocess.run(["h5repack", "-l", "CHUNK=6000", "-f", words, "a.h5", "b.h5"], cwd=self.folder, check=False, capture_output=True, env={**os.environ, "HDF5_PLUGIN_PATH": plugin})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertLess(len(self.get("b.h5")), len(self.get("a.h5")) // 2)
