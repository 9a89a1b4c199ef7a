"""Ctrl-C while the library works."""

import os
import signal
import threading

import numpy as np
import pytest

import fz


@pytest.fixture
def field():
    steps = np.arange(16 << 20, dtype="f4")
    return np.sin(steps * 1e-4) + (steps % 7) * 1e-3


def interrupt_soon():
    threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_a_compression_and_the_next_one_works(field):
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        fz.compress(field, "abs:1e-4", preset="best")
    small = field[:10000]
    assert np.abs(fz.decompress(fz.compress(small, "abs:1e-3", preset="best")) - small).max() <= 1e-3


def test_a_handler_that_raises_something_else_is_heard_too(field):
    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Stop):
            fz.compress(field, "abs:1e-4", preset="best", backend="cpu", threads=2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_returns_lets_the_call_end(field):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        frame = fz.compress(field, "abs:1e-4", preset="best")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [1]
    assert np.abs(fz.decompress(frame) - field).max() <= 1e-4
