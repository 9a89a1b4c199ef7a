"""Cases of `fz convert` and of HDF5 datasets."""

import array
import json
import os
import subprocess
import unittest

import cli_support
from cli_support import BOUND, CORRUPT, IO, MEMORY, USAGE, CliCase, max_error, npy, wave, one

__all__ = ["ConvertArrayTest", "ConvertArchiveTest", "Hdf5Test", "WithoutHdf5Test"]


class ConvertArrayTest(CliCase):
    def test_raw_and_npy_become_each_other(self):
        field = wave(60)
        self.put("a.f32", field)
        message = self.fz("convert", "-d", "5x12", "a.f32", "a.npy").stderr.decode()
        self.assertEqual(message, "a.f32 -> a.npy: float32 5 x 12, 240 bytes\n")
        self.assertIn(b"'shape': (12, 5)", self.get("a.npy"))
        self.fz("convert", "-q", "a.npy", "b.raw")
        self.assertEqual(self.get("b.raw"), field.tobytes())
        self.assertEqual(self.fz("convert", "a.npy", "-").stdout, field.tobytes())
        self.fz("convert", "-t", "f64", "-", "c.npy", stdin=wave(10, "d").tobytes())
        self.assertIn(b"'<f8'", self.get("c.npy"))

    def test_archives_become_arrays(self):
        _, name = self.archive("a.f32", 60, "f", "-d", "5x12")
        self.fz("convert", name, "b.npy")
        self.fz("decompress", "-o", "c.npy", name)
        self.assertEqual(self.get("b.npy"), self.get("c.npy"))

    def test_mistakes(self):
        self.put("a.f32", wave(60))
        self.put("b.f32", wave(60))
        self.fails(IO, "convert", "a.f32", "b.f32", says=["exists", "-f"])
        self.fz("convert", "-f", "a.f32", "b.f32")
        self.fails(USAGE, "convert", "-f", "a.f32", "a.f32", says="input itself")
        self.fails(USAGE, "convert", "a.f32", "a.fzm", says="fz compress -o a.fzm a.f32")
        self.fails(USAGE, "convert", "-p", "cusz", "-b", "range:1e-4", "a.f32", "a.npy", says="end in .fzm")
        self.fails(USAGE, "convert", "-d", "7x7", "a.f32", "a.npy", says="-d 7 x 7")
        self.fails(IO, "convert", "absent.f32", "a.npy", says="absent.f32")
        self.fails(USAGE, "convert", "a.f32", says="fz convert --help")


class ConvertArchiveTest(CliCase):
    def converted(self, first, second):
        """Two bounds, one after the other; gives original, final values and what was said."""
        field = wave(3000)
        self.put("a.f32", field)
        self.fz("compress", "-fq", "-p", "pfpl", "-b", first, "a.f32")
        message = self.fz("convert", "-f", "-p", "speed" if "rel" not in second else "pfpl", "-b", second, "a.f32.fzm", "b.fzm")
        self.fz("decompress", "-fqo", "back.f32", "b.fzm")
        return field, self.values("back.f32"), message.stderr.decode()

    def test_absolute_bounds_add_up(self):
        field, back, said = self.converted("abs:0.01", "abs:0.02")
        self.assertLessEqual(max_error(field, back), 0.01 + 0.02)
        self.assertIn("against the original: |x - x''| <= 0.01 + 0.02 = 0.03", said)
        self.assertEqual(one(self.fz("info", "--json", "b.fzm").stdout)["bound"]["requested"], 0.02)

    def test_relative_bounds_add_up(self):
        field, back, said = self.converted("rel:0.01", "rel:0.02")
        self.assertIn("(0.01 + 0.02 + 0.01 * 0.02) * |x|", said)
        for x, y in zip(field, back):
            self.assertLessEqual(max_error([x], [y]), 0.0302 * abs(x))

    def test_mixed_bounds_are_said_one_after_the_other(self):
        _, _, said = self.converted("rel:0.01", "abs:0.02")
        self.assertIn("the errors add up: |x - x'| <= 0.01 * |x| of the old archive, then |x - x'| <= 0.02", said)

    def test_mistakes(self):
        _, name = self.archive()
        self.fails(USAGE, "convert", name, "b.fzm", says=["-p, -c or --stages", "copy the file"])
        self.put("bad.fzm", self.get(name)[:-1])
        self.fails(CORRUPT, "convert", "-p", "speed", "-b", "range:1e-3", "bad.fzm", "b.fzm", says="damaged")
        self.fails(CORRUPT, "convert", "bad.fzm", "b.npy", says="damaged")
        field = wave(100)
        field[5] = 2.0**100
        self.put("huge.f32", field)
        self.fz("compress", "-q", "huge.f32")
        self.fails(BOUND, "convert", "-p", "cuszp", "-b", "abs:1e-3", "huge.f32.fzm", "b.fzm", says="the first is value 5")
        self.assertNotIn("b.fzm", self.names())


@unittest.skipUnless(cli_support.MAKE_HDF5, "built without HDF5")
class Hdf5Test(CliCase):
    def setUp(self):
        super().setUp()
        subprocess.run([os.path.abspath(cli_support.MAKE_HDF5), str(self.folder / "d.h5")], check=True)

    def read(self, dataset, typecode):
        self.fz("convert", "-fq", f"d.h5:/{dataset}", "v.raw")
        return self.values("v.raw", typecode)

    def test_both_types_and_byte_orders(self):
        self.assertEqual(self.read("f32le", "f"), array.array("f", range(120)))
        self.assertEqual(self.read("f32be", "f"), array.array("f", range(120)))
        self.assertEqual(self.read("f64le", "d"), array.array("d", range(120)))
        self.assertEqual(self.read("deep/er/f64be", "d"), array.array("d", range(120)))

    def test_compress_verify_and_names(self):
        message = self.fz("compress", "-b", "abs:0.1", "--verify", "d.h5:/deep/er/f64be").stderr.decode()
        self.assertIn("f64 (HDF5, stored big-endian), 6 x 5 x 4 (x y z, x fastest) = 120 values", message)
        self.assertIn("d.h5.deep.er.f64be.fzm", self.names())
        self.fz("verify", "d.h5.deep.er.f64be.fzm", "d.h5:/deep/er/f64be")
        self.fails(BOUND, "verify", "d.h5.deep.er.f64be.fzm", "d.h5:/f32le", says="holds float32")

    def test_datasets_that_do_not_fit_are_not_read(self):
        self.fails(MEMORY, "compress", "--max-memory", "100", "--chunk=none", "d.h5:/f64le", says=["holding the dataset", "960 B"])

    def test_fill_values_are_mentioned(self):
        message = self.fz("compress", "-o", "x.fzm", "d.h5:/f32be").stderr.decode()
        self.assertIn("fill value 3 (_FillValue)", message)
        message = self.fz("compress", "-fo", "x.fzm", "d.h5:/f64le").stderr.decode()
        self.assertIn("fill value 7 (fill value of the dataset)", message)
        self.assertNotIn("fill", self.fz("compress", "-fo", "x.fzm", "d.h5:/f32le").stderr.decode())

    def test_the_fill_value_of_a_file_has_no_part_in_the_range(self):
        for preset in ("pfpl", "cusz", "cuszp2"):
            said = self.fz("compress", "-f", "--verify", "-p", preset, "-b", "range:1e-3", "d.h5:/sea").stderr.decode()
            self.assertRegex(said, "bound range:0.001 = 0.03(4|399999)")
            self.assertIn("1000 of 4000 values missing (25.0 %), 1000 of them the fill value -9999", said)
        self.fails(BOUND, "compress", "-f", "--fill", "none", "-b", "abs:1e-9", "-p", "cuszp2", "d.h5:/sea", says="cannot be kept")
        self.fz("compress", "-q", "-f", "--fill", "none", "-b", "range:1e-3", "d.h5:/sea")
        self.fz("compress", "-f", "--verify", "-b", "abs:0.034", "d.h5:/sea")
        self.fz("compress", "--verify", "--set", "value_base=34", "-b", "range:1e-3", "-o", "y.fzm", "d.h5:/sea")

    def test_a_fill_value_that_does_not_occur_is_no_reason(self):
        message = self.fz("compress", "--verify", "-b", "range:1e-3", "d.h5:/water").stderr.decode()
        self.assertIn("fill value -9999 (_FillValue)", message)
        self.assertNotIn("missing", message)
        self.assertIn("verified", message)

    def test_the_fill_value_of_an_archive_or_a_dataset_goes_into_a_new_file(self):
        self.fz("compress", "-q", "-b", "abs:0.1", "-o", "a.fzm", "d.h5:/sea")
        self.fz("convert", "-q", "--decode", "a.fzm", "b.h5:/t")
        self.fz("convert", "-q", "d.h5:/sea", "c.h5:/t")
        for name in ("b.h5:/t", "c.h5:/t"):
            said = self.fz("compress", "--verify", "-b", "range:1e-3", name).stderr.decode()
            self.assertIn("fill value -9999 (_FillValue)", said)

    def test_the_filter_that_is_not_there_is_named(self):
        self.put("a.npy", npy(wave(6000), "(60, 100)"))
        self.fz("compress", "-q", "-b", "abs:0.1", "a.npy")
        self.fz("convert", "-q", "a.npy.fzm", "a.h5:/t")
        without = {**os.environ, "HDF5_PLUGIN_PATH": str(self.folder)}
        self.fails(IO, "compress", "-b", "abs:0.1", "a.h5:/t", says=["filter of fz", "HDF5_PLUGIN_PATH"], env=without)

    def test_new_files_can_be_written(self):
        self.put("a.npy", npy(wave(60), "(12, 5)"))
        self.fz("convert", "a.npy", "new.h5:/fields/t")
        self.fz("convert", "new.h5:/fields/t", "b.npy")
        self.fz("convert", "a.npy", "c.npy")
        self.assertEqual(self.get("b.npy"), self.get("c.npy"))
        self.fails(IO, "convert", "-f", "a.npy", "new.h5:/other", says="never changed")
        self.assertEqual([n for n in self.names() if "tmp" in n], [])

    def test_mistakes(self):
        self.fails(IO, "compress", "d.h5:/f32lee", says=["no such dataset", "did you mean '/f32le'? there are"])
        self.fails(IO, "compress", "d.h5:/nothing_like_it", says="/deep/er/f64be, /")
        self.fails(IO, "compress", "absent.h5:/x", says="no file absent.h5")
        self.fails(USAGE, "compress", "d.h5:/i32", says=["4-byte integers", "convert"])
        self.fails(IO, "compress", "d.h5:/empty", says="has no values")
        self.fails(USAGE, "compress", "d.h5", says=["HDF5 file", "d.h5:/NAME", "/f32le"])
        self.fails(USAGE, "compress", "-t", "f64", "d.h5:/f32le", says="leave -t out")
        self.put("no.h5", b"this is no HDF5 file at all")
        self.fails(IO, "compress", "no.h5:/x", says="not a readable HDF5 file")

    def test_names_without_their_slash(self):
        self.fails(USAGE, "compress", "d.h5:deep/er/f64be", says=["write 'd.h5:/deep/er/f64be'", "it has /deep/er/f64be, /"])
        self.fails(USAGE, "compress", "d.h5:", says=["write 'd.h5:/NAME'", "/f32le"])
        self.fails(USAGE, "convert", "d.h5:f32le", "a.npy", says="write 'd.h5:/f32le'")
        self.fails(USAGE, "convert", "d.h5:/f32le", "new.h5:x", says="write 'new.h5:/x'")
        self.fz("compress", "-q", "-o", "a.fzm", "d.h5:/f32le")
        self.fails(USAGE, "verify", "a.fzm", "d.h5:f32le", says="write 'd.h5:/f32le'")
        self.put("e.h5:x", wave(10))
        self.fz("compress", "-q", "-t", "f32", "e.h5:x")
        self.assertEqual(self.names(), ["a.fzm", "d.h5", "e.h5:x", "e.h5:x.fzm"])

    def test_groups_are_told_from_datasets(self):
        self.fails(IO, "compress", "d.h5:/deep", says=["'/deep': is a group", "/deep/er/f64be"])
        self.fails(IO, "compress", "d.h5:/", says=["is a group", "/f32le"])

    def test_decompress_points_to_convert(self):
        self.fz("compress", "-q", "-o", "a.fzm", "d.h5:/f32le")
        message = self.fails(USAGE, "decompress", "-o", "r.h5:/x", "a.fzm", says="'fz convert --decode a.fzm r.h5:/x'")
        self.fz(*message.split("'")[1].split()[1:])
        self.assertIn("r.h5", self.names())

    def test_a_link_to_no_file_yet_stays_a_link(self):
        (self.folder / "link.h5").symlink_to("real.h5")
        self.fz("convert", "-q", "d.h5:/f32le", "link.h5:/x")
        self.assertTrue((self.folder / "link.h5").is_symlink())
        self.fz("convert", "-q", "real.h5:/x", "x.raw")
        self.assertEqual(self.values("x.raw"), array.array("f", range(120)))

    def test_version_says_so(self):
        self.assertIn(b"with HDF5", self.fz("--version").stdout)


@unittest.skipIf(cli_support.MAKE_HDF5, "built with HDF5")
class WithoutHdf5Test(CliCase):
    def test_it_is_said_what_is_missing(self):
        self.put("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(100))
        self.fails(USAGE, "compress", "a.h5:/x", says=["built without HDF5", ".npy"])
        self.fails(USAGE, "compress", "a.h5", says="built without HDF5")
        self.assertIn(b"without HDF5", self.fz("--version").stdout)
