"""Arrays on a GPU, and what happens without one."""

import concurrent.futures
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
@pytest.mark.parametrize("preset", [row["name"] for row in fz.presets() if row["name"] != "lossless"])
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


@pytest.fixture
def zarr_on_gpu():
    """zarr with the codec of the GPU, and the CPU's again afterwards."""
    library("cupy")
    zarr = pytest.importorskip("zarr")
    codecs = importlib.import_module("fz.zarr")
    codecs.enable_gpu()
    yield zarr, codecs
    codecs.enable_gpu(False)


def test_zarr_chunks_are_coded_on_the_gpu(zarr_on_gpu):
    zarr, codecs = zarr_on_gpu
    field = rough((40, 60))
    made = codecs.codecs("abs:1e-3")
    assert isinstance(made["serializer"], codecs.FZCuda)
    array = zarr.create_array({}, data=field, **made)
    assert same_bits(array[:], fz.decompress(fz.compress(field, "abs:1e-3")))


def test_zarr_arrays_stay_on_the_gpu_and_stores_are_those_of_the_cpu(zarr_on_gpu, tmp_path):
    zarr, codecs = zarr_on_gpu
    cupy = library("cupy")
    field = rough((40, 60))
    layout = {"shape": field.shape, "chunks": (20, 60), "dtype": "f4", "fill_value": 9.96921e36}
    codecs.enable_gpu(False)
    plain = zarr.create_array(tmp_path / "cpu.zarr", **layout, **codecs.codecs("abs:1e-3"))
    plain[:] = field
    codecs.enable_gpu()
    with zarr.config.enable_gpu():
        array = zarr.create_array(tmp_path / "gpu.zarr", **layout, **codecs.codecs("abs:1e-3"))
        array[:] = cupy.asarray(field)
        back = zarr.open_array(tmp_path / "gpu.zarr")[:]
        other = zarr.open_array(tmp_path / "cpu.zarr")[:]
    assert isinstance(back, cupy.ndarray) and isinstance(other, cupy.ndarray)
    assert same_bits(cupy.asnumpy(back), plain[:]) and same_bits(cupy.asnumpy(other), plain[:])
    for chunk in ("c/0/0", "c/1/0", "zarr.json"):
        written = [(tmp_path / store / chunk).read_bytes() for store in ("cpu.zarr", "gpu.zarr")]
        assert written[0] == written[1], chunk


@pytest.mark.parametrize("bound", ["abs:1e-3", "range:1e-3"])
@pytest.mark.parametrize("preset", ["cuszp2", "pfpl", "fzgpu"])
def test_missing_values_in_cupy_arrays_give_the_bytes_of_numpy(preset, bound):
    cupy = library("cupy")
    field = rough((30, 40, 50))
    field[field > 1e36] = 0.5  # a fill value, which would be refused
    pipeline = fz.Pipeline(preset=preset, bound=bound, fill=-9999)
    for gaps in (None, np.nan, -9999.0, np.nan):
        values = field.copy()
        if gaps is not None:
            values[5:20, 10:30] = gaps
            values[7, 11, ::2] = np.inf
        frame = pipeline.compress(cupy.asarray(values))
        assert bytes(frame) == pipeline.compress(values)
        assert same_bits(fz.decompress(frame).get(), fz.decompress(bytes(frame)))


def test_an_undeclared_fill_value_in_a_cupy_array_is_refused():
    cupy = library("cupy")
    field = rough((30, 40, 50))
    field[:10] = -9999
    with pytest.raises(fz.FillValueError):
        fz.compress(cupy.asarray(field), "range:1e-3")
    assert bytes(fz.compress(cupy.asarray(field), "range:1e-3", fill="none")) == fz.compress(
        field, "range:1e-3", fill="none"
    )


def test_decoders_are_used_again_for_frames_of_any_kind():
    cupy = library("cupy")
    frames = []
    for preset in ("cuszp2", "pfpl", "fzgpu"):
        for shape, dtype in (((30, 40, 50), "f4"), ((1000,), "f4")):
            field = wave(shape, dtype)
            frame = fz.compress(cupy.asarray(field), "abs:1e-3", preset)
            frames.append((frame, fz.decompress(fz.compress(field, "abs:1e-3", preset))))

    def decode_all(_):
        kept = []
        for frame, expected in frames:
            kept.append((fz.decompress(frame), expected))  # results outlive later calls
            out = cupy.empty(expected.shape, expected.dtype)
            assert same_bits(cupy.asnumpy(fz.decompress(frame, out=out)), expected)
        return all(same_bits(back.get(), expected) for back, expected in kept)

    for _ in range(3):
        assert decode_all(None)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert all(threads.map(decode_all, range(8)))
    back = fz.decompress(frames[0][0])
    fz.free_device_memory()
    assert same_bits(back.get(), frames[0][1])
    # A failure leaves no broken decoder behind, and limits are those of the call.
    damaged = bytearray(bytes(frames[0][0]))
    damaged[-1] ^= 1
    with pytest.raises(fz.CorruptError):
        fz.decompress(cupy.asarray(np.frombuffer(damaged, "u1")))
    with pytest.raises(fz.LimitError):
        fz.decompress(frames[0][0], max_output_bytes=1000)
    hungry = fz.compress(cupy.asarray(wave((1000,))), "abs:1e-3", "cusz")  # Huffman needs memory
    with pytest.raises(fz.LimitError):
        fz.decompress(hungry, max_memory_bytes=1)
    assert fz.decompress(hungry).shape == (1000,)
    assert decode_all(None)
