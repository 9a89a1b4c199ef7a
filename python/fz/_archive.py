"""Archives of chunks, to read."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _fz
from ._arrays import check_count
from ._bounds import FrameBound
from ._boxes import box_of
from .errors import (
    BadSizeError,
    CorruptError,
    InvalidStateError,
    IoError,
    NotFoundError,
    TypeMismatchError,
)


class _File:
    """A binary file object as a source: one place to read at a time."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lock = threading.Lock()
        with self._lock:
            self.n_bytes = file.seek(0, os.SEEK_END)
            if self.n_bytes is None:  # of objects that do as old files did
                self.n_bytes = file.tell()

    def fill(self, offset: int, out: memoryview) -> None:
        """Reads at a place until the memory is full."""
        n_done = 0
        with self._lock:
            self._file.seek(offset)
            while n_done < len(out):
                part = self._file.read(len(out) - n_done)
                if not part:
                    raise IoError(
                        f"the file ended after {offset + n_done} bytes, it had {self.n_bytes}"
                    )
                out[n_done : n_done + len(part)] = part
                n_done += len(part)


def existing(path: str | os.PathLike[str]) -> str:
    """The path as text. Raises `NotFoundError`, with the words that Python has for it."""
    text = os.fspath(path)
    if not os.path.exists(text):
        raise NotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
    return text


@contextlib.contextmanager
def named(source: Any) -> Iterator[None]:
    """Puts the path of a file before what is wrong with its bytes."""
    try:
        yield
    except CorruptError as error:
        if not isinstance(source, (str, os.PathLike)):
            raise
        raise CorruptError(f"{os.fspath(source)}: {error}") from None


def native_source(source: Any) -> Any:
    """What the extension reads from: a path, an object with a buffer, or a file object."""
    if isinstance(source, (str, os.PathLike)):
        return _fz.NativeSource.of_path(existing(source))
    if hasattr(source, "seek") and hasattr(source, "read"):
        file = _File(source)
        return _fz.NativeSource.of_function(file.fill, file.n_bytes)
    try:
        memoryview(source)
    except TypeError:
        raise TypeError(
            "an archive is a path, bytes or a seekable binary file, "
            f"not {type(source).__name__}"
        ) from None
    return _fz.NativeSource.of_buffer(source)


class Archive:
    """An array in an archive of chunks, or in a frame, which is read by parts.

    Made by `fz.open`. Indexed as a numpy array is, with integers, slices and ``...``; only the
    chunks that a part touches are read and decoded. Slices with a step read the box around their
    values first. One object may be used by several threads at once; one that was made from a path
    or from bytes can be pickled.
    """

    def __init__(self, source: Any, settings: dict[str, Any]) -> None:
        self._source = source
        self._settings = settings
        self._token = uuid.uuid4().hex
        with named(source):
            self._native: Any = _fz.NativeReader.open(
                native_source(source), self._decoding(settings["threads"], settings["backend"])
            )
        info = self._native.info()
        #: Extents of the array, the slowest axis first.
        self.shape: tuple[int, ...] = info["shape"]
        #: Extents of a chunk; those at the end of an axis may be smaller.
        self.chunks: tuple[int, ...] = info["chunks"]
        self.dtype: np.dtype[Any] = np.dtype("u1" if info["type"] == "unknown" else info["type"])
        #: What every value keeps to, as in `FrameInfo`; None: nothing was lost or promised.
        self.bound = None if info["bound"] is None else FrameBound(**info["bound"])
        #: Number of chunks, and of those that are not there.
        self.chunk_count: int = info["chunk_count"]
        self.absent_count: int = info["absent_count"]
        #: Bytes of the decoded array, and of the archive.
        self.nbytes: int = info["original_bytes"]
        self.archive_bytes: int = info["archive_bytes"]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def ratio(self) -> float:
        """Bytes of the array for each byte of the archive."""
        return self.nbytes / self.archive_bytes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an archive of a single value")
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        box = box_of(key, self.shape)
        values = np.empty(box.shape, self.dtype)
        self._read_into(box.origin, values, self._settings["threads"], self._settings["backend"])
        picked = values[box.picks]
        # A view would keep the values between those that were asked for.
        return picked.copy() if any(step != 1 for step in box.steps) else picked

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def read(
        self, out: Any = None, *, threads: int | None = None, backend: str | None = None
    ) -> np.ndarray:
        """All values; into `out`, where that is given, an array of this shape and type."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        if not isinstance(out, np.ndarray):
            raise TypeError(f"read: out must be a numpy array, not {type(out).__name__}")
        if out.dtype != self.dtype:
            raise TypeMismatchError(f"read: out holds {out.dtype}, the archive {self.dtype}")
        if out.shape != self.shape:
            raise BadSizeError(f"read: out has shape {out.shape}, the archive {self.shape}")
        self._read_into(
            (0,) * self.ndim,
            out,
            self._settings["threads"] if threads is None else threads,
            self._settings["backend"] if backend is None else backend,
        )
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an archive cannot become a numpy array without a copy")
        values = self.read()
        return values if dtype is None else values.astype(dtype, copy=False)

    def chunk_slices(self, number: int) -> tuple[slice, ...]:
        """Where a chunk is in the array, as an index of it."""
        return slices_of(*self._open().chunk_box(check_count(number, "chunk number")))

    def has_chunk(self, number: int) -> bool:
        """Whether a chunk is there; in an archive that was finished, each is."""
        return bool(self._open().has_chunk(check_count(number, "chunk number")))

    def close(self) -> None:
        """Lets go of the file or memory; calls that are under way end as usual."""
        self._native = None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _open(self) -> Any:
        native = self._native
        if native is None:
            raise InvalidStateError("the archive is closed")
        return native

    def _decoding(self, threads: int, backend: str) -> Any:
        return _fz.DecodeSettings(
            self._settings["max_output_bytes"],
            self._settings["max_memory_bytes"],
            "cpu" if backend == "auto" else backend,
            check_count(threads, "threads"),
        )

    def _read_into(
        self, origin: tuple[int, ...], out: np.ndarray, threads: int, backend: str
    ) -> None:
        self._open().read_into(origin, out, self._decoding(threads, backend))

    def __reduce__(self) -> Any:
        return (Archive, (self._source, self._settings))

    def __dask_tokenize__(self) -> Any:
        if not isinstance(self._source, (str, os.PathLike)):
            return (type(self).__name__, self._token)
        path = os.path.abspath(os.fspath(self._source))
        return (type(self).__name__, path, os.stat(path).st_mtime_ns, self.archive_bytes)

    def __repr__(self) -> str:
        chunks = "one chunk" if self.chunk_count == 1 else f"{self.chunk_count} of {self.chunks}"
        bound = "" if self.bound is None else f", {self.bound.kind}:{self.bound.requested!r}"
        return f"<fz.Archive {self.dtype} {self.shape}, {chunks}{bound}, ratio {self.ratio:.3g}>"


def slices_of(origin: tuple[int, ...], extents: tuple[int, ...]) -> tuple[slice, ...]:
    """A box as an index."""
    return tuple(slice(first, first + n) for first, n in zip(origin, extents))


def open(
    source: Any,
    *,
    threads: int = 0,
    backend: str = "auto",
    max_output_bytes: int = 0,
    max_memory_bytes: int = 0,
) -> Archive:
    """An array in an archive of chunks or a frame, to be read by parts.

    >>> import numpy as np, fz
    >>> field = np.linspace(0, 1, 60_000, dtype="f4").reshape(20, 50, 60)
    >>> with fz.create("field.fz", field.shape, "f4", bound="abs:1e-3", chunks=(5, 50, 60)) as new:
    ...     new.append(field)
    >>> archive = fz.open("field.fz")
    >>> archive
    <fz.Archive float32 (20, 50, 60), 4 of (5, 50, 60), abs:0.001, ratio 75.6>
    >>> part = archive[3:7, 10, -5:]
    >>> part.shape, bool(np.abs(part - field[3:7, 10, -5:]).max() <= 1e-3)
    ((4, 5), True)

    Parameters
    ----------
    source
        A path, bytes or another object with a buffer, or a seekable binary file object, such as
        those of fsspec; of that, one thread at a time reads.
    threads, backend
        For decoding, as in `decompress`.
    max_output_bytes, max_memory_bytes
        Of each chunk, as in `decompress`; for archives from strangers.
    """
    settings = {
        "threads": check_count(threads, "threads"),
        "backend": backend,
        "max_output_bytes": check_count(max_output_bytes, "max_output_bytes"),
        "max_memory_bytes": check_count(max_memory_bytes, "max_memory_bytes"),
    }
    return Archive(source, settings)


def read_all(
    source: Any, out: Any, shape: Any, threads: int, backend: str, limits: tuple[int, int]
) -> Any:
    """What `decompress` does for an archive of chunks, and for a path."""
    from ._api import _check_limit, _check_out, _check_shape

    with open(
        source,
        threads=threads,
        backend=backend,
        max_output_bytes=limits[0],
        max_memory_bytes=limits[1],
    ) as archive:
        facts = {"type": archive.dtype.name, "original_bytes": archive.nbytes}
        _check_limit(facts, limits[0])
        wanted = tuple(shape) if shape is not None else archive.shape
        _check_shape(wanted, facts)
        if out is None:
            return archive.read().reshape(wanted)
        if not isinstance(out, np.ndarray) or not out.flags.c_contiguous:
            raise TypeError("decompress: out must be a C-contiguous numpy array for an archive")
        _check_out(out.dtype.name, out.nbytes, facts)
        archive.read(out.reshape(archive.shape))
        return out


def is_archive(source: Any) -> bool:
    """Whether bytes or a file begin as an archive of chunks does."""
    return bool(_fz.is_archive(native_source(source)))
