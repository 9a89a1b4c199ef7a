"""Every failure is an exception of its own class."""

import numpy as np
import pytest
from conftest import wave

import fz
from fz import errors


def small_frame() -> bytes:
    return fz.compress(wave((40,)), "abs:1e-3")


def test_every_class_says_its_code_and_is_an_error():
    assert len(errors.BY_CODE) == len(errors.CLASSES) == 19
    for code, cls in errors.BY_CODE.items():
        assert cls.code == code and issubclass(cls, fz.Error) and cls.__doc__
        assert getattr(fz, cls.__name__) is cls


def test_every_truncation_is_corrupt():
    frame = small_frame()
    for n in range(len(frame)):
        with pytest.raises(fz.CorruptError):
            fz.decompress(frame[:n])


def test_every_flipped_byte_is_noticed():
    frame = bytearray(small_frame())
    for i in range(len(frame)):
        frame[i] ^= 0x10
        with pytest.raises(fz.Error) as caught:
            fz.decompress(frame)
        assert isinstance(caught.value, (fz.CorruptError, fz.UnsupportedError))
        frame[i] ^= 0x10


def test_damaged_frames_leave_out_alone():
    frame = bytearray(small_frame())
    frame[-1] ^= 1
    out = np.full(40, 7, "f4")
    with pytest.raises(fz.CorruptError):
        fz.decompress(frame, out=out)
    assert (out == 7).all()


def test_limits_are_kept():
    frame = fz.compress(wave((100_000,)), "abs:1e-3", "cusz")
    with pytest.raises(fz.LimitError, match="limit is 1000"):
        fz.decompress(frame, max_output_bytes=1000)
    with pytest.raises(fz.LimitError):
        fz.decompress(frame, max_memory_bytes=1000)
    with pytest.raises(fz.LimitError):
        fz.decompress(frame, out=np.empty(100_000, "f4"), max_output_bytes=1000)


def test_refused_values_are_named():
    field = wave((100,))
    field[17] = 1e30
    with pytest.raises(fz.BoundViolationError, match="first is value 17"):
        fz.compress(field, "abs:1e-3", "cuszp2")


@pytest.mark.parametrize("bound", ["1e-3", "abs", "abs:", "abs:x", "abs:-1", "abs:nan", ""])
def test_bounds_that_mean_nothing_are_refused(bound):
    with pytest.raises(fz.InvalidArgumentError, match="abs:E, rel:E or range:E"):
        fz.compress(wave((10,)), bound)


def test_a_bound_is_never_guessed():
    with pytest.raises(fz.InvalidArgumentError, match="give a bound"):
        fz.compress(wave((10,)))
    with pytest.raises(TypeError, match="does not say what"):
        fz.compress(wave((10,)), 1e-3)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(fz.BadSizeError, match="frame decodes to 160"):
        fz.decompress(small_frame(), shape=(5, 9))


def test_files_that_are_not_there_are_os_errors(tmp_path):
    for read in (fz.inspect, fz.load, fz.open, fz.decompress):
        with pytest.raises(FileNotFoundError) as caught:
            read(tmp_path / "none.fzm")
        assert isinstance(caught.value, fz.IoError) and caught.value.code == "i/o"
        assert caught.value.filename == str(tmp_path / "none.fzm")


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "text.fz").write_text("this is a text, and long enough to be looked at")
    for read in (fz.inspect, fz.load, fz.open):
        with pytest.raises(fz.CorruptError, match="text.fz: .*magic"):
            read(tmp_path / "text.fz")


def test_a_fill_value_is_refused_with_the_ways_out():
    field = wave((40, 100))
    field[::3] = -9999
    with pytest.raises(fz.FillValueError, match=r"fill=-9999 .*exact=\[-9999\].*fill='none'.*'abs:"):
        fz.compress(field, "range:1e-3")


def test_verify_says_what_compares_archives_of_chunks(tmp_path):
    fz.save(tmp_path / "a.fz", wave((40, 100)), "abs:1e-3", chunks=(10, 100))
    with pytest.raises(fz.InvalidArgumentError, match="'fz verify'"):
        fz.verify(tmp_path / "a.fz", wave((40, 100)))


def test_objects_without_a_buffer_are_type_errors():
    with pytest.raises(TypeError):
        fz.decompress(12)
    with pytest.raises(TypeError):
        fz.decompress(object())


def test_verify_finds_what_is_wrong():
    field = wave((100,))
    frame = fz.compress(field, "abs:1e-3")
    moved = field.copy()
    moved[31] += 1
    report = fz.verify(frame, moved)
    assert not report and report.n_violations == 1
    assert report.first_violation[0] == 31 and report.max_error_index == 31
    assert fz.verify(frame, moved, "abs:2")
    assert fz.verify(frame, field).psnr > 60
    with pytest.raises(fz.TypeMismatchError):
        fz.verify(frame, field.astype("f8"))
    with pytest.raises(fz.TypeMismatchError):
        fz.verify(frame, field[:50])
    grid = wave((30, 40))
    frame = fz.compress(grid, "abs:1e-3")
    with pytest.raises(fz.TypeMismatchError, match="transpose it"):
        fz.verify(frame, grid.T)
    assert fz.verify(frame, grid.reshape(-1)) and fz.verify(frame, grid.reshape(20, 60))


def test_verify_is_exact_to_the_last_bit():
    frame = fz.compress(np.array([1.0]), "abs:0.5", "pfpl")
    assert fz.decompress(frame)[0] == 1.0
    below = float(np.nextafter(0.25, 0))
    assert fz.verify(frame, np.array([1.25]), "abs:0.25")
    assert not fz.verify(frame, np.array([1.25]), f"abs:{below!r}")
    assert fz.verify(frame, np.array([0.5]), "rel:1")
    assert not fz.verify(frame, np.array([0.5]), f"rel:{float(np.nextafter(1, 0))!r}")
