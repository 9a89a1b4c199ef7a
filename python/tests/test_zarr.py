"""Zarr 3 and 2, as their users call them."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import zarr
from conftest import rough, same_bits, wave

import fz
import fz.numcodecs
import fz.zarr


def within(back, field, bound):
    finite = np.isfinite(field)
    difference = back[finite].astype("f8") - field[finite].astype("f8")
    return np.abs(difference).max() <= bound and same_bits(back[~finite], field[~finite])


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
@pytest.mark.parametrize("preset", [None, "cuszp2", "cusz"])
def test_values_come_back_within_the_bound(tmp_path, dtype, preset):
    field = rough((45, 70), "f8").astype(dtype)
    array = zarr.create_array(
        tmp_path / "a.zarr", data=field, chunks=(20, 30), **fz.zarr.codecs("abs:1e-3", preset)
    )
    native = "=" + dtype[-2:]
    assert within(array[:].astype(native), field.astype(native), 1e-3)
    part = zarr.open_array(tmp_path / "a.zarr")[3:30, 5:60]
    assert same_bits(part.astype(native), array[3:30, 5:60].astype(native))


FILLS = [np.nan, np.inf, -9999.0, 9.96921e36, 0.1, 0.0]


@pytest.mark.parametrize("bound", ["abs:3e-2", "rel:1e-3", "range:1e-3"])
@pytest.mark.parametrize("fill", FILLS)
def test_fill_values_survive_bit_for_bit(fill, bound):
    array = zarr.create_array(
        {}, shape=(30, 30), chunks=(16, 16), dtype="f4", fill_value=fill, **fz.zarr.codecs(bound)
    )
    array[:10, :10] = wave((10, 10))  # the rest of the chunk is fill value
    expected = np.full((30, 30), fill, "f4")
    assert same_bits(array[:][10:], expected[10:])
    assert same_bits(array[:][:10, 10:], expected[:10, 10:])
    # The fill value does not count for the range of the data.
    assert np.abs(array[:10, :10] - wave((10, 10))).max() <= (3e-2 if bound[0] == "a" else 3e-3)


def sea(shape=(40, 60), fill=-9999.0):
    field = np.linspace(271, 305, int(np.prod(shape))).astype("f4").reshape(shape)
    field[:, ::4] = fill
    return field


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_fill_value_that_nobody_named_is_refused_where_it_sets_the_range(zarr_format):
    def write(bound, **options):
        if zarr_format == 3:
            codecs = fz.zarr.codecs(bound, **options)
        else:
            codecs = {"compressors": fz.numcodecs.FZ(bound, **options), "zarr_format": 2}
        array = zarr.create_array(zarr.storage.MemoryStore(), data=sea(), chunks=(20, 60), **codecs)
        return array[:]

    with pytest.raises(fz.FillValueError, match="-9999 occurs 300 times in 1200 values"):
        write("range:1e-3")
    assert np.abs(write("abs:0.034") - sea()).max() <= 0.034
    back = write("range:1e-3", exact=[-9999.0])
    land = sea() == -9999.0
    assert (back[land] == -9999.0).all()
    assert np.abs(back - sea()).max() <= 0.034


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zeros_that_pad_a_chunk_do_not_set_its_range(zarr_format):
    field = 1e5 + sea((45, 70), 290)
    codecs = fz.zarr.codecs("range:1e-3")
    if zarr_format == 2:
        codecs = {"compressors": fz.numcodecs.FZ("range:1e-3"), "zarr_format": 2}
    array = zarr.create_array(
        zarr.storage.MemoryStore(), data=field, chunks=(20, 30), fill_value=0, **codecs
    )
    assert np.abs(array[:] - field).max() <= 0.034
    with pytest.raises(fz.FillValueError):  # where other numbers do it is no padding
        array[:20, :30] = sea((20, 30), -1e6)


def test_a_mask_of_nan_costs_next_to_nothing():
    field = np.round(20 * np.sin(np.arange(60_000) / 40)).astype("f4").reshape(200, 300)
    filled = field.copy()
    field[:, 100:200] = np.nan
    sizes = []
    for data in (field, filled):
        store = zarr.storage.MemoryStore()
        options = fz.zarr.codecs("range:1e-4")
        array = zarr.create_array(store, data=data, chunks=(200, 300), **options)
        assert same_bits(np.isnan(array[:]), np.isnan(data))
        assert np.nanmax(np.abs(array[:] - data)) <= 4e-3
        sizes.append(sum(len(part) for name, part in store._store_dict.items() if "/0/0" in name))
    assert sizes[0] < sizes[1] + 1024


def test_what_may_have_a_fill_value_is_never_taken_for_sound():
    """The test that a GPU does first is a weaker form of the library's own."""
    sound = [np.linspace(0, 1, 50), np.append(np.linspace(0, 1, 50), [9.0, 9.0, np.nan])]
    for field in sound:
        assert not fz._chunks._may_have_fill(field)
    doubtful = [sea(), np.array([1.0, 2.0]), np.append(np.linspace(0, 1, 50), [1e300, -1e308])]
    for field in doubtful:
        assert fz._chunks._may_have_fill(field)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_chunks_are_kept_bit_for_bit_under_a_range_bound(dtype):
    data = np.full((40, 50), 2.5e-4, dtype)
    data[:20] = np.linspace(0, 1e6, 1000).reshape(20, 50)
    array = zarr.create_array(
        zarr.storage.MemoryStore(), data=data, chunks=(20, 50), **fz.zarr.codecs("range:1e-3")
    )
    assert (array[20:] == data[20:]).all()



@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_other_missing_values_can_be_exact_too(dtype):
    field = wave((40, 50), dtype)
    field[::3], field[1::3] = -9999.1, 0.3
    array = zarr.create_array(
        {}, data=field, chunks=(20, 25), **fz.zarr.codecs("rel:1e-2", exact=[-9999.1, 0.3])
    )
    assert same_bits(array[::3], field[::3]) and same_bits(array[1::3], field[1::3])
    codec = fz.numcodecs.FZ("rel:1e-2", exact=[-9999.1, 0.3])
    back = codec.decode(codec.encode(field))
    assert same_bits(back[::3], field[::3]) and same_bits(back[1::3], field[1::3])


def test_markers_in_the_data_are_refused_rather_than_changed():
    field = wave((10,))
    field.view("u4")[4] = 0x7FC0F500
    with pytest.raises(ValueError, match="payload"):
        fz.numcodecs.FZ("abs:1e-3", exact=[5.0]).encode(field)
    codec = fz.numcodecs.FZ("abs:1e-3")
    assert codec.decode(codec.encode(field)).view("u4")[4] == 0x7FC0F500


def test_a_chunk_is_an_ordinary_frame(tmp_path):
    field = wave((20, 30))
    zarr.create_array(
        tmp_path / "a.zarr", data=field, chunks=field.shape, **fz.zarr.codecs("abs:1e-3", "cuszp2")
    )
    frame = (tmp_path / "a.zarr" / "c" / "0" / "0").read_bytes()
    assert frame == fz.compress(field, "abs:1e-3", "cuszp2")


def test_metadata_name_the_codec_and_its_bound(tmp_path):
    zarr.create_array(
        tmp_path / "a.zarr", shape=(9,), dtype="f4", **fz.zarr.codecs("range:1e-4", threads=3)
    )
    text = (tmp_path / "a.zarr" / "zarr.json").read_text()
    assert json.loads(text)["codecs"] == [
        {"name": "fz.frame", "configuration": {"bound": "range:1e-4", "fallback": "pfpl"}}
    ]


def test_readers_need_no_import(tmp_path):
    """The entry points are enough, for both formats."""
    field = wave((20, 30))
    zarr.create_array(tmp_path / "v3", data=field, **fz.zarr.codecs("abs:1e-3"))
    codec = fz.numcodecs.FZ(bound="abs:1e-3")
    zarr.create_array(tmp_path / "v2", data=field, zarr_format=2, compressors=codec)
    program = """if True:
        import sys, zarr
        a, b = zarr.open_array(sys.argv[1]), zarr.open_array(sys.argv[2])
        assert (a[:] == b[:]).all() and a.shape == (20, 30)
        assert abs(a[:]).max() > 0.5
        """
    subprocess.run([sys.executable, "-c", program, tmp_path / "v3", tmp_path / "v2"], check=True)


def test_shards_hold_frames_too():
    field = rough((64, 64))
    array = zarr.create_array(
        {}, data=field, chunks=(16, 16), shards=(32, 32), **fz.zarr.codecs("abs:1e-3")
    )
    assert within(array[:], field, 1e-3)


def test_four_dimensional_chunks_keep_their_shape():
    field = wave((4, 6, 10, 12))
    array = zarr.create_array({}, data=field, chunks=(2, 3, 5, 12), **fz.zarr.codecs("abs:1e-3"))
    assert array.shape == field.shape and within(array[:], field, 1e-3)


def test_without_a_fallback_a_refused_chunk_is_an_error():
    codecs = fz.zarr.codecs("abs:1e-3", "cuszp2", fallback=None)
    with pytest.raises(fz.BoundViolationError, match="cannot be kept within the bound"):
        zarr.create_array({}, data=rough((30, 30)), **codecs)


def test_damaged_chunks_are_errors(tmp_path):
    zarr.create_array(tmp_path / "a", data=wave((20, 30)), **fz.zarr.codecs("abs:1e-3"))
    chunk = tmp_path / "a" / "c" / "0" / "0"
    whole = bytearray(chunk.read_bytes())
    whole[-3] ^= 4
    chunk.write_bytes(whole)
    with pytest.raises(fz.CorruptError):
        zarr.open_array(tmp_path / "a")[:]
    # A sound frame of another array: never more memory than the chunk has.
    chunk.write_bytes(fz.compress(np.zeros(100_000, "f4"), "abs:1e-3"))
    with pytest.raises(fz.LimitError):
        zarr.open_array(tmp_path / "a")[:]
    chunk.write_bytes(fz.compress(np.zeros(300), "abs:1e-3"))
    with pytest.raises(ValueError, match="float64"):
        zarr.open_array(tmp_path / "a")[:]


def test_arrays_of_other_types_are_refused_when_made():
    with pytest.raises(TypeError, match="bound='lossless'"):
        zarr.create_array({}, shape=(10,), dtype="i4", **fz.zarr.codecs("abs:1e-3"))
    with pytest.raises(ValueError, match="give a bound"):
        fz.zarr.FZ()
    with pytest.raises(fz.InvalidArgumentError, match="presets are"):
        fz.zarr.FZ(bound="abs:1", preset="nothing")


def test_integers_go_through_a_pipeline_of_their_own():
    toml = fz.Pipeline(["Difference", "Bitshuffle", "RZE"]).to_toml("int32")
    values = np.arange(1000, dtype="i4").reshape(10, 100)
    array = zarr.create_array({}, data=values, chunks=(5, 50), **fz.zarr.codecs(toml=toml))
    assert same_bits(array[:], values)


def test_codecs_can_be_pickled():
    for codec in (fz.zarr.FZ(bound="abs:1e-3"), fz.numcodecs.FZ(bound="abs:1e-3")):
        assert pickle.loads(pickle.dumps(codec)) == codec
    assert fz.zarr.FZ.from_dict(fz.zarr.FZ(bound="abs:1").to_dict()) == fz.zarr.FZ(bound="abs:1")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_format_two_works_the_same_way(tmp_path, dtype, order):
    field = rough((45, 70), "f8").astype(dtype)
    codec = fz.numcodecs.FZ(bound="abs:1e-3", preset="cuszp2")
    array = zarr.create_array(
        tmp_path / "a", data=field, chunks=(20, 30), zarr_format=2, compressors=codec, order=order
    )
    assert within(array[:], field, 1e-3)


def test_format_two_refuses_the_other_byte_order():
    codec = fz.numcodecs.FZ(bound="abs:1e-3")
    with pytest.raises(TypeError, match="byte order"):
        zarr.create_array({}, data=wave((9,), ">f4"), zarr_format=2, compressors=codec)


def test_numcodecs_decodes_into_out():
    field = wave((50,))
    codec = fz.numcodecs.FZ(bound="abs:1e-3")
    out = np.empty_like(field)
    codec.decode(codec.encode(field), out=out)
    assert same_bits(out, codec.decode(codec.encode(field)))


def test_the_gpu_class_has_the_same_name():
    fz.zarr.enable_gpu()
    try:
        cls = zarr.registry.get_codec_class("fz.frame")
        assert cls is fz.zarr.FZCuda and cls(bound="abs:1").to_dict()["name"] == "fz.frame"
    finally:
        fz.zarr.enable_gpu(False)
    assert zarr.registry.get_codec_class("fz.frame") is fz.zarr.FZ


@pytest.mark.parametrize(
    "shape, kept",
    [
        ((4, 6, 10, 12), (24, 10, 12)), ((1, 30, 40), (30, 40)), ((1, 1, 5), (5,)), ((5, 1), (5, 1)),
        ((), (1,)), ((0, 5), (0,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [wave, rough])
def test_frames_of_chunks_keep_the_bytes_that_they_had_with_three_axes(shape, kept, make):
    chunk = make(shape)
    frame = fz._chunks.encode(chunk, fz.zarr.FZ("abs:1e-3")._options(), "cpu")
    assert fz.inspect(frame).shape == kept
    assert frame == fz.compress(chunk.reshape(kept), "abs:1e-3")
