"""Archives that `fz convert` hands over to Zarr and HDF5, and back, without recoding."""

import subprocess

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr
from conftest import rough, same_bits, wave

import fz
import fz.hdf5
import fz.zarr

SHAPE = (25, 30, 41)
CHUNK = "16x16x10"  # x first; no axis is a multiple


@pytest.fixture
def run(tool, tmp_path):
    def call(*words, code=0):
        done = subprocess.run([tool, *map(str, words)], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == code, done.stderr.decode()
        return done.stderr.decode()

    return call


def archive(run, folder, field, *words, name="a"):
    np.save(folder / f"{name}.npy", field)
    run("compress", "-q", *words, "-o", f"{name}.fzm", f"{name}.npy")
    run("decompress", "-q", "-o", f"{name}.back.npy", f"{name}.fzm")
    return np.load(folder / f"{name}.back.npy")


CASES = {
    "abs": (wave(SHAPE), ["-b", "abs:1e-3"]),
    "range": (wave(SHAPE), ["-b", "range:1e-4", "-p", "cuszp2"]),
    "rel": (1 + rough(SHAPE, "f8"), ["-b", "rel:1e-3"]),
    "lossless": (rough(SHAPE), []),
    "missing": (rough(SHAPE), ["-b", "abs:1e-2", "--fill", "9.96921e36"]),
    "best": (wave(SHAPE), ["-b", "abs:1e-3", "-p", "best"]),
}


@pytest.mark.parametrize("case", CASES)
def test_zarr_and_hdf5_read_what_the_tool_decodes(run, tmp_path, case):
    field, words = CASES[case]
    expected = archive(run, tmp_path, field, *words, "--chunk", CHUNK)
    frames = (tmp_path / "a.fzm").read_bytes()
    run("convert", "a.fzm", "a.zarr")
    run("convert", "a.fzm", "a.zarr.zip")
    run("convert", "a.fzm", "g.zarr:/deep/t")
    run("convert", "a.fzm", "a.h5:/deep/t")
    zipped = zarr.storage.ZipStore(tmp_path / "a.zarr.zip", mode="r")
    for store in (tmp_path / "a.zarr", zipped):
        assert same_bits(zarr.open_array(store, mode="r")[...], expected)
    group = zarr.open_group(tmp_path / "g.zarr", mode="r")
    assert same_bits(group["deep/t"][3:24, :, 39:], expected[3:24, :, 39:])
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["deep/t"].chunks == (10, 16, 16)
        assert same_bits(file["deep/t"][...], expected)
        _, frame = file["deep/t"].id.read_direct_chunk((20, 16, 32))
    assert frame in frames
    for number, name in enumerate(("a.zarr", "a.zarr.zip", "g.zarr:/deep/t", "a.h5:/deep/t")):
        run("convert", name, f"{number}.fzm")
        assert (tmp_path / f"{number}.fzm").read_bytes() == frames


def test_xarray_opens_the_group_and_masks_the_fill_value(run, tmp_path):
    field = 280 + wave((20, 31))
    field[3:7, 5:20] = -9999
    expected = archive(run, tmp_path, field, "-b", "range:1e-3", "--fill", "-9999", "--chunk", "8x8")
    run("convert", "a.fzm", "a.zarr:/t")
    run("convert", "a.fzm", "a.h5:/t")
    land = field == -9999
    data = xr.open_zarr(tmp_path / "a.zarr", consolidated=False)
    assert (np.isnan(data.t.values) == land).all()
    assert same_bits(data.t.values[~land].astype("f4"), expected[~land])
    raw = xr.open_zarr(tmp_path / "a.zarr", consolidated=False, mask_and_scale=False)
    assert same_bits(raw.t.values, expected)
    pytest.importorskip("h5netcdf")
    with xr.open_dataset(tmp_path / "a.h5", engine="h5netcdf", phony_dims="sort") as data:
        assert (np.isnan(data.t.values) == land).all()


@pytest.mark.parametrize("shape", [(), (1,), (7, 1), (2, 3, 4, 5, 6), (0, 5)])
def test_plain_frames_are_arrays_of_one_chunk(run, tmp_path, shape):
    expected = archive(run, tmp_path, wave(shape), "-b", "abs:1e-3")
    run("convert", "a.fzm", "a.zarr")
    back = zarr.open_array(tmp_path / "a.zarr", mode="r")
    assert same_bits(np.asarray(back[...]), expected)
    run("convert", "a.zarr", "b.fzm")
    if expected.size:
        assert (tmp_path / "b.fzm").read_bytes() == (tmp_path / "a.fzm").read_bytes()
    assert same_bits(fz.decompress(tmp_path / "b.fzm"), expected)
    if shape and expected.size:
        run("convert", "a.fzm", "a.h5:/t")
        with h5py.File(tmp_path / "a.h5") as file:
            assert same_bits(file["t"][...], expected)
    else:
        assert "--decode" in run("convert", "a.fzm", "a.h5:/t", code=1)


def test_chunks_can_be_written_again_and_keep_the_bound(run, tmp_path):
    expected = archive(run, tmp_path, wave(SHAPE), "-b", "abs:1e-3", "--chunk", CHUNK)
    run("convert", "a.fzm", "a.zarr")
    run("convert", "a.fzm", "a.h5:/t")
    new = 3 * wave((5, 30, 9))
    array = zarr.open_array(tmp_path / "a.zarr")
    array[20:, :, 32:] = new
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["t"][20:, :, 32:] = new
    with h5py.File(tmp_path / "a.h5") as file:
        for back in (array[...], file["t"][...]):
            assert np.abs(back[20:, :, 32:].astype("f8") - new).max() <= 1e-3
            assert same_bits(back[:20], expected[:20])
            assert same_bits(back[:, :, :32], expected[:, :, :32])
    for name in ("a.zarr", "a.h5:/t"):
        said = run("convert", "-f", name, "b.fzm")
        assert "2 more were coded anew without loss" in said
        back = fz.decompress(tmp_path / "b.fzm")
        written = zarr.open_array(tmp_path / "a.zarr")[...] if name == "a.zarr" else None
        with h5py.File(tmp_path / "a.h5") as file:
            assert same_bits(back, file["t"][...] if written is None else written)
        assert fz.open(tmp_path / "b.fzm").bound.requested == 1e-3


@pytest.mark.parametrize("bound", ["abs:1e-3", "rel:1e-3", "lossless"])
def test_arrays_of_zarr_and_h5py_become_archives(run, tmp_path, bound):
    field = rough(SHAPE)
    options = {"shape": SHAPE, "chunks": (10, 16, 16), "dtype": "f4"}
    array = zarr.create_array(
        tmp_path / "z.zarr", **options, fill_value=9.96921e36, **fz.zarr.codecs(bound)
    )
    array[...] = field
    run("convert", "z.zarr", "z.fzm")
    assert same_bits(fz.decompress(tmp_path / "z.fzm"), array[...])
    np.save(tmp_path / "original.npy", field)
    run("verify", "z.fzm", "original.npy")
    with h5py.File(tmp_path / "h.h5", "w") as file:
        keys = fz.hdf5.filter(None if bound == "lossless" else bound)
        file.create_dataset("t", data=field, chunks=(10, 16, 16), fillvalue=9.96921e36, **keys)
    run("convert", "h.h5:/t", "h.fzm")
    with h5py.File(tmp_path / "h.h5") as file:
        assert same_bits(fz.decompress(tmp_path / "h.fzm"), file["t"][...])


def test_markers_become_the_values_that_they_stand_for(run, tmp_path):
    exact = [float(-1000 - i) for i in range(12)]  # more than the library takes
    field = wave((20, 20))
    field[::3, ::3] = exact[4]
    array = zarr.create_array(
        tmp_path / "a.zarr", data=field, chunks=(8, 8), **fz.zarr.codecs("range:1e-3", exact=exact)
    )
    run("convert", "a.zarr", "a.fzm")
    back = fz.decompress(tmp_path / "a.fzm")
    assert same_bits(back, array[...])
    assert (back[::3, ::3] == exact[4]).all()


def test_nan_of_any_payload_stay_beside_a_fill_value(run, tmp_path):
    field = wave((20, 20))
    field[0] = -9999
    field.view("u4")[1] = 0x7FC0F500  # what stands for an exact value in chunks of the codec
    expected = archive(run, tmp_path, field, "-b", "abs:1e-3", "--fill", "-9999", "--chunk", "8x8")
    run("convert", "a.fzm", "a.zarr")
    assert same_bits(zarr.open_array(tmp_path / "a.zarr", mode="r")[...], expected)
    run("convert", "a.zarr", "b.fzm")
    assert (tmp_path / "b.fzm").read_bytes() == (tmp_path / "a.fzm").read_bytes()


@pytest.mark.parametrize("dtype", ["i2", "u1", "i8"])
def test_integers(run, tmp_path, dtype):
    field = np.arange(35).astype(dtype).reshape(5, 7)
    with fz.create(
        tmp_path / "a.fzm", field.shape, dtype, chunks=(3, 4), bound="lossless"
    ) as writer:
        writer.append(field)
    run("convert", "a.fzm", "a.zarr")
    run("convert", "a.fzm", "a.h5:/t")
    assert same_bits(zarr.open_array(tmp_path / "a.zarr", mode="r")[...], field)
    with h5py.File(tmp_path / "a.h5") as file:
        assert same_bits(file["t"][...], field)
    for name in ("a.zarr", "a.h5:/t"):
        run("convert", "-f", name, "b.fzm")
        assert (tmp_path / "b.fzm").read_bytes() == (tmp_path / "a.fzm").read_bytes()


def test_a_chunk_beyond_the_array_is_padded_with_the_fill_value(run, tmp_path):
    archive(run, tmp_path, wave((10,)), "-b", "abs:1e-3", "--chunk", "8")
    run("convert", "a.fzm", "a.zarr")
    array = zarr.open_array(tmp_path / "a.zarr")
    array.resize((16,))
    assert np.isnan(array[10:]).all()


def test_a_damaged_chunk_leaves_the_others(run, tmp_path):
    expected = archive(run, tmp_path, wave(SHAPE), "-b", "abs:1e-3", "--chunk", CHUNK)
    run("convert", "a.fzm", "a.zarr")
    chunk = tmp_path / "a.zarr" / "c" / "1" / "0" / "2"
    frame = bytearray(chunk.read_bytes())
    for content in (b"", b"nothing", bytes(frame[:-1]), bytes(frame[:-9]) + b"\xff" * 9,
                    (tmp_path / "a.zarr" / "c" / "0" / "0" / "0").read_bytes()):  # fmt: skip
        chunk.write_bytes(content)
        said = run("convert", "a.zarr", "b.fzm", code=3)
        assert "chunk 8 of 18, [10:20, 0:16, 32:41]" in said
        assert not (tmp_path / "b.fzm").exists()
        array = zarr.open_array(tmp_path / "a.zarr", mode="r")
        assert same_bits(array[:10], expected[:10])
    chunk.unlink()
    assert "chunk 8 of 18" in run("convert", "a.zarr", "b.fzm", code=3)


def test_a_damaged_chunk_of_hdf5_leaves_the_others(run, tmp_path):
    expected = archive(run, tmp_path, wave(SHAPE), "-b", "abs:1e-3", "--chunk", CHUNK)
    run("convert", "a.fzm", "a.h5:/t")
    with h5py.File(tmp_path / "a.h5") as file:
        _, first = file["t"].id.read_direct_chunk((0, 0, 0))
        _, frame = file["t"].id.read_direct_chunk((10, 0, 32))
    for content in (b"nothing", frame[:-1], frame[:-9] + b"\xff" * 9, first):
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["t"].id.write_direct_chunk((10, 0, 32), content)
        said = run("convert", "a.h5:/t", "b.fzm", code=3)
        assert "chunk 8 of 18, [10:20, 0:16, 32:41]" in said
        with h5py.File(tmp_path / "a.h5") as file:
            assert same_bits(file["t"][:10], expected[:10])
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["t"].id.write_direct_chunk((10, 0, 32), bytes(16 * 16 * 10 * 4), filter_mask=1)
    assert "without the filter" in run("convert", "a.h5:/t", "b.fzm", code=3)


def test_frames_of_a_larger_chunk_are_refused_by_the_codec(run, tmp_path):
    archive(run, tmp_path, wave((20, 20)), "-b", "abs:1e-3", "--chunk", "16x16")
    archive(run, tmp_path, wave((20, 20)), "-b", "abs:1e-3", "--chunk", "8x8", name="b")
    run("convert", "a.fzm", "a.zarr")
    run("convert", "b.fzm", "b.zarr")
    (tmp_path / "b.zarr/c/0/0").write_bytes((tmp_path / "a.zarr/c/0/0").read_bytes())
    array = zarr.open_array(tmp_path / "b.zarr", mode="r")
    with pytest.raises(fz.Error):
        array[:8, :8]
    array[8:, 8:]
