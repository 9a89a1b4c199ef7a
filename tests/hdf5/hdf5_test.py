#!/usr/bin/env python3
"""The filter through h5py, the HDF5 tools and netCDF-4. Usage: hdf5_test.py PLUGIN_DIR FZ

Tests of tools that are not installed are skipped, and say so.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import h5py
import numpy as np

PLUGIN_DIR, FZ = sys.argv[1:3]
ROOT = Path(__file__).resolve().parents[2]
BOUND = 1e-3


def load_module():
    """fz.hdf5 by its file: it needs nothing of the package."""
    os.environ.pop("HDF5_PLUGIN_PATH", None)
    os.environ["FZ_HDF5_PLUGIN"] = PLUGIN_DIR
    spec = importlib.util.spec_from_file_location("fz_hdf5", ROOT / "python/fz/hdf5.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fz_hdf5 = load_module()


def field(shape=(30, 40, 50), dtype="f4"):
    z, y, x = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    return (20 * np.sin(x * 0.1) * np.cos(y * 0.07) + z * 0.1).astype(dtype)


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, timeout=120,
        **options,
    ).stdout  # fmt: skip


def needs(tool):
    return unittest.skipUnless(shutil.which(tool), f"{tool} is not installed")


class Hdf5Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name="a.h5", data=None, chunks=(16, 16, 32), **options):
        data = field() if data is None else data
        path = self.folder / name
        with h5py.File(path, "w") as file:
            file.create_dataset("d", data=data, chunks=chunks, **options)
        return path

    def assert_within(self, path, data, bound=BOUND):
        with h5py.File(path, "r") as file:
            error = np.abs(file["d"][...].astype("f8") - data.astype("f8")).max()
        self.assertLessEqual(error, bound)


class Python(Hdf5Case):
    def test_importing_the_module_makes_the_filter_visible(self):
        self.assertTrue(fz_hdf5.is_visible())
        self.assertEqual(str(fz_hdf5.plugin_directory()), PLUGIN_DIR)

    def test_keyword_arguments_write_a_dataset_within_its_bound(self):
        for dtype in ("f4", "f8"):
            for preset in ("pfpl", "cuszp2", "cusz"):
                data = field(dtype=dtype)
                path = self.write(data=data, **fz_hdf5.filter("abs:1e-3", preset))
                self.assert_within(path, data)
                with h5py.File(path) as file:
                    self.assertLess(file["d"].id.get_storage_size(), data.nbytes * 0.6)

    def test_no_bound_means_lossless_for_every_type(self):
        for dtype in ("i1", "u2", "i4", "u8", "f2", "f4", ">f4", ">i8", "f8", "?"):
            data = field(dtype="f4").astype(dtype)
            path = self.write(data=data, **fz_hdf5.filter())
            with h5py.File(path) as file:
                self.assertEqual(file["d"][...].tobytes(), data.tobytes(), dtype)

    def test_nan_and_fill_values_come_back_bit_for_bit(self):
        data = field()
        data[3, 4, 5:20] = np.float32(np.nan)
        data[7:9] = np.float32(-9999.0)
        options = fz_hdf5.filter("range:1e-4", "cuszp2")
        path = self.write(data=data, fillvalue=-9999.0, **options)
        with h5py.File(path) as file:
            back = file["d"][...]
        special = np.isnan(data) | (data == -9999)
        np.testing.assert_array_equal(back.view("u4")[special], data.view("u4")[special])
        self.assertLessEqual(np.abs(back[~special] - data[~special]).max(), 1e-4 * 50)

    def test_strict_refuses_a_number_that_the_preset_cannot_keep(self):
        data = field()
        data[0, 0, 0] = 1e30
        with h5py.File(self.folder / "s.h5", "w") as file:
            options = fz_hdf5.filter("abs:1e-3", "cuszp2", strict=True)
            dataset = file.create_dataset("d", data.shape, "f4", chunks=data.shape, **options)
            # HDF5 keeps chunks for a while, so the filter may run only now.
            with self.assertRaisesRegex(Exception, "cannot be kept|filter returned failure"):
                dataset[...] = data
                file.flush()
            self.assertIn("cannot be kept within the bound", fz_hdf5.last_error())
            dataset[...] = field()  # what cannot be written must not stay in the cache

    def test_mistakes_are_value_errors_that_say_what_is_allowed(self):
        for arguments, words in (
            ({"bound": "abs:1e-3", "preset": "pfpp"}, "presets are lossless, cuszp"),
            ({"bound": "1e-3"}, "as in abs:1e-3"),
            ({"bound": "abs:x"}, "not a number"),
            ({"bound": "abs:-1"}, "above 0"),
            ({"preset": "pfpl"}, "needs a bound"),
            ({"bound": "abs:1", "preset": "lossless"}, "takes no bound"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                fz_hdf5.filter(**arguments)

    def test_what_is_not_given_is_chosen_as_everywhere_in_fz(self):
        presets = [fz_hdf5.cd_values(bound)[2] for bound in (None, "lossless", "abs:1", "range:1", "rel:1")]
        self.assertEqual(presets, [0, 0, 14, 14, 7])

    def test_a_damaged_chunk_is_an_oserror_and_the_others_stay_readable(self):
        path = self.write(**fz_hdf5.filter("abs:1e-3"))
        with h5py.File(path, "r+") as file:
            mask, chunk = file["d"].id.read_direct_chunk((0, 0, 0))
            bad = bytearray(chunk)
            bad[len(bad) // 2] ^= 1
            file["d"].id.write_direct_chunk((0, 0, 0), bytes(bad), mask)
        with h5py.File(path) as file:
            with self.assertRaisesRegex(OSError, "fz: |filter returned failure"):
                file["d"][0, 0, 0]
            self.assertIn("checksum", fz_hdf5.last_error())
            np.testing.assert_allclose(file["d"][16:, 16:, 32:], field()[16:, 16:, 32:], atol=BOUND)

    def test_a_checksum_filter_may_follow(self):
        path = self.write(fletcher32=True, **fz_hdf5.filter("abs:1e-3"))
        self.assert_within(path, field())

    def test_several_threads_read_at_the_same_time(self):
        path = self.write(**fz_hdf5.filter("abs:1e-3"))
        worst = []

        def read():
            with h5py.File(path) as file:
                for _ in range(5):
                    worst.append(np.abs(file["d"][...] - field()).max())

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(worst), 20)
        self.assertLessEqual(max(worst), BOUND)

    def test_datasets_can_grow(self):
        with h5py.File(self.folder / "grow.h5", "w") as file:
            dataset = file.create_dataset(
                "d", (0, 40, 50), "f4", maxshape=(None, 40, 50), chunks=(4, 40, 50),
                **fz_hdf5.filter("abs:1e-3"),
            )  # fmt: skip
            for step in range(0, 30, 7):
                part = field()[step : step + 7]
                dataset.resize(step + len(part), axis=0)
                dataset[step:] = part
        with h5py.File(self.folder / "grow.h5") as file:
            self.assertLessEqual(np.abs(file["d"][...] - field()).max(), BOUND)

    def test_a_fresh_process_reads_with_the_plugin_path_alone(self):
        path = self.write(**fz_hdf5.filter("abs:1e-3"))
        env = dict(os.environ, HDF5_PLUGIN_PATH=PLUGIN_DIR)
        program = f"import h5py; print(h5py.File('{path}')['d'][0, 0, 0])"
        text = run(sys.executable, "-c", program, env=env)
        self.assertLessEqual(abs(float(text)), BOUND)


@needs("nm")
class Plugin(unittest.TestCase):
    def symbols(self, option):
        lines = run("nm", "-D", option, Path(PLUGIN_DIR) / fz_hdf5.PLUGIN_FILE).splitlines()
        return {line.split()[-1].split("@")[0] for line in lines}

    def test_it_exports_four_functions(self):
        names = {"H5PLget_plugin_type", "H5PLget_plugin_info", "fz_hdf5_cd_values_from_text",
                 "fz_hdf5_last_error"}  # fmt: skip
        self.assertEqual(self.symbols("--defined-only"), names)

    def test_it_links_no_hdf5_and_cannot_end_the_process(self):
        needed = self.symbols("--undefined-only")
        self.assertFalse([name for name in needed if name.startswith("H5")])
        # The runtime of CUDA, where it is part of the plugin, is not ours to judge.
        if b"cudart" not in (Path(PLUGIN_DIR) / fz_hdf5.PLUGIN_FILE).read_bytes():
            self.assertFalse(needed & {"exit", "_exit", "abort", "printf", "puts", "signal"})


TWO_LIBRARIES = """
import sys
import numpy as np
import h5py._debian_h5py_serial as serial
import h5py._debian_h5py_mpi as parallel

plugin_dir, folder = sys.argv[1:]
words = tuple(int(word) for word in "{words}".split(","))
data = np.linspace(0, 1, 10000, dtype="f4")
for turn in range(2):
    for library, name in ((serial, "serial"), (parallel, "parallel")):
        library.h5pl.prepend(plugin_dir.encode())
        path = f"{{folder}}/{{name}}.h5"
        with library.File(path, "w") as file:
            file.create_dataset("d", data=data, chunks=(1000,), compression=62074,
                                compression_opts=words)
        with library.File(path) as file:
            assert np.abs(file["d"][...] - data).max() <= 1e-3
maps = open("/proc/self/maps").read()
assert "libhdf5_serial" in maps and "libhdf5_openmpi" in maps
"""


class OneProcess(Hdf5Case):
    @unittest.skipUnless(
        all(importlib.util.find_spec(f"h5py._debian_h5py_{kind}") for kind in ("serial", "mpi"))
        and importlib.util.find_spec("mpi4py"),
        "not both a serial and a parallel h5py are installed",
    )
    def test_a_serial_and_a_parallel_hdf5_share_the_plugin(self):
        words = ",".join(str(word) for word in fz_hdf5.cd_values("abs:1e-3", "pfpl"))
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        program = TWO_LIBRARIES.format(words=words)
        run(sys.executable, "-c", program, PLUGIN_DIR, self.folder, env=env)


class Frames(Hdf5Case):
    def test_chunks_are_frames_that_the_command_line_decodes(self):
        for preset, bound in (("pfpl", "abs:1e-3"), ("lossless", None)):
            data = field((32, 32, 32))
            path = self.write(data=data, chunks=(16, 32, 32), **fz_hdf5.filter(bound, preset))
            with h5py.File(path) as file:
                _, frame = file["d"].id.read_direct_chunk((16, 0, 0))
            (self.folder / "chunk.fzm").write_bytes(frame)
            run(FZ, "decompress", "-f", self.folder / "chunk.fzm", "-o", self.folder / "chunk.raw")
            values = np.fromfile(self.folder / "chunk.raw", "f4").reshape(16, 32, 32)
            self.assertLessEqual(np.abs(values - data[16:]).max(), BOUND if bound else 0)
            info = run(FZ, "info", self.folder / "chunk.fzm")
            self.assertIn("32 x 32 x 16", info)


class Tools(Hdf5Case):
    def setUp(self):
        super().setUp()
        self.env = dict(os.environ, HDF5_PLUGIN_PATH=PLUGIN_DIR)

    @needs("h5repack")
    def test_h5repack_adds_the_filter_and_takes_it_away(self):
        plain = self.write("plain.h5")
        words = fz_hdf5.cd_values("abs:1e-3", "pfpl")
        text = ",".join(str(word) for word in words)
        option = f"UD={fz_hdf5.FILTER_ID},0,{len(words)},{text}"
        packed, back = self.folder / "packed.h5", self.folder / "back.h5"
        run("h5repack", "-f", option, plain, packed, env=self.env)
        self.assert_within(packed, field())
        with h5py.File(packed) as file:
            self.assertLess(file["d"].id.get_storage_size(), field().nbytes / 2)
        run("h5repack", "-f", "NONE", packed, back, env=self.env)
        self.assert_within(back, field())
        self.assertGreater(back.stat().st_size, field().nbytes)

    @needs("h5repack")
    def test_h5repack_with_words_that_mean_nothing_fails(self):
        plain = self.folder / "plain.h5"
        with h5py.File(plain, "w") as file:
            file["d"] = np.zeros((32, 40, 50), "f4")
        for words in ("1,0,99,0,0,1062232653", "1,0,7,9,0,1062232653", "7,0,7,0,0,1062232653", "1,0,7,0,0,0", "1,0,7"):
            for flag in (0, 1):  # mandatory, and optional, which HDF5 may leave out in silence
                option = f"UD={fz_hdf5.FILTER_ID},{flag},{words.count(',') + 1},{words}"
                packed = self.folder / f"packed_{flag}_{words}.h5"
                done = subprocess.run(
                    ["h5repack", "-l", "CHUNK=32x40x50", "-f", option, plain, packed], env=self.env, capture_output=True
                )
                self.assertNotEqual(done.returncode, 0, option)

    @needs("h5repack")
    def test_h5repack_copies_what_a_preset_does_not_take(self):
        plain, packed = self.folder / "plain.h5", self.folder / "packed.h5"
        with h5py.File(plain, "w") as file:
            file["d"] = np.zeros((32, 40, 50), "f4")
            file["count"] = np.arange(64000, dtype="i4").reshape(32, 40, 50)
        words = ",".join(str(word) for word in fz_hdf5.cd_values("abs:1e-3"))
        run("h5repack", "-l", "CHUNK=32x40x50", "-f", f"UD={fz_hdf5.FILTER_ID},0,6,{words}", plain, packed, env=self.env)
        with h5py.File(packed) as file:
            self.assertEqual(file["d"].id.get_create_plist().get_nfilters(), 1)
            self.assertEqual(file["count"].id.get_create_plist().get_nfilters(), 0)
            np.testing.assert_array_equal(file["count"], np.arange(64000).reshape(32, 40, 50))

    @needs("h5repack")
    def test_h5repack_with_other_chunks_describes_the_new_ones(self):
        path = self.write(**fz_hdf5.filter("abs:1e-3"))
        run("h5repack", "-l", "d:CHUNK=8x40x50", path, self.folder / "b.h5", env=self.env)
        self.assert_within(self.folder / "b.h5", field(), 2 * BOUND)

    @needs("h5dump")
    def test_h5dump_names_the_filter_and_reads_values(self):
        path = self.write(**fz_hdf5.filter("abs:1e-3"))
        text = run("h5dump", "-p", "-d", "/d", "-s", "0,0,0", "-c", "1,1,4", path, env=self.env)
        self.assertIn("FILTER_ID 62074", text)
        self.assertIn("fz", text)
        self.assertIn("(0,0,0)", text)

    @needs("nccopy")
    @needs("ncdump")
    @needs("ncgen")
    def test_netcdf4_writes_and_reads_through_the_filter(self):
        values = field((4, 10, 12))
        values[0, 0, :3] = 9.96921e36
        text = ", ".join(repr(float(v)) for v in values.ravel())
        cdl = (
            "netcdf t { dimensions: z = 4 ; y = 10 ; x = 12 ; variables: float d(z, y, x) ; "
            f"d:_FillValue = 9.96921e+36f ; data: d = {text} ; }}"
        )
        (self.folder / "t.cdl").write_text(cdl)
        plain, packed = self.folder / "t.nc", self.folder / "p.nc"
        run("ncgen", "-4", "-o", plain, self.folder / "t.cdl")
        words = ",".join(str(word) for word in fz_hdf5.cd_values("abs:1e-3", "pfpl"))
        run("nccopy", "-4", "-F", f"d,{fz_hdf5.FILTER_ID},{words}", plain, packed, env=self.env)
        self.assertIn("_Filter", run("ncdump", "-s", "-h", packed, env=self.env))
        dump = run("ncdump", packed, env=self.env)
        self.assertEqual(dump.count("_,"), 3, "three values are missing ones")
        with h5py.File(packed) as file:
            back = file["d"][...]
        np.testing.assert_array_equal(back[0, 0, :3], values[0, 0, :3])
        self.assertLessEqual(np.abs(back - values).max(), BOUND)

    def test_fz_info_says_whether_hdf5_sees_the_plugin(self):
        text = run(FZ, "info", "--hdf5", env=self.env)
        self.assertIn("62074", text)
        self.assertIn(PLUGIN_DIR, text)
        self.assertRegex(text, r"filter:\s+visible")
        hidden = dict(os.environ, HDF5_PLUGIN_PATH=str(self.folder))
        result = subprocess.run([FZ, "info", "--hdf5"], env=hidden, capture_output=True, text=True)
        self.assertRegex(result.stdout, r"filter:\s+not visible")
        self.assertIn("HDF5_PLUGIN_PATH", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
