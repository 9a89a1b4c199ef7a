"""inspect, verify."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _archive, _fz
from ._api import _dtype, decompress
from ._arrays import device_view, host_array, is_device_array
from ._bounds import Bound, FrameBound
from ._device import DeviceFrame
from .errors import CorruptError, InvalidArgumentError, TypeMismatchError


@dataclass(frozen=True)
class Missing:
    """Missing values of an array: NaN, infinities and declared fill values."""

    count: int
    filled: int  #: those that are finite, and so missing by declaration
    fill: tuple[float, ...]  #: what was declared


@dataclass(frozen=True)
class FrameInfo:
    """What a frame says about itself."""

    format: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    original_bytes: int
    frame_bytes: int
    header_bytes: int
    payload_bytes: int
    ratio: float
    bound: FrameBound | None
    lossless: bool
    missing: Missing | None  #: None where no missing values were taken out
    stages: list[dict[str, Any]]
    segments: list[dict[str, Any]]

    @property
    def is_fallback(self) -> bool:
        """Stored without loss, because with the bound it would have been larger."""
        return self.lossless and self.bound is not None


def inspect(frame: Any) -> FrameInfo:
    """Reads the header of a frame (bytes-like, on a GPU, or the path of a file).

    >>> import numpy as np, fz
    >>> info = fz.inspect(fz.compress(np.zeros((40, 50), "f4"), "range:1e-4", preset="cuszp2"))
    >>> info.shape, info.bound.kind, [stage["name"] for stage in info.stages]
    ((40, 50), 'range', ['Quantizer', 'Lorenzo', 'AdaptiveBitpack'])
    """
    row = _inspected(_host_frame(frame))
    bound = row.pop("bound")
    dtype = _dtype(row)
    del row["type"]
    missing = row.pop("missing")
    made = None if bound is None else FrameBound(**bound)
    lost = None if missing is None else Missing(**missing)
    return FrameInfo(dtype=dtype, bound=made, missing=lost, **row)


def _inspected(frame: Any) -> dict[str, Any]:
    try:
        if isinstance(frame, (str, os.PathLike)):
            with _archive.named(frame):
                return _fz.inspect_file(_archive.existing(frame))
        return _fz.inspect(frame)
    except CorruptError:
        if not _archive.is_archive(frame):
            raise
        raise InvalidArgumentError(
            "this is an archive of chunks, each with a header of its own; fz.open says what it has"
        ) from None


def _host_frame(frame: Any) -> Any:
    if isinstance(frame, DeviceFrame):
        return bytes(frame)
    if is_device_array(frame):
        view = device_view(frame)
        return _fz.to_host(view.address, view.nbytes, view.stream)
    return frame


def _host_values(array: Any) -> Any:
    if not is_device_array(array):
        return array
    view = device_view(array)
    values = _fz.to_host(view.address, view.nbytes, view.stream)
    return np.frombuffer(values, view.type).reshape(view.shape)


@dataclass(frozen=True)
class VerifyReport:
    """How a frame's values compare with their originals, without any rounding.

    `True` in conditions when no value breaks the rule.
    """

    rule: str  #: what every value has to meet
    n_values: int
    n_violations: int
    first_violation: tuple[int, float, float] | None  #: flat index, original, decoded
    max_error: float
    max_error_index: int
    mse: float
    psnr: float  #: in dB; NaN where there is none, such as for fields without finite values
    nrmse: float
    value_range: float
    nan_kept: tuple[int, int]  #: kept bit for bit, of how many
    inf_kept: tuple[int, int]
    negative_zero_kept: tuple[int, int]
    fill_kept: tuple[int, int]  #: of the declared fill values

    def __bool__(self) -> bool:
        return self.n_violations == 0


def verify(
    frame: Any, original: Any, bound: str | Bound | None = None, **options: Any
) -> VerifyReport:
    """Decodes a frame (or the file of one) and compares every value with the original, exactly.

    The rule is the frame's own bound, or the one given. NaN and infinities must be equal bit for
    bit. `options` are those of `decompress`.

    >>> import numpy as np, fz
    >>> field = np.array([1.0, 2.5, np.nan, -np.inf], "f4")
    >>> report = fz.verify(fz.compress(field, "abs:0.01"), field)
    >>> report.n_violations, report.rule, report.nan_kept
    (0, "|x - x'| <= 0.01", (1, 1))
    >>> bool(report), report.max_error <= 0.01
    (True, True)
    """
    source = _host_frame(frame)
    if _archive.is_archive(source):
        raise InvalidArgumentError(
            "verify takes frames, and this is an archive of chunks: fz.open reads it, the command "
            "'fz verify' compares it with its original, and verify=True does so while it is written"
        )
    _inspected(source)
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            source = file.read()
    expected = host_array(_host_values(original))
    decoded = decompress(source, **{"backend": "cpu", **options})
    if decoded.dtype != expected.dtype or decoded.size != expected.size:
        raise TypeMismatchError(
            f"verify: the original is {expected.dtype} of {expected.size} values, the frame "
            f"{decoded.dtype} of {decoded.size}"
        )
    axes, given = ([n for n in array.shape if n != 1] for array in (decoded, expected))
    if axes != given and sorted(axes) == sorted(given):
        raise TypeMismatchError(
            f"verify: the original has shape {expected.shape}, the frame {decoded.shape}; transpose "
            "it, or .reshape(-1) it if its values are in the order of the frame"
        )
    kind, value = None, 0.0
    if bound is not None:
        wanted = Bound.parse(bound)
        kind, value = wanted.kind, wanted.value
    row = _fz.check_values(source, expected, decoded, kind, value)
    return VerifyReport(**row)
