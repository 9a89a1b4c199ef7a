"""Archives by fz and by its peers, for the tools that compare them."""

import datetime
import json
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_fz(program: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([program, *words], capture_output=True, text=True)


def dims_of(path: Path) -> str:
    """The end of a name, x fastest: 180x90x19 of sea_180x90x19.f32."""
    return re.search(r"_([0-9x]+)\.f(?:32|64)$", path.name)[1]


def values_of(path: Path):
    import numpy  # only where values are looked at

    shape = [int(n) for n in dims_of(path).split("x")][::-1]
    return numpy.fromfile(path, f"<f{int(path.suffix[2:]) // 8}").reshape(shape)


def by_fz(program: str, path: Path, preset: str, bound: str, looks: bool = False) -> tuple[int, float]:
    """Bytes of the archive, and the absolute bound that it states. fz checks every value; with
    `looks` so does numpy, on what `fz decompress` writes."""
    with tempfile.TemporaryDirectory() as folder:
        archive = f"{folder}/a.fzm"
        words = ["compress", "-q", "--verify", "-T", "1", "-p", preset, "-b", f"range:{bound}",
                 "-d", dims_of(path), "-o", archive, str(path)]
        done = run_fz(program, *words)
        guess = re.search(r"--fill (\S+)", done.stderr) if done.returncode else None
        if guess:
            done = run_fz(program, *words, "--fill", guess[1].rstrip(";,.)'"))
        if done.returncode:
            raise SystemExit(f"{path.name}, {preset}, {bound}: {done.stderr}")
        info = json.loads(run_fz(program, "info", "--json", archive).stdout)[0]
        info = info[0] if isinstance(info, list) else info
        if looks:
            back = Path(f"{folder}/back_{dims_of(path)}{path.suffix}")
            run_fz(program, "decompress", "-q", "-T", "1", "-o", str(back), archive).check_returncode()
            require_within(path, back, info["bound"]["absolute"], float(bound))
        return info["archive_bytes"], info["bound"]["absolute"]


def require_within(path: Path, back: Path, absolute: float, share: float) -> None:
    """Values without gaps, each within the stated bound, and the bound within what was asked for."""
    values, decoded = values_of(path).astype("f8"), values_of(back).astype("f8")
    allowed = share * float(values.max() - values.min())
    n_beyond = int((~(abs(values - decoded) <= absolute)).sum())
    if n_beyond or absolute > allowed * (1 + 1e-12):
        raise SystemExit(f"{path.name}: {n_beyond} values beyond {absolute}, at most {allowed} was asked for")


SZ_MODES = ("INTERP_LORENZO", "INTERP", "LORENZO_REG", "NOPRED", "LOSSLESS")  # the first is its default


def sz_config(shape: tuple, absolute: float, mode: str = SZ_MODES[0]):
    import pysz

    config = pysz.szConfig(*shape)
    config.errorBoundMode = pysz.szErrorBoundMode.ABS
    config.absErrorBound = absolute
    config.cmprAlgo = getattr(pysz.szAlgorithm, mode)
    return config


def sperr_bytes(values, absolute: float) -> int | None:
    """By the HDF5 filter, of fields of two and three axes. It has a mode for NaN; 1e20 as a fill value ends
    the process."""
    import h5py
    import hdf5plugin
    import numpy

    if values.ndim not in (2, 3) or numpy.nanmax(abs(values)) > 1e19:
        return None
    with h5py.File("sperr.h5", "w", driver="core", backing_store=False) as file:
        words = hdf5plugin.Sperr(absolute=absolute, missing_value_mode=1 if numpy.isnan(values).any() else 0)
        dataset = file.create_dataset("x", data=values, chunks=values.shape, **words)
        file.flush()
        return dataset.id.get_storage_size()


def pack(peer: str, values, absolute: float):
    """What a peer makes of the values."""
    if peer == "zfp":
        import zfpy

        return zfpy.compress_numpy(values, tolerance=absolute)
    import pysz

    return pysz.sz.compress(values, sz_config(values.shape, absolute))[0]


def unpack(peer: str, packed, values):
    """Values again, of the type and shape of these."""
    if peer == "zfp":
        import zfpy

        return zfpy.decompress_numpy(packed)
    import pysz

    return pysz.sz.decompress(packed, values.dtype, values.shape)[0]


def by_peer(peer: str, path: Path, absolute: float) -> int | None:
    """Bytes; nothing where a peer does not take such a field."""
    values = values_of(path)
    if peer == "SPERR":
        return sperr_bytes(values, absolute)
    if peer == "SZ3, best mode":
        import pysz

        return min(len(pysz.sz.compress(values, sz_config(values.shape, absolute, mode))[0]) for mode in SZ_MODES)
    return len(pack(peer, values, absolute))


def head(machine: str, command: str) -> dict:
    """What every file of figures begins with."""
    commit = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], text=True)
    return {"machine": machine, "date": datetime.date.today().isoformat(), "commit": commit.strip(),
            "command": command}
