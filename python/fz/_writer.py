"""Archives of chunks, to write."""

from __future__ import annotations

import math
import operator
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _fz
from ._archive import native_source, slices_of
from ._arrays import check_count, check_shape, check_type, host_array
from ._bounds import LOSSLESS, Bound
from ._boxes import box_of
from ._pipeline import Pipeline, _fill_values, default_preset
from .errors import BadSizeError, InvalidArgumentError, InvalidStateError, TypeMismatchError

#: Called with the bytes of the array that are done, and all of them (None while it grows).
Progress = Callable[[int, "int | None"], object]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
#: Bytes of an array that are looked at together.
_PIECE_BYTES = 64 * 2**20


class ArchiveWriter:
    """An archive of chunks that is being written; made by `fz.create`.

    As a context manager it is finished at the end of the block, and gone after an exception.
    Until it is finished the file is called ``path.part``, of which `fz.recover` saves what a crash
    has left. `put` and `write` may be called from several threads at once.
    """

    def __init__(
        self, native: Any, shape: tuple[int | None, ...], dtype: Any, progress: Any
    ) -> None:
        self._native = native
        self._progress = progress
        self._is_closed = False
        self._order = threading.Lock()  # of append
        self._rows = 0
        self._lock = threading.Lock()
        self._n_done = 0
        #: Extents of the array; the first is None while it grows.
        self.shape = shape
        self.dtype: np.dtype[Any] = dtype
        #: Extents of a chunk.
        self.chunks: tuple[int, ...] = native.chunks()

    @property
    def grows(self) -> bool:
        """Whether the array takes as many rows as come."""
        return bool(self.shape) and self.shape[0] is None

    @property
    def chunk_count(self) -> int:
        """Number of chunks; 0 while the array grows."""
        return int(self._native.chunk_count())

    def append(self, array: Any) -> None:
        """The next rows: an array of any number of them, or a single one without that axis."""
        values = self._values(array)
        rows = values[None] if values.ndim == max(0, len(self.shape) - 1) else values
        if rows.ndim != max(1, len(self.shape)) or rows.shape[1:] != self.shape[1:]:
            raise BadSizeError(f"append: shape {values.shape} for an array of {self._text()}")
        with self._order:
            n_most = self.shape[0] if self.shape else 1
            if n_most is not None and self._rows + len(rows) > n_most:
                raise BadSizeError(
                    f"append: {len(rows)} rows after {self._rows} of an array of {self._text()}"
                )
            # By rows of chunks, so that somebody who waits is told, and can stop it.
            n_step = self.chunks[0] if self.chunks else 1
            begin = 0
            while begin < len(rows):
                end = min(len(rows), begin + n_step - self._rows % n_step)
                self._native.append(rows[begin:end])
                self._rows += end - begin
                self._count(rows[begin:end].nbytes)
                begin = end

    def put(self, number: int, array: Any) -> None:
        """A chunk by its number; the last axis counts fastest. Each once, in any order."""
        if self.grows:
            raise InvalidStateError("put: needs an array whose shape is known; use append")
        number = check_count(number, "chunk number")
        _, extents = self._native.chunk_box(number)
        values = self._values(array)
        if values.shape != extents:
            raise BadSizeError(f"put: shape {values.shape} for chunk {number} of {extents}")
        self._native.put(number, values)
        self._count(values.nbytes)

    def write(self, index: Any, array: Any) -> None:
        """A chunk by its place, ``writer.write(np.s_[0:10, 20:40], values)``."""
        if self.grows:
            raise InvalidStateError("write: needs an array whose shape is known; use append")
        box = box_of(index, [n or 0 for n in self.shape])
        number, n_before = 0, 1
        for first, extent, chunk in zip(
            reversed(box.origin), reversed([n or 0 for n in self.shape]), reversed(self.chunks)
        ):
            number += first // chunk * n_before
            n_before *= max(1, -(-extent // chunk))
        origin, extents = self._native.chunk_box(number)
        if (origin, extents) != (box.origin, box.shape) or box.dropped or set(box.steps) - {1}:
            near = ", ".join(f"{s.start}:{s.stop}" for s in slices_of(origin, extents))
            raise InvalidArgumentError(
                f"write: the index is not that of one chunk; there is one at [{near}]"
            )
        self.put(number, array)

    def chunk_slices(self, number: int) -> tuple[slice, ...]:
        """Where a chunk is in the array, as an index of it."""
        return slices_of(*self._native.chunk_box(check_count(number, "chunk number")))

    def close(self) -> None:
        """Finishes the archive, which then has its name; again, it does nothing.

        Where chunks are missing it raises, and they may still come.
        """
        if not self._is_closed:
            self._native.finish()
            self._is_closed = True

    def discard(self) -> None:
        """Gives up an archive that is not finished: no file is left."""
        self._native.discard()
        self._is_closed = True

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.discard()

    def _values(self, array: Any) -> np.ndarray:
        if self._is_closed:
            raise InvalidStateError("the archive is closed")
        values = host_array(array)
        if values.dtype != self.dtype:
            raise TypeMismatchError(
                f"values of {values.dtype} for an archive of {self.dtype}; use .astype(...)"
            )
        return values

    def _count(self, n_bytes: int) -> None:
        with self._lock:
            self._n_done += n_bytes
            n_done = self._n_done
        if self._progress is not None:
            n_values = None if self.grows else math.prod(n or 0 for n in self.shape)
            self._progress(n_done, None if n_values is None else n_values * self.dtype.itemsize)

    def _text(self) -> str:
        return f"({', '.join('...' if n is None else str(n) for n in self.shape)})"

    def __repr__(self) -> str:
        return f"<fz.ArchiveWriter {self.dtype} {self._text()}, chunks of {self.chunks}>"


def create(
    path: str | os.PathLike[str],
    shape: Sequence[int | None],
    dtype: Any = "float32",
    *,
    bound: str | Bound | None = None,
    preset: str | None = None,
    pipeline: Pipeline | None = None,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    chunks: Sequence[int] | str | None = None,
    range: tuple[float, float] | None = None,
    fill: float | Sequence[float] | str | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    verify: bool = False,
    replace: bool = True,
    progress: Progress | None = None,
) -> ArchiveWriter:
    """An archive of chunks, to be written piece by piece.

    >>> import numpy as np, fz
    >>> steps = [np.full((40, 50), t, "f4") for t in range(10)]
    >>> with fz.create(
    ...     "run.fz", (None, 40, 50), bound="range:1e-3", range=fz.value_range(steps)
    ... ) as archive:
    ...     for step in steps:
    ...         archive.append(step)
    >>> fz.open("run.fz").shape
    (10, 40, 50)

    Parameters
    ----------
    shape
        Of the whole array. The first extent may be None: as many rows as `append` brings.
    bound, preset, pipeline, toml, params, fill, backend, threads, fallback
        As in `compress`, for each chunk.
    chunks
        Extents of a chunk, or about how many bytes it may have, such as ``"64M"``, which is also
        the default. `append` keeps rows until there are ``chunks[0]`` of them, so with large rows
        that should be few.
    range
        The smallest and the largest value of the whole array. A bound ``range:E`` needs it, as no
        chunk knows what the others hold; `value_range` finds it.
    verify
        Whether every chunk is decoded and compared with its values before it is written.
    replace
        Whether a file of that name is replaced; else it is an `IoError`.
    progress
        Called after each row of chunks with the bytes of the array that are done, and all of them
        (None while it grows). What it raises ends the call.
    """
    dtype = np.dtype(dtype).newbyteorder("=")
    name = check_type(dtype)
    known = tuple(_extent(n, axis) for axis, n in enumerate(check_shape(shape)))
    made = _pipeline(pipeline, preset, toml, bound, params, fallback, fill)
    if made.bound is not None and made.bound.kind == "range" and range is None:
        raise InvalidArgumentError(
            f"create: {made.bound} is a part of the range of the whole array, which no chunk knows; "
            "give range=(low, high), which fz.value_range(array) finds, or an absolute bound"
        )
    settings = _settings(made, name, known, backend, threads)
    toml = made._toml_for(name)  # which a preset refuses for some types
    native = _fz.NativeWriter(
        toml if made._preset is None else "", made._source, settings,
        None if made.bound is None else (made.bound.mode, made.bound.value),
        _chunk_shape(chunks, name, known), None if range is None else (range[0], range[1]),
        os.fsdecode(path), replace, verify,
    )  # fmt: skip
    return ArchiveWriter(native, known, dtype, progress)


def find_archive_bound(
    array: np.ndarray, target: tuple[str, float], chunks: Any, made: Pipeline, backend: str, threads: int
) -> Bound:
    """The absolute bound with which an archive of chunks reaches a result."""
    name = check_type(array.dtype)
    toml = made._toml_for(name)
    bound = _fz.find_archive_bound(
        toml if made._preset is None else "", made._source,
        _settings(made, name, array.shape, backend, threads),
        _chunk_shape(chunks, name, array.shape), *target, array,
    )  # fmt: skip
    return Bound("abs", bound)


def _settings(
    made: Pipeline, name: str, shape: tuple[int | None, ...], backend: str, threads: int
) -> Any:
    return _fz.PipelineSettings(
        name, tuple(n or 0 for n in shape), made._extra, "cpu" if backend == "auto" else backend,
        check_count(threads, "threads"), made.fallback, made._fill,
    )  # fmt: skip


def _pipeline(
    pipeline: Pipeline | None, preset: Any, toml: Any, bound: Any, params: Any, *rest: Any
) -> Pipeline:
    if pipeline is not None:
        if any(given is not None for given in (preset, toml, bound, params, rest[1])):
            raise TypeError("create: a pipeline brings its own bound and settings")
        return pipeline
    if toml is None:
        if bound is None and preset != LOSSLESS:
            raise InvalidArgumentError(
                "create: give a bound, such as 'abs:1e-3' (of every value) or 'range:1e-4' (of max - "
                "min of the whole array), or 'lossless'"
            )
        preset = preset or default_preset(bound)
    fallback, fill = rest
    return Pipeline(
        preset=preset, toml=toml, bound=bound, params=params, fallback=fallback, fill=fill
    )


def _extent(n: Any, axis: int) -> int | None:
    if n is None:
        if axis > 0:
            raise InvalidArgumentError("create: only the first extent may be None")
        return None
    return check_count(n, "extent")


def _chunk_shape(chunks: Any, name: str, shape: tuple[int | None, ...]) -> Any:
    if chunks is None:
        return None
    if not isinstance(chunks, str):
        if not isinstance(chunks, Iterable):
            raise TypeError("create: chunks are extents, such as (10, 200, 200), or bytes, as '64M'")
        return tuple(check_count(n, "chunk extent") for n in chunks)
    found = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", chunks, re.IGNORECASE)
    if not found:
        raise InvalidArgumentError(f"create: chunks '{chunks}' are no number of bytes, such as 64M")
    n_bytes = int(found[1]) * _UNITS[found[2].upper()]
    # Rows that are appended wait until there are as many as a chunk has: no more than its bytes.
    n_row_bytes = math.prod(n or 1 for n in shape[1:]) * np.dtype(name).itemsize
    extents = [max(1, n_bytes // n_row_bytes) if n is None else n for n in shape]
    return _fz.choose_chunk(name, extents, n_bytes)


@dataclass(frozen=True)
class Recovery:
    """What `recover` could put together."""

    shape: tuple[int, ...]  #: of the array that is there
    whole: tuple[int, ...]  #: of the array that was written, as far as its chunks say
    chunk_count: int
    dropped: int  #: sound chunks behind the first that is missing
    damaged_bytes: int  #: that were passed over


def recover(source: Any, path: str | os.PathLike[str], *, replace: bool = True) -> Recovery:
    """Makes an archive from what is left of one that was cut off or damaged.

    It has the array up to the first missing part of the first axis; chunks are copied as they are.

    >>> import numpy as np, fz
    >>> with fz.create("a.fz", (8, 100), bound="abs:1e-3", chunks=(2, 100)) as archive:
    ...     archive.append(np.ones((8, 100), "f4"))
    >>> with open("a.fz", "rb") as file:
    ...     left = file.read()[:-100]  # without its index
    >>> fz.recover(left, "b.fz").shape, fz.open("b.fz").shape
    ((8, 100), (8, 100))

    Parameters
    ----------
    source
        As for `open`. Of an archive that was never finished, ``path.part``.
    path
        The new archive.
    replace
        Whether a file of that name is replaced; else it is an `IoError`.
    """
    return Recovery(**_fz.recover(native_source(source), os.fsdecode(path), replace))


def value_range(
    arrays: Any, *, fill: float | Sequence[float] | str | None = None, threads: int = 0
) -> tuple[float, float]:
    """The smallest and the largest value, for `range` of `create`; NaN and `fill` left out.

    >>> import numpy as np, fz
    >>> fz.value_range(np.array([3.0, np.nan, -9999.0, 1.0]), fill=-9999)
    (1.0, 3.0)
    >>> fz.value_range(np.full(5, t, "f4") for t in range(4))
    (0.0, 3.0)

    Parameters
    ----------
    arrays
        An array, or an iterable of arrays of one type. Of datasets of HDF5, Zarr or dask a part is
        in memory at a time.
    fill
        As in `compress`. Where a value that nobody declared looks like a fill value and sets the
        range, `FillValueError`; ``"none"``: there are none.

    Returns
    -------
    tuple
        (0.0, 0.0) where no value counts.
    """
    filled = _fill_values(fill)
    scan: Any = None
    name = None
    for piece in _pieces(arrays):
        values = host_array(piece)
        if scan is None:
            name = check_type(values.dtype)
            scan = _fz.RangeScan(name, filled or [], check_count(threads, "threads"))
        elif check_type(values.dtype) != name:
            raise TypeMismatchError(f"value_range: arrays of {name} and {values.dtype}")
        scan.add(values)
    if scan is None:
        return (0.0, 0.0)
    if filled is not None:
        scan.require_without_fill(1e-3)  # of which it does not depend whether there is one
    return scan.range() or (0.0, 0.0)


def _pieces(arrays: Any) -> Iterable[Any]:
    if isinstance(arrays, np.ndarray) or not hasattr(arrays, "__getitem__"):
        return [arrays] if hasattr(arrays, "__array__") else arrays
    shape, dtype = getattr(arrays, "shape", None), getattr(arrays, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        return arrays  # a list of arrays
    if not shape or 0 in shape:
        return [arrays]
    n_rows = max(1, _PIECE_BYTES // (math.prod(shape[1:]) * np.dtype(dtype).itemsize))
    return (arrays[i : i + n_rows] for i in range(0, operator.index(shape[0]), n_rows))
