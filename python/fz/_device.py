"""Results that stay on the GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _fz


class DeviceArray:
    """An array on a GPU, made by fz; `cupy.asarray` and `torch.as_tensor` take it without a copy.

    The memory is ready when the object exists, on any stream, and lives as long as something
    refers to it.
    """

    def __init__(self, memory: Any, dtype: str, shape: tuple[int, ...]) -> None:
        self._memory = memory
        self.dtype = np.dtype(dtype)
        self.shape = shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self._memory.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._memory.address if self.size else 0, False),
            "strides": None,
            "version": 3,
        }

    def _exported(self) -> Any:
        return _fz.export_array(self._memory, self.dtype.name, list(self.shape), self)

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("stream", None)  # the memory is ready on every stream
        return self._exported().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._memory.device)

    def get(self) -> np.ndarray:
        """A copy in host memory."""
        values = np.empty(self.shape, self.dtype)
        if values.size:
            self._memory.into_host(values)
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a GPU cannot become a numpy array without a copy")
        values = self.get()
        return values if dtype is None else values.astype(dtype)

    def __repr__(self) -> str:
        return f"<fz.{type(self).__name__} {self.dtype.name}{list(self.shape)} on a GPU>"


class DeviceFrame(DeviceArray):
    """A frame on a GPU: an array of bytes that remembers what it decodes to.

    `bytes(frame)` copies it to the host; the bytes are those that the CPU writes. On the GPU a
    frame says three axes at most, so that the copy of an array with more can be longer.
    """

    def __init__(self, memory: Any, original_type: str, original_shape: tuple[int, ...]) -> None:
        super().__init__(memory, "uint8", (int(memory.nbytes),))
        self.original_type = original_type
        self.original_shape = original_shape

    def __bytes__(self) -> bytes:
        return _fz.with_shape(self._memory.to_host(), self.original_shape)

    def __len__(self) -> int:
        return self.size
