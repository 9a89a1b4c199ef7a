#!/usr/bin/env python3
"""Archives of the C library and of the command line tool: equal bytes, each decoded by the other.

Usage: interop_test.py LIBRARY FZ [PROGRAM...]    programs that write an archive to their argument
"""

import array
import ctypes
import itertools
import math
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS, ROWS = 96, 40
FILL = -9999.0


class Options(ctypes.Structure):
    """fz_options, by its fields in order."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int32),
        ("backend", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("bound_mode", ctypes.c_int32),
        ("fusion", ctypes.c_int32),
        ("error_bound", ctypes.c_double),
        ("dims", ctypes.c_size_t * 3),
        ("n_threads", ctypes.c_size_t),
        ("max_output_bytes", ctypes.c_uint64),
        ("max_memory_bytes", ctypes.c_uint64),
        ("params", ctypes.c_void_p),
        ("n_params", ctypes.c_size_t),
        ("allocator", ctypes.c_void_p * 3),
        ("fallback", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("fill", ctypes.POINTER(ctypes.c_double)),
        ("n_fill", ctypes.c_size_t),
        ("fill_check", ctypes.c_int32),
        ("reserved_2", ctypes.c_int32),
    ]


class Library:
    def __init__(self, path: str) -> None:
        self.c = ctypes.CDLL(path)
        self.c.fz_last_error.restype = ctypes.c_char_p
        self.c.fz_pipeline_destroy.argtypes = [ctypes.c_void_p]

    def call(self, name: str, *arguments) -> None:
        status = getattr(self.c, name)(*arguments)
        assert status == 0, f"{name}: {status}: {self.c.fz_last_error().decode()}"

    def options(self) -> Options:
        options = Options()
        self.call("fz_options_init", ctypes.byref(options), ctypes.c_size_t(ctypes.sizeof(options)))
        options.backend = 1
        return options

    def compress(self, preset: str, values: bytes, fill: float) -> bytes:
        options = self.options()
        options.error_bound = 0.001
        options.bound_mode = 1
        options.dims[:] = [COLUMNS, ROWS, 1]
        options.fill = ctypes.pointer(ctypes.c_double(fill))
        options.n_fill = 1
        pipeline = ctypes.c_void_p()
        self.call("fz_pipeline_from_preset", preset.encode(), ctypes.byref(options), ctypes.byref(pipeline))
        n_bytes = ctypes.c_size_t()
        self.call("fz_compress_bound", pipeline, ctypes.c_size_t(len(values)), ctypes.byref(n_bytes))
        archive = ctypes.create_string_buffer(n_bytes.value)
        self.call(
            "fz_compress", pipeline, values, ctypes.c_size_t(len(values)), archive, n_bytes, ctypes.byref(n_bytes), None
        )
        self.c.fz_pipeline_destroy(pipeline)
        return archive.raw[: n_bytes.value]

    def decompress(self, archive: bytes, n_bytes: int) -> bytes:
        options = self.options()
        pipeline = ctypes.c_void_p()
        self.call("fz_pipeline_for_decoding", ctypes.byref(options), ctypes.byref(pipeline))
        values = ctypes.create_string_buffer(n_bytes)
        n_decoded = ctypes.c_size_t()
        capacity = ctypes.c_size_t(n_bytes)
        self.call(
            "fz_decompress",
            pipeline,
            archive,
            ctypes.c_size_t(len(archive)),
            values,
            capacity,
            ctypes.byref(n_decoded),
            None,
        )
        self.c.fz_pipeline_destroy(pipeline)
        assert n_decoded.value == n_bytes
        return values.raw


def main() -> None:
    library, tool, programs = Library(sys.argv[1]), sys.argv[2], sys.argv[3:]

    def fz(*arguments) -> None:
        subprocess.run([tool, *map(str, arguments)], check=True, capture_output=True)

    plain = array.array("f", (math.sin(0.05 * i) * 10 for i in range(COLUMNS * ROWS)))
    with_gaps = array.array("f", (FILL if i % 50 < 20 else math.nan if i % 50 < 25 else x for i, x in enumerate(plain)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        field, archive, decoded = folder / "field.f32", folder / "cli.fzm", folder / "decoded.f32"
        for preset, numbers in itertools.product(("cuszp2", "pfpl", "fzgpu", "cusz"), (plain, with_gaps)):
            values = numbers.tobytes()
            field.write_bytes(values)
            fz("compress", "-p", preset, "-b", "abs:0.001", "-t", "f32", "-d", f"{COLUMNS}x{ROWS}",
               "--fill", FILL, "--backend", "cpu", "-f", "-o", archive, field)  # fmt: skip
            of_tool = archive.read_bytes()
            of_library = library.compress(preset, values, FILL)
            assert of_library == of_tool, f"{preset}: the archives differ"
            archive.write_bytes(of_library)
            fz("decompress", "-f", "-o", decoded, archive)
            assert library.decompress(of_tool, len(values)) == decoded.read_bytes(), preset
            fz("verify", archive, field)
        written = []
        for program in programs:
            path = folder / "program.fzm"
            subprocess.run([program, path], check=True, capture_output=True)
            fz("test", path)
            written.append(path.read_bytes())
        assert len(set(written)) <= 1, "C and Fortran wrote different archives of one field"
    print(f"equal bytes both ways, and {len(written)} programs")


main()
