"""What the Zarr codecs have in common: one chunk in, one frame out, and back.

Fill values such as -9999 mean something only bit for bit, and a bound does not promise that. The
library takes them out of a chunk by itself; for more of them than it takes, a chunk whose fill
values would move is stored with markers in their place: NaN with a payload that says which of the
codec's `exact` values it stands for. NaN are always kept bit for bit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ._api import decompress
from ._arrays import TYPES, folded
from ._bounds import LOSSLESS, Bound
from ._inspect import inspect
from ._pipeline import Pipeline, _preset_toml, default_preset
from .errors import BoundViolationError, CorruptError, FillValueError

_MARKERS = {"float32": ("uint32", 0x7FC0F500), "float64": ("uint64", 0x7FF800000000F500)}
FLOATS = frozenset(_MARKERS)
_MOST_EXACT = 256  # what fits into the last byte of a marker
_MOST_FILL = 8  # what the library takes
SETTINGS = ("bound", "preset", "toml", "fallback", "exact", "threads", "zero_padded")


@lru_cache(maxsize=32)
def _pipeline(
    preset: str | None,
    toml: str | None,
    bound: str | None,
    backend: str,
    threads: int,
    fill: tuple[float, ...] = (),
) -> Pipeline:
    return Pipeline(
        preset=preset, toml=toml, bound=bound, backend=backend, threads=threads, fill=fill
    )


def check_options(bound: str | None, preset: str | None, toml: str | None) -> None:
    """Raises for what could not work on any chunk, when the codec is made."""
    if LOSSLESS in (bound, preset):
        if toml is not None or (bound or LOSSLESS) != (preset or LOSSLESS):
            raise ValueError("fz: 'lossless' is a pipeline of its own, without another one or a bound")
        return
    if bound is not None:
        Bound.parse(bound)
    if toml is None:
        _preset_toml(preset or default_preset(bound))
        if bound is None:
            raise ValueError("fz: give a bound, such as bound='abs:1e-3', or bound='lossless'")
    elif preset is not None:
        raise TypeError("fz: preset and toml both name a pipeline; leave one out")


def exact_values(values: Iterable[float]) -> tuple[float, ...]:
    """Those that need care: zero, NaN and infinities are kept bit for bit by themselves."""
    chosen = tuple(dict.fromkeys(float(v) for v in values if v != 0 and math.isfinite(v)))
    if len(chosen) > _MOST_EXACT:
        raise ValueError(f"fz: at most {_MOST_EXACT} exact values")
    return chosen


def is_lossless(options: Mapping[str, Any]) -> bool:
    """Whether a codec keeps every bit, and so takes every type."""
    return LOSSLESS in (options["bound"], options["preset"])


def check_chunk_type(dtype: np.dtype[Any], options: Mapping[str, Any]) -> None:
    """Presets quantise; other pipelines may take whatever their stages take."""
    if is_lossless(options):
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise TypeError(f"fz compresses arrays of numbers of up to 8 bytes, not {dtype}")
    elif options["toml"] is None and dtype.name not in _MARKERS:
        raise TypeError(
            f"fz compresses arrays of float32 and float64 within a bound, not {dtype}; "
            "bound='lossless' keeps every bit of any type"
        )


def _finite(array: Any) -> Any:
    return array[abs(array) < math.inf]


def _is_constant(array: Any, fill: tuple[float, ...]) -> bool:
    finite = _finite(array)
    for value in fill:
        finite = finite[finite != array.dtype.type(value)]
    return finite.size == 0 or bool(finite.min() == finite.max())


def _may_have_fill(array: Any) -> bool:
    """False only where the library would not refuse the range of these values."""
    finite = _finite(array)
    low, high = finite.min(), finite.max()
    inner = finite[(finite > low) & (finite < high)]
    if inner.size == 0:
        return True
    width = [float(end) / 32 for end in (low, high, inner.min(), inner.max())]  # never infinite
    return width[1] - width[0] > 10 * (width[3] - width[2])


def _has_zero_at_an_end(array: Any) -> bool:
    finite = _finite(array)
    return bool(finite.min() == 0 or finite.max() == 0)


def _is_range(options: dict[str, Any]) -> bool:
    return str(options["bound"]).startswith("range")


def _compress(
    array: Any, options: dict[str, Any], backend: str, fill: tuple[float, ...] = ()
) -> Any:
    """A chunk that the pipeline refuses goes to the fallback."""
    if _is_range(options):
        # Without a range the bound says nothing, and as an absolute one it might be more than the
        # whole array spans: such a chunk is kept bit for bit.
        if _is_constant(array, fill):
            return _lossless(array, options, backend)
        # Such a chunk is decided on in host memory; the bytes are the same.
        if backend == "cuda" and _may_have_fill(array):
            array, backend = array.get(), "cpu"
    try:
        return _compress_lossy(array, options, backend, fill)
    except FillValueError:
        # Chunks at the edge of an array are padded, most often with zeros: nobody's mistake.
        if not (options["zero_padded"] and _has_zero_at_an_end(array)):
            raise
        return _lossless(array, options, backend)


def _lossless(array: Any, options: dict[str, Any], backend: str) -> Any:
    if array.dtype.name not in TYPES:
        array = array.view(f"u{array.dtype.itemsize}")  # as which it is stored, see `as_type`
    return _pipeline(LOSSLESS, None, None, backend, options["threads"]).compress(folded(array))


def as_type(values: Any, dtype: np.dtype[Any]) -> Any:
    """A decoded chunk of a type that frames do not have (booleans, float16)."""
    native = dtype.newbyteorder("=")
    if dtype.name in TYPES or values.dtype != np.dtype(f"u{dtype.itemsize}"):
        return values
    return values.view(native)


def _compress_lossy(
    array: Any, options: dict[str, Any], backend: str, fill: tuple[float, ...]
) -> Any:
    name = options["preset"]
    if name is None and options["toml"] is None:
        name = default_preset(options["bound"])
    rest = (options["bound"], backend, options["threads"], fill)
    try:
        return _pipeline(name, options["toml"], *rest).compress(folded(array))
    except BoundViolationError:
        if options["fallback"] is None or options["bound"] is None:
            raise
        return _pipeline(options["fallback"], None, *rest).compress(folded(array))


def encode(array: Any, options: dict[str, Any], backend: str) -> Any:
    """The frame of a chunk, a contiguous array of numpy or cupy in native byte order."""
    if is_lossless(options):
        return _lossless(array, options, backend)
    exact = options["exact"] if array.dtype.name in _MARKERS else ()
    if not exact:
        return _compress(array, options, backend)
    bits_type, marker = _MARKERS[array.dtype.name]
    bits = array.view(bits_type)
    if bool(((bits >= marker) & (bits < marker + len(exact))).any()):
        raise ValueError("fz: the chunk has NaN with the payload that stands for exact values")
    if len(exact) <= _MOST_FILL:
        return _compress(array, options, backend, exact)
    masks = [array == array.dtype.type(value) for value in exact]
    present = [bool(mask.any()) for mask in masks]
    if not any(present):
        return _compress(array, options, backend)
    # A fill value far away would widen the range, so there it always becomes a marker.
    if not _is_range(options):
        frame = _compress(array, options, backend)
        back = decompress(frame, shape=array.shape, backend=backend)
        if backend == "cuda":
            back = _to_cupy(back)
        if all(bool((back[mask] == array[mask]).all()) for mask in masks):
            return frame
    marked = array.copy()
    marked_bits = marked.view(bits_type)
    for number, mask in enumerate(masks):
        marked_bits[mask] = marker + number
    return _compress(marked, options, backend)


def _to_cupy(array: Any) -> Any:
    import cupy

    return cupy.asarray(array)


_MAGIC = 0x464D5A32
_COMPACT = 0x0303
_IS_PART = 4  # of the flags of a compact frame


def is_part(front: bytes) -> bool:
    """Whether a frame that begins so is a chunk of an archive (docs/format.md)."""
    if len(front) < 40:
        return False
    magic, version = struct.unpack_from("<IH", front)
    (flags,) = struct.unpack_from("<H", front, 38)
    return (magic, version) == (_MAGIC, _COMPACT) and bool(flags & _IS_PART)


def decode(
    frame: Any, shape: tuple[int, ...], fill: Any, exact: tuple[float, ...], **limits: Any
) -> Any:
    """The values of a chunk. One at the edge of an archive may have fewer; `fill` is the rest."""
    if is_part(bytes(frame[:40])):  # no codec wrote it, so it has no markers
        own = inspect(frame).shape
        if len(own) != len(shape) or any(map(int.__gt__, own, shape)):
            raise CorruptError(f"the frame is of a chunk of {own}, not of {shape}")
        values = decompress(frame, **limits)
        if own == shape:
            return values
        whole = np.full(shape, 0 if fill is None else fill, values.dtype)
        whole[tuple(map(slice, own))] = values
        return whole
    values = decompress(frame, shape=shape, **limits)
    if exact:
        missing = inspect(frame).missing
        declared = () if missing is None else missing.fill
        if not set(exact) <= set(declared):
            values = restore(values, exact)
    return values


def restore(values: Any, exact: tuple[float, ...]) -> Any:
    """Puts the exact values back in place of their markers."""
    if exact and values.dtype.name in _MARKERS:
        bits_type, marker = _MARKERS[values.dtype.name]
        bits = values.view(bits_type)
        for number, value in enumerate(exact):
            values[bits == marker + number] = value
    return values
