"""What a typed program sees of fz. A type checker reads it (test_types.py); it is never run.

Every `type: ignore` stands for a mistake that the checker has to find: one that it does not need is
an error.
"""

from pathlib import Path
from typing import Any

import fz
import fz.hdf5
import fz.xarray
import fz.zarr
import numpy as np
from typing_extensions import assert_type

field = np.zeros((40, 50), "f4")
bound = fz.Bound.parse("abs:1e-3")
assert_type(bound, fz.Bound)
assert_type(bound.value, float)

frame = fz.compress(field, bound)
assert_type(frame, bytes)
assert_type(fz.compress(field, "range:1e-3", "best", fill=[-9999.0], threads=2), bytes)
assert_type(fz.compress(field, "abs:1e-3", out=bytearray(9000)), int)
assert_type(fz.find_bound(field, "psnr:60"), fz.Bound)
fz.compress(field, 1e-3)  # type: ignore[call-overload]
fz.compress(field, "abs:1e-3", presets="best")  # type: ignore[call-overload]

assert_type(fz.decompress(frame), np.ndarray)
assert_type(fz.decompress(Path("t.fz"), max_memory_bytes=1 << 30), np.ndarray)
fz.decompress(frame, max_memory_bytes="1G")  # type: ignore[call-overload]

info = fz.inspect(frame)
assert_type(info.shape, tuple[int, ...])
assert_type(info.missing, fz.Missing | None)
if info.bound is not None:
    assert_type(info.bound.absolute, float | None)
info.bound.kind  # type: ignore[union-attr]
report = fz.verify(frame, field)
assert_type(report.n_violations, int)
assert_type(report.first_violation, tuple[int, float, float] | None)
report.violations  # type: ignore[attr-defined]

assert_type(fz.save("t.fz", field, "abs:1e-3", chunks="64M", verify=True), int)
assert_type(fz.load("t.fz"), np.ndarray)
with fz.open("t.fz") as archive:
    assert_type(archive, fz.Archive)
    assert_type(archive[3, ..., 5:7], np.ndarray)
    assert_type(archive.chunks, tuple[int, ...])
    assert_type(archive.bound, fz.FrameBound | None)

with fz.create("run.fz", (None, 50), "f4", bound="range:1e-3", range=fz.value_range(field)) as run:
    run.append(field)
    assert_type(run.chunk_count, int)
fz.create("run.fz", 50, range=1.0)  # type: ignore[arg-type]
assert_type(fz.recover("run.fz.part", "run.fz").shape, tuple[int, ...])

pipeline = fz.Pipeline([fz.Stage("Quantizer", error_bound=1e-3), "Bitshuffle", fz.Stage("RZE")])
assert_type(pipeline.max_compressed_bytes(field), int)
assert_type(pipeline.explain("float32", field.shape), str)
fz.Pipeline(preset="best", bound=1)  # type: ignore[arg-type]

assert_type([stage["name"] for stage in fz.stages()], list[Any])
assert_type([preset["name"] for preset in fz.presets()], list[str])
assert_type(fz.has_backend("cuda"), bool)


def on_gpu(device_frame: fz.DeviceFrame) -> fz.DeviceArray:
    return fz.decompress(device_frame)


try:
    fz.decompress(b"")
except fz.NotFoundError as missing:
    as_python_has_it: FileNotFoundError = missing
except fz.Error as error:
    assert_type(error.code, str)
