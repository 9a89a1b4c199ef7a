"""fz.create, fz.recover, fz.value_range."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import rough, same_bits, wave

import fz


def test_pieces_make_the_same_bytes(tmp_path):
    field = wave((12, 10, 30))
    made = []
    for pieces in ([field], list(field), np.split(field, [1, 5, 11]), [field[:0], field]):
        path = tmp_path / "a.fz"
        with fz.create(path, field.shape, "f4", bound="abs:1e-3", chunks=(5, 10, 8)) as new:
            for piece in pieces:
                new.append(piece)
        made.append(path.read_bytes())
    assert len(set(made)) == 1
    assert np.abs(fz.open(path)[...] - field).max() <= 1e-3


@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_arrays_grow_as_far_as_they_come(tmp_path, n):
    field = wave((12, 10, 30))[:n]
    path = tmp_path / "a.fz"
    with fz.create(path, (None, 10, 30), bound="abs:1e-3", chunks=(5, 10, 30)) as new:
        assert new.grows and new.shape == (None, 10, 30) and new.chunk_count == 0
        for row in field:
            new.append(row)
    a = fz.open(path)
    assert a.shape == (n, 10, 30) and np.abs(a[...] - field).max(initial=0) <= 1e-3


def test_chunks_come_in_any_order_from_any_thread(tmp_path):
    field = wave((9, 20, 30), "f8")
    path = tmp_path / "a.fz"
    with fz.create(path, field.shape, "f8", bound="rel:1e-3", chunks=(4, 20, 13)) as new:
        numbers = list(range(new.chunk_count))[::-1]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda k: new.put(k, field[new.chunk_slices(k)]), numbers[2:]))
        for k in numbers[:2]:
            new.write(new.chunk_slices(k), field[new.chunk_slices(k)])
    a = fz.open(path)
    assert (np.abs(a[...] - field) <= 1e-3 * np.abs(field)).all() and a.bound.kind == "rel"


def test_write_takes_the_place_of_one_chunk(tmp_path):
    with fz.create(tmp_path / "a.fz", (6, 10), bound="abs:1e-3", chunks=(4, 5)) as new:
        for key in np.s_[0:4, 0:6], np.s_[0, 0:5], np.s_[1:5, 0:5], np.s_[0:4:2, 0:5]:
            with pytest.raises(fz.InvalidArgumentError, match=r"one at \[0:4, 0:5\]"):
                new.write(key, np.zeros((4, 5), "f4"))
        new.write(np.s_[4:, 5:], np.ones((2, 5), "f4"))
        for k in range(3):
            new.put(k, np.full(fz._boxes.box_of(new.chunk_slices(k), (6, 10)).shape, k, "f4"))
        with pytest.raises(fz.InvalidArgumentError, match="there already"):
            new.put(0, np.zeros((4, 5), "f4"))
    assert np.round(fz.open(tmp_path / "a.fz")[::4, ::5]).tolist() == [[0, 1], [2, 1]]


def test_an_exception_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        with fz.create(tmp_path / "a.fz", (6, 10), bound="abs:1e-3", chunks=(2, 10)) as new:
            new.append(np.zeros((4, 10), "f4"))
            assert os.listdir(tmp_path) == ["a.fz.part"]
            raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
    with pytest.raises(fz.BadSizeError, match="missing"):
        with fz.create(tmp_path / "a.fz", (6, 10), bound="abs:1e-3", chunks=(2, 10)) as new:
            new.append(np.zeros((4, 10), "f4"))
    assert os.listdir(tmp_path) == []


def test_what_is_missing_may_still_come(tmp_path):
    new = fz.create(tmp_path / "a.fz", (6, 10), bound="abs:1e-3", chunks=(2, 10))
    new.append(np.zeros((4, 10), "f4"))
    with pytest.raises(fz.BadSizeError, match="missing"):
        new.close()
    new.append(np.zeros((2, 10), "f4"))
    new.close()
    new.close()
    assert fz.open(tmp_path / "a.fz").shape == (6, 10)
    with pytest.raises(fz.InvalidStateError, match="closed"):
        new.append(np.zeros((1, 10), "f4"))


def test_values_that_do_not_fit_are_refused(tmp_path):
    with fz.create(tmp_path / "a.fz", (2, 10), bound="abs:1e-3") as new:
        for array, error in (
            (np.zeros((2, 9), "f4"), fz.BadSizeError),
            (np.zeros((3, 10), "f4"), fz.BadSizeError),
            (np.zeros(()), fz.TypeMismatchError),
            (np.zeros((1, 1, 10), "f4"), fz.BadSizeError),
            (np.zeros((2, 10), "f8"), fz.TypeMismatchError),
        ):
            with pytest.raises(error):
                new.append(array)
        new.append(np.zeros((2, 10), "f4"))
        with pytest.raises(fz.BadSizeError, match="1 rows after 2"):
            new.append(np.zeros(10, "f4"))
    with fz.create(tmp_path / "a.fz", (None, 10), bound="abs:1e-3") as new:
        for call in (lambda: new.put(0, np.zeros((1, 10), "f4")), lambda: new.write(0, 0)):
            with pytest.raises(fz.InvalidStateError, match="use append"):
                call()


@pytest.mark.parametrize(
    "options, says",
    [
        ({"bound": "range:1e-3"}, "range=.*fz.value_range"),
        ({}, "give a bound"),
        ({"bound": "psnr:80"}, "fz.find_bound"),
        ({"bound": "abs:1e-3", "chunks": "many"}, "such as 64M"),
        ({"bound": "abs:1e-3", "chunks": (2, 3)}, "axes"),
        ({"bound": "abs:1e-3", "chunks": (0, 3, 3)}, "chunks of"),
        ({"bound": "abs:1e-3", "shape": (3, None)}, "first extent"),
        ({"bound": "abs:1e-3", "preset": "nothing"}, "presets are"),
        ({"bound": "range:1e-3", "range": (3, 1)}, "a range from 3 to 1"),
    ],
)
def test_wrong_settings_say_what_is_right(tmp_path, options, says):
    with pytest.raises(fz.InvalidArgumentError, match=says):
        fz.create(tmp_path / "a.fz", **{"shape": (5, 6, 7), **options})
    assert os.listdir(tmp_path) == []


def test_a_bound_of_the_range_means_the_whole_array(tmp_path):
    field = wave((10, 50, 40))
    field[7] *= 100
    for preset in ("pfpl", "cuszp2", "cusz", "balanced"):
        path = tmp_path / "a.fz"
        with fz.create(
            path, field.shape, bound="range:1e-4", preset=preset, chunks=(2, 50, 40),
            range=fz.value_range(field),
        ) as new:  # fmt: skip
            new.append(field)
        a = fz.open(path)
        width = float(field.max()) - float(field.min())
        error = np.abs(a[...].astype("f8") - field.astype("f8")).max()
        assert 1e-5 * width < error <= 1e-4 * width
        assert a.bound.kind in ("range", "abs")


def test_chunks_by_bytes_and_by_default(tmp_path):
    def chunks(shape, size):
        with fz.create(tmp_path / "a.fz", shape, bound="abs:1", chunks=size) as new:
            made = new.chunks
            new.discard()
        return made

    assert chunks((100, 100, 100), None) == (100, 100, 100)
    for size, n in (("40K", 40 * 1024), ("1m", 2**20), ("64MiB", 2**26), ("5000", 5000)):
        for shape in ((1000, 1000, 1000), (None, 1000, 1000), (None,)):
            assert n / 8 <= 4 * np.prod(chunks(shape, size)) <= n
    for size in ("16K", "1M"):  # rows of 4 MB, of which one is kept at a time
        assert chunks((None, 1000, 1000), size)[0] == 1
    assert chunks((None, 1000, 1000), "64M") == (16, 1000, 1000)


def test_progress_is_told_and_can_stop_it(tmp_path):
    told = []
    with fz.create(
        tmp_path / "a.fz", (6, 10), bound="abs:1", chunks=(2, 10), progress=lambda *n: told.append(n)
    ) as new:
        new.append(np.zeros((5, 10), "f4"))
        new.append(np.zeros((1, 10), "f4"))
    assert told == [(80, 240), (160, 240), (200, 240), (240, 240)]

    def stop(done, total):
        assert total is None
        raise TimeoutError

    with pytest.raises(TimeoutError):
        with fz.create(tmp_path / "b.fz", (None, 10), bound="abs:1", progress=stop) as new:
            new.append(np.zeros((5, 10), "f4"))
    assert os.listdir(tmp_path) == ["a.fz"]


def test_integers_and_pipelines(tmp_path):
    field = np.arange(6000, dtype="i2").reshape(60, 100)
    lossless = fz.Pipeline(["Difference", "Bitshuffle", "RZE"])
    with fz.create(tmp_path / "a.fz", field.shape, "i2", pipeline=lossless, chunks=(7, 100)) as new:
        new.append(field)
    a = fz.open(tmp_path / "a.fz")
    assert same_bits(a[...], field) and a.bound is None
    with pytest.raises(fz.TypeMismatchError):
        fz.create(tmp_path / "b.fz", field.shape, "i2", bound="abs:1")
    with pytest.raises(TypeError, match="its own bound"):
        fz.create(tmp_path / "b.fz", (5,), pipeline=lossless, bound="abs:1")


def test_a_file_is_kept_where_that_is_asked(tmp_path):
    (tmp_path / "a.fz").write_bytes(b"mine")
    with pytest.raises(fz.IoError):
        with fz.create(tmp_path / "a.fz", (5,), bound="abs:1", replace=False) as new:
            new.append(np.zeros(5, "f4"))
    assert (tmp_path / "a.fz").read_bytes() == b"mine"


def test_what_a_crash_leaves_is_recovered(tmp_path):
    field = wave((12, 10, 30))
    new = fz.create(tmp_path / "a.fz", (None, 10, 30), bound="abs:1e-3", chunks=(2, 10, 30))
    new.append(field[:9])
    part = (tmp_path / "a.fz.part").read_bytes()
    new.discard()
    (tmp_path / "a.fz.part").write_bytes(part[:-3])
    found = fz.recover(tmp_path / "a.fz.part", tmp_path / "a.fz")
    assert found.shape == (6, 10, 30) and found.chunk_count == 3 and found.damaged_bytes > 0
    a = fz.open(tmp_path / "a.fz")
    assert a.shape == (6, 10, 30) and np.abs(a[...] - field[:6]).max() <= 1e-3
    with pytest.raises(fz.CorruptError, match="no complete chunk"):
        fz.recover(b"nothing at all", tmp_path / "b.fz")
    with pytest.raises(fz.IoError):
        fz.recover(part, tmp_path / "a.fz", replace=False)
    assert sorted(os.listdir(tmp_path)) == ["a.fz", "a.fz.part"]


def test_ranges_of_arrays_in_pieces(tmp_path):
    field = rough((30, 40))
    kept = field[np.isfinite(field) & (field < 1e36)]
    expected = (float(kept.min()), float(kept.max()))
    for arrays in (field, list(field), (row for row in field), np.array_split(field, 4)):
        assert fz.value_range(arrays, fill=9.96921e36) == expected
    assert fz.value_range(np.full(3, np.nan)) == fz.value_range([]) == (0.0, 0.0)
    assert fz.value_range(np.float64(3)) == (3.0, 3.0)
    with pytest.raises(fz.FillValueError):
        fz.value_range(field)
    assert fz.value_range(field, fill="none")[1] > 1e36
    with pytest.raises(fz.UnsupportedError):
        fz.value_range(np.arange(5))
    with pytest.raises(fz.TypeMismatchError):
        fz.value_range([np.zeros(2, "f4"), np.zeros(2, "f8")])


def test_ranges_of_lazy_arrays(tmp_path):
    dask_array = pytest.importorskip("dask.array")
    field = wave((50, 60))
    path = tmp_path / "a.fz"
    with fz.create(path, field.shape, bound="abs:1e-3", chunks=(7, 60)) as new:
        new.append(field)
    a = fz.open(path)
    for arrays in (a, dask_array.from_array(a, chunks=a.chunks)):
        assert fz.value_range(arrays) == (float(a[...].min()), float(a[...].max()))


def test_verified_archives_are_the_same(tmp_path):
    field = wave((6, 20, 30))
    made = []
    for verify in (False, True):
        path = tmp_path / "a.fz"
        with fz.create(
            path, field.shape, bound="abs:1e-3", chunks=(2, 20, 30), verify=verify
        ) as new:
            new.append(field)
        made.append(path.read_bytes())
    assert made[0] == made[1]


def test_archives_are_those_of_the_tool(tmp_path, tool):
    field = wave((6, 20, 30))
    field.tofile(tmp_path / "field.f32")
    for bound, options in (("abs:1e-3", {}), ("range:1e-3", {"range": fz.value_range(field)})):
        subprocess.run(
            [tool, "compress", "-q", "-f", "-b", bound, "-t", "f32", "-d", "30x20x6",
             "--chunk", "30x20x2", "-o", tmp_path / "tool.fz", tmp_path / "field.f32"], check=True,
        )  # fmt: skip
        with fz.create(
            tmp_path / "python.fz", field.shape, bound=bound, chunks=(2, 20, 30), **options
        ) as new:
            new.append(field)
        assert (tmp_path / "python.fz").read_bytes() == (tmp_path / "tool.fz").read_bytes()
        subprocess.run([tool, "test", tmp_path / "python.fz"], check=True)
    assert fz.open(tmp_path / "tool.fz").shape == field.shape
