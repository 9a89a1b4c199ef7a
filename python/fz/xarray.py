"""xarray: fz for the variables of a dataset, whatever writes it.

>>> import numpy as np, xarray as xr, fz.xarray
>>> data = xr.Dataset({"t": (("y", "x"), np.ones((4, 5), "f4")), "n": ("y", np.arange(4))})
>>> sorted(fz.xarray.encoding(data, {"t": "abs:0.01"}))
['t']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._bounds import LOSSLESS, Bound
from ._chunks import FLOATS

_ENGINES = ("zarr", "h5netcdf", "netcdf4")
# What an encoding that is given replaces as a whole, and so must be kept.
_KEPT = {
    "zarr": ("_FillValue", "missing_value", "dtype", "scale_factor", "add_offset", "chunks",
             "shards"),
    "h5netcdf": ("_FillValue", "missing_value", "dtype", "scale_factor", "add_offset",
                 "chunksizes"),
}  # fmt: skip


def encoding(
    data: Any,
    bounds: str | Bound | Mapping[str, str | Bound] | None,
    preset: str | None = None,
    *,
    engine: str = "zarr",
    zarr_format: int = 3,
    **options: Any,
) -> dict[str, dict[str, Any]]:
    """The `encoding` with which a dataset is written with fz.

    Values of ``_FillValue`` and ``missing_value``, in the encoding or the attributes of a variable,
    and NaN come back bit for bit and have no part in bounds and ranges. What else a variable's
    encoding says of values and chunks is kept. Coordinates are left as they are.

    >>> import numpy as np, xarray as xr
    >>> data = xr.Dataset({"tos": ("x", np.array([280, np.nan], "f4"))})
    >>> data.tos.encoding["_FillValue"] = -9999.0
    >>> made = encoding(data, {"tos": "abs:0.01"})
    >>> made["tos"]["_FillValue"], made["tos"]["serializer"].exact
    (-9999.0, (-9999.0,))

    Parameters
    ----------
    data
        A Dataset or a DataArray with a name.
    bounds
        By variable, ``{"tos": "abs:0.01"}``: those that are not named are left to xarray. Or one
        for all variables that hold float32 or float64 in the file; integers are left to xarray
        then, but ``"lossless"`` takes them too.
    preset
        As in `compress`.
    engine
        What writes the dataset: ``"zarr"`` (`to_zarr`), ``"h5netcdf"`` (`to_netcdf`). The library
        behind ``"netcdf4"`` passes no filters on, but reads what h5netcdf has written, with
        HDF5_PLUGIN_PATH set to ``fz.hdf5.plugin_directory()``.
    zarr_format
        3 or 2.
    options
        Of the codec for Zarr (`fz.zarr.FZ`), or of `fz.hdf5.filter`.
    """
    if engine not in _ENGINES:
        raise ValueError(f"engine '{engine}': give one of {', '.join(_ENGINES)}")
    if engine == "netcdf4":
        raise ValueError(
            "the netCDF4 library for Python does not pass third-party filters on; write with "
            "engine='h5netcdf', which makes the same kind of file, and read it with any engine"
        )
    make = _zarr if engine == "zarr" else _hdf5
    if make is _zarr:
        options["zarr_format"] = zarr_format
    made: dict[str, dict[str, Any]] = {}
    for name, (variable, bound) in _chosen(data, bounds).items():
        kept = {key: variable.encoding[key] for key in _KEPT[engine] if key in variable.encoding}
        made[name] = {**kept, **make(variable, bound, preset, dict(options))}
    return made


def _chosen(data: Any, bounds: Any) -> dict[str, tuple[Any, Any]]:
    """Variables with their bounds."""
    variables = data.data_vars if hasattr(data, "data_vars") else {data.name: data}
    if isinstance(bounds, Mapping):
        for name in bounds:
            if name not in variables:
                known = ", ".join(map(str, variables))
                raise KeyError(f"no data variable '{name}'; there are {known}")
        chosen = {name: (variables[name], bound) for name, bound in bounds.items()}
        for name, (variable, bound) in chosen.items():
            if bound != LOSSLESS and not _is_float(variable):
                raise TypeError(
                    f"'{name}' is stored as {_stored(variable)}, for which a bound means nothing; "
                    "'lossless' keeps every bit, or leave it out"
                )
        return chosen
    return {
        name: (variable, bounds)
        for name, variable in variables.items()
        if _is_float(variable) or (bounds == LOSSLESS and _stored(variable).kind in "biu")
    }


def _stored(variable: Any) -> np.dtype[Any]:
    return np.dtype(variable.encoding.get("dtype", variable.dtype))


def _is_float(variable: Any) -> bool:
    return _stored(variable).name in FLOATS


def declared(variable: Any) -> list[float]:
    """The fill values that a variable names."""
    return [
        float(value)
        for source in (variable.encoding, variable.attrs)
        for key in ("_FillValue", "missing_value")
        for value in np.ravel(source.get(key, ()))
    ]


def _zarr(variable: Any, bound: Any, preset: Any, options: dict[str, Any]) -> dict[str, Any]:
    from .zarr import codecs

    version = options.pop("zarr_format")
    exact = (*options.pop("exact", ()), *(declared(variable) if _is_float(variable) else ()))
    text = None if bound is None else str(bound)  # a configuration file may have its own
    settings = {"bound": text, "preset": preset, "exact": exact, **options}
    if version == 2:
        from .numcodecs import FZ

        return {"compressors": (FZ(**settings),)}
    return codecs(**settings)


def _hdf5(variable: Any, bound: Any, preset: Any, options: dict[str, Any]) -> dict[str, Any]:
    from .hdf5 import filter  # noqa: A004

    return filter(None if bound in (None, LOSSLESS) else str(bound), preset, **options)
