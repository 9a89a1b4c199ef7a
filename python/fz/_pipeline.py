"""Pipelines: what to do with an array, independent of its type and shape."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _fz
from ._arrays import check_count, check_shape, check_type, device_view, host_array, is_device_array
from ._bounds import LOSSLESS, Bound
from ._device import DeviceFrame
from .errors import InvalidArgumentError, TypeMismatchError, UnsupportedError

_KEPT = 8  # idle native pipelines that an object keeps, with their buffers


class Stage:
    """A stage with its settings, for `Pipeline`; `fz.stages()` lists stages and settings.

    `name` is what other stages call it (default: its type in lower case), `inputs` names earlier
    stages as ``"name"`` or ``"name.port"`` (default: the first port of the stage before).
    Element types such as ``code_type`` are settings too; those left out are chosen so that the
    stage takes what it is given.

    >>> Stage("Quantizer", error_bound=1e-3, error_bound_mode="ABS")
    Stage('Quantizer', error_bound=0.001, error_bound_mode='ABS')
    """

    def __init__(
        self,
        type: str,
        *,
        name: str | None = None,
        inputs: str | Sequence[str] | None = None,
        **settings: bool | int | float | str,
    ) -> None:
        self.type = type
        self.name = name
        self.inputs = [inputs] if isinstance(inputs, str) else inputs
        self.settings = settings

    def __repr__(self) -> str:
        named = {} if self.name is None else {"name": self.name}
        linked = {} if self.inputs is None else {"inputs": list(self.inputs)}
        extra = "".join(f", {k}={v!r}" for k, v in {**named, **linked, **self.settings}.items())
        return f"Stage({self.type!r}{extra})"


def _rows(stages: Iterable[Stage | str]) -> list[tuple[str, str, Any, dict[str, Any]]]:
    """The stages as the extension takes them, with unique names."""
    rows: list[tuple[str, str, Any, dict[str, Any]]] = []
    taken: set[str] = set()
    for entry in stages:
        stage = Stage(entry) if isinstance(entry, str) else entry
        name = base = stage.name or stage.type.lower()
        number = 2
        while stage.name is None and name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        inputs = None
        if stage.inputs is not None:
            inputs = [tuple(text.partition(".")[::2]) for text in stage.inputs]
        rows.append((stage.type, name, inputs, dict(stage.settings)))
    return rows


class Pipeline:
    """A compression pipeline for arrays of any shape, and of every type that its stages take.

    Built from a list of stages, a preset or TOML text; exactly one of the three.

    >>> import numpy as np, fz
    >>> p = fz.Pipeline(
    ...     [
    ...         fz.Stage("Quantizer", error_bound=1e-3, error_bound_mode="ABS"),
    ...         fz.Stage("Bitshuffle"),
    ...         fz.Stage("RZE"),
    ...     ]
    ... )
    >>> field = np.sin(np.arange(1000, dtype="f4"))
    >>> frame = p.compress(field)
    >>> bool(np.abs(p.decompress(frame) - field).max() <= 1e-3)
    True

    One object may be used by several threads at once and can be pickled.

    Parameters
    ----------
    bound
        As in `compress`; replaces the bound of the stages. ``"lossless"`` is the preset of that
        name.
    params
        Other settings to replace: ``{"stage.key": value}`` or ``{"key": value}``.
    backend
        ``"auto"``: where the array is; ``"cpu"`` or ``"cuda"``.
    threads
        Threads on the CPU; 0 means all.
    fallback, fill
        As in `compress`.
    """

    def __init__(
        self,
        stages: Iterable[Stage | str] | None = None,
        *,
        preset: str | None = None,
        toml: str | None = None,
        bound: str | Bound | None = None,
        params: Mapping[str, bool | int | float | str] | None = None,
        backend: str = "auto",
        threads: int = 0,
        fallback: bool = True,
        fill: float | Sequence[float] | str | None = None,
    ) -> None:
        if bound == LOSSLESS:
            preset, bound = _lossless_preset(preset, stages is not None or toml is not None), None
        if sum(source is not None for source in (stages, preset, toml)) != 1:
            raise TypeError("Pipeline: give exactly one of stages, preset and toml")
        if preset == LOSSLESS and bound is not None:
            raise InvalidArgumentError(
                "preset 'lossless' keeps every bit and takes no bound; leave one of them out"
            )
        if backend not in ("auto", "cpu", "cuda"):
            raise InvalidArgumentError(f"backend '{backend}' must be auto, cpu or cuda")
        self._rows = None if stages is None else _rows(stages)
        self._toml = toml if preset is None else _preset_toml(preset)
        self._preset = preset
        self._source = preset or "pipeline"
        self.bound = None if bound is None else Bound.parse(bound)
        self._extra = [(key, _text(value)) for key, value in (params or {}).items()]
        self._params = ([] if self.bound is None else self.bound.params) + self._extra
        self.backend = backend
        self.threads = check_count(threads, "threads")
        self.fallback = fallback
        self._fill = _fill_values(fill)
        self._make_idle()

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **options: Any) -> Pipeline:
        """A pipeline from a TOML file."""
        with open(path, encoding="utf-8") as file:
            made = cls(toml=file.read(), **options)
        made._source = os.fspath(path)
        return made

    def _make_idle(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[Any, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_idle")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_idle()

    def to_toml(self, dtype: Any = "float32") -> str:
        """The configuration file of this pipeline for data of a type."""
        return self._native(self._key(check_type(np.dtype(dtype)), None, "cpu")).toml()

    def explain(self, dtype: Any = "float32", shape: Sequence[int] | None = None) -> str:
        """Order, types, memory and fused groups of the stages for data of a type and shape."""
        known = None if shape is None else check_shape(shape)
        backend = "cpu" if self.backend == "auto" else self.backend
        return self._native(self._key(check_type(np.dtype(dtype)), known, backend)).explain()

    def max_compressed_bytes(self, array: Any) -> int:
        """Bytes that no array of this type and shape can exceed when compressed."""
        values = host_array(array)
        key = self._key(check_type(values.dtype), check_shape(values.shape), "cpu")
        return self._native(key).max_compressed_bytes(values.nbytes)

    def compress(self, array: Any, *, out: Any = None, stream: Any = None) -> Any:
        """The frame of an array, as `fz.compress` gives it."""
        if is_device_array(array) and self.backend != "cpu":
            if out is not None:
                raise TypeError("compress: out is for arrays in host memory")
            return self._compress_device(array, stream)
        values = host_array(array)
        name, shape = check_type(values.dtype), check_shape(values.shape)
        if self.backend == "cuda":
            frame = _fz.compress_host(
                self._toml_for(name), self._source, self._settings(name, shape, "cuda"), values
            )
            return self._checked(frame) if out is None else _copied(frame, out)
        key = self._key(name, shape, "cpu")
        native = self._take(key)
        try:
            if out is not None:
                return native.compress_into(values, out)
            return self._checked(native.compress(values))
        finally:
            self._give(key, native)

    def compress_batch(self, arrays: Iterable[Any], *, errors: str = "raise") -> list[Any]:
        """The frames of many arrays, as `fz.compress_batch` gives them."""
        check_errors(errors)
        arrays = list(arrays)
        made: list[Any] = [None] * len(arrays)
        backend = "cpu" if self.backend == "auto" else self.backend
        by_type: dict[str, list[int]] = {}
        hosts: dict[int, np.ndarray] = {}
        for i, array in enumerate(arrays):
            try:
                if is_device_array(array) and self.backend != "cpu":
                    made[i] = self._compress_device(array, None)
                    continue
                hosts[i] = host_array(array)
                check_shape(hosts[i].shape)
                by_type.setdefault(check_type(hosts[i].dtype), []).append(i)
            except Exception as error:
                made[i] = error
        for name, places in by_type.items():
            try:
                settings = self._settings(name, None, backend)
                frames = _fz.compress_batch(
                    self._toml_for(name), self._source, settings,
                    [hosts[i] for i in places], [hosts[i].shape for i in places],
                )  # fmt: skip
            except TypeMismatchError as error:  # of all arrays of this type
                frames = [error] * len(places)
            for i, frame in zip(places, frames):
                made[i] = frame
        for i, frame in enumerate(made):
            if isinstance(frame, bytes):
                try:
                    self._checked(frame)
                except UnsupportedError as error:
                    made[i] = error
        return raised_or_kept(made, errors)

    def _find_bound(self, array: Any, kind: str, value: float) -> tuple[float, float]:
        if is_device_array(array):
            raise UnsupportedError("find_bound: arrays on a GPU are not looked at; copy it")
        values = host_array(array)
        name, shape = check_type(values.dtype), check_shape(values.shape)
        backend = "cpu" if self.backend == "auto" else self.backend
        return _fz.find_bound(
            self._toml_for(name), self._source, self._settings(name, shape, backend), kind, value,
            values,
        )  # fmt: skip

    def _find_settings(self, array: Any) -> dict[str, str]:
        if is_device_array(array):
            raise UnsupportedError("find_settings: arrays on a GPU are not looked at; copy it")
        values = host_array(array)
        name, shape = check_type(values.dtype), check_shape(values.shape)
        backend = "cpu" if self.backend == "auto" else self.backend
        return _fz.find_settings(
            self._toml_for(name), self._source, self._settings(name, shape, backend), values
        )

    def decompress(self, frame: Any, **options: Any) -> Any:
        """`fz.decompress` with this pipeline's backend and threads."""
        from ._api import decompress

        return decompress(frame, **{"backend": self.backend, "threads": self.threads, **options})

    def _compress_device(self, array: Any, stream: Any) -> DeviceFrame:
        view = device_view(array, stream)
        key = self._key(view.type, check_shape(view.shape), "cuda")
        native = self._take(key)
        try:
            memory = _fz.compress_device(native, view.address, view.nbytes, view.stream)
        finally:
            self._give(key, native)
        frame = DeviceFrame(memory, view.type, view.shape)
        self._checked(frame)
        return frame

    def _checked(self, frame: Any) -> Any:
        """LorenzoQuant takes rel of the largest value, which bounds no value by its own size."""
        if self.bound is not None and self.bound.kind == "rel":
            kept = _fz.inspect(bytes(frame) if isinstance(frame, DeviceFrame) else frame)["bound"]
            if kept is not None and kept["kind"] == "max":
                raise UnsupportedError(
                    f"{self._source}: keeps rel bounds of the largest value only, here "
                    f"{kept['absolute']:g} for every value; use range:E, abs:E or preset pfpl"
                )
        return frame

    # Native pipelines are for one type and shape. Each call takes one for itself, so that threads
    # do not wait for each other, and leaves it for the next.

    def _key(self, name: str, shape: tuple[int, ...] | None, backend: str) -> tuple[Any, ...]:
        return (name, shape, backend)

    def _toml_for(self, name: str) -> str:
        if self._preset not in (None, LOSSLESS) and name not in ("float32", "float64"):
            raise TypeMismatchError(
                f"preset '{self._preset}' takes float32 and float64, not {name}; "
                "bound='lossless' keeps every bit of any type"
            )
        if self._toml is not None:
            return self._toml
        return str(_fz.stages_to_toml(self._rows, name))

    def _settings(self, name: str, shape: tuple[int, ...] | None, backend: str) -> Any:
        params = self._params
        if self._preset == LOSSLESS:
            params = [("element_width", str(np.dtype(name).itemsize)), *params]
        return _fz.PipelineSettings(
            name, shape, params, backend, self.threads, self.fallback, self._fill
        )

    def _native(self, key: tuple[Any, ...]) -> Any:
        name, shape, backend = key
        settings = self._settings(name, shape, backend)
        return _fz.NativePipeline(self._toml_for(name), self._source, settings)

    def _take(self, key: tuple[Any, ...]) -> Any:
        with self._lock:
            for i, (known, native) in enumerate(self._idle):
                if known == key:
                    del self._idle[i]
                    return native
        return self._native(key)

    def _give(self, key: tuple[Any, ...], native: Any) -> None:
        with self._lock:
            self._idle.append((key, native))
            del self._idle[:-_KEPT]

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", bound={str(self.bound)!r}"
        if self._rows is not None:
            return f"<fz.Pipeline {' -> '.join(row[0] for row in self._rows)}{bound}>"
        return f"<fz.Pipeline {self._source}{bound}>"


def check_errors(errors: str) -> None:
    """Raises for what `errors` cannot be."""
    if errors not in ("raise", "return"):
        raise InvalidArgumentError(f"errors '{errors}' must be raise or return")


def raised_or_kept(made: list[Any], errors: str) -> list[Any]:
    """The results of a batch, unless one is an exception that is to be raised."""
    if errors == "raise":
        for result in made:
            if isinstance(result, Exception):
                raise result
    return made


def _fill_values(fill: Any) -> list[float] | None:
    """The values that mean missing; None where nothing may even look like one."""
    if fill is None:
        return []
    if isinstance(fill, str):
        if fill != "none":
            raise InvalidArgumentError(f"fill is a number, several, or 'none', not '{fill}'")
        return None
    values = [fill] if np.ndim(fill) == 0 else list(fill)
    return [float(value) for value in values]


def default_preset(bound: str | Bound | None) -> str:
    """The preset where none is named: the library's, which depends on the kind of bound."""
    if bound == LOSSLESS:
        return LOSSLESS
    kind = bound.kind if isinstance(bound, Bound) else str(bound).partition(":")[0]
    return str(_fz.default_preset(kind == "rel"))


def _lossless_preset(preset: str | None, has_stages: bool) -> str:
    if has_stages or preset not in (None, LOSSLESS):
        raise InvalidArgumentError(
            "bound 'lossless' is a pipeline of its own; leave out "
            + ("stages and toml" if has_stages else f"preset '{preset}'")
        )
    return LOSSLESS


def _preset_toml(name: str) -> str:
    known = {row["name"]: row["toml"] for row in _fz.presets()}
    if name not in known:
        raise InvalidArgumentError(f"no preset '{name}'; the presets are {', '.join(known)}")
    return str(known[name])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _copied(frame: bytes, out: Any) -> int:
    view = memoryview(out).cast("B")
    if len(frame) > len(view):
        from .errors import BufferTooSmallError

        raise BufferTooSmallError(f"the frame has {len(frame)} bytes, out {len(view)}")
    view[: len(frame)] = frame
    return len(frame)
