"""Cases of `fz convert` between archives and arrays of Zarr and HDF5 whose chunks are frames."""

import array
import base64
import io
import json
import os
import struct
import subprocess
import unittest
import zipfile

import cli_support
from cli_support import CORRUPT, IO, MEMORY, USAGE, CliCase, wave

__all__ = ["ZarrTest", "ZipTest", "HostileZarrTest", "Hdf5ChunksTest"]

DIMS = "40x30x25"
COUNT = 40 * 30 * 25


class HandoverCase(CliCase):
    def chunked(self, *words):
        self.put("a.f32", wave(COUNT))
        self.fz("compress", "-q", "-d", DIMS, "--chunk", "16x16x10", "-b", "abs:1e-3", *words, "a.f32")
        return "a.f32.fzm"

    def converts_back(self, name, archive="a.f32.fzm"):
        self.fz("convert", "-q", "-f", name, "back.fzm")
        self.assertEqual(self.get("back.fzm"), self.get(archive))


class ZarrTest(HandoverCase):
    def test_frames_are_copied_as_they_are_and_back(self):
        archive = self.get(self.chunked())
        for name in ("a.zarr", "b.zarr/", "g.zarr:/deep/t", "a.zarr.zip", "g.zarr.zip:/t"):
            said = self.fz("convert", "a.f32.fzm", name).stderr.decode()
            self.assertEqual(said, f"a.f32.fzm -> {name}: float32 40 x 30 x 25, 18 frames copied\n")
            self.converts_back(name)
        for number in range(18):
            key = f"c/{number // 6}/{number // 3 % 2}/{number % 3}"
            self.assertIn(self.get(f"a.zarr/{key}"), archive)
            self.assertEqual(self.get(f"a.zarr/{key}"), self.get(f"g.zarr/deep/t/{key}"))

    def test_metadata(self):
        self.chunked("-f")
        for words, bound in ((["-b", "rel:1e-3"], "rel:0.001"), (["-b", "lossless"], "lossless"), (["-b", "abs:1e-3"], "abs:0.001")):
            self.fz("compress", "-fq", "-d", DIMS, "--chunk", "16x16x10", *words, "a.f32")
            name = f"{bound.replace(':', '')}.zarr"
            self.fz("convert", "a.f32.fzm", name)
            about = json.loads(self.get(name + "/zarr.json"))
            self.assertEqual(about["shape"], [25, 30, 40])
            self.assertEqual(about["chunk_grid"]["configuration"]["chunk_shape"], [10, 16, 16])
            self.assertEqual(about["codecs"], [{"name": "fz.frame", "configuration": {"bound": bound, "fallback": "pfpl"}}])
        self.fz("compress", "-fq", "-d", DIMS, "--chunk", "16x16x10", "-b", "range:1e-3", "a.f32")
        self.fz("convert", "a.f32.fzm", "range.zarr")
        (info,) = json.loads(self.fz("info", "--json", "a.f32.fzm").stdout)
        about = json.loads(self.get("range.zarr/zarr.json"))
        self.assertEqual(float(about["codecs"][0]["configuration"]["bound"][4:]), info["bound"]["absolute"])

    def test_the_fill_value_is_the_one_that_the_values_have(self):
        """1e20 is another number as a float, and xarray compares with what stands there."""
        field = wave(600)
        field[::5] = array.array("f", [1e20] * 120)
        self.put("a.f32", field)
        self.fz("compress", "-q", "-b", "range:1e-3", "--fill", "1e20", "a.f32")
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr")
        about = json.loads(self.get("a.zarr/zarr.json"))
        (fill,) = struct.unpack("<d", base64.b64decode(about["attributes"]["_FillValue"]))
        self.assertEqual(fill, field[0])

    def test_plain_frames_are_one_chunk(self):
        _, name = self.archive("p.f32", 60, "f", "-d", "5x12")
        for other in ("p.zarr", "p.zarr.zip"):
            self.fz("convert", "-q", name, other)
            self.converts_back(other, name)
        self.assertEqual(self.get("p.zarr/c/0/0"), self.get(name))

    def test_json_rows(self):
        self.chunked()
        (row,) = json.loads(self.fz("convert", "-q", "--json", "a.f32.fzm", "a.zarr").stdout)
        self.assertEqual((row["code"], row["output"], row["shape"]), (0, "a.zarr", [25, 30, 40]))
        (row,) = json.loads(self.fz("convert", "-q", "--json", "a.f32.fzm", "a.zarr", code=IO).stdout)
        self.assertIn("never changed", row["message"])

    def test_existing_results(self):
        self.chunked()
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr")
        for words in ([], ["-f"]):
            self.fails(IO, "convert", *words, "a.f32.fzm", "a.zarr", says=["exists", "never changed"])
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr.zip")
        self.fails(IO, "convert", "a.f32.fzm", "a.zarr.zip", says=["exists", "-f"])
        self.fz("convert", "-fq", "a.f32.fzm", "a.zarr.zip")
        self.fails(IO, "convert", "a.zarr", "a.f32.fzm", says=["exists", "-f"])

    def test_mistakes(self):
        self.chunked()
        self.fz("convert", "-q", "a.f32.fzm", "g.zarr:/deep/t")
        self.fails(IO, "convert", "absent.zarr", "b.fzm", says="absent.zarr")
        self.fails(IO, "convert", "absent.zarr.zip", "b.fzm", says="absent.zarr.zip")
        self.fails(USAGE, "convert", "g.zarr", "b.fzm", says=["group", "g.zarr:/deep"])
        self.fails(IO, "convert", "g.zarr:/other", "b.fzm", says=["no other/zarr.json", "g.zarr:/deep"])
        self.fails(USAGE, "convert", "a.f32.fzm", "h.zarr:/../x", says="can be called")
        self.fails(USAGE, "convert", "a.f32.fzm", "h.zarr:/", says="can be called")
        self.fails(USAGE, "convert", "g.zarr:/deep/t", "a.npy", says="frames are copied")
        self.fails(USAGE, "convert", "a.f32", "h.zarr", says="frames are copied")
        self.fails(USAGE, "convert", "-p", "speed", "-b", "abs:1", "a.f32.fzm", "h.zarr", says="frames are copied")
        self.fails(USAGE, "decompress", "-o", "h.zarr", "a.f32.fzm", says="'fz convert a.f32.fzm h.zarr'")
        self.assertEqual(self.names(), ["a.f32", "a.f32.fzm", "g.zarr"])

    def test_damaged_archives_leave_nothing(self):
        name = self.chunked()
        content = bytearray(self.get(name))
        content[len(content) // 2] ^= 1
        self.put("bad.fzm", bytes(content))
        for other in ("b.zarr", "b.zarr.zip"):
            message = self.fails(CORRUPT, "convert", "bad.fzm", other)
            self.assertRegex(message, r"chunk \d+ of 18, \[")
        self.assertEqual(self.names(), ["a.f32", "a.f32.fzm", "bad.fzm"])

    def test_results_that_cannot_be_written(self):
        self.chunked()
        for name in ("no/a.zarr", "no/a.zarr.zip", "a.f32.fzm/a.zarr"):
            self.fails(IO, "convert", "a.f32.fzm", name, says="a.zarr")
        os.symlink("real.zarr.zip", self.folder / "link.zarr.zip")
        self.fz("convert", "-q", "a.f32.fzm", "link.zarr.zip")
        self.assertEqual(self.names(), ["a.f32", "a.f32.fzm", "link.zarr.zip", "real.zarr.zip"])
        self.converts_back("link.zarr.zip")

    def test_a_frame_above_the_memory_limit(self):
        self.chunked()
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr")
        self.fails(MEMORY, "convert", "--max-memory", "900", "a.zarr", "b.fzm", says="limit")
        self.fails(MEMORY, "convert", "--max-memory", "2000", "a.f32.fzm", "b.zarr", says="limit")


class ZipTest(HandoverCase):
    def zipped(self, keys, name="b.zarr.zip", method=zipfile.ZIP_STORED):
        """A ZIP file made by somebody else."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as file:
            for key, content in keys.items():
                file.writestr(key, content)
        return self.put(name, out.getvalue())

    def keys(self):
        self.chunked()
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr.zip")
        with zipfile.ZipFile(self.folder / "a.zarr.zip") as file:
            self.assertIsNone(file.testzip())
            return {name: file.read(name) for name in file.namelist()}

    def test_others_read_it_and_theirs_is_read(self):
        keys = self.keys()
        self.assertEqual(len(keys), 19)
        first = self.get("a.zarr.zip")
        self.fz("convert", "-fq", "a.f32.fzm", "a.zarr.zip")
        self.assertEqual(self.get("a.zarr.zip"), first)
        self.converts_back(self.zipped(dict(reversed(keys.items()))))
        self.put("c.zarr.zip", first[:-2] + struct.pack("<H", 5) + b"hello")
        self.converts_back("c.zarr.zip")

    def test_compressed_entries_are_refused(self):
        self.fails(CORRUPT, "convert", self.zipped(self.keys(), method=zipfile.ZIP_DEFLATED), "b.fzm", says="zip -0")

    def test_every_truncation_and_many_flips(self):
        self.keys()
        content = self.get("a.zarr.zip")
        begin = content.index(b"PK\x01\x02")
        for length in [0, 10, 21, 22, begin, *range(begin + 1, len(content), 97)]:
            self.put("t.zarr.zip", content[:length])
            self.fz("convert", "-q", "t.zarr.zip", "t.fzm", code=CORRUPT)
        expected = self.get("a.f32.fzm")
        for at in range(0, len(content), 211):
            self.put("t.zarr.zip", content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
            done = subprocess.run(
                [os.path.abspath(cli_support.BINARY), "convert", "-fq", "t.zarr.zip", "t.fzm"], cwd=self.folder, check=False, timeout=60, capture_output=True
            )
            self.assertIn(done.returncode, (0, USAGE, IO, CORRUPT), at)
            if done.returncode == 0:  # a field that means nothing here, such as a time
                self.assertEqual(self.get("t.fzm"), expected)

    def test_two_entries_of_one_name(self):
        self.keys()
        out = io.BytesIO(self.get("a.zarr.zip"))
        with zipfile.ZipFile(out, "a") as file, self.assertWarns(UserWarning):
            file.writestr("c/0/0/0", b"another")
        self.fails(CORRUPT, "convert", self.put("d.zarr.zip", out.getvalue()), "d.fzm", says="name of another")


class HostileZarrTest(HandoverCase):
    def changed(self, **changes):
        self.put("a.zarr/zarr.json", json.dumps({**self.about, **changes}).encode())

    def setUp(self):
        super().setUp()
        self.chunked()
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr")
        self.about = json.loads(self.get("a.zarr/zarr.json"))

    def refused(self, *says, code=CORRUPT):
        self.fails(code, "convert", "a.zarr", "b.fzm", says=list(says))
        self.assertNotIn("b.fzm", self.names())

    def test_metadata_that_is_none(self):
        for text in (b"", b"{", b"[]", b"null", b'{"zarr_format": 3}', b'{"zarr_format": "3"}', b"[" * 100000, b"\xff\xfe"):
            self.put("a.zarr/zarr.json", text)
            self.refused("zarr.json")

    def test_metadata_that_lies(self):
        grid = lambda *shape: {"name": "regular", "configuration": {"chunk_shape": list(shape)}}
        for changes in (
            {"shape": [25, 30]}, {"shape": [25, 30, -1]}, {"shape": "x"}, {"shape": [1] * 9}, {"shape": [2**63, 2**63, 2]},
            {"chunk_grid": grid(0, 1, 1)}, {"chunk_grid": grid(10, 16, 2.5)}, {"chunk_grid": {}}, {"node_type": 3},
            {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "../"}}}, {"codecs": {}},
            {"chunk_grid": grid(2**63, 2**63, 16)},
        ):  # fmt: skip
            self.changed(**changes)
            self.refused()

    def test_chunks_that_are_not_of_the_array(self):
        for changes in ({"shape": [25, 30, 41]}, {"shape": [26, 30, 40]}, {"shape": [2**40, 30, 40]}, {"data_type": "float64"}, {"data_type": "int32"},
                        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 30, 16]}}}):  # fmt: skip
            self.changed(**changes)
            self.refused("chunk ", " of ")

    def test_what_cannot_be_handed_over(self):
        for changes, says in (
            ({"codecs": [{"name": "bytes"}]}, "fz.frame"),
            ({"codecs": self.about["codecs"] + [{"name": "zstd"}]}, "fz.frame"),
            ({"zarr_format": 2}, "format 3"),
            ({"data_type": "complex64"}, "complex64"),
            ({"data_type": {"name": "numpy.datetime64"}}, "datetime64"),
            ({"chunk_grid": {"name": "rectilinear", "configuration": {}}}, "rectilinear"),
            ({"chunk_key_encoding": {"name": "v2"}}, "v2"),
            ({"storage_transformers": [{"name": "x"}]}, "storage transformers"),
        ):
            self.changed(**changes)
            self.refused(says)

    def test_other_separators_and_larger_chunks_than_the_array(self):
        self.fz("compress", "-q", "-d", "40", "-b", "abs:1e-3", "-o", "s.fzm", "-t", "f32", "-", stdin=wave(40).tobytes())
        self.fz("convert", "-q", "s.fzm", "s.zarr")
        about = json.loads(self.get("s.zarr/zarr.json"))
        about["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "."}}
        about["chunk_grid"]["configuration"]["chunk_shape"] = [1000]
        self.put("s.zarr/zarr.json", json.dumps(about).encode())
        os.rename(self.folder / "s.zarr/c/0", self.folder / "s.zarr/c.0")
        self.converts_back("s.zarr", "s.fzm")

    def test_chunks_that_are_no_frames(self):
        good = self.get("a.zarr/c/1/0/2")
        other = self.get("a.zarr/c/1/0/1")
        self.fz("compress", "-q", "-d", DIMS, "--chunk", "16x16x10", "-b", "abs:2e-3", "-o", "o.fzm", "a.f32")
        self.fz("convert", "-q", "o.fzm", "o.zarr")
        self.fz("compress", "-q", "-o", "whole.fzm", "a.f32")
        for content in (b"", b"no frame", good[:-1], good + b"x", other, self.get("o.zarr/c/1/0/2"), self.get("whole.fzm"), self.get("a.f32.fzm")):
            self.put("a.zarr/c/1/0/2", content)
            self.refused("chunk 8 of 18, [10:20, 0:16, 32:40]")
        os.remove(self.folder / "a.zarr/c/1/0/2")
        self.refused("chunk 8 of 18, [10:20, 0:16, 32:40]", "absent")


@unittest.skipUnless(cli_support.MAKE_HDF5, "built without HDF5")
class Hdf5ChunksTest(HandoverCase):
    def test_frames_are_copied_as_they_are_and_back(self):
        archive = self.get(self.chunked())
        said = self.fz("convert", "a.f32.fzm", "a.h5:/deep/t").stderr.decode()
        self.assertEqual(said, "a.f32.fzm -> a.h5:/deep/t: float32 40 x 30 x 25, 18 frames copied\n")
        self.converts_back("a.h5:/deep/t")
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr")
        content = self.get("a.h5")
        self.assertIn(self.get("a.zarr/c/2/1/2"), content)
        self.assertIn(self.get("a.zarr/c/2/1/2"), archive)

    def test_decode_writes_plain_values(self):
        self.chunked()
        self.fz("convert", "-q", "--decode", "a.f32.fzm", "a.h5:/t")
        self.fz("decompress", "-q", "-o", "v.f32", "a.f32.fzm")
        self.assertIn(self.get("v.f32"), self.get("a.h5"))
        self.fails(USAGE, "convert", "a.h5:/t", "b.fzm", says="fz compress")

    def test_what_hdf5_has_no_chunks_for(self):
        self.put("a.npy", cli_support.npy(wave(1), "()"))
        self.put("b.npy", cli_support.npy(wave(0), "(0, 5)"))
        for name in ("a", "b"):
            self.fz("compress", "-q", f"{name}.npy")
            self.fails(USAGE, "convert", f"{name}.npy.fzm", "x.h5:/t", says="--decode")
        self.assertEqual([name for name in self.names() if name.startswith("x")], [])

    def test_damage(self):
        self.chunked()
        self.fz("convert", "-q", "a.f32.fzm", "a.zarr")
        self.fz("convert", "-q", "a.f32.fzm", "a.h5:/t")
        content = self.get("a.h5")
        frame = self.get("a.zarr/c/1/0/2")
        for bad in (frame[:-1] + bytes([frame[-1] ^ 1]), bytes(len(frame)), b"\x00" + frame[1:]):
            self.put("b.h5", content.replace(frame, bad))
            self.fails(CORRUPT, "convert", "b.h5:/t", "b.fzm", says="chunk 8 of 18, [10:20, 0:16, 32:40]")
        self.fails(IO, "convert", "-f", "a.f32.fzm", "a.h5:/u", says="never changed")
        self.assertNotIn("b.fzm", self.names())
