"""Signals, Ctrl-C among them, while the library works."""

import contextlib
import signal

import numpy as np
import pytest

import fz


@pytest.fixture
def field():
    steps = np.arange(16 << 20, dtype="f4")
    return np.sin(steps * 1e-4) + (steps % 7) * 1e-3


@contextlib.contextmanager
def alarm(handler):
    """Calls the handler in a moment, when the library is at work."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_ends_a_compression_and_the_next_one_works(field):
    def press(number, frame):
        # Python's own handler, also where the tests run in the background and none is set.
        signal.default_int_handler(signal.SIGINT, frame)

    with pytest.raises(KeyboardInterrupt), alarm(press):
        fz.compress(field, "abs:1e-4", preset="best")
    small = field[:10000]
    assert np.abs(fz.decompress(fz.compress(small, "abs:1e-3", preset="best")) - small).max() <= 1e-3


def test_a_handler_that_raises_something_else_is_heard_too(field):
    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop

    with pytest.raises(Stop), alarm(stop):
        fz.compress(field, "abs:1e-4", preset="best", backend="cpu", threads=2)


def test_a_handler_that_returns_lets_the_call_end(field):
    seen = []
    with alarm(lambda *_: seen.append(1)):
        frame = fz.compress(field, "abs:1e-4", preset="best")
    assert seen == [1]
    assert np.abs(fz.decompress(frame) - field).max() <= 1e-4
