#!/usr/bin/env python3
"""Rates of whole calls of the Python package on GPU arrays, beside a copy of the same array."""

import sys
import time

import cupy

import fz

N_RUNS = 20


def median_seconds(call):
    """All of the call, whose result is complete when it returns."""
    times = []
    for _ in range(N_RUNS + 3):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        kept = call()  # is freed outside the time
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
        del kept
    return sorted(times[3:])[N_RUNS // 2]


def main():
    for n_mib in (1, 64, 512):
        n = n_mib << 18
        field = cupy.sin(cupy.arange(n, dtype="f4") / 1000).reshape(-1, 1024)
        out = cupy.empty_like(field)
        copy = field.nbytes / median_seconds(lambda: cupy.copyto(out, field)) / 1e9
        for preset in ("cuszp2", "pfpl"):
            pipeline = fz.Pipeline(preset=preset, bound="abs:1e-3")
            frame = pipeline.compress(field)
            rates = [
                field.nbytes / median_seconds(call) / 1e9
                for call in (
                    lambda: pipeline.compress(field),
                    lambda: fz.decompress(frame, out=out),
                    lambda: fz.decompress(frame),
                )
            ]
            if fz.verify(frame, field).n_violations or not bool((cupy.abs(out - field) <= 1.1e-3).all()):
                sys.exit(f"{preset}: wrong values")
            print(
                f"{n_mib:4} MiB {preset:8} compress {rates[0]:7.1f}  decompress out= {rates[1]:7.1f}"
                f"  new {rates[2]:7.1f}  copy {copy:7.1f} GB/s"
            )
    fz.free_device_memory()


if __name__ == "__main__":
    main()
