"""Error-bounded compression of numpy, cupy and torch arrays.

>>> import numpy as np, fz
>>> field = np.cumsum(np.ones((64, 64), "f4"), axis=0)
>>> frame = fz.compress(field, bound="abs:1e-3", preset="cuszp2")
>>> bool(fz.verify(frame, field))
True

The frame is what the C++ library and the command line tool `fz` write and read.
"""

from ._api import (
    compress,
    decompress,
    find_bound,
    find_settings,
    free_device_memory,
    free_host_memory,
    has_backend,
    presets,
    stages,
)
from ._archive import Archive, open
from ._batch import compress_batch, decompress_batch
from ._bounds import Bound, FrameBound
from ._device import DeviceArray, DeviceFrame
from ._files import load, save
from ._fz import __version__
from ._inspect import FrameInfo, Missing, VerifyReport, inspect, verify
from ._pipeline import Pipeline, Stage
from ._writer import ArchiveWriter, Recovery, create, recover, value_range
from .errors import (
    BadSizeError,
    BoundViolationError,
    BufferTooSmallError,
    CancelledError,
    ConfigError,
    CorruptError,
    CudaError,
    Error,
    FillValueError,
    GraphError,
    InternalError,
    InvalidArgumentError,
    InvalidStateError,
    IoError,
    LimitError,
    NoDeviceError,
    NotFoundError,
    OutOfMemoryError,
    TargetError,
    TypeMismatchError,
    UnsupportedError,
)

__all__ = [
    "Archive", "ArchiveWriter", "BadSizeError", "Bound", "BoundViolationError",
    "BufferTooSmallError", "CancelledError", "ConfigError", "CorruptError", "CudaError",
    "DeviceArray", "DeviceFrame", "Error", "FillValueError", "FrameBound", "FrameInfo",
    "GraphError", "InternalError", "InvalidArgumentError", "InvalidStateError", "IoError",
    "LimitError", "Missing", "NoDeviceError", "NotFoundError", "OutOfMemoryError", "Pipeline",
    "Recovery", "Stage", "TargetError", "TypeMismatchError", "UnsupportedError", "VerifyReport",
    "__version__", "compress", "compress_batch", "create", "decompress", "decompress_batch",
    "find_bound", "find_settings", "free_device_memory", "free_host_memory", "has_backend", "inspect",
    "load", "open", "presets", "recover", "save", "stages", "value_range", "verify",
]  # fmt: skip
