"""Empirical likelihood with the knowledge that weights have mean 1, asymptotic. Put weights q_i on the trajectories:

    R(v) = min Σ_i (n q_i − 1)²        over Σ q_i = 1,  Σ q_i c_i = 1,  Σ q_i x_i = v

the distance, of Cressie and Read's family with power 2, from the sample to the nearest distribution in which the
weights c = ρ_{1:H} have the mean 1 that they must have, and the values x the mean v. By Lagrange's multipliers n q_i
− 1 is linear in x_i − x̄ and c_i − c̄, and with the covariances s (sums over n)

    R(v) = n (v − x̄, 1 − c̄) S⁻¹ (v − x̄, 1 − c̄)ᵀ,    S = (s_xx s_xc; s_xc s_cc)

which is least at v̂ = x̄ + β (1 − c̄), β = s_xc/s_cc, and R(v) − R(v̂) = n (v − v̂)² / (s_xx − s_xc²/s_cc). At the
truth this is χ² with one degree in the limit. So the interval is closed:

    v̂ ∓ q √( (s_xx − s_xc²/s_cc) / (n − 2) )        q the quantile of Student's t with n − 2 degrees, for small n

It is centred at v̂, not at the estimate: where returns go with weights, as they do for `is` and `step-is`, it is the
narrower one. Its state are six sums, n, Σc, Σc², Σx, Σxc and Σx², exact, so that shards add up.

Where no trajectory has a weight above 1, or none below, no shares give the mean 1, and it is withheld; as it is where
values are linear in weights, and no error is left.

In small samples it can be far too narrow, where `t` is not: do not trust it below 50 trajectories. With heavy weights
it falls short in larger ones too: 8 points at n = 1000 where they are lognormal with σ = 1.5, 18 with σ = 2, and more
where rewards hardly vary but by the weight (docs/results/intervals/small-samples.md, whose coverage by the effective
sample size each interval tells as its `caution`). In the worst problem of docs/results/coverage, `noisy`, two actions
with random rewards, so many 95% intervals in a hundred hold the truth, by exact enumeration up to n = 12 and in random
samples above:

    n              5     8    12    20    50
    likelihood  94.9  80.8  79.0  90.3  93.4
    t           88.8  94.3  95.2  94.6  95.1

Of 80% intervals it is 63.6 for n = 8 and 72.8 for n = 12 (`t`: 79.9 and 81.8), of 50% intervals 47.8 for n = 8 (48.7).
A sample in which it is withheld, as all are in which no two trajectories differ, counts as held.

Karampatziakis, Langford & Mineiro, "Empirical likelihood for contextual bandits" (NeurIPS 2020); Baggerly,
"Empirical likelihood as a goodness-of-fit measure" (Biometrika 1998).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from offpolicy._util.exact_sums import exact_dot, exact_sum
from offpolicy.folds import hash_of
from offpolicy.intervals.normal import student_quantile
from offpolicy.intervals.request import Ends, Request, WithheldError
from offpolicy.intervals.rounding import rounding
from offpolicy.protocols import Floats

#: Products of larger numbers, or their parts, could leave the range of f64, as could those of numbers below the least.
LARGEST, LEAST = 1e140, 1e-140


@dataclass(frozen=True)
class SixSums:
    """n, Σc, Σc², Σx, Σxc, Σx².

    >>> import numpy as np
    >>> from offpolicy.intervals.likelihood import SixSums
    >>> c, x = np.array([0.5, 1.5, 0.25, 1.5]), np.array([1.0, 2.0, 0.0, 3.0])
    >>> SixSums.of(c[:1], x[:1]).merge(SixSums.of(c[1:], x[1:])) == SixSums.of(c, x)
    True
    """

    n: int
    c: Fraction
    cc: Fraction
    x: Fraction
    xc: Fraction
    xx: Fraction

    @classmethod
    def of(cls, c: Floats, x: Floats) -> SixSums:
        """The sums of trajectories with these weights and values."""
        return cls(len(x), exact_sum(c), exact_dot(c, c), exact_sum(x), exact_dot(x, c), exact_dot(x, x))

    def merge(self, other: SixSums) -> SixSums:
        """The sums of both."""
        return SixSums(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))

    def centre(self) -> tuple[float, float, float]:
        """v̂, its standard error, and β."""
        c, x = self.c / self.n, self.x / self.n
        s_cc, s_xc, s_xx = self.cc / self.n - c * c, self.xc / self.n - x * c, self.xx / self.n - x * x
        beta = s_xc / s_cc
        return float(x + beta * (1 - c)), math.sqrt((s_xx - beta * s_xc) / (self.n - 2)), float(beta)


def ends(request: Request) -> Ends:
    """The interval of an average."""
    if request.episodes < 3:
        raise WithheldError(f"likelihood needs at least 3 trajectories, not {request.episodes}")
    key = ("six sums", request.policy, request.estimator)
    sums = request.samples.once(key, lambda: _sums(request))
    centre, error, slope = sums.centre()
    if error * math.sqrt(request.episodes) <= 2 * rounding(request):
        raise WithheldError(
            f"the values of {request.estimator} follow from the weights alone, so that nothing in the sample tells the "
            "error: ask for t"
        )
    quantile = student_quantile(request.quantile, request.episodes - 2)
    return request.around(centre, quantile * error, centre=centre, std_error=error, slope=slope, quantile=quantile)


def _sums(request: Request) -> SixSums:
    """Weights and values come from two scans, and meet by the hash of their episode."""
    found = request.samples.values(request.policy, request.estimator)
    blocks = [(hash_of(steps.episodes), steps.c[:, -1]) for steps in request.samples.steps(request.policy)]
    of_weights, weights = (np.concatenate(each) for each in zip(*blocks, strict=True))
    c = weights[np.argsort(of_weights)]
    x = found["value"].to_numpy()[np.argsort(hash_of(found["episode"]))]
    if c.min() == c.max():
        raise WithheldError("all weights are equal, and that their mean is 1 says nothing more: ask for t")
    if not c.min() < 1 < c.max():
        raise WithheldError("no shares of these trajectories give their weights the mean 1 that they must have")
    largest = np.abs(x).max()
    if not (c.max() < LARGEST and largest < LARGEST) or 0 < largest < LEAST:
        raise WithheldError("weights or values are too large or too small for their squares")
    return SixSums.of(c, x)
