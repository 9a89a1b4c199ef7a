"""Results asked for instead of bounds."""

import numpy as np
import pytest

import fz


@pytest.fixture
def field():
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:120, 0:200]
    return (300 + 20 * np.sin(x / 15) * np.cos(y / 11) + rng.normal(0, 0.05, x.shape)).astype("f4")


@pytest.mark.parametrize("preset", ["pfpl", "cusz"])
def test_a_psnr_is_reached(field, preset):
    frame = fz.compress(field, "psnr:70", preset=preset)
    report = fz.verify(frame, field)
    assert report and 70 <= report.psnr < 71
    assert fz.inspect(frame).bound.kind == "abs"


def test_a_ratio_is_reached(field):
    frame = fz.compress(field, "ratio:6")
    assert 6 <= field.nbytes / len(frame) < 7
    assert fz.verify(frame, field)


def test_a_high_ratio_is_not_far_exceeded(field):
    assert 50 <= field.nbytes / len(fz.compress(field, "ratio:50")) < 60  # trials straddle it


def test_the_bound_can_be_kept_for_the_next_field(field):
    bound = fz.find_bound(field, "ratio:6")
    assert bound.kind == "abs" and bound.value > 0
    assert fz.compress(field, bound) == fz.compress(field, "ratio:6")
    assert fz.find_bound(field, "ratio:6", "pfpl") == fz.find_bound(field, "ratio:6", preset="pfpl")


@pytest.mark.parametrize("preset", ["best", "auto", "balanced"])
def test_settings_can_be_kept_for_the_next_field(field, preset):
    found = fz.find_settings(field, "range:1e-3", preset)
    assert list(found) == ["predict.plan"]
    frame = fz.compress(field, "range:1e-3", preset)
    assert fz.compress(field, "range:1e-3", preset, params=found) == frame
    later = field + np.float32(0.5)
    assert fz.verify(fz.compress(later, "range:1e-3", preset, params=found), later)
    field[:20, :30] = np.nan
    assert list(fz.find_settings(field, "range:1e-3", preset)) == ["predict.plan"]
    assert fz.find_settings(field, "range:1e-3", "pfpl") == {}


def test_out_of_reach_is_an_error_with_the_best(field):
    with pytest.raises(fz.TargetError, match=r"no bound reaches ratio:1000000000; the best was ratio:"):
        fz.compress(field, "ratio:1e9")


def test_missing_values_have_no_part_in_it(field):
    field[::3, ::2] = -9999
    frame = fz.compress(field, "psnr:60", fill=-9999)
    assert 60 <= fz.verify(frame, field).psnr < 61
    assert np.array_equal(fz.decompress(frame) == -9999, field == -9999)


@pytest.mark.parametrize("target", ["psnr:60", "ratio:5"])
def test_a_fill_value_that_nobody_declared_is_refused(field, target, tmp_path):
    field[::3, ::2] = 1e20
    for call in (
        lambda **fill: fz.compress(field, target, **fill),
        lambda **fill: fz.find_bound(field, target, **fill),
        lambda **fill: fz.save(tmp_path / "a.fz", field, target, chunks=(40, 200), **fill),
    ):
        with pytest.raises(fz.FillValueError, match=f"{target} is refused: 1e\\+20 occurs"):
            call()
        call(fill=1e20)
        call(fill="none")


@pytest.mark.parametrize("text", ["psnr:", "psnr:high", "ratio:-1", "ratio:0", "psnr:nan"])
def test_what_is_no_number_is_refused(field, text):
    with pytest.raises(fz.InvalidArgumentError):
        fz.compress(field, text)


def test_pipelines_say_where_to_ask(field):
    with pytest.raises(fz.InvalidArgumentError, match="find_bound"):
        fz.Pipeline(preset="pfpl", bound="psnr:80")
