"""compress_batch, decompress_batch: many arrays in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _archive, _fz
from ._api import _check_limit, _dtype, decompress
from ._arrays import check_count, is_device_array
from ._bounds import LOSSLESS, Bound, target_of
from ._device import DeviceFrame
from ._pipeline import Pipeline, check_errors, default_preset, raised_or_kept
from .errors import CorruptError, InvalidArgumentError


def compress_batch(
    arrays: Iterable[Any],
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
    errors: str = "raise",
) -> list[Any]:
    """Compresses many arrays at once; each frame is that of `compress` for its array alone.

    >>> import numpy as np, fz
    >>> fields = [np.full((50, n), n, "f4") for n in range(1, 9)]
    >>> frames = fz.compress_batch(fields, "abs:1e-3")
    >>> [back.shape for back in fz.decompress_batch(frames)] == [field.shape for field in fields]
    True

    Parameters
    ----------
    arrays
        Of any shapes and types. Those in host memory are spread over the threads, one array a
        thread; those on a GPU follow each other.
    bound, preset, pipeline, toml, params, backend, fallback, fill
        As in `compress`, for every array.
    threads
        Arrays at a time; 0 means as many as the machine has threads.
    errors
        ``"raise"``: the first exception when all are done. ``"return"``: exceptions stand in the
        list where a frame would be.
    """
    if pipeline is not None:
        if any(given is not None for given in (preset, toml, bound, params, fill)):
            raise TypeError("compress_batch: a pipeline brings its own bound and settings")
        return pipeline.compress_batch(arrays, errors=errors)
    if target_of(bound) is not None:
        raise InvalidArgumentError(
            "compress_batch: a result such as psnr:80 is looked for array by array; use compress, "
            "or find_bound for one of them"
        )
    if toml is None:
        if bound is None and preset != LOSSLESS:
            raise InvalidArgumentError(
                "compress_batch: give a bound, such as 'abs:1e-3' (of every value) or "
                "'range:1e-4' (of max - min), or 'lossless'"
            )
        preset = preset or default_preset(bound)
    made = Pipeline(
        preset=preset, toml=toml, bound=bound, params=params, backend=backend, threads=threads,
        fallback=fallback, fill=fill,
    )  # fmt: skip
    return made.compress_batch(arrays, errors=errors)


def decompress_batch(
    frames: Iterable[Any],
    *,
    max_output_bytes: int = 0,
    max_memory_bytes: int = 0,
    backend: str = "auto",
    threads: int = 0,
    errors: str = "raise",
) -> list[Any]:
    """Decodes many frames at once, as `decompress` does each.

    Parameters
    ----------
    frames
        Whatever `decompress` takes. Frames in host memory are spread over the threads.
    max_output_bytes, max_memory_bytes
        As in `decompress`, for each frame.
    backend, threads, errors
        As in `compress_batch`.
    """
    check_errors(errors)
    host_backend = "cpu" if backend == "auto" else backend
    settings = _fz.DecodeSettings(
        check_count(max_output_bytes, "max_output_bytes"),
        check_count(max_memory_bytes, "max_memory_bytes"),
        host_backend,
        check_count(threads, "threads"),
    )
    made: list[Any] = []
    waiting: list[tuple[int, Any, Mapping[str, Any]]] = []
    for i, frame in enumerate(frames):
        made.append(None)
        try:
            info = _info_of(frame)
            if info is not None:
                _check_limit(info, max_output_bytes)
                waiting.append((i, frame, info))
                continue
            made[i] = decompress(
                frame, max_output_bytes=max_output_bytes, max_memory_bytes=max_memory_bytes,
                backend=backend, threads=threads,
            )  # fmt: skip
        except Exception as error:
            made[i] = error
    decoded = _fz.decompress_batch([frame for _, frame, _ in waiting], settings)
    for (i, _, info), values in zip(waiting, decoded):
        is_error = isinstance(values, Exception)
        made[i] = values if is_error else values.view(_dtype(info)).reshape(info["shape"])
    return raised_or_kept(made, errors)


def _info_of(frame: Any) -> Mapping[str, Any] | None:
    """What the header of a frame in host memory says; None for whatever is no frame there."""
    if is_device_array(frame) or isinstance(frame, (str, os.PathLike, DeviceFrame)):
        return None
    try:
        return dict(_fz.inspect(frame))
    except CorruptError:
        if _archive.is_archive(frame):
            return None
        raise
