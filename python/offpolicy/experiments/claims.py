"""Claims about runs, decided by a paired t test at the 1% level.

"A is better than B" compares squared errors run by run, d = e_A² − e_B², and "A is greater than B" compares numbers,
d = b − a. Both are decided by t:

    t = d̄ / (s_d/√n):   held if t < −q,  not held if t > q,  otherwise undecided,

where q is the two-sided quantile of Student's t for n - 1 degrees of freedom. "A is as good as B" needs evidence too,
namely that A is worse by less than a margin: d is then e_A² − 1.1² e_B², or b − a − margin, with the one-sided
quantile. It is "not held" if B is better by the test above.

Rounding is no evidence: a difference, or a spread of differences, of at most 1e-12 of the numbers subtracted counts as
0. Without spread there is no t. The sign test with p = 2^-n then decides, which needs 8 runs for two-sided and 7 for
one-sided claims.

The RMSEs shown as evidence include the error of the simulated truth.
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
#: An error that is larger by less than this factor counts as equally good.
MARGIN = 1.1
#: Differences of two numbers up to this fraction of the larger one count as rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Claim:
    """A statement, such as a sentence of the paper, and the verdict and evidence of the runs."""

    text: str
    verdict: str  # held, not held, undecided
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        """Return the claim ready for JSON."""
        return asdict(self)


def better(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """Test that A has a smaller squared error than B; both are errors of the same runs."""
    t = _t(np.square(a), np.square(b))
    return Claim(text, _verdict(t, len(a)), f"{_rmses(a, b, names)}, t = {t:.1f}")


def as_good(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """Test that the error of A is at most 1.1 times that of B."""
    behind = _t(np.square(a), np.square(b))
    t = _t(np.square(a), np.square(MARGIN * b))
    evidence = f"{_rmses(a, b, names)}, t = {behind:.1f}, and {t:.1f} with a margin of {MARGIN - 1:.0%}"
    return Claim(text, _verdict_with_margin(behind, t, len(a)), evidence)


def greater(text: str, a: Floats, b: Floats, names: tuple[str, str]) -> Claim:
    """Test that A is greater than B on average; both are numbers of the same runs."""
    t = _t(b, a)
    return Claim(text, _verdict(t, len(a)), f"{_means(a, b, names)}, t = {-t:.1f}")


def no_less(text: str, a: Floats, b: Floats, names: tuple[str, str], margin: float) -> Claim:
    """Test that on average A is less than B by no more than the margin."""
    behind, t = _t(b, a), _t(b - margin, a)
    evidence = f"{_means(a, b, names)}, t = {-behind:.1f}, and {-t:.1f} with a margin of {margin:g}"
    return Claim(text, _verdict_with_margin(behind, t, len(a)), evidence)


def every(text: str, parts: Sequence[Claim]) -> Claim:
    """Combine claims: held if every part is held, not held if one part is not held, and undecided otherwise."""
    verdicts = {part.verdict for part in parts}
    verdict = "not held" if "not held" in verdicts else "undecided" if "undecided" in verdicts else "held"
    return Claim(text, verdict, "; ".join(f"{part.text}: {part.verdict} ({part.evidence})" for part in parts))


def _t(a: Floats, b: Floats) -> float:
    """Return t of the mean of a − b; without spread it is 0 or infinite."""
    if len(a) < 2:
        return 0.0
    d, noise = a - b, ROUNDING * np.maximum(np.abs(a), np.abs(b))
    d = np.where(np.abs(d) > noise, d, 0.0)
    mean, spread = float(d.mean()), float(d.std(ddof=1))
    if spread > noise.mean():
        return mean / (spread / math.sqrt(len(d)))
    return math.copysign(math.inf, mean) if mean else 0.0


def _verdict(t: float, runs: int) -> str:
    tail = LEVEL / 2
    return "held" if _beyond(-t, tail, runs) else "not held" if _beyond(t, tail, runs) else "undecided"


def _verdict_with_margin(behind: float, t: float, runs: int) -> str:
    if _beyond(behind, LEVEL / 2, runs):
        return "not held"
    return "held" if _beyond(-t, LEVEL, runs) else "undecided"


def _beyond(t: float, tail: float, runs: int) -> bool:
    """Return whether chance alone exceeds t with a probability of less than `tail`."""
    if math.isinf(t):
        return t > 0 and 0.5**runs < tail
    return runs > 1 and t > _core.student_t_quantile(1 - tail, runs - 1)


def _rmses(a: Floats, b: Floats, names: tuple[str, str]) -> str:
    if not len(a):
        return f"{names[0]} and {names[1]}: too few runs"
    rmse = [math.sqrt(float(np.square(errors).mean())) for errors in (a, b)]
    return f"RMSE {names[0]} {rmse[0]:.4g}, {names[1]} {rmse[1]:.4g}"


def _means(a: Floats, b: Floats, names: tuple[str, str]) -> str:
    return f"{names[0]} {a.mean():.4g}, {names[1]} {b.mean():.4g}"
