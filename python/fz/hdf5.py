"""The HDF5 filter of fz, for h5py and everything that reads and writes through it.

Importing this module makes the filter visible to the HDF5 of h5py; no environment variable is
needed. Then datasets are compressed by keyword arguments, and read as any others:

    import h5py, fz.hdf5
    with h5py.File("run.h5", "w") as file:
        file.create_dataset("T", data=field, chunks=(1, 180, 360),
                            **fz.hdf5.filter(bound="abs:1e-3"))

Nothing here needs the compiled part of the package: only the plugin (libh5fz.so).
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

__all__ = [
    "FILTER_ID", "PluginError", "cd_values", "filter", "is_visible", "last_error",
    "make_visible", "plugin_directory",
]  # fmt: skip

FILTER_ID = 62074
STRICT = 1  # flag in the parameters of the filter
PLUGIN_FILE = "libh5fz.so"
MAX_WORDS = 64


class PluginError(RuntimeError):
    """The plugin is not there, or HDF5 cannot load it."""


def _candidates() -> list[Path]:
    """Where the plugin may be, the likeliest first."""
    here = Path(__file__).resolve().parent
    folders = []
    if "FZ_HDF5_PLUGIN" in os.environ:
        folders.append(Path(os.environ["FZ_HDF5_PLUGIN"]))
    folders.append(here / "hdf5_plugin")  # in a wheel
    # Of an installation: <prefix>/lib/<...>/fz/hdf5.py and <prefix>/lib/<...>/hdf5/plugin.
    for parent in list(here.parents)[:6]:
        folders += [parent / "hdf5" / "plugin", *parent.glob("lib*/hdf5/plugin"),
                    *parent.glob("lib/*/hdf5/plugin")]  # fmt: skip
    folders += [Path(part) for part in os.environ.get("HDF5_PLUGIN_PATH", "").split(":") if part]
    folders += [Path("/usr/local/lib/hdf5/plugin"), Path("/usr/local/hdf5/lib/plugin")]
    return folders


def plugin_directory() -> Path:
    """The folder with the plugin. FZ_HDF5_PLUGIN (a folder) comes before all others."""
    for folder in _candidates():
        if (folder / PLUGIN_FILE).is_file():
            return folder
    raise PluginError(
        f"{PLUGIN_FILE} was not found; build and install fz with FZ_HDF5_FILTER=ON, or set "
        f"FZ_HDF5_PLUGIN to the folder that has it"
    )


def make_visible() -> Path:
    """Tells HDF5 where the plugin is, and gives the folder. Done once on import.

    HDF5 libraries that are loaded later, and child processes, find it through HDF5_PLUGIN_PATH.
    """
    folder = plugin_directory()
    parts = [part for part in os.environ.get("HDF5_PLUGIN_PATH", "").split(":") if part]
    if str(folder) not in parts:
        os.environ["HDF5_PLUGIN_PATH"] = ":".join([str(folder), *parts])
    try:
        import h5py
    except ImportError:
        return folder
    # Its HDF5 has read the variable already, maybe before it was set.
    known = {h5py.h5pl.get(i) for i in range(h5py.h5pl.size())}
    if str(folder).encode() not in known:
        h5py.h5pl.prepend(str(folder).encode())
    return folder


def is_visible() -> bool:
    """Whether the HDF5 of h5py can load the filter now."""
    import h5py

    return bool(h5py.h5z.filter_avail(FILTER_ID))


_plugin: ctypes.CDLL | None = None


def _load() -> ctypes.CDLL:
    global _plugin
    if _plugin is None:
        library = ctypes.CDLL(str(plugin_directory() / PLUGIN_FILE))
        library.fz_hdf5_cd_values_from_text.restype = ctypes.c_size_t
        library.fz_hdf5_cd_values_from_text.argtypes = [
            ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_uint),
            ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
        ]  # fmt: skip
        library.fz_hdf5_last_error.restype = ctypes.c_char_p
        _plugin = library
    return _plugin


def last_error() -> str:
    """Why the filter last failed in this thread; empty when it never did.

    HDF5 before 1.14 has the same words in its own message; later ones say that a filter failed.
    """
    return _load().fz_hdf5_last_error().decode(errors="replace")


def _choice(bound: str | None, preset: str | None) -> tuple[str, str]:
    """Bound and preset as everywhere in fz; no bound is an empty one."""
    if bound in (None, "lossless"):
        if preset not in (None, "lossless"):
            raise ValueError(f"the preset {preset} needs a bound, as in bound='abs:1e-3'")
        return "", "lossless"
    if preset == "lossless":
        raise ValueError("the preset lossless takes no bound")
    return str(bound), preset or ("pfpl" if str(bound).startswith("rel:") else "balanced")


def cd_values(
    bound: str | None = None, preset: str | None = None, strict: bool = False
) -> tuple[int, ...]:
    """The parameters of the filter as HDF5 takes them, for h5repack, nccopy and other languages.

    What is not given is chosen as filter() does.
    """
    bound, preset = _choice(bound, preset)
    values = (ctypes.c_uint * MAX_WORDS)()
    message = ctypes.create_string_buffer(512)
    n_words = _load().fz_hdf5_cd_values_from_text(
        preset.encode(), bound.encode(), STRICT if strict else 0, values, MAX_WORDS,
        message, len(message),
    )  # fmt: skip
    if n_words == 0:
        raise ValueError(message.value.decode(errors="replace"))
    return tuple(values[:n_words])


def filter(  # noqa: A001
    bound: str | None = None, preset: str | None = None, strict: bool = False
) -> dict[str, Any]:
    """Keyword arguments for h5py's create_dataset().

    bound   "abs:1e-3" (units of the data), "rel:1e-3" (of each value) or "range:1e-3" (of the range
            of each chunk; a constant chunk is kept bit for bit). Without a bound, or with "lossless",
            the dataset is lossless.
    preset  a name of `fz presets`; "balanced" when not given, with "rel" bounds "pfpl".
    strict  a chunk that the preset cannot take (a number too large for its codes) is an error;
            otherwise it is stored bit for bit.
    """
    return {"compression": FILTER_ID, "compression_opts": cd_values(bound, preset, strict)}


try:
    make_visible()
except PluginError:
    pass  # filter() says it again, where it can be acted on
