"""What takes part in tools/exam: fz and its peers, each as a pair of functions, one thread each."""

import dataclasses
from collections.abc import Callable

import numpy


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    runs_on: str  # as its documentation has it; the exam itself runs on the CPU
    is_lossless: bool
    pack: Callable  # (values, absolute bound, fill value or None) -> bytes-like
    unpack: Callable  # (packed, values whose type and shape are wanted) -> values


def of_fz(preset: str) -> Contender:
    import fz

    def pack(values, absolute, fill):
        return fz.compress(values, f"abs:{absolute!r}", preset=preset, fill=fill, threads=1, backend="cpu")

    def unpack(packed, _):
        return fz.decompress(packed, threads=1, backend="cpu")

    return Contender(f"fz {preset}", "CPU and NVIDIA GPU, same bytes", False, pack, unpack)


def of_sz3() -> Contender:
    import pysz

    def config(values, absolute=1.0):
        made = pysz.szConfig(*values.shape)
        made.errorBoundMode = pysz.szErrorBoundMode.ABS
        made.absErrorBound = absolute
        return made

    return Contender("SZ3", "CPU", False,
                     lambda values, absolute, _: pysz.sz.compress(values, config(values, absolute))[0],
                     lambda packed, values: pysz.sz.decompress(packed, values.dtype, values.shape)[0])


def of_zfp() -> Contender:
    import zfpy

    return Contender("zfp", "CPU; GPU without a bound", False,
                     lambda values, absolute, _: zfpy.compress_numpy(values, tolerance=absolute),
                     lambda packed, _: zfpy.decompress_numpy(packed))


def of_blosc2() -> Contender:
    import blosc2

    def pack(values, *_):
        return blosc2.compress2(values, codec=blosc2.Codec.ZSTD, clevel=5, filters=[blosc2.Filter.BITSHUFFLE],
                                typesize=values.itemsize, nthreads=1)

    def unpack(packed, values):
        return numpy.frombuffer(blosc2.decompress2(packed, nthreads=1), values.dtype).reshape(values.shape)

    return Contender("blosc2", "CPU", True, pack, unpack)


def of_pcodec() -> Contender:
    from pcodec import ChunkConfig, standalone

    return Contender("pcodec", "CPU", True,
                     lambda values, *_: standalone.simple_compress(values.ravel(), ChunkConfig()),
                     lambda packed, values: standalone.simple_decompress(packed).reshape(values.shape))


PEERS = {"SZ3": of_sz3, "zfp": of_zfp, "blosc2": of_blosc2, "pcodec": of_pcodec}


def contenders(presets: list[str]) -> list[Contender]:
    """All that can be imported; fz must be."""
    found = [of_fz(preset) for preset in presets]
    for name, make in PEERS.items():
        try:
            found.append(make())
        except ImportError as error:
            print(f"exam: {name} is left out: {error}")
    return found
