"""Cases of `fz decompress`, `test`, `info` and `verify`."""

import array
import json
import math
import os
import pty
import re
import struct

from cli_support import BOUND, CORRUPT, OK, IO, MEMORY, USAGE, CliCase, max_error, npy, wave, one

__all__ = ["DecompressTest", "TestTest", "InfoTest", "VerifyTest"]


def damaged(frame):
    """Versions of a frame that no tool may accept."""
    yield b""
    yield b"garbage that is no archive"
    yield frame[: len(frame) // 2]
    yield frame[:-1]
    yield frame + b"x"
    for at in (0, 5, 40, len(frame) // 2, len(frame) - 1):
        yield frame[:at] + bytes([frame[at] ^ 0x10]) + frame[at + 1 :]


class DecompressTest(CliCase):
    def test_takes_the_suffix_off_and_keeps_the_archive(self):
        field, name = self.archive("a.f32", 3000, "f", "-b", "abs:1e-3")
        os.remove(self.folder / "a.f32")
        message = self.fz("decompress", name).stderr.decode()
        self.assertIn("a.f32.fzm -> a.f32: float32 3000, 12000 bytes", message)
        self.assertEqual(self.names(), ["a.f32", "a.f32.fzm"])
        self.assertLessEqual(max_error(field, self.values("a.f32")), 1e-3)

    def test_keeps_permissions_and_time_both_ways(self):
        for mode in (0o600, 0o640, 0o444):
            for words in ((), ("--chunk", "4K")):
                self.put("a.f32", wave(3000))
                os.chmod(self.folder / "a.f32", mode)
                os.utime(self.folder / "a.f32", (1000000000, 1234567890.5))
                self.fz("compress", "-f", *words, "a.f32")
                self.fz("decompress", "-f", "-o", "b.f32", "a.f32.fzm")
                for name in ("a.f32.fzm", "b.f32"):
                    status = os.stat(self.folder / name)
                    self.assertEqual(status.st_mode & 0o777, mode, name)
                    self.assertEqual(status.st_mtime, 1234567890.5, name)
                os.remove(self.folder / "a.f32")

    def test_no_plain_bytes_under_the_name_of_an_hdf5_file(self):
        _, name = self.archive()
        self.fails(USAGE, "decompress", "-o", "back.h5", name, says=["back.h5:/NAME", "fz convert"])
        self.fails(USAGE, "convert", name, "back.nc", says="back.nc:/NAME")
        self.assertNotIn("back.nc", self.names())

    def test_does_not_overwrite_without_force(self):
        field, name = self.archive()
        self.fails(IO, "decompress", name, says=["exists", "-f"])
        self.assertEqual(self.get("a.f32"), field.tobytes())
        self.assertEqual(self.fz("decompress", "-f", "-q", name).stderr, b"")
        self.assertNotEqual(self.get("a.f32"), field.tobytes())

    def test_npy_by_the_name_of_the_output(self):
        _, name = self.archive("a.f32", 3000, "f", "-d", "50x20x3")
        self.fz("decompress", "-o", "b.raw", name)
        self.fz("decompress", "-o", "b.npy", name)
        content = self.get("b.npy")
        self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
        length = struct.unpack("<H", content[8:10])[0]
        self.assertEqual((10 + length) % 64, 0)
        header = content[10 : 10 + length].decode()
        self.assertEqual(eval(header), {"descr": "<f4", "fortran_order": False, "shape": (3, 20, 50)})
        self.assertTrue(header.endswith("\n"))
        self.assertEqual(content[10 + length :], self.get("b.raw"))

    def test_npy_goes_through_and_back(self):
        for shape, count, code in (("(12, 5)", 60, "f"), ("(60,)", 60, "d")):
            self.put("a.npy", npy(wave(count, code), shape))
            self.fz("compress", "-f", "-p", "cusz", "-b", "range:1e-4", "a.npy")
            self.fz("decompress", "-f", "a.npy.fzm")
            self.assertIn(f"'shape': {shape}".encode(), self.get("a.npy"))
            self.fz("compress", "-f", "-p", "cusz", "-b", "range:1e-4", "a.npy")

    def test_streams_folders_and_several_files(self):
        _, first = self.archive("a.f32", 100)
        _, second = self.archive("b.f32", 200)
        raw = self.fz("decompress", "-", stdin=self.get(first)).stdout
        self.assertEqual(len(raw), 400)
        self.assertEqual(self.fz("decompress", "-o", "-", first).stdout, raw)
        self.assertEqual(self.fz("decompress", stdin=self.get(first)).stdout, raw)
        (self.folder / "out").mkdir()
        self.fz("decompress", "-v", "-T", "2", "-o", "out", first, second)
        self.assertEqual((self.folder / "out" / "a.f32").read_bytes(), raw)
        self.assertEqual(len((self.folder / "out" / "b.f32").read_bytes()), 800)
        self.fails(USAGE, "decompress", "-o", "x", first, second, says="2 inputs")
        os.remove(self.folder / "b.f32")
        message = self.fz("decompress", "absent.fzm", second, code=IO).stderr.decode()
        self.assertIn("absent.fzm", message)
        self.assertIn("b.f32", self.names())

    def test_stdout_is_an_option_too(self):
        field, name = self.archive()
        self.assertEqual(self.fz("compress", "-q", "-p", "cusz", "-b", "range:1e-4", "--stdout", "a.f32").stdout, self.get(name))
        plain = self.fz("decompress", "-q", "-o", "-", name).stdout
        for option in ("-c", "--stdout"):
            self.assertEqual(self.fz("decompress", "-q", option, name).stdout, plain)
        self.assertEqual(len(plain), 4 * len(field))
        self.fails(USAGE, "decompress", "-c", "-o", "b.f32", name, says="contradict")

    def test_needs_a_name_for_the_result(self):
        _, name = self.archive()
        os.rename(self.folder / name, self.folder / "packed")
        self.fails(USAGE, "decompress", "packed", says=[".fzm", "-o"])
        self.fz("decompress", "-o", "raw", "packed")
        self.put(".fzm", b"x")
        self.fails(USAGE, "decompress", ".fzm", says="-o")

    def test_never_binary_to_a_terminal(self):
        _, name = self.archive()
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had: {error}")
        try:
            self.fails(USAGE, "decompress", "-o", "-", name, stdout=follower, says="terminal")
        finally:
            os.close(leader)
            os.close(follower)

    def test_limits(self):
        _, name = self.archive()
        for command in (("decompress", "-fqo", "b"), ("test", "-q")):
            self.fails(MEMORY, *command, "--max-output", "11999", name, says=["12000 bytes", "--max-output"])
            self.fails(MEMORY, *command, "--max-memory=1k", name, says="--max-memory")
            self.fz(*command, "--max-output", "12000", "--max-memory", "1G", name)
        self.fails(MEMORY, "verify", "--max-output=1", name, "a.f32", says="--max-output")
        # A result that stays in memory counts.
        for command in (("decompress", "-fqo", "b", name), ("test", name), ("verify", name, "a.f32"), ("convert", "-f", name, "c.npy")):
            said = self.fails(MEMORY, command[0], "--max-memory", "11999", *command[1:], says=["12.0 kB", "--max-memory"])
            self.assertNotIn("damaged", said)
        for wrong in ("much", "-5", "+5", "1.5G", "1e9", "99999999999999999999", "16E", "5q", "5kk", "i", "-1k"):
            message = f"--max-output: '{wrong}': write a number of bytes, as in 500M or 4G"
            self.fails(USAGE, "test", f"--max-output={wrong}", name, says=message)
            self.fails(USAGE, "test", f"--max-memory={wrong}", name, says="write a number of bytes")
        for right in ("12000", "12k", "12K", "12kb", "12KiB", "12ki", "12000b", "15E", "18446744073709551615"):
            self.fz("test", f"--max-output={right}", name)

    def test_damage_leaves_no_output(self):
        _, name = self.archive()
        for frame in damaged(self.get(name)):
            self.put("bad.f32.fzm", frame)
            self.fails(CORRUPT, "decompress", "bad.f32.fzm", says="bad.f32.fzm")
            self.assertNotIn("bad.f32", self.names())


class TestTest(CliCase):
    def test_good_archives(self):
        _, first = self.archive("a.f32")
        _, second = self.archive("b.f64", 500, "d")
        before = self.names()
        self.assertEqual(self.fz("test", first, second).stdout, b"a.f32.fzm: ok\nb.f64.fzm: ok\n")
        self.assertEqual(self.fz("test", "-q", first).stdout, b"")
        self.assertIn(b"checksums match", self.fz("test", "-v", first).stdout)
        self.assertEqual(self.fz("test", stdin=self.get(first)).stdout, b"standard input: ok\n")
        self.assertEqual(self.names(), before)

    def test_damaged_archives(self):
        _, name = self.archive()
        for frame in damaged(self.get(name)):
            self.put("bad.fzm", frame)
            self.fails(CORRUPT, "test", "bad.fzm", says="bad.fzm")
        done = self.fz("test", "bad.fzm", name, code=CORRUPT)
        self.assertEqual(done.stdout, b"a.f32.fzm: ok\n")

    def test_absent_archive(self):
        self.fails(IO, "test", "absent.fzm", says="absent.fzm")


class InfoTest(CliCase):
    def test_text(self):
        _, name = self.archive("a.f32", 3000, "f", "-d", "100x30", "-b", "range:1e-3")
        text = self.fz("info", name).stdout.decode()
        for part in ("FZM 3.2", "float32", "100 x 30 (x fastest)", "12000 bytes", "range:0.001, absolute"):
            self.assertIn(part, text)
        for part in ("LorenzoQuant", "Huffman", "quant_radius = 512", "segments:", "checksums:"):
            self.assertIn(part, text)

    def test_json(self):
        _, name = self.archive("a.f32", 3000, "f", "-d", "100x30", "-b", "abs:1e-3")
        info = one(self.fz("info", "--json", name).stdout)
        self.assertEqual(info["file"], name)
        self.assertEqual(info["format"], "3.2")
        self.assertEqual(info["type"], "float32")
        self.assertEqual((info["ndim"], info["dims"]), (2, [100, 30, 1]))
        self.assertEqual(info["original_bytes"], 12000)
        self.assertEqual(info["archive_bytes"], len(self.get(name)))
        self.assertEqual(info["header_bytes"] + info["payload_bytes"], info["archive_bytes"])
        self.assertAlmostEqual(info["ratio"], 12000 / info["archive_bytes"])
        self.assertEqual(info["bound"]["mode"], "abs")
        self.assertEqual(set(info["checksums"]), {"header", "payload"})
        self.assertEqual([stage["name"] for stage in info["stages"]], ["LorenzoQuant", "Huffman"])
        # Segments are aligned in the payload, so there may be gaps.
        self.assertLessEqual(sum(s["bytes"] for s in info["segments"]), info["payload_bytes"])

    def test_bounds_are_called_what_they_are(self):
        self.put("a.f32", wave(3000))
        info = lambda: one(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.fz("compress", "-qb", "rel:1e-3", "a.f32")
        self.assertEqual(info()["bound"], {"mode": "rel", "requested": 1e-3, "absolute": None})
        self.assertIn(b"rel:0.001, for each value", self.fz("info", "a.f32.fzm").stdout)
        self.fz("compress", "-fqb", "range:1e-3", "a.f32")
        self.assertEqual(info()["bound"]["mode"], "range")
        self.assertGreater(info()["bound"]["absolute"], 0)
        # LorenzoQuant takes REL of the largest value, which is no bound of each value's own size.
        toml = self.fz("presets", "--show", "cusz").stdout.decode()
        self.put("own.toml", re.sub(r'error_bound_mode = "\w+"', 'error_bound_mode = "REL"', toml).encode())
        said = self.fz("compress", "-fc", "own.toml", "a.f32").stderr.decode()
        bound = info()["bound"]
        self.assertEqual(bound["mode"], "max")
        self.assertAlmostEqual(bound["absolute"], bound["requested"] * max(self.values("a.f32")), delta=1e-6)
        self.assertIn(f"bound max:{bound['requested']}", said)
        self.assertIn(f"max:{bound['requested']} of the largest |x|, absolute ", self.fz("info", "a.f32.fzm").stdout.decode())

    def test_settings_that_archives_do_not_keep_are_not_shown(self):
        self.archive("a.f32", 3000, "f", "--set", "encode_mode=Fine", "--set", "outlier_capacity=0.3")
        stages = one(self.fz("info", "--json", "a.f32.fzm").stdout)["stages"]
        self.assertEqual(set(stages[1]["params"]), {"bklen"})
        self.assertIn("quant_radius", stages[0]["params"])
        self.assertNotIn("outlier_capacity", stages[0]["params"])
        text = self.fz("info", "a.f32.fzm").stdout.decode()
        self.assertNotIn("encode_mode", text)
        self.assertIn("bklen = ", text)
        self.fz("compress", "-fqp", "quantizer_lorenzo_bitpack", "-b", "abs:1e-3", "a.f32")
        text = self.fz("info", "a.f32.fzm").stdout.decode()
        self.assertNotIn("linear_policy", text)
        self.assertIn("nbits = ", text)

    def test_several_files_and_standard_input(self):
        _, first = self.archive("a.f32")
        _, second = self.archive("b.f32")
        both = json.loads(self.fz("info", "--json", first, second).stdout)
        self.assertEqual([info["file"] for info in both], [first, second])
        self.put("bad.fzm", b"bad")
        rows = json.loads(self.fz("info", "--json", "bad.fzm", second, code=CORRUPT).stdout)
        self.assertEqual([(row["file"], row["code"]) for row in rows], [("bad.fzm", CORRUPT), (second, OK)])
        self.assertIn("fetch it again", rows[0]["message"])
        self.assertIsNone(rows[1]["message"])
        self.assertIn(b"float32", self.fz("info", "-", stdin=self.get(first)).stdout)
        self.assertEqual(self.fz("info", first, second).stdout.count(b"archive:"), 2)

    def test_bad_archives(self):
        _, name = self.archive()
        frame = self.get(name)
        self.put("bad.fzm", frame[:100])
        self.fails(CORRUPT, "info", "bad.fzm", says="bad.fzm")
        self.put("bad.fzm", b"\x93NUMPY and so on")
        self.fails(CORRUPT, "info", "--json", "bad.fzm", says="magic")
        self.fails(IO, "info", "absent.fzm", says="absent.fzm")


class VerifyTest(CliCase):
    def test_report(self):
        field, name = self.archive("a.f32", 3000, "f", "-b", "abs:1e-2")
        self.fz("decompress", "-o", "b.f32", name)
        largest = float(max_error(field, self.values("b.f32")))
        text = self.fz("verify", name, "a.f32").stdout.decode()
        for part in ("violations:   0", f"max error:    {largest!r}", "PSNR:", "NRMSE:", "values:       3000"):
            self.assertIn(part, text)
        self.assertEqual(self.fz("verify", "-q", name, "a.f32").stdout, b"")

    def test_json_numbers(self):
        field, name = self.archive("a.f32", 3000, "f", "-b", "abs:1e-2")
        self.fz("decompress", "-o", "b.f32", name)
        back = self.values("b.f32")
        report = one(self.fz("verify", "--json", name, "a.f32").stdout)
        mse = sum((x - y) ** 2 for x, y in zip(field, back)) / len(field)
        span = max(field) - min(field)
        self.assertTrue(report["passed"])
        self.assertEqual(report["max_error"], float(max_error(field, back)))
        self.assertEqual((report["violations"], report["first_violation"]), (0, None))
        self.assertAlmostEqual(report["psnr"], 20 * math.log10(span) - 10 * math.log10(mse), places=6)
        self.assertAlmostEqual(report["nrmse"], math.sqrt(mse) / span, places=12)

    def test_special_values_are_counted(self):
        field = array.array("f", [1.0, float("inf"), float("nan"), -0.0, -float("inf")] * 20)
        self.put("a.f32", field)
        self.fz("compress", "-p", "cusz", "-b", "abs:0.01", "a.f32")
        report = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout)
        self.assertEqual(report["nan"], {"values": 20, "kept": 20})
        self.assertEqual(report["infinity"], {"values": 40, "kept": 40})
        self.assertEqual(report["negative_zero"]["values"], 20)

    def test_relative_bounds_are_shown_with_the_relative_error(self):
        field = wave(3000)
        field[5] = 0.0
        self.put("a.f32", field)
        message = self.fz("compress", "-p", "pfpl", "-b", "rel:1e-2", "--verify", "a.f32").stderr.decode()
        self.fz("decompress", "-o", "b.f32", "a.f32.fzm")
        relative = [abs(x - y) / abs(x) if x != y else 0.0 for x, y in zip(field, self.values("b.f32"))]
        largest = max(relative)
        self.assertLessEqual(largest, 1e-2)
        self.assertIn(f", relative {largest!r}\n", message)
        text = self.fz("verify", "a.f32.fzm", "a.f32").stdout.decode()
        self.assertIn(f"max relative: {largest!r} at index {relative.index(largest)}\n", text)
        report = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout)
        self.assertEqual(report["max_relative_error"], largest)
        self.assertEqual(report["max_relative_error_index"], relative.index(largest))
        self.assertNotIn("max relative", self.fz("verify", "-b", "abs:1e9", "a.f32.fzm", "a.f32").stdout.decode())

    def test_there_is_no_psnr_without_values_or_range(self):
        for name, field in (("empty", []), ("nan", [math.nan] * 50), ("constant", [7.03] * 50)):
            self.put(name, array.array("f", field))
            self.fz("compress", "-q", "--no-fallback", "-t", "f32", "-p", "cusz", "-b", "abs:0.1", name)
            exact = name == "constant" and self.fz("decompress", "-o", "-", name + ".fzm").stdout == self.get(name)
            self.assertFalse(exact, "the constant has to lose something")
            text = self.fz("verify", name + ".fzm", name).stdout.decode()
            self.assertIn("PSNR:         n/a\n", text)
            self.assertIn("NRMSE:        n/a\n", text)
            report = one(self.fz("verify", "--json", name + ".fzm", name).stdout)
            self.assertEqual((report["psnr"], report["nrmse"]), (None, None))
            self.assertEqual(report["max_relative_error"] is None, name != "constant")

    def test_a_bound_that_was_never_promised_is_no_fault_of_the_archive(self):
        _, name = self.archive("a.f32", 3000, "f", "-b", "abs:0.1")
        message = self.fails(
            BOUND, "verify", "-b", "abs:0.01", name, "a.f32",
            says=["was made with abs:0.1 and keeps to it", "again with -b abs:0.01"],
        )
        self.assertNotIn("report it", message)
        field = self.values("a.f32")
        field[7] += 1
        self.put("other.f32", field)
        self.fails(BOUND, "verify", "-b", "abs:0.01", name, "other.f32", says="report it")

    def test_violations_are_found(self):
        field, name = self.archive("a.f32", 3000, "f", "-b", "abs:1e-2")
        field[7] += 1
        field[1000] = float("nan")
        self.put("other.f32", field)
        done = self.fz("verify", "--json", name, "other.f32", code=BOUND)
        report = one(done.stdout)
        self.assertEqual((report["code"], report["passed"]), (BOUND, False))
        self.assertIn("2 of 3000 values", report["message"])
        self.assertEqual((report["violations"], report["first_violation"]), (2, 7))
        self.assertEqual(report["nan"], {"values": 1, "kept": 0})
        self.fails(BOUND, "verify", name, "other.f32", says=["2 of 3000 values", "index 7"])

    def test_another_bound_can_be_asked_for(self):
        _, name = self.archive("a.f32", 3000, "f", "-b", "abs:1e-2")
        self.fz("verify", "-b", "abs:1e-2", name, "a.f32")
        self.fz("verify", "-b", "rel:0.5", name, "a.f32")
        self.fz("verify", "-b", "range:0.5", name, "a.f32")
        self.fails(BOUND, "verify", "-b", "abs:1e-5", name, "a.f32", says="break |x - x'| <= 1e-05")
        self.fails(BOUND, "verify", "-b", "rel:1e-6", name, "a.f32", says="* |x|")
        self.fails(USAGE, "verify", "-b", "tight", name, "a.f32", says="-b 'tight'")

    def test_an_original_with_its_axes_in_another_order(self):
        values = wave(600)
        self.put("a.npy", npy(values, (20, 30)))
        self.put("turned.npy", npy(values, (30, 20)))
        self.put("flat.npy", npy(values, (1, 600, 1)))
        self.fz("compress", "-b", "abs:0.1", "a.npy")
        self.fails(BOUND, "verify", "a.npy.fzm", "turned.npy", says=["20 x 30", "30 x 20", "another order"])
        self.fz("verify", "a.npy.fzm", "flat.npy")

    def test_npy_original(self):
        field = wave(60)
        self.put("a.npy", npy(field, "(12, 5)"))
        self.fz("compress", "-p", "cusz", "-b", "range:1e-4", "a.npy")
        self.fz("verify", "a.npy.fzm", "a.npy")
        self.put("raw", field)
        self.fz("verify", "a.npy.fzm", "raw")
        self.put("d.npy", npy(wave(60, "d"), "(12, 5)"))
        self.fails(BOUND, "verify", "a.npy.fzm", "d.npy", says="float64")

    def test_files_that_do_not_belong_together(self):
        _, name = self.archive()
        self.put("short", b"1234")
        self.fails(BOUND, "verify", name, "short", says=["4 bytes", "12000"])
        self.fails(IO, "verify", name, "absent", says="absent")
        self.fails(IO, "verify", "absent.fzm", "a.f32", says="absent.fzm")
        self.fails(CORRUPT, "verify", "a.f32", "a.f32", says="a.f32")
        self.fails(USAGE, "verify", "-", "-", says="standard input")
        self.fails(USAGE, "verify", name, says="ORIGINAL")
        self.fails(USAGE, "verify", name, "a.f32", "a.f32", says="one argument too many")
