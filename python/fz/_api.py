"""compress, decompress, find_bound, find_settings, stages, presets."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import _archive, _fz
from ._arrays import check_count, device_view, is_device_array
from ._bounds import LOSSLESS, Bound, target_of
from ._device import DeviceArray, DeviceFrame
from ._pipeline import Pipeline, default_preset
from .errors import BadSizeError, CorruptError, InvalidArgumentError, TypeMismatchError


if TYPE_CHECKING:
    from typing_extensions import Buffer


@overload
def compress(
    array: np.ndarray,
    bound: str | Bound | None = None,
    preset: str | None = None,
    *,
    pipeline: Pipeline | None = None,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    fill: float | Sequence[float] | str | None = None,
    out: None = None,
    stream: Any = None,
) -> bytes: ...
@overload
def compress(
    array: np.ndarray,
    bound: str | Bound | None = None,
    preset: str | None = None,
    *,
    pipeline: Pipeline | None = None,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    fill: float | Sequence[float] | str | None = None,
    out: Buffer,
    stream: Any = None,
) -> int: ...
@overload
def compress(
    array: Any,  # of another library: on a GPU, or what numpy takes for an array
    bound: str | Bound | None = None,
    preset: str | None = None,
    *,
    pipeline: Pipeline | None = None,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    fill: float | Sequence[float] | str | None = None,
    out: Any = None,
    stream: Any = None,
) -> Any: ...
def compress(
    array: Any,
    bound: str | Bound | None = None,
    preset: str | None = None,
    *,
    pipeline: Pipeline | None = None,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    fill: float | Sequence[float] | str | None = None,
    out: Any = None,
    stream: Any = None,
) -> Any:
    """Compresses an array; every value keeps to the bound or the call raises.

    >>> import numpy as np, fz
    >>> field = np.linspace(0, 1, 100_000, dtype="f4").reshape(100, 1000)
    >>> frame = fz.compress(field, "abs:1e-3", preset="cuszp2")
    >>> type(frame), len(frame) < field.nbytes / 10
    (<class 'bytes'>, True)
    >>> back = fz.decompress(frame)
    >>> back.shape, back.dtype, bool(np.abs(back - field).max() <= 1e-3)
    ((100, 1000), dtype('float32'), True)

    Parameters
    ----------
    array
        float32 or float64 within a bound; ``bound="lossless"`` takes integers too.
        Up to eight axes; the frame keeps them, and predictors see the last three. Contiguous arrays
        in native byte order are read in place, others are copied first. GPU arrays (cupy, torch,
        anything with ``__cuda_array_interface__`` or ``__dlpack__``) must be contiguous.
    bound
        ``"abs:E"``, ``"rel:E"`` (of each value) or ``"range:E"`` (of max - min; a constant
        field has none, and E is an absolute bound then; where what looks like a fill value sets
        the range of the array, `FillValueError`). NaN, infinities and `fill` have no
        part in it and come back bit for bit. Required with a preset, whose own would be a
        guess; with `pipeline` or `toml` it replaces theirs. ``"lossless"`` keeps every bit. Or a
        result, for arrays in host memory: ``"psnr:80"`` and ``"ratio:20"``, for which `find_bound`
        looks for a bound.
    preset
        Default ``"balanced"``, with ``rel`` bounds ``"pfpl"``; `presets` lists them.
    pipeline, toml
        Instead of a preset: a `Pipeline`, or the text of a configuration file.
    params
        Other settings: ``{"stage.key": value}`` or ``{"key": value}``.
    backend
        ``"auto"``: where the array is; ``"cpu"``, ``"cuda"``. The bytes are the same.
    threads
        Threads on the CPU; 0 means all. The bytes are the same.
    fallback
        Where a frame saves less than half, one without loss is made too, and the smaller is
        kept; so no frame exceeds ``array.nbytes + 592``. False keeps what the stages make. A
        `pipeline` brings its own.
    fill
        A value that means missing, such as -9999, or several; at most 8. ``"none"``: there are
        none, whatever the array looks like.
    out
        Writable buffer for the frame; the result is then its length.
    stream
        CUDA stream of GPU arrays: an int, or an object of cupy or torch. Default: the current one
        of the array's library.

    Returns
    -------
    bytes
        The frame. For GPU arrays a `DeviceFrame`, which stays on the GPU.
    """
    if pipeline is not None:
        if any(given is not None for given in (preset, toml, bound, params, fill)):
            raise TypeError("compress: a pipeline brings its own bound and settings")
        return pipeline.compress(array, out=out, stream=stream)
    if toml is None:
        if bound is None and preset != LOSSLESS:
            raise InvalidArgumentError(
                "compress: give a bound, such as 'abs:1e-3' (of every value) or 'range:1e-4' "
                "(of max - min), or 'lossless'"
            )
        preset = preset or default_preset(bound)
    target = target_of(bound)
    if target is not None:
        bound = find_bound(
            array, f"{target[0]}:{target[1]!r}", preset=preset, toml=toml, params=params,
            backend=backend, threads=threads, fallback=fallback, fill=fill,
        )  # fmt: skip
    made = Pipeline(
        preset=preset,
        toml=toml,
        bound=bound,
        params=params,
        backend=backend,
        threads=threads,
        fallback=fallback,
        fill=fill,
    )
    return made.compress(array, out=out, stream=stream)


def find_bound(
    array: Any,
    target: str,
    preset: str | None = None,
    *,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    fill: float | Sequence[float] | str | None = None,
) -> Bound:
    """The absolute bound with which `compress` reaches a result for this array.

    >>> import numpy as np, fz
    >>> field = np.sin(np.arange(40000, dtype="f4") / 50).reshape(200, 200)
    >>> bound = fz.find_bound(field, "psnr:60")
    >>> fz.verify(fz.compress(field, bound), field).psnr >= 60
    True

    Parameters
    ----------
    array
        In host memory.
    target
        ``"psnr:80"``: at least that many decibels, over the values that are not missing, by the
        largest bound. ``"ratio:20"``: at least that ratio, by a small bound; very high
        ratios may be exceeded.
    preset, toml, params, backend, threads, fallback, fill
        As in `compress`.

    Raises
    ------
    TargetError
        No bound reaches it; the message has the best that was reached.
    FillValueError
        A value that nobody declared looks like a fill value and sets the range.
    """
    wanted = target_of(target)
    if wanted is None:
        raise InvalidArgumentError(f"target '{target}': give psnr:DB or ratio:R, such as psnr:80")
    made = Pipeline(
        preset=preset if toml is not None else preset or default_preset(None),
        toml=toml,
        params=params,
        backend=backend,
        threads=threads,
        fallback=fallback,
        fill=fill,
    )
    return Bound("abs", made._find_bound(array, *wanted)[0])


def find_settings(
    array: Any,
    bound: str | Bound,
    preset: str | None = None,
    *,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    backend: str = "auto",
    threads: int = 0,
    fill: float | Sequence[float] | str | None = None,
) -> dict[str, str]:
    """What `compress` finds out about this array, as `params` for the next one of its kind.

    The presets ``best``, ``auto`` and ``balanced`` look for a plan of prediction, which takes a
    large part of their time; the time steps of a run do well with that of the first. Costs a
    compression. Other presets look for nothing: the result is empty.

    >>> import numpy as np, fz
    >>> field = np.sin(np.arange(40000, dtype="f4") / 50).reshape(200, 200)
    >>> found = fz.find_settings(field, "abs:1e-3", "best")
    >>> list(found)
    ['predict.plan']
    >>> fz.compress(field, "abs:1e-3", "best", params=found) == fz.compress(field, "abs:1e-3", "best")
    True

    Parameters
    ----------
    array
        In host memory.
    bound, preset, toml, params, backend, threads, fill
        As in `compress`.
    """
    made = Pipeline(
        preset=preset if toml is not None else preset or default_preset(bound),
        toml=toml,
        bound=bound,
        params=params,
        backend=backend,
        threads=threads,
        fill=fill,
    )
    return made._find_settings(array)


@overload
def decompress(
    frame: bytes | bytearray | memoryview | str | os.PathLike[str],
    out: None = None,
    *,
    shape: Sequence[int] | None = None,
    max_output_bytes: int = 0,
    max_memory_bytes: int = 0,
    backend: str = "auto",
    threads: int = 0,
    stream: Any = None,
) -> np.ndarray: ...
@overload
def decompress(
    frame: DeviceFrame,
    out: None = None,
    *,
    shape: Sequence[int] | None = None,
    max_output_bytes: int = 0,
    max_memory_bytes: int = 0,
    backend: str = "auto",
    threads: int = 0,
    stream: Any = None,
) -> DeviceArray: ...
@overload
def decompress(
    frame: Any,
    out: Any = None,
    *,
    shape: Sequence[int] | None = None,
    max_output_bytes: int = 0,
    max_memory_bytes: int = 0,
    backend: str = "auto",
    threads: int = 0,
    stream: Any = None,
) -> Any: ...
def decompress(
    frame: Any,
    out: Any = None,
    *,
    shape: Sequence[int] | None = None,
    max_output_bytes: int = 0,
    max_memory_bytes: int = 0,
    backend: str = "auto",
    threads: int = 0,
    stream: Any = None,
) -> Any:
    """Decodes a frame of any pipeline, process or machine; type and shape come from the frame.

    >>> import numpy as np, fz
    >>> frame = fz.compress(np.ones((2, 3, 4, 5), "f8"), "abs:1e-6")
    >>> fz.decompress(frame).shape, fz.decompress(frame, shape=(6, 20)).shape
    ((2, 3, 4, 5), (6, 20))
    >>> fz.decompress(frame, max_output_bytes=100)
    Traceback (most recent call last):
    fz.errors.LimitError: frame: decodes to 960 bytes, the limit is 100

    Parameters
    ----------
    frame
        Bytes-like, or an array of bytes on a GPU (such as `DeviceFrame`), which is decoded there.
        Or the path of a file, or an archive of chunks, of which `open` reads parts.
    out
        Array to decode into, contiguous, of the frame's type and length (its shape may differ);
        also the result. A GPU array makes the GPU decode, wherever the frame is.
    shape
        Another shape for the same values. Frames of versions before 0.2, and those of the codecs
        for Zarr and HDF5, know three axes at most.
    max_output_bytes, max_memory_bytes
        Raise `LimitError` rather than take more; for frames from strangers.
    backend, threads, stream
        As for `compress`.
    """
    on_device = is_device_array(frame)
    if backend == "auto":
        backend = "cuda" if on_device or (out is not None and is_device_array(out)) else "cpu"
    settings = _fz.DecodeSettings(
        check_count(max_output_bytes, "max_output_bytes"),
        check_count(max_memory_bytes, "max_memory_bytes"),
        backend,
        check_count(threads, "threads"),
    )
    if on_device and backend == "cuda":
        return _decompress_device(frame, out, shape, settings, stream, max_output_bytes)
    source = bytes(frame) if isinstance(frame, DeviceFrame) else frame
    limits = (max_output_bytes, max_memory_bytes)
    if isinstance(source, (str, os.PathLike)):
        return _archive.read_all(source, out, shape, threads, backend, limits)
    try:
        info = _fz.inspect(source)
    except CorruptError:
        if not _archive.is_archive(source):
            raise
        return _archive.read_all(source, out, shape, threads, backend, limits)
    _check_limit(info, max_output_bytes)
    wanted = tuple(shape) if shape is not None else info["shape"]
    _check_shape(wanted, info)
    if out is None:
        values = _fz.decompress(source, settings)
        return values.view(_dtype(info)).reshape(wanted)
    if is_device_array(out):
        view = device_view(out, stream)
        _check_out(view.type, view.nbytes, info)
        memory = np.frombuffer(source, np.uint8)
        _fz.upload_and_decompress(memory, view.address, view.nbytes, settings, view.stream)
        return out
    if not isinstance(out, np.ndarray) or not out.flags.c_contiguous:
        raise TypeError("decompress: out must be a C-contiguous numpy or GPU array")
    _check_out(out.dtype.name, out.nbytes, info)
    _fz.decompress_into(source, out, settings)
    return out


def _decompress_device(
    frame: Any, out: Any, shape: Any, settings: Any, stream: Any, limit: int
) -> Any:
    view = device_view(frame, stream)
    if isinstance(frame, DeviceFrame):
        name, known_shape = frame.original_type, frame.original_shape
    else:
        info = _fz.inspect(_fz.to_host(view.address, view.nbytes, view.stream))
        name, known_shape = info["type"], info["shape"]
    wanted = tuple(shape) if shape is not None else known_shape
    n_bytes = math.prod(known_shape) * np.dtype(name).itemsize
    facts = {"type": name, "original_bytes": n_bytes}
    _check_shape(wanted, facts)
    if out is None:
        _check_limit(facts, limit)
        memory = _fz.decompress_device(view.address, view.nbytes, n_bytes, settings, view.stream)
        return DeviceArray(memory, name, wanted)
    if not is_device_array(out):
        raise TypeError("decompress: the frame is on a GPU, so out must be there too")
    target = device_view(out, view.stream)
    _check_out(target.type, target.nbytes, facts)
    _fz.decompress_device_into(
        view.address, view.nbytes, target.address, target.nbytes, settings, view.stream
    )
    return out


def _dtype(info: Mapping[str, Any]) -> np.dtype[Any]:
    """Frames of old versions may not say what they hold: then bytes."""
    return np.dtype("uint8" if info["type"] == "unknown" else info["type"])


def _check_limit(info: Mapping[str, Any], limit: int) -> None:
    if limit and info["original_bytes"] > limit:
        from .errors import LimitError

        raise LimitError(f"frame: decodes to {info['original_bytes']} bytes, the limit is {limit}")


def _check_shape(shape: tuple[int, ...], info: Mapping[str, Any]) -> None:
    n_bytes = math.prod(shape) * _dtype(info).itemsize
    if n_bytes != info["original_bytes"]:
        raise BadSizeError(
            f"shape {shape} of {_dtype(info)} has {n_bytes} bytes, the frame decodes to "
            f"{info['original_bytes']}"
        )


def _check_out(name: str, n_bytes: int, info: Mapping[str, Any]) -> None:
    if name != _dtype(info).name:
        raise TypeMismatchError(f"out holds {name}, the frame {_dtype(info)}")
    if n_bytes != info["original_bytes"]:
        raise BadSizeError(
            f"out has {n_bytes} bytes, the frame decodes to {info['original_bytes']}"
        )


def stages() -> list[dict[str, Any]]:
    """Every stage: name, category, summary, types, ports and settings with their defaults.

    >>> import fz
    >>> "Huffman" in [stage["name"] for stage in fz.stages()]
    True
    """
    return list(_fz.stages())


def presets() -> list[dict[str, str]]:
    """Every shipped pipeline: name, summary, TOML text.

    >>> import fz
    >>> [row["name"] for row in fz.presets()][:5]
    ['fast', 'balanced', 'best', 'auto', 'lossless']
    """
    return list(_fz.presets())


def has_backend(name: str) -> bool:
    """Whether ``"cpu"`` or ``"cuda"`` can be used here and now."""
    return bool(_fz.backend_available(name))


def free_host_memory() -> None:
    """Gives back the memory that `compress` and `decompress` on the CPU keep for their next calls.

    They keep the blocks of earlier calls and of results that are gone, so that the system need not
    clear new pages; with those in use at most about twice what was asked for at once before. Memory
    limits do not count them. Arrays and frames are not touched.
    """
    _fz.release_host_memory()


def free_device_memory() -> None:
    """Gives back the GPU memory that `compress` and `decompress` keep for their next calls.

    Arrays and frames are not touched. Without a GPU there is nothing to do.
    """
    if hasattr(_fz, "clear_decoders"):
        _fz.clear_decoders()
