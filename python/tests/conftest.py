"""Fields that several tests use."""

import os
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def tool() -> str:
    """The command line tool of the same build."""
    path = os.environ.get("FZ_CLI")
    if not path:
        pytest.skip("FZ_CLI does not name the tool")
    return path


def wave(shape, dtype="f4") -> np.ndarray:
    """A smooth field with a little noise, the same in every run."""
    n = int(np.prod(shape))
    noise = np.random.default_rng(7).normal(scale=1e-3, size=n)
    return (np.sin(np.arange(n) / 50) + noise).astype(dtype).reshape(shape)


def rough(shape, dtype="f4") -> np.ndarray:
    """The same with NaN, infinities, a fill value, denormals and both zeros."""
    field = wave(shape, dtype)
    flat = field.reshape(-1)
    flat[::7] = np.nan
    flat[1::50] = np.inf
    flat[2::50] = -np.inf
    flat[3::50] = 9.96921e36
    flat[4::50] = np.finfo(dtype).smallest_subnormal
    flat[5::50] = -0.0
    return field


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
