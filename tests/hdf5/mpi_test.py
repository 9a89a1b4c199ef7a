#!/usr/bin/env python3
"""Parallel HDF5: several ranks write one compressed dataset, another number of ranks reads it.

Usage: mpi_test.py PLUGIN_DIR MPI_HDF5 MPIEXEC
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py

PLUGIN_DIR, PROGRAM, MPIEXEC = sys.argv[1:4]
DAMAGED = 3  # exit code of the example for a dataset that cannot be read

h5py.h5pl.prepend(PLUGIN_DIR.encode())


def ranks(count, *arguments):
    """Runs the example. More ranks than cores, and root in containers, are allowed here only."""
    env = dict(
        os.environ, FZ_HDF5_PLUGIN=PLUGIN_DIR, OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_hwloc_base_binding_policy="none",
    )  # fmt: skip
    return subprocess.run(
        [MPIEXEC, "-n", str(count), PROGRAM, *map(str, arguments)],
        env=env, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def chunks(path):
    """Every chunk as it is stored, by its place."""
    stored = {}
    with h5py.File(path) as file:
        dataset = file["temperature"]
        for i in range(dataset.id.get_num_chunks()):
            place = dataset.id.get_chunk_info(i).chunk_offset
            stored[place] = dataset.id.read_direct_chunk(place)
    return stored


class Mpi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, count, name, *options):
        path = self.folder / name
        result = ranks(count, "write", path, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path

    def assert_read(self, count, path):
        result = ranks(count, "read", path)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_another_number_of_ranks_reads_within_the_bound(self):
        # Neither the planes nor the rows are whole numbers of chunks.
        options = ("-n", "50x60x70", "-c", "8x32x32")
        two = self.write(2, "two.h5", *options)
        four = self.write(4, "four.h5", *options)
        for path, counts in ((two, (1, 3, 4)), (four, (2, 3))):
            for count in counts:
                with self.subTest(path=path.name, ranks=count):
                    self.assert_read(count, path)
        self.assertEqual(chunks(two), chunks(four), "the bytes do not depend on the ranks")

    def test_every_kind_of_preset_is_written_by_all_ranks(self):
        for preset in ("cuszp2", "lossless"):
            with self.subTest(preset=preset):
                self.assert_read(4, self.write(2, f"{preset}.h5", "-p", preset))

    def test_ranks_without_data_take_part(self):
        path = self.write(4, "few.h5", "-n", "16x64x64", "-c", "16x32x32")
        self.assert_read(3, path)

    def test_a_damaged_chunk_is_an_error_on_all_ranks_and_nobody_hangs(self):
        path = self.write(2, "bad.h5")
        place = max(chunks(path))  # belongs to the last rank
        with h5py.File(path, "r+") as file:
            dataset = file["temperature"]
            mask, chunk = dataset.id.read_direct_chunk(place)
            bad = bytearray(chunk)
            bad[len(bad) // 2] ^= 4
            dataset.id.write_direct_chunk(place, bytes(bad), mask)
        for count in (1, 2, 4):
            result = ranks(count, "read", path)
            self.assertEqual(result.returncode, DAMAGED, result.stderr)
            self.assertIn("fz: ", result.stderr)

    def test_a_filter_that_is_missing_is_an_error(self):
        path = self.write(2, "fine.h5")
        env = dict(os.environ, HDF5_PLUGIN_PATH=str(self.folder))
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        env.pop("FZ_HDF5_PLUGIN", None)
        result = subprocess.run(
            [MPIEXEC, "-n", "1", PROGRAM, "read", str(path)],
            env=env, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        self.assertEqual(result.returncode, DAMAGED, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
