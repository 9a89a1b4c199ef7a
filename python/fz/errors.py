"""What can go wrong, one class per error code of the library.

Every class derives from `Error`; where Python has a built-in exception for the same thing
(`ValueError`, `MemoryError`, `OSError`), it derives from that as well.

>>> import fz
>>> try:
...     fz.decompress(b"not a frame")
... except fz.CorruptError as error:
...     print(error.code)
corrupt
"""

from __future__ import annotations


class Error(Exception):
    """Every failure of the library. `code` is the library's name for it."""

    code: str = "error"


class InvalidArgumentError(Error, ValueError):
    """A setting or argument outside its range."""

    code = "invalid argument"


class InvalidStateError(Error):
    """The call does not fit the object's state."""

    code = "invalid state"


class GraphError(Error):
    """The stages do not form a valid pipeline."""

    code = "graph"


class TypeMismatchError(Error, TypeError):
    """Two connected stages, or the data and the first stage, have different types."""

    code = "type mismatch"


class BadSizeError(Error, ValueError):
    """A length that a stage or the given shape cannot take."""

    code = "bad size"


class BufferTooSmallError(Error, ValueError):
    """The caller's buffer is too small; the message has both sizes."""

    code = "buffer too small"


class BoundViolationError(Error):
    """A value cannot be kept within the error bound; nothing was written."""

    code = "bound violation"


class CorruptError(Error, ValueError):
    """The frame is damaged or was never one."""

    code = "corrupt"


class UnsupportedError(Error):
    """Valid, but not for this build, backend or format version."""

    code = "unsupported"


class LimitError(Error):
    """Decoding would exceed a limit that the caller set."""

    code = "limit"


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory could not be allocated."""

    code = "out of memory"


class IoError(Error, OSError):
    """A file could not be read or written."""

    code = "i/o"


class NotFoundError(IoError, FileNotFoundError):
    """There is no such file."""


class ConfigError(Error, ValueError):
    """A configuration is wrong; the message has its name and line."""

    code = "config"


class NoDeviceError(Error):
    """No usable GPU."""

    code = "no device"


class CudaError(Error):
    """A CUDA call failed."""

    code = "cuda"


class InternalError(Error):
    """A broken promise inside the library: please report it."""

    code = "internal"


class FillValueError(Error, ValueError):
    """A fill value sets the range that a bound is relative to; an absolute bound is needed."""

    code = "fill value"


class TargetError(Error, ValueError):
    """No bound reaches the ratio or PSNR that was asked for; the message has the best."""

    code = "target"


class CancelledError(Error):
    """The caller asked the call to stop."""

    code = "cancelled"


CLASSES = (
    InvalidArgumentError, InvalidStateError, GraphError, TypeMismatchError, BadSizeError,
    BufferTooSmallError, BoundViolationError, CorruptError, UnsupportedError, LimitError,
    OutOfMemoryError, IoError, ConfigError, NoDeviceError, CudaError, InternalError,
    FillValueError, TargetError, CancelledError,
)  # fmt: skip
BY_CODE: dict[str, type[Error]] = {cls.code: cls for cls in CLASSES}
