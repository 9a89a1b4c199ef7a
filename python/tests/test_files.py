"""save, load, and what is lossless."""

import os
import stat

import numpy as np
import pytest
from conftest import rough, same_bits, wave

import fz


@pytest.mark.parametrize("shape", [(), (1,), (0, 5), (7,), (1, 40, 50), (2, 3, 4, 5)])
def test_what_was_saved_is_loaded_with_its_shape(shape, tmp_path):
    field = np.resize(wave((4000,)), shape)
    n_bytes = fz.save(tmp_path / "a.fz", field, "abs:1e-3")
    assert n_bytes == os.path.getsize(tmp_path / "a.fz")
    back = fz.load(tmp_path / "a.fz")
    assert back.shape == shape and back.dtype == field.dtype
    assert np.all(np.abs(back - field) <= 1e-3)
    with open(tmp_path / "a.fz", "rb") as file:
        assert same_bits(fz.load(file), back)


def test_a_small_file_is_the_frame_of_compress(tmp_path):
    field = wave((40, 50))
    fz.save(tmp_path / "a.fz", field, "range:1e-3", verify=True)
    assert (tmp_path / "a.fz").read_bytes() == fz.compress(field, "range:1e-3")
    assert fz.verify(tmp_path / "a.fz", field).n_violations == 0


@pytest.mark.parametrize("bound", ["abs:1e-3", "range:1e-3", "lossless", "psnr:60"])
def test_chunks_keep_the_bound_of_the_whole(bound, tmp_path):
    field = wave((40, 50))
    field[30:] *= 100  # a range of chunks would be another
    seen = []
    fz.save(
        tmp_path / "a.fz", field, bound, chunks=(10, 50), progress=lambda *done: seen.append(done)
    )
    archive = fz.open(tmp_path / "a.fz")
    assert archive.chunk_count == 4 and seen[-1] == (field.nbytes, field.nbytes)
    error = np.abs(archive[...].astype("f8") - field).max()
    span = float(field.max()) - float(field.min())
    limit = {"abs:1e-3": 1e-3, "range:1e-3": 1e-3 * span, "lossless": 0, "psnr:60": 0.1 * span}
    assert error <= limit[bound]


def test_a_ratio_is_that_of_the_file_with_its_chunks(tmp_path):
    field = wave((60, 70, 80))
    n_bytes = fz.save(tmp_path / "a.fz", field, "ratio:12", chunks=(6, 70, 80))
    assert field.nbytes / n_bytes >= 12
    assert fz.open(tmp_path / "a.fz").chunk_count == 10
    with pytest.raises(fz.TargetError, match="no bound reaches ratio"):
        fz.save(tmp_path / "b.fz", field, "ratio:1e7", chunks=(6, 70, 80))
    assert not (tmp_path / "b.fz").exists()


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.fz"
    fz.save(path, wave((10,)), "abs:1e-3")
    os.chmod(path, 0o640)
    before = path.read_bytes()
    with pytest.raises(fz.BoundViolationError):
        fz.save(path, np.array([1, 1e30], "f4"), "abs:1e-3", "cuszp2")
    with pytest.raises(fz.IoError, match="there already"):
        fz.save(path, wave((10,)), "abs:1e-2", replace=False)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.fz"]
    fz.save(path, wave((10,)), "abs:1e-2")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    with pytest.raises(fz.IoError, match="No such file"):
        fz.save(tmp_path / "none" / "a.fz", wave((10,)), "abs:1e-2")


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u2", "i4", "u8", ">f4", ">i2"])
def test_lossless_keeps_every_bit_of_every_type(dtype):
    values = np.frombuffer(rough((64, 64)).tobytes(), dtype).reshape(8, -1)
    frame = fz.compress(values, "lossless")
    back = fz.decompress(frame)
    assert back.dtype == values.dtype.newbyteorder("=") and back.shape == values.shape
    assert back.tobytes() == values.astype(back.dtype).tobytes()
    assert frame == fz.compress(values, preset="lossless") and fz.inspect(frame).lossless


def test_a_bound_on_what_has_none_says_what_to_do():
    for values in (np.arange(5), np.ones(5, "u1")):
        with pytest.raises(fz.TypeMismatchError, match="bound='lossless'"):
            fz.compress(values, "abs:1e-3")
    for values in (np.ones(5, bool), np.ones(5, "f2")):
        with pytest.raises(TypeError, match=r"\.view\('uint.*bound='lossless'"):
            fz.compress(values, "lossless")


def test_lossless_is_a_pipeline_of_its_own():
    field = wave((10, 10))
    for settings in (
        {"bound": "lossless", "preset": "pfpl"},
        {"bound": "abs:1e-3", "preset": "lossless"},
        {"bound": "lossless", "toml": "x"},
    ):
        with pytest.raises(fz.InvalidArgumentError, match="lossless"):
            fz.compress(field, **settings)
    with pytest.raises(fz.InvalidArgumentError, match="'lossless'"):
        fz.compress(field)


def test_the_default_preset_is_that_of_the_library():
    field = wave((40, 50))
    assert fz.compress(field, "abs:1e-3") == fz.compress(field, "abs:1e-3", "balanced")
    assert fz.compress(field + 2, "rel:1e-3") == fz.compress(field + 2, "rel:1e-3", "pfpl")
