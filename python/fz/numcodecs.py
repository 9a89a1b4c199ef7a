"""numcodecs: fz as a compressor of Zarr format 2.

>>> import numpy as np, zarr, fz.numcodecs
>>> field = np.linspace(0, 1, 10_000, dtype="f4").reshape(100, 100)
>>> codec = fz.numcodecs.FZ(bound="abs:1e-4")
>>> array = zarr.create_array({}, data=field, zarr_format=2, compressors=codec)
>>> bool(np.abs(array[:] - field).max() <= 1e-4)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numcodecs
import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ensure_ndarray, ndarray_copy

from . import _chunks
from ._api import decompress
from ._arrays import host_array


class FZ(Codec):
    """The settings of `fz.zarr.FZ`; in metadata ``{"id": "fz", "bound": ...}``.

    Filters before it must give float32 or float64 unless `toml` takes something else or the bound
    is ``"lossless"``. The codec is not told the array's fill value: name it in `exact`.
    """

    codec_id = "fz"
    zero_padded = True  # what Zarr pads with unless told otherwise

    def __init__(
        self,
        bound: str | None = None,
        preset: str | None = None,
        toml: str | None = None,
        fallback: str | None = "pfpl",
        exact: Sequence[float] = (),
        threads: int = 1,
    ) -> None:
        _chunks.check_options(bound, preset, toml)
        self.bound = bound
        self.preset = preset
        self.toml = toml
        self.fallback = fallback
        self.exact = _chunks.exact_values(exact)
        self.threads = threads

    def encode(self, buf: Any) -> bytes:
        """A chunk as a frame."""
        array = ensure_ndarray(buf)
        _chunks.check_chunk_type(array.dtype, self._options())
        if not array.dtype.isnative:
            raise TypeError("fz: Zarr format 2 arrays must have the byte order of the machine")
        if array.flags.f_contiguous:
            array = array.T  # format 2 wants the chunk back in the order of its memory
        if not _chunks.is_lossless(self._options()):
            array = host_array(array)
        array = np.ascontiguousarray(array)
        return bytes(_chunks.encode(array, self._options(), "cpu"))

    def decode(self, buf: Any, out: Any = None) -> Any:
        """A frame as a chunk."""
        frame = ensure_contiguous_ndarray(buf)
        values = decompress(frame, backend="cpu", threads=self.threads)
        values = _chunks.restore(values, self.exact)
        return values if out is None else ndarray_copy(values, out)

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _chunks.SETTINGS}

    def get_config(self) -> dict[str, Any]:
        """For metadata. Threads concern the machine, not the array."""
        config: dict[str, Any] = {"id": self.codec_id, "fallback": self.fallback}
        if self.exact:
            config["exact"] = list(self.exact)
        for name in ("bound", "preset", "toml"):
            if getattr(self, name) is not None:
                config[name] = getattr(self, name)
        return config

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self.get_config().items() if k != "id")
        return f"FZ({settings})"


numcodecs.register_codec(FZ)
