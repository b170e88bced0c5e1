"""Empirical likelihood with the constraint that weights have mean 1, asymptotic. Put shares q_i on the trajectories:

    R(v) = min Σ_i (n q_i − 1)²        over Σ q_i = 1,  Σ q_i c_i = 1,  Σ q_i x_i = v

R is the distance, of Cressie and Read's family with power 2, from the sample to the nearest distribution in which the
weights c = ρ_{1:H} have the mean 1 that they must have, and the values x the mean v. By Lagrange multipliers, n q_i − 1
is linear in x_i − x̄ and c_i − c̄, and with the covariances s (sums divided by n)

    R(v) = n (v − x̄, 1 − c̄) S⁻¹ (v − x̄, 1 − c̄)ᵀ,    S = (s_xx s_xc; s_xc s_cc)

which is least at v̂ = x̄ + β (1 − c̄), β = s_xc/s_cc, and R(v) − R(v̂) = n (v − v̂)² / (s_xx − s_xc²/s_cc). At the
truth this is χ² with one degree of freedom in the limit. The interval therefore has a closed form:

    v̂ ∓ q √( (s_xx − s_xc²/s_cc) / (n − 2) )        q: the quantile of Student's t with n − 2 degrees

It is centred at v̂, not at the estimate. If returns are correlated with weights, as they are for `is` and `step-is`, it
is the narrower one. It is computed from six exact sums, n, Σc, Σc², Σx, Σxc and Σx², so that the sums of shards add up.

If no trajectory has a weight above 1, or none has one below, no shares give the mean 1, and the interval is withheld.
It is also withheld if the values are linear in the weights, so that no error is left.

In small samples it can be far too narrow where `t` is not: do not trust it below 50 trajectories. With heavy weights it
falls short in larger samples too: by 8 points at n = 1000 if weights are lognormal with σ = 1.5, by 18 with σ = 2, and
by more if rewards vary mostly with the weight. docs/results/intervals/small-samples.md has the coverage by effective
sample size, which each interval reports in its `caution`. The table shows how many of a hundred 95% intervals hold the
truth in the worst problem of docs/results/coverage, `noisy` (two actions with random rewards), by exact enumeration up
to n = 12 and in random samples above:

    n              5     8    12    20    50
    likelihood  94.9  80.8  79.0  90.3  93.4
    t           88.8  94.3  95.2  94.6  95.1

For 80% intervals the numbers are 63.6 for n = 8 and 72.8 for n = 12 (`t`: 79.9 and 81.8); for 50% intervals they are
47.8 for n = 8 (48.7). A sample in which the interval is withheld counts as held; this includes every sample in which no
two trajectories differ.

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

#: Products of numbers outside this range, or parts of the products, could leave the range of f64.
LARGEST, LEAST = 1e140, 1e-140


@dataclass(frozen=True)
class SixSums:
    """The six sums n, Σc, Σc², Σx, Σxc and Σx².

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
        """Return the sums of trajectories with these weights and values."""
        return cls(len(x), exact_sum(c), exact_dot(c, c), exact_sum(x), exact_dot(x, c), exact_dot(x, x))

    def merge(self, other: SixSums) -> SixSums:
        """Return the sums of both together."""
        return SixSums(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))

    def centre(self) -> tuple[float, float, float]:
        """Return v̂, its standard error, and β."""
        c, x = self.c / self.n, self.x / self.n
        s_cc, s_xc, s_xx = self.cc / self.n - c * c, self.xc / self.n - x * c, self.xx / self.n - x * x
        beta = s_xc / s_cc
        return float(x + beta * (1 - c)), math.sqrt((s_xx - beta * s_xc) / (self.n - 2)), float(beta)


def ends(request: Request) -> Ends:
    """Return the interval of an average."""
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
    """Return the sums of weights and values, which come from two readings and are matched by the episode's hash."""
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
