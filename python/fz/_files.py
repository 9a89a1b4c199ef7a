"""Arrays in files: save and load."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._api import compress, decompress
from ._arrays import host_array, is_device_array
from ._bounds import Bound, target_of
from ._pipeline import Pipeline, default_preset
from ._writer import Progress, create, find_archive_bound, value_range
from .errors import InvalidArgumentError, IoError

#: Above this a file has several chunks, as those that the command line tool makes.
_WHOLE_BYTES = 256 * 2**20


def save(
    path: str | os.PathLike[str],
    array: Any,
    bound: str | Bound | None = None,
    preset: str | None = None,
    *,
    pipeline: Pipeline | None = None,
    toml: str | None = None,
    params: Mapping[str, bool | int | float | str] | None = None,
    chunks: Sequence[int] | str | None = None,
    fill: float | Sequence[float] | str | None = None,
    backend: str = "auto",
    threads: int = 0,
    fallback: bool = True,
    verify: bool = False,
    replace: bool = True,
    progress: Progress | None = None,
) -> int:
    """Compresses an array into a file, which `load`, `open` and the tool `fz` read.

    >>> import numpy as np, fz
    >>> field = np.sin(np.arange(40000, dtype="f4") / 50).reshape(200, 200)
    >>> n_bytes = fz.save("field.fz", field, "abs:1e-3")
    >>> back = fz.load("field.fz")
    >>> back.shape, bool(np.abs(back - field).max() <= 1e-3), n_bytes < field.nbytes / 5
    ((200, 200), True, True)

    The file has its name only when it is complete; whatever interrupts the call leaves an older one
    as it was.

    Parameters
    ----------
    path
        By custom ends in ``.fz`` or ``.fzm``.
    array, bound, preset, pipeline, toml, params, fill, backend, threads, fallback
        As in `compress`. ``range:E`` is of the whole array, whatever its chunks are.
    chunks
        As in `create`. Without it arrays of up to 256 MiB are one frame, larger ones have chunks of
        about 64 MiB.
    verify
        Whether what was compressed is decoded and compared with the array before it is written.
    replace
        Whether a file of that name is replaced; else it is an `IoError`.
    progress
        As in `create`.

    Returns
    -------
    int
        Bytes of the file.
    """
    settings: dict[str, Any] = {
        "preset": preset, "pipeline": pipeline, "toml": toml, "params": params, "fill": fill,
        "backend": backend, "threads": threads, "fallback": fallback,
    }  # fmt: skip
    if is_device_array(array) and chunks is not None:
        raise InvalidArgumentError("save: an array on a GPU becomes one frame; leave chunks out")
    if not is_device_array(array):
        array = host_array(array)
        if chunks is not None or array.nbytes > _WHOLE_BYTES:
            _save_chunks(path, array, bound, settings, chunks, verify, replace, progress)
            return os.path.getsize(path)
    frame = bytes(compress(array, bound, **settings))
    if verify:
        _require_kept(frame, array)
    _write_whole(path, frame, replace)
    if progress is not None:
        progress(array.nbytes, array.nbytes)
    return len(frame)


def _save_chunks(
    path: Any, array: Any, bound: Any, settings: dict[str, Any], chunks: Any, verify: bool,
    replace: bool, progress: Any,
) -> None:  # fmt: skip
    target = target_of(bound)
    if target is not None:
        if settings["pipeline"] is not None:
            raise TypeError("save: a pipeline brings its own bound and settings")
        rest = {key: settings[key] for key in ("toml", "params", "fallback", "fill")}
        preset = settings["preset"]
        if rest["toml"] is None:
            preset = preset or default_preset(None)
        bound = find_archive_bound(
            array, target, chunks, Pipeline(preset=preset, **rest), settings["backend"], settings["threads"]
        )
    made = settings["pipeline"]
    kind = made.bound if made is not None else None if bound is None else Bound.of(bound)
    limits = None
    if kind is not None and kind.kind == "range":
        limits = value_range(array, fill=settings["fill"], threads=settings["threads"])
    with create(
        path, array.shape, array.dtype, bound=bound, range=limits, chunks=chunks, verify=verify,
        replace=replace, progress=progress, **settings,
    ) as archive:  # fmt: skip
        archive.append(array)


def _require_kept(frame: bytes, array: Any) -> None:
    from ._inspect import verify
    from .errors import BoundViolationError

    report = verify(frame, array)
    if not report:
        raise BoundViolationError(f"save: {report.n_violations} values do not meet {report.rule}")


def _write_whole(path: Any, frame: bytes, replace: bool) -> None:
    """All of it or nothing: written beside the name, which it takes at the end."""
    name = os.path.abspath(os.fsdecode(path))
    if not replace and os.path.lexists(name):
        raise IoError(f"'{os.fsdecode(path)}' is there already")
    if os.path.exists(name):
        name = os.path.realpath(name)  # a link keeps pointing to the file
    part = f"{name}.{os.getpid()}.{secrets.token_hex(4)}.part"
    try:
        file = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with os.fdopen(file, "wb") as out:
                if os.path.exists(name):
                    os.fchmod(out.fileno(), os.stat(name).st_mode & 0o777)
                out.write(frame)
                out.flush()
                os.fsync(out.fileno())
            os.replace(part, name)
        except BaseException:
            os.unlink(part)
            raise
    except OSError as error:
        raise IoError(f"cannot write '{os.fsdecode(path)}': {error.strerror}") from error


def load(source: Any, out: np.ndarray | None = None, **options: Any) -> np.ndarray:
    """The whole array of a file that `save`, `create` or the tool `fz` wrote.

    >>> import numpy as np, fz
    >>> n_bytes = fz.save("counts.fz", np.arange(10), "lossless")
    >>> fz.load("counts.fz")
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])

    Parameters
    ----------
    source
        A path, or a binary file object, which is read from where it stands. `open` reads parts.
    out, options
        As in `decompress`.
    """
    if hasattr(source, "read"):
        source = source.read()
    values: np.ndarray = decompress(source, out, **options)
    return values
