"""Error bounds as text."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import InvalidArgumentError

_MODES = {"abs": "ABS", "rel": "REL", "range": "NOA"}
_TARGETS = ("psnr", "ratio")
#: In place of a bound: every value comes back bit for bit.
LOSSLESS = "lossless"


def target_of(text: object) -> tuple[str, float] | None:
    """``"psnr:80"`` and ``"ratio:20"`` as kind and number; None for anything else."""
    if not isinstance(text, str):
        return None
    kind, colon, number = text.partition(":")
    if not colon or kind not in _TARGETS:
        return None
    try:
        return kind, float(number)
    except ValueError:
        raise InvalidArgumentError(
            f"bound '{text}': give psnr:DB or ratio:R with a number, such as psnr:80"
        ) from None


@dataclass(frozen=True)
class Bound:
    """What every value keeps to.

    `kind` is ``"abs"`` (\\|x - x'\\| <= value), ``"rel"`` (value * \\|x\\|, for each value) or
    ``"range"`` (value * (max - min) of the finite values).

    >>> Bound.parse("rel:1e-4")
    Bound(kind='rel', value=0.0001)
    """

    kind: str
    value: float

    @classmethod
    def parse(cls, text: str | Bound) -> Bound:
        """``"abs:1e-3"``, ``"rel:1e-4"`` or ``"range:1e-4"``."""
        if isinstance(text, Bound):
            return text
        if not isinstance(text, str):
            raise TypeError(
                f"a bound is a string such as 'abs:1e-3', not {type(text).__name__}: "
                "a number alone does not say what it bounds"
            )
        kind, colon, number = text.partition(":")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not colon or kind not in _MODES or not math.isfinite(value) or value < 0:
            if text == LOSSLESS:
                raise InvalidArgumentError(
                    "'lossless' is no bound of a pipeline with loss; leave out preset, stages and toml"
                )
            if kind in _TARGETS:
                raise InvalidArgumentError(
                    f"bound '{text}' names a result, for which only fz.compress and fz.save look "
                    "for a bound; give the one that fz.find_bound finds"
                )
            raise InvalidArgumentError(
                f"bound '{text}': give abs:E, rel:E or range:E with a number E such as 1e-3"
            )
        return cls(kind, value)

    @classmethod
    def of(cls, bound: str | Bound) -> Bound | None:
        """As `parse`; None for ``"lossless"``."""
        return None if bound == LOSSLESS else cls.parse(bound)

    def __str__(self) -> str:
        return f"{self.kind}:{self.value!r}"

    @property
    def mode(self) -> str:
        """The library's name of the kind."""
        return _MODES[self.kind]

    @property
    def params(self) -> list[tuple[str, str]]:
        """The settings of the quantising stage that mean this."""
        return [("error_bound", repr(self.value)), ("error_bound_mode", _MODES[self.kind])]


@dataclass(frozen=True)
class FrameBound:
    """What a frame promises for every value."""

    kind: str  #: "abs", "rel", "range", or "max" (of the largest value: LorenzoQuant's REL)
    requested: float  #: the number that was asked for
    absolute: float | None  #: absolute bound of every value; None for rel, which has none
