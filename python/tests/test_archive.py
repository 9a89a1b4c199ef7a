"""fz.open: parts of archives of chunks and of frames."""

import io
import itertools
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import rough, same_bits, wave

import fz


def written(path, field, chunks, bound="abs:1e-3", **options):
    with fz.create(path, field.shape, field.dtype, bound=bound, chunks=chunks, **options) as new:
        new.append(field)
    return path


@pytest.fixture
def field():
    return wave((13, 20, 31))


@pytest.fixture
def path(tmp_path, field):
    return written(tmp_path / "a.fz", field, (4, 7, 31))


def test_an_archive_says_what_it_holds(path, field):
    with fz.open(path) as a:
        assert a.shape == field.shape and a.dtype == field.dtype and a.chunks == (4, 7, 31)
        assert (a.ndim, a.size, a.nbytes, len(a)) == (3, field.size, field.nbytes, 13)
        assert a.chunk_count == 4 * 3 and a.absent_count == 0 and a.has_chunk(11)
        assert a.bound == fz.FrameBound("abs", 1e-3, 1e-3)
        assert a.archive_bytes == path.stat().st_size and a.ratio == a.nbytes / a.archive_bytes
        assert a.chunk_slices(4) == np.s_[4:8, 7:14, 0:31]
        assert repr(a).startswith("<fz.Archive float32 (13, 20, 31), 12 of (4, 7, 31), abs:0.001")


SLICES = [
    slice(None), slice(3, 9), slice(-4, None), slice(None, -2), slice(5, 500), slice(-500, 3),
    slice(9, 3), slice(100, 200), 0, -1, np.int64(5), slice(None, None, 3), slice(10, 1, -2),
    slice(None, None, -1), slice(3, 4, -1),
]  # fmt: skip


def test_indices_mean_what_they_mean_to_numpy(path):
    a = fz.open(path)
    whole = a.read()
    for key in itertools.product(SLICES, repeat=2):
        for full in (key, (..., *key), (key[0], ..., key[1]), (*key, 7), (*key, ...)):
            want, got = whole[full], a[full]
            assert type(got) is type(want) and same_bits(np.asarray(got), np.asarray(want)), full
    for key in (..., (), 3, -13, slice(2, 5), (1, 2, 3), (1, 2, 3, ...)):
        want, got = whole[key], a[key]
        assert type(got) is type(want) and same_bits(np.asarray(got), np.asarray(want)), key
    assert same_bits(np.stack(list(a)), whole)


@pytest.mark.parametrize(
    "key, says",
    [
        (13, "out of bounds"), (-14, "out of bounds"), ((0, 0, 0, 0), "4 indices"),
        ((..., ...), "single ellipsis"), (None, "new axes"), ([1, 2], "not arrays"), (True, "not arrays"),
        (np.ones(13, bool), "not arrays"), (1.5, "not float"), ("t", "not str"),
    ],
)  # fmt: skip
def test_other_indices_are_refused_with_advice(path, key, says):
    with pytest.raises(IndexError, match=says):
        fz.open(path)[key]


@pytest.mark.parametrize("shape", [(), (7,), (0, 5), (1, 64, 128), (2, 1, 3, 1, 4, 2, 1, 5)])
def test_any_shape_is_read(tmp_path, shape):
    field = wave(shape)
    a = fz.open(written(tmp_path / "a.fz", field, None))
    assert a.shape == shape and np.abs(a[...] - field).max(initial=0) <= 1e-3
    assert type(a[()]) is type(field[()]) and a[...].shape == shape
    if shape == ():
        with pytest.raises(TypeError, match="single value"):
            len(a)


def test_frames_are_read_like_archives(field):
    frame = fz.compress(field, "abs:1e-3")
    for source in (frame, bytearray(frame), memoryview(frame), np.frombuffer(frame, "u1")):
        assert same_bits(fz.open(source)[3:5, 2], fz.decompress(frame)[3:5, 2])


def test_read_takes_memory_of_any_layout(path):
    a = fz.open(path)
    whole = a[...]
    for out in (
        np.empty(a.shape, "f4", order="F"),
        np.empty((31, 20, 13), "f4").T,
        np.empty((26, 20, 62), "f4")[::2, ::-1, ::2],
    ):
        assert a.read(out, threads=1, backend="cpu") is out and (out == whole).all()
    assert same_bits(np.asarray(a), whole) and np.array(a, "f8").dtype == "f8"
    for out, error in (
        (np.empty((13, 20, 30), "f4"), fz.BadSizeError),
        (np.empty(a.shape, "i4"), fz.TypeMismatchError),
        ([0], TypeError),
    ):
        with pytest.raises(error):
            a.read(out)
    with pytest.raises(ValueError, match="copy"):
        a.__array__(copy=False)


class SlowFile(io.BytesIO):
    """Gives few bytes at a time, as sockets do, and notices two readers at once."""

    def __init__(self, data):
        super().__init__(data)
        self.n_read = 0
        self.is_busy = threading.Lock()

    def read(self, n=-1):
        assert self.is_busy.acquire(blocking=False)
        try:
            got = super().read(min(n, 1000))
            self.n_read += len(got)
            return got
        finally:
            self.is_busy.release()


def test_files_are_read_where_they_are_touched(path):
    whole = fz.open(path)[...]
    file = SlowFile(path.read_bytes())
    a = fz.open(file)
    after_index = file.n_read
    assert same_bits(a[0, 0], whole[0, 0])
    assert file.n_read - after_index < path.stat().st_size / 4
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: a[i], range(13)))
    assert same_bits(np.stack(rows), whole)


def test_fsspec_files_are_read(path):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(f"file://{path}", "rb") as file:
        assert same_bits(fz.open(file)[2:5], fz.open(path)[2:5])
    memory = fsspec.filesystem("memory")
    memory.pipe("/a.fz", path.read_bytes())
    with memory.open("/a.fz") as file:
        assert same_bits(fz.open(file)[2:5], fz.open(path)[2:5])


def test_what_a_file_raises_arrives(path):
    class Broken(io.BytesIO):
        def read(self, n=-1):
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        fz.open(Broken(path.read_bytes()))
    short = io.BytesIO(path.read_bytes())
    a = fz.open(short)
    short.truncate(100)
    with pytest.raises(fz.IoError, match="ended after"):
        a[...]
    with pytest.raises(TypeError, match="path, bytes or a seekable"):
        fz.open(3)
    with pytest.raises(fz.IoError):
        fz.open("/nowhere/at/all.fz")


def test_many_threads_read_at_once(path):
    a = fz.open(path, threads=1)
    whole = a[...]
    rng = np.random.default_rng(3)
    boxes = [tuple(np.sort(rng.integers(0, n + 1, 2)) for n in a.shape) for _ in range(200)]

    def is_right(box):
        key = tuple(slice(*ends) for ends in box)
        return same_bits(a[key], whole[key])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(is_right, boxes))


def test_a_closed_archive_says_so(path):
    a = fz.open(path)
    a.close()
    a.close()
    with pytest.raises(fz.InvalidStateError, match="closed"):
        a[0]


def test_archives_are_pickled_by_their_path(path):
    a = fz.open(path, threads=2)
    assert same_bits(pickle.loads(pickle.dumps(a))[1:3], a[1:3])
    b = fz.open(path.read_bytes())
    assert same_bits(pickle.loads(pickle.dumps(b))[1:3], a[1:3])


def test_dask_reads_archives(path):
    dask_array = pytest.importorskip("dask.array")
    a = fz.open(path)
    whole = a[...]
    lazy = dask_array.from_array(a, chunks=a.chunks)
    assert lazy.chunks == ((4, 4, 4, 1), (7, 7, 6), (31,))
    assert same_bits(lazy.compute(scheduler="threads"), whole)
    for key in np.s_[2:7, 5], np.s_[::3, ::-2], np.s_[:, [1, 5, 2]], np.s_[-1, :, 4]:
        assert same_bits(np.asarray(lazy[key].compute(scheduler="threads")), whole[key])
    assert lazy.mean().compute(scheduler="processes") == pytest.approx(whole.mean(dtype="f8"), 1e-4)


def test_every_truncation_is_an_error(path):
    data = path.read_bytes()
    for n in [*range(0, len(data), 97), *range(len(data) - 120, len(data))]:
        with pytest.raises(fz.CorruptError):
            fz.open(data[:n])[...]


def test_a_damaged_chunk_is_named_and_the_others_are_read(path):
    whole = fz.open(path)[...]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    a = fz.open(data)
    bad = []
    for k in range(a.chunk_count):
        try:
            assert same_bits(a[a.chunk_slices(k)], whole[a.chunk_slices(k)])
        except fz.CorruptError as error:
            assert f"chunk {k} of 12" in str(error)
            bad.append(k)
    assert len(bad) == 1


def test_limits_hold(path):
    with pytest.raises(fz.LimitError):
        fz.open(path, max_output_bytes=100)[0]
    with pytest.raises(fz.LimitError):
        fz.open(path, max_memory_bytes=10)


def test_missing_values_survive_in_every_chunk(tmp_path):
    field = rough((12, 30, 10))
    a = fz.open(written(tmp_path / "a.fz", field, (5, 30, 10), fill=9.96921e36))
    back = a[...]
    lost = ~np.isfinite(field) | (field > 1e36)
    assert same_bits(back[lost], field[lost]) and np.abs(back[~lost] - field[~lost]).max() <= 1e-3


def test_decompress_takes_paths_and_archives(path, field, tmp_path):
    whole = fz.open(path)[...]
    for source in (path, str(path), path.read_bytes()):
        assert same_bits(fz.decompress(source), whole)
        assert fz.decompress(source, shape=(field.size,)).shape == (field.size,)
        out = np.empty_like(whole)
        assert fz.decompress(source, out=out) is out and same_bits(out, whole)
        with pytest.raises(fz.LimitError, match="limit is 100"):
            fz.decompress(source, max_output_bytes=100)
        for read in (fz.inspect, lambda frame: fz.verify(frame, field)):
            with pytest.raises(fz.InvalidArgumentError, match="fz.open"):
                read(source)
    (tmp_path / "one.fz").write_bytes(fz.compress(field, "abs:1e-3"))
    assert fz.decompress(tmp_path / "one.fz").shape == field.shape
    (tmp_path / "none.fz").write_bytes(b"something else")
    with pytest.raises(fz.CorruptError):
        fz.decompress(tmp_path / "none.fz")


def test_a_long_read_ends_with_a_signal(tmp_path):
    field = np.random.default_rng(5).normal(size=(500, 200, 200)).astype("f4")
    path = written(tmp_path / "a.fz", field, (1, 200, 200), preset="balanced")
    a = fz.open(path, threads=1)
    out = np.empty(a.shape[::-1], a.dtype).T  # which takes longer
    begin = time.monotonic()
    a.read(out)
    n_seconds = time.monotonic() - begin
    if n_seconds < 0.15:
        pytest.skip("reading is too fast to be interrupted")

    def raise_it(number, frame):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, raise_it)
    begin = time.monotonic()
    try:
        with pytest.raises(InterruptedError):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            a.read(out)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < n_seconds
    assert abs(a[0, 0, 0] - field[0, 0, 0]) <= 1e-3
