"""Claims about errors, decided by a paired test over runs.

A claim "A is better than B" compares squared errors run by run, d = e_A² − e_B². At level 1%, two-sided,

    t = d̄ / (s_d/√n):   held if t < −q,  not held if t > q,  otherwise undecided,

with q the quantile of Student's t for n - 1 degrees of freedom. "A is as good as B" is held unless B is better by the
same test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from offpolicy import _core
from offpolicy.protocols import Floats

LEVEL = 0.01


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what the runs say of it."""

    text: str
    verdict: str  # held, not held, undecided
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def better(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """A has a smaller squared error than B; both are errors of the same runs."""
    t, q = paired(a, b), _quantile(len(a))
    verdict = "held" if t < -q else "not held" if t > q else "undecided"
    return Claim(text, verdict, _evidence(a, b, names, t))


def as_good(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """B is not better than A."""
    t = paired(a, b)
    return Claim(text, "not held" if t > _quantile(len(a)) else "held", _evidence(a, b, names, t))


def greater(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """A is greater than B on average; both are numbers of the same runs."""
    t, q = _t(b - a), _quantile(len(a))
    verdict = "held" if t < -q else "not held" if t > q else "undecided"
    return Claim(text, verdict, _means(a, b, names, -t))


def no_less(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """B is not greater than A on average."""
    t = _t(b - a)
    return Claim(text, "not held" if t > _quantile(len(a)) else "held", _means(a, b, names, -t))


def every(text: str, parts: Sequence[Claim]) -> Claim:
    """All parts together: held if each is, not held if one is not."""
    verdicts = {part.verdict for part in parts}
    verdict = "not held" if "not held" in verdicts else "undecided" if "undecided" in verdicts else "held"
    return Claim(text, verdict, "; ".join(f"{part.text}: {part.verdict} ({part.evidence})" for part in parts))


def paired(a: Floats, b: Floats) -> float:
    """t of the difference of squared errors."""
    return _t(np.square(a) - np.square(b))


def _t(d: Floats) -> float:
    error = float(d.std(ddof=1)) / math.sqrt(len(d)) if len(d) > 1 else 0.0
    return float(d.mean()) / error if error > 0 else 0.0


def _quantile(runs: int) -> float:
    return _core.student_t_quantile(1 - LEVEL / 2, runs - 1) if runs > 1 else math.inf


def _evidence(a: Floats, b: Floats, names: tuple[str, str], t: float) -> str:
    rmse = [math.sqrt(float(np.square(errors).mean())) for errors in (a, b)]
    return f"RMSE {names[0]} {rmse[0]:.4g}, {names[1]} {rmse[1]:.4g}, t = {t:.1f}"


def _means(a: Floats, b: Floats, names: tuple[str, str], t: float) -> str:
    return f"{names[0]} {a.mean():.4g}, {names[1]} {b.mean():.4g}, t = {t:.1f}"
