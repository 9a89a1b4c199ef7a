"""Arrays of any library, as the extension wants them: memory, type and shape.

Axes: numpy's last axis is the fastest, x. Predictors see the last three; those before them are
part of the third.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _fz
from .errors import InvalidArgumentError, UnsupportedError

#: Element types that a frame can hold.
TYPES = tuple(f"{kind}{bits}" for kind in ("uint", "int") for bits in (8, 16, 32, 64)) + (
    "float32",
    "float64",
)
#: Axes that a frame can keep.
MAX_AXES = 8


def check_count(value: Any, what: str) -> int:
    """A count of threads or bytes, of which 0 means all or any."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {type(value).__name__}") from None
    if not 0 <= count < 2**64:
        raise InvalidArgumentError(f"{what} must be at least 0 and below 2**64, not {count}")
    return count


@dataclass(frozen=True)
class DeviceView:
    """An array on a GPU. `owner` keeps its memory."""

    address: int
    type: str
    shape: tuple[int, ...]
    owner: Any
    stream: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.type).itemsize


def check_type(dtype: np.dtype[Any]) -> str:
    """The library's name of a type; TypeError with advice for one that frames do not have."""
    name = dtype.name
    if name not in TYPES:
        advice = {
            "float16": "; .astype('float32') keeps every value, .view('uint16') with "
            "bound='lossless' every bit",
            "bool": "; .view('uint8') with bound='lossless' keeps every value",
            "complex64": "; .view('float32') adds an axis of two",
            "complex128": "; .view('float64') adds an axis of two",
        }.get(name, "")
        if dtype.kind in "mM":
            advice = "; .view('int64') with bound='lossless' keeps every value"
        raise TypeError(f"fz does not compress arrays of {dtype}{advice}")
    return name


def check_shape(shape: Sequence[Any]) -> tuple[Any, ...]:
    """The shape, where a frame can keep it."""
    if len(shape) > MAX_AXES:
        raise InvalidArgumentError(
            f"a frame keeps at most {MAX_AXES} axes, the array has {len(shape)}; reshape it first"
        )
    return tuple(shape)


def folded(array: Any) -> Any:
    """The array with axes that three extents say, and no more; for chunks whose shape is known.

    Leading axes become part of the third, and those of length 1 are left out.
    """
    if array.size == 0:
        return array.reshape(0)
    axes = array.reshape((-1, *array.shape[-2:])) if array.ndim > 3 else array
    shape = axes.shape
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return axes.reshape(shape or 1)


def is_device_array(array: Any) -> bool:
    """Whether the array is in the memory of a GPU."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "__cuda_array_interface__"):
        return True
    device = getattr(array, "__dlpack_device__", None)
    return device is not None and device()[0] in (2, 13)  # CUDA and CUDA managed memory


def host_array(array: Any) -> np.ndarray:
    """The same values as a C-contiguous array in native byte order; a copy only where it is not."""
    if is_device_array(array):
        raise TypeError("the array is on a GPU, but must be in host memory here")
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise TypeError(
            "the array has masked values, and frames keep no masks; .filled(np.nan) makes them "
            "NaN, which come back bit for bit; integers need a value that the others do not have"
        )
    values = np.asarray(array)
    check_type(values.dtype)
    # ascontiguousarray would turn 0-d into 1-d.
    return np.require(values, values.dtype.newbyteorder("="), "C")


def stream_handle(stream: Any, array: Any) -> int:
    """The CUDA stream to work on: the one given, else the current one of the array's library."""
    if stream is not None:
        if isinstance(stream, int):
            return stream
        if hasattr(stream, "__cuda_stream__"):
            return int(stream.__cuda_stream__()[1])
        for name in ("cuda_stream", "ptr"):  # torch, cupy
            if hasattr(stream, name):
                return int(getattr(stream, name))
        raise TypeError("stream: an int handle, or a stream of cupy or torch")
    library = type(array).__module__.partition(".")[0]
    if library == "torch":
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0


def device_view(array: Any, stream: Any = None) -> DeviceView:
    """The memory of an array on a GPU, ready on the caller's stream."""
    if not _fz.has_cuda:
        raise UnsupportedError("this build of fz has no CUDA backend; the array is on a GPU")
    handle = stream_handle(stream, array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        _wait_for(interface.get("stream"), handle)
        dtype = np.dtype(interface["typestr"])
        shape = tuple(interface["shape"])
        if not _is_contiguous(shape, interface.get("strides"), dtype.itemsize):
            raise ValueError("the array on the GPU is not C-contiguous; make a contiguous copy")
        return DeviceView(interface["data"][0], check_type(dtype), shape, array, handle)
    # 1 is the legacy default stream in DLPack, where 0 is not allowed.
    capsule = array.__dlpack__(stream=handle or 1)
    address, name, shape, strides, on_device = _fz.describe_capsule(capsule)
    if not on_device:
        raise TypeError("the array is not on a CUDA device")
    if not _is_contiguous(shape, strides, 1):
        raise ValueError("the array on the GPU is not C-contiguous; make a contiguous copy")
    return DeviceView(address, check_type(np.dtype(name)), tuple(shape), (array, capsule), handle)


def _wait_for(producer: int | None, handle: int) -> None:
    """What the producer has enqueued on another stream must be there before work begins."""
    if producer is not None and producer not in (handle, handle or 1):
        _fz.synchronize_stream(0 if producer == 1 else producer)


def _is_contiguous(shape: Sequence[int], strides: Sequence[int] | None, unit: int) -> bool:
    if strides is None or math.prod(shape) == 0:
        return True
    expected = unit
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True
