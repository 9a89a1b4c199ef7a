"""Arrays on a GPU, and what happens without one."""

import importlib

import numpy as np
import pytest
from conftest import rough, same_bits, wave

import fz

needs_gpu = pytest.mark.skipif(not fz.has_backend("cuda"), reason="no GPU or no CUDA in this build")


class Pretender:
    """Says that it is on a GPU."""

    __cuda_array_interface__ = {
        "shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None,
    }  # fmt: skip


def test_without_a_gpu_the_cpu_is_taken_for_host_arrays():
    assert fz.has_backend("cpu")
    assert fz.decompress(fz.compress(wave((10,)), "abs:1e-3", backend="auto")).shape == (10,)


@pytest.mark.skipif(fz.has_backend("cuda"), reason="there is a GPU")
def test_asking_for_a_gpu_that_is_not_there_is_a_clear_error():
    with pytest.raises(fz.Error) as caught:
        fz.compress(Pretender(), "abs:1e-3")
    assert isinstance(caught.value, (fz.UnsupportedError, fz.NoDeviceError, fz.CudaError))
    with pytest.raises((fz.NoDeviceError, fz.UnsupportedError)):
        fz.compress(wave((10,)), "abs:1e-3", backend="cuda")
    with pytest.raises(TypeError, match="on a GPU"):
        fz.compress(Pretender(), "abs:1e-3", backend="cpu")


@needs_gpu
@pytest.mark.parametrize("preset", [row["name"] for row in fz.presets()])
def test_host_arrays_on_the_gpu_give_the_bytes_of_the_cpu(preset):
    field = wave((40, 50, 60))
    frame = fz.compress(field, "abs:1e-3", preset, backend="cpu")
    assert fz.compress(field, "abs:1e-3", preset, backend="cuda") == frame
    assert same_bits(fz.decompress(frame, backend="cuda"), fz.decompress(frame, backend="cpu"))


def library(name):
    if not fz.has_backend("cuda"):
        pytest.skip("no GPU or no CUDA in this build")
    return pytest.importorskip(name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cupy_arrays_stay_on_the_gpu(dtype):
    cupy = library("cupy")
    field = rough((30, 40, 50), dtype)
    frame = fz.compress(cupy.asarray(field), "abs:1e-3")
    assert isinstance(frame, fz.DeviceFrame)
    assert bytes(frame) == fz.compress(field, "abs:1e-3") == cupy.asarray(frame).tobytes()
    back = fz.decompress(frame)
    assert same_bits(cupy.asnumpy(cupy.asarray(back)), fz.decompress(bytes(frame)))
    assert same_bits(cupy.asnumpy(cupy.from_dlpack(back)), back.get())
    foreign = cupy.asarray(np.frombuffer(bytes(frame), "u1"))
    assert fz.decompress(foreign).shape == field.shape
    out = cupy.full((2, 30, 40, 50), 7, dtype)
    assert fz.decompress(frame, out=out[1]).data.ptr == out[1].data.ptr
    assert same_bits(cupy.asnumpy(out[1]), back.get()) and bool((out[0] == 7).all())
    out[:] = 0
    fz.decompress(bytes(frame), out=out[0])
    assert same_bits(cupy.asnumpy(out[0]), back.get())
    assert fz.verify(frame, cupy.asarray(field)).n_violations == 0


def test_cupy_streams_are_followed():
    cupy = library("cupy")
    pipeline = fz.Pipeline(preset="cuszp2", bound="abs:1e-3")
    for n in range(1, 20):
        with cupy.cuda.Stream(non_blocking=True):
            field = cupy.sin(cupy.arange(n * 100_000, dtype="f4") / 100)  # still on its way
            frame = pipeline.compress(field)
            back = cupy.asarray(fz.decompress(frame))
            assert back.shape == field.shape
            assert same_bits(cupy.asnumpy(back), fz.decompress(bytes(frame)))
            assert fz.verify(frame, field).n_violations == 0


def test_torch_tensors_stay_on_the_gpu():
    torch = library("torch")
    field = rough((30, 40, 50))
    tensor = torch.from_numpy(field).cuda()
    with torch.cuda.stream(torch.cuda.Stream()):
        frame = fz.compress(tensor, "abs:1e-3")
    assert bytes(frame) == fz.compress(field, "abs:1e-3")
    back = torch.from_dlpack(fz.decompress(frame))
    assert back.is_cuda and same_bits(back.cpu().numpy(), fz.decompress(bytes(frame)))
    assert torch.as_tensor(frame, device="cuda").numel() == len(frame)
    assert fz.decompress(fz.compress(torch.from_numpy(field), "abs:1e-3")).shape == field.shape
    assert fz.verify(frame, tensor).n_violations == 0


def test_arrays_that_only_know_dlpack_are_taken():
    cupy = library("cupy")

    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    field = wave((30, 40))
    assert bytes(fz.compress(OnlyDlpack(cupy.asarray(field)), "abs:1e-3")) == fz.compress(
        field, "abs:1e-3"
    )


def test_strided_and_wrong_arrays_on_the_gpu_are_refused():
    cupy = library("cupy")
    with pytest.raises(ValueError, match="contiguous"):
        fz.compress(cupy.zeros((10, 10), "f4")[:, ::2], "abs:1e-3")
    with pytest.raises(TypeError, match="float16"):
        fz.compress(cupy.zeros(10, "f2"), "abs:1e-3")
    with pytest.raises(fz.InvalidArgumentError, match="memory is not"):
        fz.compress(HostPretender(), "abs:1e-3")
    frame = bytearray(fz.compress(wave((100,)), "abs:1e-3"))
    frame[-1] ^= 1
    with pytest.raises(fz.CorruptError):
        fz.decompress(cupy.asarray(np.frombuffer(frame, "u1")))


class HostPretender:
    """Host memory that is said to be on a GPU."""

    values = np.zeros(4, "f4")
    __cuda_array_interface__ = {
        "shape": (4,), "typestr": "<f4", "data": (values.ctypes.data, False), "version": 3,
    }  # fmt: skip


def test_zarr_chunks_are_coded_on_the_gpu():
    library("cupy")
    zarr = pytest.importorskip("zarr")
    codecs = importlib.import_module("fz.zarr")
    field = rough((40, 60))
    codecs.enable_gpu()
    try:
        serializer = codecs.FZCuda(bound="abs:1e-3")
        store = {}
        array = zarr.create_array(store, data=field, serializer=serializer, compressors=None)
        assert same_bits(array[:], fz.decompress(fz.compress(field, "abs:1e-3")))
    finally:
        codecs.enable_gpu(False)
