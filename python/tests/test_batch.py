"""Many arrays in one call: what each call for one gives."""

import numpy as np
import pytest
from conftest import same_bits, wave

import fz

PRESETS = [row["name"] for row in fz.presets() if row["name"] != "lossless"]


def fields():
    made = [wave((20, 30)), wave((7,)), wave((3, 5, 7), "f8"), wave(()), wave((0, 5))]
    made += [wave((20, 30)) * n for n in range(1, 6)]
    gaps = wave((20, 30))
    gaps[3:9] = np.nan
    return [*made, gaps, np.full((4, 4, 4, 4, 4), 2.5, "f4"), wave((40, 30))[::2]]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_frames_and_arrays_are_those_of_single_calls(preset, threads):
    arrays = fields()
    frames = fz.compress_batch(arrays, "abs:1e-3", preset, threads=threads)
    assert frames == [fz.compress(array, "abs:1e-3", preset) for array in arrays]
    back = fz.decompress_batch(frames, threads=threads)
    for array, values, frame in zip(arrays, back, frames):
        assert values.shape == array.shape and values.dtype == array.dtype
        assert same_bits(values, fz.decompress(frame))
        assert values.flags.writeable


def test_lossless_batches_take_any_type():
    arrays = [np.arange(60, dtype=kind).reshape(6, 10) for kind in ("u1", "i2", "u4", "i8", "f8")]
    frames = fz.compress_batch(arrays, "lossless")
    assert all(same_bits(a, b) for a, b in zip(fz.decompress_batch(frames), arrays))


def test_a_pipeline_has_batches():
    pipeline = fz.Pipeline(["Bitshuffle", "RZE"])
    arrays = [wave((20, 30)), wave((9,))]
    assert pipeline.compress_batch(arrays) == [pipeline.compress(array) for array in arrays]
    assert fz.compress_batch(arrays, pipeline=pipeline) == pipeline.compress_batch(arrays)


def test_batches_may_be_empty():
    assert fz.compress_batch([], "abs:1e-3") == []
    assert fz.decompress_batch([]) == []


def test_an_error_of_one_array_leaves_the_others():
    arrays = fields()
    arrays[1] = np.zeros(5, "i4")
    arrays[4] = np.zeros((1,) * 9, "f4")
    arrays[5] = np.where(np.arange(600).reshape(20, 30) % 3, arrays[5], np.float32(-9999))
    made = fz.compress_batch(arrays, "range:1e-3", errors="return")
    assert isinstance(made[1], fz.TypeMismatchError)
    assert isinstance(made[4], fz.InvalidArgumentError)
    assert isinstance(made[5], fz.FillValueError) and "fill=-9999" in str(made[5])
    for i in set(range(len(arrays))) - {1, 4, 5}:
        assert made[i] == fz.compress(arrays[i], "range:1e-3")
    with pytest.raises(fz.TypeMismatchError):
        fz.compress_batch(arrays, "range:1e-3")


def test_a_damaged_frame_leaves_the_others():
    arrays = fields()
    frames = fz.compress_batch(arrays, "abs:1e-3")
    damaged = bytearray(frames[6])
    damaged[-3] ^= 4
    frames[6] = bytes(damaged)
    frames[7] = b"nothing"
    made = fz.decompress_batch(frames, errors="return")
    assert isinstance(made[6], fz.CorruptError) and isinstance(made[7], fz.CorruptError)
    for i in set(range(len(arrays))) - {6, 7}:
        assert same_bits(made[i], fz.decompress(frames[i]))
    with pytest.raises(fz.CorruptError):
        fz.decompress_batch(frames)


def test_limits_hold_for_each_frame():
    frames = fz.compress_batch([wave((20, 30)), wave((200, 30))], "abs:1e-3")
    made = fz.decompress_batch(frames, max_output_bytes=3000, errors="return")
    assert made[0].shape == (20, 30) and isinstance(made[1], fz.LimitError)


def test_paths_and_archives_can_be_among_frames(tmp_path):
    field = wave((60, 50))
    fz.save(tmp_path / "a.fzm", field, "abs:1e-3")
    with fz.create(tmp_path / "b.fzm", (60, 50), "f4", bound="abs:1e-3", chunks=(20, 50)) as writer:
        writer.append(field)
    frame = fz.compress(field, "abs:1e-3")
    made = fz.decompress_batch(
        [frame, tmp_path / "a.fzm", (tmp_path / "b.fzm").read_bytes(), bytearray(frame)]
    )
    assert all(np.abs(values - field).max() <= 1e-3 for values in made)


def test_what_a_batch_cannot_mean_is_refused():
    with pytest.raises(fz.InvalidArgumentError, match="psnr"):
        fz.compress_batch([wave((5, 5))], "psnr:80")
    with pytest.raises(fz.InvalidArgumentError, match="bound"):
        fz.compress_batch([wave((5, 5))])
    with pytest.raises(fz.InvalidArgumentError, match="errors"):
        fz.compress_batch([wave((5, 5))], "abs:1e-3", errors="ignore")
    with pytest.raises(TypeError, match="pipeline"):
        fz.compress_batch([], "abs:1e-3", pipeline=fz.Pipeline(preset="fast", bound="abs:1"))
