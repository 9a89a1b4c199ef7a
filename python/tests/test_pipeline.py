"""Pipelines as objects."""

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import wave

import fz


def bitpack_chain(**quantizer):
    settings = {"error_bound": 1e-3, "error_bound_mode": "ABS", "linear_mode": True, **quantizer}
    return [fz.Stage("Quantizer", **settings), fz.Stage("Lorenzo", block_size=32), "AdaptiveBitpack"]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_stages_fit_the_type_that_comes(dtype):
    field = wave((40, 50), dtype)
    pipeline = fz.Pipeline(bitpack_chain())
    frame = pipeline.compress(field)
    assert fz.verify(frame, field).n_violations == 0
    assert [s["name"] for s in fz.inspect(frame).stages] == ["Quantizer", "Lorenzo", "AdaptiveBitpack"]


def test_settings_reach_their_stage():
    frame = fz.Pipeline(bitpack_chain(code_type="uint16")).compress(wave((1000,)))
    first = fz.inspect(frame).stages[0]
    assert first["types"] == ["float32", "uint16"]
    assert first["params"]["error_bound"] == 1e-3


def test_stages_can_be_linked_by_name():
    pipeline = fz.Pipeline(
        [
            fz.Stage("Quantizer", name="q", error_bound=0.1, error_bound_mode="ABS"),
            fz.Stage("RZE", name="positions", inputs="q.outlier_idxs"),
            fz.Stage("Bitshuffle", inputs="q.codes"),
            "RZE",
        ]
    )
    field = wave((500,))
    frame = pipeline.compress(field)
    assert fz.verify(frame, field).n_violations == 0
    assert [stage["name"] for stage in fz.inspect(frame).stages].count("RZE") == 2


def test_toml_says_the_same_as_the_stages():
    field = wave((30, 40))
    pipeline = fz.Pipeline(bitpack_chain())
    again = fz.Pipeline(toml=pipeline.to_toml("float32"))
    assert again.compress(field) == pipeline.compress(field)


def test_files_are_read(tmp_path):
    path = tmp_path / "chain.toml"
    path.write_text(fz.Pipeline(bitpack_chain()).to_toml())
    field = wave((30, 40))
    pipeline = fz.Pipeline.from_file(path, bound="abs:0.01")
    assert fz.inspect(pipeline.compress(field)).bound == fz.FrameBound("abs", 0.01, 0.01)


def test_a_mistake_in_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[[stage]]\nname = "q"\ntype = "Quantizer"\nerror_bund = 1\n')
    with pytest.raises(fz.ConfigError, match=r"wrong\.toml:4"):
        fz.Pipeline.from_file(path).compress(wave((10,)))


def test_bound_and_params_replace_what_the_pipeline_says():
    pipeline = fz.Pipeline(preset="cuszp2", bound="range:1e-2", params={"coder.block_size": 64})
    info = fz.inspect(pipeline.compress(wave((1000,))))
    assert info.bound.kind == "range" and info.bound.requested == 1e-2
    assert info.stages[2]["params"]["block_size"] == 64


def test_explain_names_the_fused_group():
    text = fz.Pipeline(bitpack_chain()).explain("float32", (100, 100))
    assert "fused" in text and "lorenzo" in text


def test_wrong_requests_say_what_is_there():
    with pytest.raises(fz.InvalidArgumentError, match="presets are .*cusz"):
        fz.Pipeline(preset="nothing")
    with pytest.raises(fz.InvalidArgumentError, match="stages are .*Quantizer"):
        fz.Pipeline(["Nothing"]).to_toml()
    with pytest.raises(fz.InvalidArgumentError, match="error_bound"):
        fz.Pipeline([fz.Stage("Quantizer", bound=1)]).to_toml()
    with pytest.raises(fz.InvalidArgumentError, match="comes before"):
        fz.Pipeline(["Quantizer", fz.Stage("RZE", inputs="later")]).to_toml()
    with pytest.raises(fz.TypeMismatchError, match="Quantizer"):
        fz.Pipeline(["Quantizer"]).to_toml("int32")
    with pytest.raises(TypeError, match="exactly one"):
        fz.Pipeline(preset="pfpl", toml="")
    with pytest.raises(fz.InvalidArgumentError, match="at least one"):
        fz.Pipeline([]).to_toml()
    with pytest.raises(fz.InvalidArgumentError, match="auto, cpu or cuda"):
        fz.Pipeline(preset="pfpl", backend="tpu")
    with pytest.raises(fz.TypeMismatchError, match="'balanced' takes float32 and float64, not int32"):
        fz.compress(np.arange(10, dtype="i4"), "abs:1e-3")


def test_counts_are_whole_and_not_negative():
    field = wave((40,))
    frame = fz.compress(field, "abs:1e-3")
    for wrong in (-1, 2**64):
        with pytest.raises(fz.InvalidArgumentError, match=f"threads must be .*, not {wrong}"):
            fz.compress(field, "abs:1e-3", threads=wrong)
        for name in ("threads", "max_output_bytes", "max_memory_bytes"):
            with pytest.raises(ValueError, match=f"{name} must be .*, not {wrong}"):
                fz.decompress(frame, **{name: wrong})
    with pytest.raises(TypeError, match="threads must be an integer, not float"):
        fz.Pipeline(preset="pfpl", threads=1.5)
    assert fz.compress(field, "abs:1e-3", threads=np.int64(2)) == frame


def test_relative_bounds_of_the_largest_value_are_not_passed_off_as_relative():
    with pytest.raises(fz.UnsupportedError, match="largest"):
        fz.compress(wave((1000,)), "rel:1e-3", "cusz")


def test_pipelines_can_be_pickled():
    field = wave((30, 40))
    pipeline = fz.Pipeline(bitpack_chain(), bound="abs:0.02", threads=1)
    frame = pipeline.compress(field)
    again = pickle.loads(pickle.dumps(pipeline))
    assert again.compress(field) == frame and again.threads == 1


def test_one_object_serves_many_threads():
    pipeline = fz.Pipeline(preset="pfpl", bound="abs:1e-3", threads=1)
    fields = [wave((i + 1, 200), dtype) for i in range(12) for dtype in ("f4", "f8")]
    expected = [fz.compress(field, "abs:1e-3", "pfpl") for field in fields]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            assert list(pool.map(pipeline.compress, fields)) == expected
        for field, back in zip(fields, pool.map(fz.decompress, expected)):
            assert back.shape == field.reshape(back.shape).shape


def test_the_gil_is_free_while_the_library_works():
    """A thread that only counts gets on while another compresses."""
    field = wave((2000, 2000))
    ticks = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    begin = time.perf_counter()
    frame = fz.compress(field, "abs:1e-6", "cusz", threads=1)
    fz.decompress(frame, threads=1)
    end = time.perf_counter()
    stop.set()
    counter.join()
    assert sum(begin < tick < end for tick in ticks) >= 5


def test_kept_pipelines_are_few():
    pipeline = fz.Pipeline(preset="pfpl", bound="abs:1e-3")
    for n in range(1, 30):
        pipeline.compress(wave((n,)))
    assert len(pipeline._idle) <= 8


def test_stages_are_described():
    rows = {row["name"]: row for row in fz.stages()}
    assert rows["Quantizer"]["ports"][0] == "codes"
    keys = {param["key"]: param for param in rows["Quantizer"]["params"]}
    assert "ABS" in keys["error_bound_mode"]["choices"] and keys["error_bound"]["help"]
    assert np.isinf(keys["outlier_threshold"]["default"])
