"""Cases of archives of chunks: --chunk, --range, --box, recover, and the other commands on them."""

import array
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import cli_support
from cli_support import BOUND, CORRUPT, IO, MEMORY, USAGE, CliCase, max_error, npy, wave, one

__all__ = ["ChunkTest", "BoxTest", "RecoverTest", "ShapeTest"]

DIMS = "40x30x25"
COUNT = 40 * 30 * 25


def box_of(values, shape, slices):
    """The values of a box, slowest axis first."""
    picked = array.array(values.typecode)
    (z0, z1), (y0, y1), (x0, x1) = slices
    for z in range(z0, z1):
        for y in range(y0, y1):
            begin = (z * shape[1] + y) * shape[2]
            picked.extend(values[begin + x0 : begin + x1])
    return picked


class ChunkCase(CliCase):
    def chunked(self, *words, chunk="16K", name="a.f32"):
        field = wave(COUNT)
        self.put(name, field.tobytes())
        self.fz("compress", "-q", "-d", DIMS, "--chunk", chunk, *words, name)
        return field, name + ".fzm"


class ChunkTest(ChunkCase):
    def test_comes_back_within_the_bound(self):
        for bound in ("abs:1e-3", "range:1e-4", "rel:1e-3"):
            field, name = self.chunked("-f", "-b", bound)
            self.assertIn("bound:      " + bound.split(":")[0], self.fz("info", name).stdout.decode())
            os.remove(self.folder / "a.f32")
            self.fz("decompress", name)
            self.put("o.f32", field.tobytes())
            self.fz("verify", name, "o.f32")
            self.fz("test", name)

    def test_every_kind_of_input_gives_the_same_bytes(self):
        field, name = self.chunked("-b", "abs:1e-3")
        expected = self.get(name)
        self.put("a.npy", npy(field, (25, 30, 40)))
        self.fz("compress", "-b", "abs:1e-3", "--chunk", "16K", "a.npy")
        self.assertEqual(self.get("a.npy.fzm"), expected)
        for data, words in ((field.tobytes(), ["-d", DIMS]), (self.get("a.npy"), [])):
            piped = self.fz("compress", "-t", "f32", "-b", "abs:1e-3", "--chunk", "16K", *words, "-", stdin=data)
            self.assertEqual(piped.stdout, expected)

    def test_range_of_a_pipe_must_be_given(self):
        field, name = self.chunked("-b", "range:1e-3")
        words = ["compress", "-t", "f32", "-b", "range:1e-3", "-d", DIMS, "--chunk", "16K", "-"]
        self.fails(USAGE, *words, stdin=field.tobytes(), says=["--range", "abs:E"])
        low, high = min(field), max(field)
        piped = self.fz(*words, "--range", f"{low}:{high}", stdin=field.tobytes())
        self.assertEqual(piped.stdout, self.get(name))
        self.fails(USAGE, *words, "--range", "3", stdin=b"", says=["--range", "250:310"])

    def test_range_is_that_of_the_whole_array(self):
        field = wave(COUNT)
        field[7] = 1000.0
        self.put("a.f32", field.tobytes())
        self.fz("compress", "-b", "range:1e-3", "-d", DIMS, "--chunk", "16K", "a.f32")
        info = one(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.assertAlmostEqual(info["bound"]["absolute"], (1000 - min(field)) * 1e-3, 5)
        self.assertEqual(info["shape"], [25, 30, 40])
        self.assertEqual(info["original_bytes"], COUNT * 4)
        self.assertGreater(info["chunks"]["count"], 4)

    def test_undeclared_fill_values_are_refused_and_declared_ones_kept(self):
        field = wave(COUNT)
        for i in range(0, COUNT, 9):
            field[i] = -9999.0
        self.put("a.f32", field.tobytes())
        words = ["compress", "-t", "f32", "-b", "range:1e-3", "-d", DIMS, "--chunk", "16K", "a.f32"]
        self.fails(BOUND, *words, says=["-9999", "--fill"])
        self.assertEqual(self.names(), ["a.f32"])
        self.fz(*words, "--fill", "-9999")
        self.fz("decompress", "-o", "b.f32", "a.f32.fzm")
        back = self.values("b.f32")
        self.assertTrue(all(back[i] == -9999.0 for i in range(0, COUNT, 9)))
        info = one(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.assertEqual(info["missing"]["count"], len(range(0, COUNT, 9)))

    def test_verify_checks_before_the_file_has_its_name(self):
        _, name = self.chunked("-f", "-b", "abs:1e-3")
        message = self.fz("compress", "-f", "-b", "abs:1e-3", "--verify", "-d", DIMS, "--chunk", "16K", "a.f32").stderr
        self.assertIn(b"verified", message)
        self.fails(BOUND, "verify", "-b", "abs:1e-6", name, "a.f32", says=["values break"])
        self.put("short.f32", self.get("a.f32")[:-400])
        self.fails(BOUND, "verify", name, "short.f32", says=["is it the right original"])

    def test_extents_and_none(self):
        self.chunked("-b", "abs:1e-3", chunk="40x10x5")
        info = one(self.fz("info", "--json", "a.f32.fzm").stdout)
        self.assertEqual(info["chunks"], {"count": 15, "absent": 0, "shape": [5, 10, 40]})
        self.fz("compress", "-f", "-b", "abs:1e-3", "-d", DIMS, "--chunk", "none", "a.f32")
        self.assertIsNone(one(self.fz("info", "--json", "a.f32.fzm").stdout)["chunks"])
        for wrong in ("0", "4Q", "-3"):
            self.fails(USAGE, "compress", "-f", "-d", DIMS, f"--chunk={wrong}", "a.f32", says=["--chunk"])
        for wrong in ("x", "40x0x5"):
            self.fails(USAGE, "compress", "-f", "-d", DIMS, "--chunk", wrong, "a.f32", says=["extents"])
        self.fails(USAGE, "compress", "-f", "-d", DIMS, "--chunk", "40x10", "a.f32", says=["2 axes"])

    def test_one_chunk_is_a_plain_frame(self):
        field, name = self.chunked("-b", "abs:1e-3", chunk="64M")
        self.fz("compress", "-b", "abs:1e-3", "-d", DIMS, "-o", "b.fzm", "a.f32")
        self.assertEqual(self.get(name), self.get("b.fzm"))

    def test_memory_limit_makes_chunks_smaller(self):
        field = wave(4 << 20)
        self.put("a.f32", field.tobytes())
        self.fz("compress", "-b", "abs:1e-3", "--chunk", "none", "-o", "one.fzm", "a.f32")
        self.fails(MEMORY, "compress", "-b", "abs:1e-3", "--chunk", "8M", "--max-memory", "2M", "a.f32", says=["--max-memory", "--chunk"])

    def test_streams_of_unknown_length(self):
        field = wave(100000)
        piped = self.fz("compress", "-t", "f32", "-b", "abs:1e-3", "--chunk", "64K", "-", stdin=field.tobytes()).stdout
        self.put("a.fzm", piped)
        self.fz("decompress", "-o", "b.f32", "a.fzm")
        self.assertLessEqual(max_error(field, self.values("b.f32")), 1e-3)
        back = self.fz("decompress", "-", stdin=piped).stdout
        self.assertEqual(back, self.get("b.f32"))
        self.fails(USAGE, "compress", "-t", "f32", "-b", "abs:1e-3", "--chunk", "64K", "-", stdin=field.tobytes()[:-1], says=["inside a row"])
        self.fails(USAGE, "compress", "-t", "f32", "-b", "abs:1e-3", "--chunk", "64K", "-d", "1000x99", "-", stdin=field.tobytes(), says=["more values"])
        self.fails(USAGE, "compress", "-t", "f32", "-b", "abs:1e-3", "--chunk", "64K", "-d", "1000x101", "-", stdin=field.tobytes(), says=["404000 bytes"])

    def test_results_are_of_the_whole_archive(self):
        field = wave(COUNT)
        self.put("a.f32", field.tobytes())
        for kind, value in (("psnr", 60), ("ratio", 6)):
            said = self.fz("compress", "-f", "-b", f"{kind}:{value}", "--chunk", "16K", "a.f32").stderr.decode()
            self.assertRegex(said, rf"{kind}:{value} by abs:[0-9.e-]+: {kind}:[0-9.]+ \((1 trial|\d trials)\)")
            info = one(self.fz("info", "--json", "a.f32.fzm").stdout)
            self.assertGreater(info["chunks"]["count"], 1)
            report = one(self.fz("verify", "--json", "a.f32.fzm", "a.f32").stdout)
            reached = report["psnr"] if kind == "psnr" else info["original_bytes"] / info["archive_bytes"]
            self.assertGreaterEqual(reached, value)
        self.fails(BOUND, "compress", "-f", "-b", "ratio:1e7", "--chunk", "16K", "-o", "b.fzm", "a.f32", says=["no bound reaches"])
        self.assertNotIn("b.fzm", self.names())

    def test_results_and_reports_of_a_pipe_need_the_whole(self):
        field = wave(COUNT)
        piped = ("compress", "-t", "f32", "-b", "psnr:60")
        self.fails(USAGE, *piped, "--chunk", "16K", "-", stdin=field.tobytes(), says=["--chunk none"])
        self.put("a.fzm", self.fz(*piped, "-", stdin=field.tobytes()).stdout)
        self.put("a.f32", field.tobytes())
        self.assertGreaterEqual(one(self.fz("verify", "--json", "a.fzm", "a.f32").stdout)["psnr"], 60)

    def test_hdf5_datasets(self):
        if not cli_support.MAKE_HDF5:
            self.skipTest("no HDF5")
        subprocess.run([os.path.abspath(cli_support.MAKE_HDF5), "a.h5"], cwd=self.folder, check=True)
        names = subprocess.run([os.path.abspath(cli_support.BINARY), "compress", "a.h5"], cwd=self.folder, capture_output=True).stderr.decode()
        dataset = next(w.strip("',;") for w in names.split() if w.startswith("/"))
        self.fz("compress", "-b", "abs:1e-3", "--fill", "none", "--chunk", "none", "-o", "one.fzm", f"a.h5:{dataset}")
        self.fz("compress", "-b", "abs:1e-3", "--fill", "none", "--chunk", "1K", "-o", "many.fzm", f"a.h5:{dataset}")
        self.fz("verify", "many.fzm", f"a.h5:{dataset}")
        self.fz("decompress", "-o", "one.npy", "one.fzm")
        self.fz("convert", "many.fzm", "many.npy")
        self.assertEqual(self.get("one.npy")[:128], self.get("many.npy")[:128])

    def test_encoding_again_knows_the_bound_and_the_fill_values_of_the_whole(self):
        field = wave(30000)
        field[::4] = array.array("f", [-9999] * len(field[::4]))
        self.put("a.f32", field)
        self.fz("compress", "-q", "-b", "abs:1e-3", "--fill", "-9999", "--chunk", "256x10", "-d", "300x100", "a.f32")
        said = self.fz("convert", "-b", "range:1e-2", "a.f32.fzm", "b.fzm").stderr.decode()
        self.assertIn(f" {len(self.get('a.f32.fzm'))} -> ", said)
        self.assertIn("against the original: |x - x''| <= 0.001 + ", said)
        back = array.array("f", self.fz("decompress", "-q", "-c", "b.fzm").stdout)
        self.assertEqual(back[::4], field[::4])

    def test_damage_is_told_by_chunk(self):
        _, name = self.chunked("-b", "abs:1e-3")
        content = bytearray(self.get(name))
        content[len(content) // 2] ^= 1
        self.put(name, bytes(content))
        self.fails(CORRUPT, "test", name, says=["chunk ", " of ", "fz decompress --box"])
        self.fails(CORRUPT, "decompress", "-o", "b.f32", name, says=["chunk "])
        self.assertNotIn("b.f32", self.names())
        self.fz("decompress", "--box", "0:1", "-o", "b.f32", name)


class BoxTest(ChunkCase):
    def test_follows_numpy(self):
        field, name = self.chunked("-b", "abs:1e-3")
        self.fz("decompress", "-f", "-o", "whole.f32", name)
        whole = self.values("whole.f32")
        shape = (25, 30, 40)
        for text, slices in (
            ("0:10,:,20:30", ((0, 10), (0, 30), (20, 30))),
            ("3:4", ((3, 4), (0, 30), (0, 40))),
            (":, 5: ,:-1", ((0, 25), (5, 30), (0, 39))),
            ("-2:,-100:3,0:1000", ((23, 25), (0, 3), (0, 40))),
            ("7,29,:", ((7, 8), (29, 30), (0, 40))),
            ("::1,:,:", ((0, 25), (0, 30), (0, 40))),
        ):
            expected = box_of(whole, shape, slices).tobytes()
            self.fz("decompress", "-f", "--box", text, "-o", "part.f32", name)
            self.assertEqual(self.get("part.f32"), expected, text)
            self.assertEqual(self.fz("decompress", "--box", text, "-o", "-", name).stdout, expected, text)

    def test_npy_has_the_shape_that_numpy_gives(self):
        _, name = self.chunked("-b", "abs:1e-3")
        for text, shape in (("0:10,:,20:30", "(10, 30, 10)"), ("4,:,3:5", "(30, 2)"), ("4,5,6", "()"), ("5:5", "(0, 30, 40)")):
            self.fz("decompress", "-f", "--box", text, "-o", "part.npy", name)
            self.assertIn(f"'shape': {shape}".encode(), self.get("part.npy")[:128])

    def test_works_on_plain_frames(self):
        _, name = self.archive("a.f32", COUNT, "f", "-d", DIMS)
        self.fz("decompress", "-f", "-o", "whole.f32", name)
        self.fz("decompress", "--box", "2:4,3:5,6:9", "-o", "part.f32", name)
        self.assertEqual(self.values("part.f32"), box_of(self.values("whole.f32"), (25, 30, 40), ((2, 4), (3, 5), (6, 9))))

    def test_wrong_boxes(self):
        _, name = self.chunked("-b", "abs:1e-3")
        part = self.fails(USAGE, "decompress", "-f", "--box", "0:1", name, says=["name of the whole array", "-o"])
        self.assertIn("a.f32", part)
        for text in ("1,2,3,4", "a:b", "25", "-26", "0:10:2", "1:2:3:4", "1,,2"):
            self.fails(USAGE, "decompress", f"--box={text}", "-o", "p", name, says=["--box"])


class RecoverTest(ChunkCase):
    def test_saves_what_is_before_the_cut(self):
        field, name = self.chunked("-b", "abs:1e-3", chunk="40x30x5")
        content = self.get(name)
        self.fz("decompress", "-f", "-o", "whole.f32", name)
        self.put("b.fzm.part", content[: len(content) * 3 // 5])
        message = self.fails(CORRUPT, "decompress", "-o", "c.f32", "b.fzm.part", says=["fz recover"])
        self.assertNotIn("restore it", message)
        message = self.fz("recover", "b.fzm.part").stderr.decode()
        self.assertRegex(message, r"\b1[05] of at least 25 values")
        self.fz("decompress", "-o", "c.f32", "b.fzm")
        part = self.get("c.f32")
        self.assertGreater(len(part), 0)
        self.assertEqual(part, self.get("whole.f32")[: len(part)])
        self.fails(IO, "recover", "b.fzm.part", says=["exists", "-f"])
        self.fails(USAGE, "recover", "b.fzm", says=["-o"])
        self.put("absent.fzm", b"")
        self.fails(IO, "recover", "absent.fzm.part", says=["cannot open"])
        self.fails(CORRUPT, "recover", "-o", "x.fzm", "a.f32", says=["no complete chunk", "only archives of chunks"])

    def test_a_killed_run_leaves_a_part_that_can_be_recovered(self):
        command = [os.path.abspath(cli_support.BINARY), "compress", "-q", "-t", "f32", "-b", "abs:1e-3", "--chunk", "256K", "-o", "a.fzm", "-"]
        with subprocess.Popen(command, cwd=self.folder, stdin=subprocess.PIPE) as process:
            field = wave(1 << 20)
            process.stdin.write(field.tobytes())
            process.stdin.flush()
            part = Path(self.folder) / "a.fzm.part"
            for _ in range(500):
                if part.exists() and part.stat().st_size > 100000:
                    break
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(self.names(), ["a.fzm.part"])
        self.fails(IO, "compress", "-t", "f32", "-b", "abs:1e-3", "--chunk", "256K", "-o", "a.fzm", "-", stdin=b"\0" * 4000000, says=["cut off"])
        self.fz("recover", "a.fzm.part")
        self.fz("decompress", "a.fzm", "-o", "a.f32")
        back = self.values("a.f32")
        self.assertGreater(len(back), 0)
        self.assertLessEqual(max_error(field[: len(back)], back), 1e-3)


class ShapeTest(CliCase):
    def test_all_axes_survive(self):
        for shape in ((2, 3, 4, 5, 6), (1, 6, 7), (7, 1), (), (0, 5), (1, 1, 1, 1, 1, 1, 1, 3)):
            count = 1
            for extent in shape:
                count *= extent
            name = "a.npy"
            text = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
            self.put(name, npy(wave(count), text))
            self.fz("compress", "-f", "-b", "abs:1e-3", name)
            self.assertEqual(one(self.fz("info", "--json", name + ".fzm").stdout)["shape"], list(shape))
            self.fz("decompress", "-f", "-o", "b.npy", name + ".fzm")
            self.assertIn(f"'shape': {text}".encode(), self.get("b.npy")[:128])

    def test_nine_axes_are_refused(self):
        self.put("a.npy", npy(wave(1), (1,) * 9))
        self.fails(USAGE, "compress", "a.npy", says=["9 axes"])
        self.put("a.f32", wave(24).tobytes())
        self.fz("compress", "-d", "2x3x2x2", "a.f32")
        self.fails(USAGE, "compress", "-f", "-d", "x".join("1" * 8 + "9"), "a.f32", says=["one to eight"])
