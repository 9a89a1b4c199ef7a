"""Arrays in, frames, arrays out."""

import subprocess

import numpy as np
import pytest
from conftest import rough, same_bits, wave

import fz

PRESETS = [row["name"] for row in fz.presets() if row["name"] != "lossless"]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_keeps_its_bound(preset, dtype):
    field = wave((20, 30, 40), dtype)
    frame = fz.compress(field, "abs:1e-3", preset)
    back = fz.decompress(frame)
    assert back.dtype == field.dtype and back.shape == field.shape
    assert np.abs(back.astype("f8") - field.astype("f8")).max() <= 1e-3
    assert isinstance(frame, bytes) and len(frame) < field.nbytes


@pytest.mark.parametrize("bound", ["abs:1e-4", "rel:1e-3", "range:1e-5"])
def test_every_kind_of_bound_holds_for_any_data(bound):
    field = rough((50, 60))
    if bound.startswith("range"):
        field[np.isfinite(field) & (field > 1e36)] = 3  # its fill value, which would be refused
    report = fz.verify(fz.compress(field, bound), field, bound)
    assert report.n_violations == 0
    assert report.nan_kept == (np.isnan(field).sum(),) * 2
    assert report.inf_kept == (np.isinf(field).sum(),) * 2


def test_nan_payloads_survive():
    field = np.zeros(100, "f4")
    bits = field.view("u4")
    bits[3], bits[4] = 0x7FC12345, 0x7F800001  # quiet and signalling
    assert same_bits(fz.decompress(fz.compress(field, "abs:1e-3"))[3:5], field[3:5])


SHAPES = [
    (), (7,), (5, 7), (3, 5, 7), (5, 1), (1, 5), (1, 1, 1), (1, 64, 128), (8, 10, 16, 32),
    (2, 1, 2, 1, 3, 1, 4, 1), (0,), (3, 0, 2), (0, 5), (0, 0, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("preset", ["pfpl", "cuszp2", "balanced"])
def test_shapes_come_back(shape, preset):
    field = wave(shape)
    frame = fz.compress(field, "abs:1e-3", preset)
    back = fz.decompress(frame)
    assert back.shape == shape and back.dtype == field.dtype
    assert fz.inspect(frame).shape == shape
    assert fz.decompress(frame, out=np.empty(shape, "f4")).shape == shape
    assert fz.decompress(frame, shape=(field.size,)).shape == (field.size,)
    assert fz.verify(frame, field)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_come_back_with_missing_values_and_without_loss(shape):
    field = rough(shape)
    out = np.empty(field.nbytes + 2000, "u1")
    n = fz.compress(field, "abs:1e-3", out=out)
    assert fz.decompress(out[:n]).shape == shape
    whole = np.arange(field.size, dtype="i4").reshape(shape)
    lossless = fz.Pipeline(["Difference", "Bitshuffle", "RZE"])
    assert same_bits(fz.decompress(lossless.compress(whole)), whole)
    assert lossless.max_compressed_bytes(whole) >= len(lossless.compress(whole))


def test_stages_that_take_bytes_keep_shapes_too():
    field = wave((2, 3, 4, 5))
    back = fz.decompress(fz.Pipeline(["RZE"]).compress(field))
    assert back.tobytes() == field.tobytes()


def test_more_axes_than_a_frame_keeps_are_refused_with_advice():
    with pytest.raises(fz.InvalidArgumentError, match="at most 8 axes.*reshape"):
        fz.compress(np.zeros((1,) * 9, "f4"), "abs:1e-3")


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[::2, ::3],
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(">f4"),
        lambda a: np.broadcast_to(a[0], (4, a.shape[1])),
    ],
    ids=["strided", "transposed", "reversed", "fortran", "big-endian", "broadcast"],
)
def test_other_layouts_give_the_frame_of_their_plain_copy(change):
    field = change(wave((30, 40)))
    plain = np.array(field, "=f4", order="C")
    frame = fz.compress(field, "abs:1e-3")
    assert frame == fz.compress(plain, "abs:1e-3")
    assert fz.decompress(frame).shape == plain.shape


def test_read_only_arrays_lists_and_buffers_are_taken():
    field = wave((100,))
    field.flags.writeable = False
    frame = fz.compress(field, "abs:1e-3")
    assert fz.compress(memoryview(field), "abs:1e-3") == frame
    assert fz.decompress(bytearray(frame)).tolist() == fz.decompress(memoryview(frame)).tolist()
    assert fz.decompress(fz.compress([1.0, 2.0], "abs:1e-3")).dtype == np.float64


def test_results_belong_to_the_caller():
    back = fz.decompress(fz.compress(wave((100,)), "abs:1e-3"))
    back += 1  # writable, and no frame is behind it
    assert back.flags.writeable and back.flags.c_contiguous


def test_contiguous_input_is_not_copied():
    field = np.ones(1000, "f4")
    assert np.shares_memory(fz._arrays.host_array(field), field)
    assert np.shares_memory(fz._arrays.host_array(field.reshape(10, 100)), field)


def test_out_is_filled_in_place():
    field = wave((40, 50))
    frame = fz.compress(field, "abs:1e-3")
    big = np.full((3, 40, 50), 7, "f4")
    assert fz.decompress(frame, out=big[1]).base is big
    assert same_bits(big[1], fz.decompress(frame))
    assert (big[0] == 7).all() and (big[2] == 7).all()
    with pytest.raises(fz.TypeMismatchError, match="float64"):
        fz.decompress(frame, out=np.empty((40, 50)))
    with pytest.raises(fz.BadSizeError, match="out has"):
        fz.decompress(frame, out=np.empty((41, 50), "f4"))
    with pytest.raises(TypeError, match="contiguous"):
        fz.decompress(frame, out=np.empty((50, 40), "f4").T)


def test_frames_can_be_written_into_a_buffer():
    field = wave((40, 50))
    pipeline = fz.Pipeline(preset="pfpl", bound="abs:1e-3")
    room = bytearray(pipeline.max_compressed_bytes(field))
    n_bytes = pipeline.compress(field, out=room)
    assert bytes(room[:n_bytes]) == fz.compress(field, "abs:1e-3", "pfpl")
    with pytest.raises(fz.BufferTooSmallError):
        pipeline.compress(field, out=bytearray(10))


def test_threads_do_not_change_bytes():
    field = wave((200, 300))
    frames = {fz.compress(field, "abs:1e-4", threads=n) for n in (1, 2, 3, 7)}
    assert len(frames) == 1


@pytest.mark.parametrize("dtype", ["f2", "c8", "?", "M8[s]", "O", "U3", ">c16"])
def test_types_that_frames_cannot_hold_are_refused(dtype):
    with pytest.raises(TypeError, match="does not compress"):
        fz.compress(np.zeros(4, dtype), "abs:1e-3")


def test_masks_are_not_lost_in_silence():
    field = np.ma.masked_greater(wave((100,)), 0.5)
    with pytest.raises(TypeError, match="filled"):
        fz.compress(field, "abs:1e-3")
    assert fz.compress(np.ma.array(field.data), "abs:1e-3") == fz.compress(field.data, "abs:1e-3")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_go_through_lossless_pipelines(dtype):
    values = np.arange(5000).astype(dtype).reshape(50, 100)
    pipeline = fz.Pipeline(["Difference", "Bitshuffle", "RZE"])
    frame = pipeline.compress(values)
    assert same_bits(pipeline.decompress(frame), values)
    assert fz.inspect(frame).lossless


def test_the_command_line_tool_reads_and_writes_the_same_frames(tool, tmp_path):
    field = rough((30, 40), "f8")
    np.save(tmp_path / "field.npy", field)
    frame = fz.compress(field, "abs:1e-3")
    command = [tool, "compress", "-b", "abs:1e-3", "field.npy", "-o", "tool.fzm"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "tool.fzm").read_bytes() == frame
    (tmp_path / "python.fzm").write_bytes(frame)
    command = [tool, "decompress", "python.fzm", "-o", "back.npy"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert same_bits(np.load(tmp_path / "back.npy"), fz.decompress(frame))


def test_frames_of_the_golden_collection_decode(repository):
    frames = sorted((repository / "tests" / "golden").glob("*.fzm"))
    assert len(frames) >= 20
    for path in frames:
        info = fz.inspect(path)
        back = fz.decompress(path.read_bytes())
        assert back.nbytes == info.original_bytes and back.dtype == info.dtype


def test_what_would_grow_is_stored_without_loss():
    noise = np.random.default_rng(1).integers(0, 256, 40_000, "u1").view("f4").reshape(100, 100)
    for backend_options in ({}, {"threads": 1}):
        frame = fz.compress(noise, "abs:1e-3", **backend_options)
        assert len(frame) == noise.nbytes + 592
        info = fz.inspect(frame)
        assert info.lossless and info.is_fallback and info.bound.requested == 1e-3
        assert info.shape == noise.shape and info.dtype == noise.dtype
        assert same_bits(fz.decompress(frame), noise)
        assert fz.verify(frame, noise)
    assert len(fz.compress(noise, "abs:1e-3", fallback=False)) > noise.nbytes + 592
    pipeline = fz.Pipeline(preset="pfpl", bound="abs:1e-3")
    assert pipeline.max_compressed_bytes(noise) == noise.nbytes + 592
    assert pipeline.compress(noise) == frame
    assert not fz.inspect(fz.compress(wave((100, 100)), "abs:1e-3")).is_fallback


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_smaller_of_a_lossy_and_a_lossless_frame_is_kept(dtype):
    field = np.round(20 * np.sin(np.arange(60_000) / 40)).astype(dtype).reshape(200, 300)
    field += np.random.default_rng(4).integers(0, 2**20, field.shape) * field.dtype.type(2.0**-20)
    lossy = fz.compress(field, "abs:1e-9", fallback=False)
    room = bytearray(field.nbytes + 592)
    pipeline = fz.Pipeline(preset="pfpl", bound="abs:1e-9")
    frame = fz.compress(field, "abs:1e-9")
    assert frame == pipeline.compress(field) == room[: pipeline.compress(field, out=room)]
    assert len(frame) < len(lossy) and fz.inspect(frame).is_fallback
    assert same_bits(fz.decompress(frame), field) and fz.verify(frame, field)


def sea(dtype="f4", fill=-9999.0):
    """271 to 305, with a fill value in every third place."""
    field = np.linspace(271, 305, 6000).astype(dtype).reshape(60, 100)
    field.reshape(-1)[1::3] = fill
    return field


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("fill", [-9999.0, 1e20, 9.96921e36])
@pytest.mark.parametrize("preset", ["pfpl", "cusz", "cuszp2"])
def test_a_fill_value_that_sets_the_range_is_refused(dtype, fill, preset):
    field = sea(dtype, fill)
    with pytest.raises(fz.FillValueError, match="occurs 2000 times in 6000 values") as caught:
        fz.compress(field, "range:1e-3", preset)
    assert caught.value.code == "fill value" and isinstance(caught.value, ValueError)
    assert "instead of 34" in str(caught.value) and "such as 'abs:0.034'" in str(caught.value)
    pipeline = fz.Pipeline(preset=preset, bound="range:1e-3")
    room = bytearray(b"Z" * (field.nbytes + 592))
    for out in (None, room):
        with pytest.raises(fz.FillValueError):
            pipeline.compress(field, out=out)
    assert bytes(room) == b"Z" * len(room)
    assert fz.verify(fz.compress(field, "abs:0.034"), field)
    field[field == field.dtype.type(fill)] = 290
    assert fz.verify(pipeline.compress(field), field)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("preset", PRESETS)
def test_missing_values_come_back_and_have_no_part_in_the_bound(dtype, preset):
    field = sea(dtype, 290)
    payload = np.array([0x7FC00123], "u4").view("f4")[0]
    field[3:20, 10:30] = -9999
    field[:, 70:] = np.nan
    field[30, :5] = [np.inf, -np.inf, 1e20, payload, -0.0]
    missing = ~np.isfinite(field) | (field == field.dtype.type(-9999)) | (field > 1e19)
    frame = fz.compress(field, "range:1e-3", preset, fill=[-9999, 1e20])
    back = fz.decompress(frame)
    assert same_bits(back[missing], field[missing])
    span = float(field[~missing].max()) - float(field[~missing].min())
    assert np.abs(back[~missing] - field[~missing].astype("f8")).max() <= 1e-3 * span
    found = fz.inspect(frame).missing
    assert found.count == missing.sum() and found.fill == (-9999.0, 1e20)
    pipeline = fz.Pipeline(preset=preset, bound="range:1e-3", fill=(-9999, 1e20))
    assert pipeline.compress(field) == frame


def test_fill_is_a_number_several_or_none():
    field = sea()
    assert fz.inspect(fz.compress(field, "range:1e-3", fill=-9999)).missing.count == 2000
    trusted = fz.compress(field, "range:1e-3", fill="none")
    assert fz.inspect(trusted).missing is None and fz.verify(trusted, field)
    with pytest.raises(fz.InvalidArgumentError, match="'none', not 'land'"):
        fz.compress(field, "range:1e-3", fill="land")
    with pytest.raises(fz.InvalidArgumentError, match="at most 8"):
        fz.compress(field, "range:1e-3", fill=range(9))
    with pytest.raises(TypeError):
        fz.compress(field, pipeline=fz.Pipeline(preset="pfpl"), fill=1)


def test_ranges_that_are_the_fields_own_are_taken():
    clipped = np.clip(np.random.default_rng(3).normal(0.5, 1, 10_000), 0, 1).astype("f4")
    lonely = sea(fill=290)
    lonely[7, 7] = 1e20
    nan = sea(fill=np.nan)
    nan[3] = np.inf
    for field in (clipped, lonely, nan, np.full(1000, -9999.0), np.repeat([0.0, 1.0], 500)):
        assert fz.verify(fz.compress(field, "range:1e-3"), field)


def test_what_calls_keep_for_the_next_one_can_be_given_back():
    values = np.arange(4 << 20, dtype=np.float32)
    frame = fz.compress(values, bound="abs:0.5")
    first = fz.decompress(frame, backend="cpu")
    fz.free_host_memory()  # a result that lives is not touched
    second = fz.decompress(frame, backend="cpu")
    assert np.array_equal(first, second)
    second[:] = 0
    assert np.abs(first - values).max() <= 0.5
