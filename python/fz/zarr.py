"""Zarr 3: fz as the codec that turns a chunk into bytes.

>>> import numpy as np, zarr, fz.zarr
>>> field = np.random.default_rng(1).normal(size=(100, 100)).astype("f4")
>>> field[:10] = np.nan
>>> array = zarr.create_array({}, data=field, chunks=(50, 50), **fz.zarr.codecs("abs:1e-3"))
>>> back = array[:]
>>> bool(np.nanmax(np.abs(back - field)) <= 1e-3), bool(np.isnan(back[:10]).all())
(True, True)

The codec is found by its entry point: whoever reads the array needs the package installed, but
imports nothing. In the metadata it is called ``fz.frame``; each chunk is an ordinary frame.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import zarr
from zarr.abc.codec import ArrayBytesCodec
from zarr.registry import register_codec

from . import _chunks
from ._api import decompress
from ._arrays import TYPES, host_array

#: The codec's name in the metadata of arrays.
NAME = "fz.frame"
_GPU_CLASS = "fz.zarr.FZCuda"


@dataclass(frozen=True)
class FZ(ArrayBytesCodec):
    """For ``serializer=`` of `zarr.create_array`; `codecs` gives all that is needed.

    Parameters
    ----------
    bound
        As for `fz.compress`; ``"lossless"`` takes every type of up to 8 bytes. ``range`` takes
        max - min of each chunk, without the values of `exact`; where another value looks like a
        fill value, `fz.FillValueError`.
    preset, toml
        The pipeline; default: preset ``"balanced"``, with ``rel`` bounds ``"pfpl"``.
    fallback
        Preset for chunks that the pipeline refuses, such as those with NaN for a preset that takes
        only finite values; None: such a chunk raises `fz.BoundViolationError`.
    exact
        Values that come back bit for bit whatever the bound, such as a ``_FillValue``; the array's
        own fill value is one of them always.
    threads
        Threads per chunk; Zarr and dask work on several chunks at once already.
    """

    is_fixed_size = False

    bound: str | None = None
    preset: str | None = None
    toml: str | None = None
    fallback: str | None = "pfpl"
    exact: tuple[float, ...] = ()
    threads: int = 1
    zero_padded: bool = field(default=False, repr=False, compare=False)  # known from the array

    def __post_init__(self) -> None:
        _chunks.check_options(self.bound, self.preset, self.toml)
        object.__setattr__(self, "exact", _chunks.exact_values(self.exact))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FZ:
        """The codec that metadata describe."""
        return cls(**data.get("configuration", {}))

    def to_dict(self) -> dict[str, Any]:
        """The codec for metadata. Threads concern the machine, not the array."""
        settings = {"bound": self.bound, "preset": self.preset, "toml": self.toml}
        kept: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
        if self.exact:
            kept["exact"] = list(self.exact)
        return {"name": NAME, "configuration": {**kept, "fallback": self.fallback}}

    def evolve_from_array_spec(self, array_spec: Any) -> FZ:
        """Refuses arrays that could not be written, and records the fill value."""
        dtype = array_spec.dtype.to_native_dtype()
        _chunks.check_chunk_type(dtype, self._options())
        if dtype.kind != "f" or array_spec.fill_value is None:
            return self
        fill = float(array_spec.fill_value)
        return replace(self, exact=(*self.exact, fill), zero_padded=fill == 0)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        """Frames have no fixed size."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _chunks.SETTINGS}

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        chunk = chunk_array.as_numpy_array()
        if not _chunks.is_lossless(self._options()):
            chunk = host_array(chunk)
        chunk = np.require(chunk, chunk.dtype.newbyteorder("="), "C")
        frame = _chunks.encode(chunk, self._options(), "cpu")
        return chunk_spec.prototype.buffer.from_bytes(frame)

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        values = _chunks.decode(
            chunk_bytes.as_numpy_array(), tuple(chunk_spec.shape), chunk_spec.fill_value,
            self.exact, threads=self.threads, max_output_bytes=_chunk_bytes(chunk_spec),
            backend="cpu",
        )  # fmt: skip
        return chunk_spec.prototype.nd_buffer.from_numpy_array(_as_spec(values, chunk_spec))

    async def encode(self, chunks_and_specs: Any) -> Any:
        """The chunks that Zarr hands over at once (its setting ``codec_pipeline.batch_size``)."""
        return await _spread(self._encode_sync, chunks_and_specs)

    async def decode(self, chunks_and_specs: Any) -> Any:
        """As `encode`."""
        return await _spread(self._decode_sync, chunks_and_specs)

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)


@dataclass(frozen=True)
class FZCuda(FZ):
    """The same name and the same bytes, with the work on a GPU; needs cupy. See `enable_gpu`."""

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        import cupy

        chunk = cupy.ascontiguousarray(cupy.asarray(chunk_array.as_ndarray_like()))
        frame = _chunks.encode(chunk, self._options(), "cuda")
        buffer = chunk_spec.prototype.buffer
        if issubclass(buffer, zarr.core.buffer.gpu.Buffer):
            if isinstance(frame, bytes):
                frame = np.frombuffer(frame, "u1")
            return buffer.from_array_like(cupy.asarray(frame))
        return buffer.from_bytes(bytes(frame))

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        import cupy

        if _chunks.is_part(chunk_bytes[:40].to_bytes()):  # which may have to be padded
            return super()._decode_sync(chunk_bytes, chunk_spec)
        dtype = chunk_spec.dtype.to_native_dtype().newbyteorder("=")
        stored = dtype if dtype.name in TYPES else np.dtype(f"u{dtype.itemsize}")
        out = cupy.empty(chunk_spec.shape, stored)
        source = chunk_bytes.as_array_like()
        decompress(source, out=out, max_output_bytes=_chunk_bytes(chunk_spec), backend="cuda")
        out = _chunks.as_type(_chunks.restore(out, self.exact), dtype)
        buffer = chunk_spec.prototype.nd_buffer
        if issubclass(buffer, zarr.core.buffer.gpu.NDBuffer):
            return buffer.from_ndarray_like(out)
        return buffer.from_numpy_array(cupy.asnumpy(out))


async def _spread(run: Callable[[Any, Any], Any], chunks_and_specs: Iterable[Any]) -> list[Any]:
    """A few threads that take chunk after chunk: a hand-over for each takes as long as a chunk."""
    pairs = list(chunks_and_specs)
    made: list[Any] = [None] * len(pairs)
    places = iter([i for i, (chunk, _) in enumerate(pairs) if chunk is not None])

    def work() -> None:
        for i in places:  # a list's iterator gives every place to one thread
            made[i] = run(*pairs[i])

    n_threads = min(len(pairs), len(os.sched_getaffinity(0)))
    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(n_threads)))
    return made


def _chunk_bytes(spec: Any) -> int:
    """A chunk cannot decode to more than the array says it has."""
    n_values = int(np.prod(spec.shape, dtype=object))
    return max(1, n_values * spec.dtype.to_native_dtype().itemsize)


def _as_spec(values: np.ndarray, spec: Any) -> np.ndarray:
    dtype = spec.dtype.to_native_dtype()
    values = _chunks.as_type(values, dtype)
    if values.dtype != dtype.newbyteorder("="):
        raise ValueError(f"fz: the chunk holds {values.dtype}, the array {dtype}")
    return values.astype(dtype, copy=False)  # another byte order is the array's wish


def codecs(bound: str | None = None, preset: str | None = None, **options: Any) -> dict[str, Any]:
    """Keyword arguments for `zarr.create_array`, and an `encoding` for xarray.

    fz is the serializer; a compressor after it would find nothing to do.

    >>> sorted(codecs("abs:1e-3"))
    ['compressors', 'serializer']
    """
    on_gpu = zarr.config.get("codecs").get(NAME) == _GPU_CLASS
    made = (FZCuda if on_gpu else FZ)(bound=bound, preset=preset, **options)
    return {"serializer": made, "compressors": None}


def encoding(
    data: Any,
    bound: str | None = None,
    preset: str | None = None,
    zarr_format: int = 3,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """`fz.xarray.encoding` with one bound for all variables of float32 and float64, for Zarr.

    A codec is not told of ``_FillValue`` and ``missing_value``, which format 3 has in attributes
    only. Here they are read from the encoding and the attributes of each variable, and are exact
    besides those of `exact`. What else the variables' encoding says of values and chunks is kept;
    variables that are stored as integers are left to xarray.

    >>> import numpy as np, xarray as xr
    >>> data = xr.Dataset({"t": ("x", np.array([280, np.nan], "f4"))})
    >>> data.t.encoding["_FillValue"] = -9999.0
    >>> made = encoding(data, "abs:1e-3")
    >>> made["t"]["_FillValue"], made["t"]["serializer"].exact
    (-9999.0, (-9999.0,))
    """
    from .xarray import encoding as of_dataset

    return of_dataset(data, bound, preset, zarr_format=zarr_format, **options)


def enable_gpu(on: bool = True) -> None:
    """Chunks of arrays made or opened from now on are coded on the GPU (or on the CPU again).

    What is written does not depend on it. With `zarr.config.enable_gpu()` chunks stay on the GPU.
    """
    register_codec(NAME, FZ, qualname="fz.zarr.FZ")
    register_codec(NAME, FZCuda, qualname=_GPU_CLASS)
    chosen = {**zarr.config.get("codecs"), NAME: _GPU_CLASS if on else "fz.zarr.FZ"}
    zarr.config.set({"codecs": chosen})
