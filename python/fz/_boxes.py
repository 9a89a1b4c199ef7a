"""Boxes of an array, as numpy's basic indices name them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_ADVICE = "; read slices and index the array that comes back"


@dataclass(frozen=True)
class Box:
    """The values to read, and what is then made of them."""

    origin: tuple[int, ...]
    shape: tuple[int, ...]
    steps: tuple[int, ...]  #: of the values within the box; negative ones from its end
    dropped: tuple[int, ...]  #: axes that an integer chose
    has_ellipsis: bool  #: with which numpy gives an array where else a scalar

    @property
    def picks(self) -> tuple[Any, ...]:
        """The index into an array of the box that makes the result."""
        picks = [
            0 if axis in self.dropped else slice(None, None, step)
            for axis, step in enumerate(self.steps)
        ]
        return tuple([*picks, ...] if self.has_ellipsis else picks)


def box_of(key: Any, shape: Sequence[int]) -> Box:
    """The box of an index: integers, slices and an Ellipsis, by numpy's rules."""
    origin: list[int] = []
    extents: list[int] = []
    steps: list[int] = []
    dropped: list[int] = []
    for axis, (part, n) in enumerate(zip(_parts(key, len(shape)), shape)):
        if isinstance(part, slice):
            first, extent, step = _slice(part, n)
        else:
            first, extent, step = _integer(part, n, axis), 1, 1
            dropped.append(axis)
        origin.append(first)
        extents.append(extent)
        steps.append(step)
    gap = any(part is Ellipsis for part in (key if isinstance(key, tuple) else (key,)))
    return Box(tuple(origin), tuple(extents), tuple(steps), tuple(dropped), gap)


def _parts(key: Any, ndim: int) -> list[Any]:
    """One integer or slice for each axis."""
    parts = list(key) if isinstance(key, tuple) else [key]
    n_gaps = sum(part is Ellipsis for part in parts)
    if n_gaps > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    n_missing = ndim - (len(parts) - n_gaps)
    if n_missing < 0:
        raise IndexError(f"{len(parts) - n_gaps} indices for an archive of {ndim} axes")
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * n_missing, *parts[at + n_gaps :]]


def _slice(part: slice, n: int) -> tuple[int, int, int]:
    begin, end, step = part.indices(n)
    chosen = range(begin, end, step)
    if not chosen:
        return min(begin, n) if step > 0 else 0, 0, step
    low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1])
    return low, high - low + 1, step


def _integer(part: Any, n: int, axis: int) -> int:
    if part is None:
        raise IndexError(f"an archive takes no new axes (None){_ADVICE}")
    if isinstance(part, (bool, np.bool_)) or np.ndim(part) > 0:
        raise IndexError(f"an archive takes integers, slices and '...', not arrays{_ADVICE}")
    try:
        index = operator.index(part)
    except TypeError:
        raise IndexError(
            f"an archive takes integers, slices and '...', not {type(part).__name__}"
        ) from None
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {n}")
    return index % n
