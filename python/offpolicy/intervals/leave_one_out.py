"""The error of an estimate by the jackknife, which leaves out each trajectory once.

    d_i = (n − 1) (θ − θ_{−i})        θ_{−i}: the estimate without trajectory i

For an average, d_i = x_i − x̄. For a weighted estimator, Σ_k w_k A_k/B_k with ratios of sums (`ratios`), a formula
without differences of nearly equal numbers is used:

    d_i = (n − 1) Σ_k w_k (a_{k,i} − b_{k,i} A_k/B_k) / (B_k − b_{k,i})

that is the influence of i with each term divided by 1 − b_{k,i}/B_k, the share of the weight that the others have. In a
small sample, a trajectory of large weight pulls the estimate towards itself, so that its own error looks small; the
estimate without it shows the error. From these values

    SE = √(Σ d² / (n (n − 1)))                                    Quenouille's and Tukey's jackknife; for averages s/√n
    ν  = min(n − 1, 2 / ((κ − 3)/n + 2/(n − 1)))                  Satterthwaite: 2 (E s²)² / Var s², κ the kurtosis of d
    γ  = m_3 / m_2^{3/2}                                          the skewness of d

A step at which one trajectory has all the weight says nothing about its error, and its term is left out. `t` uses SE
and ν for a weighted estimator in a small sample; `t-skew` uses all three for any estimator.

Efron & Stein, "The jackknife estimate of variance" (Annals of Statistics 1981); Satterthwaite, "An approximate
distribution of estimates of variance components" (Biometrics Bulletin 1946).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from offpolicy._util.exact_sums import exact_sum
from offpolicy.evaluation.estimators import describe
from offpolicy.intervals.ratios import Ratios, ratios
from offpolicy.intervals.request import Request, WithheldError
from offpolicy.protocols import Floats

#: The number of trajectories times steps up to which trajectories are left out one by one, in memory. In a larger log
#: the influence values are taken instead: single trajectories have small shares there, unless the weights are hopeless.
LARGEST = 1 << 20
#: The effective sample size from which on leaving out a trajectory makes no measurable difference.
MANY = 1000


@dataclass(frozen=True)
class Spread:
    """SE, ν and γ of values of single trajectories."""

    error: float
    degrees: float
    skewness: float

    @classmethod
    def of(cls, d: Floats) -> Spread:
        """Return SE, ν and γ of the values d, which do not depend on the order of d or on its unit.

        >>> import numpy as np
        >>> from offpolicy.intervals.leave_one_out import Spread
        >>> Spread.of(np.array([-1.0, 1.0, -1.0, 1.0]))
        Spread(error=0.5773502691896257, degrees=3.0, skewness=0.0)
        """
        n, unit = len(d), float(np.abs(d).max())
        if unit == 0:
            return cls(0.0, n - 1.0, 0.0)
        d = d / unit
        centred = d - float(exact_sum(d) / n)
        squared = centred * centred  # products, because (−x)**3 need not be −(x**3) to the last bit
        moments = (squared, squared * centred, squared * squared)
        square, cube, fourth = (float(exact_sum(values) / n) for values in moments)
        error = unit * math.sqrt(float(exact_sum(d**2)) / (n * (n - 1)))
        if square == 0:
            return cls(error, n - 1.0, 0.0)
        degrees = 2 / ((fourth / square**2 - 3) / n + 2 / (n - 1))
        return cls(error, min(n - 1.0, degrees), cube / square**1.5)


def fits(request: Request) -> bool:
    """Return whether the log is small enough to leave out trajectories one by one."""
    return request.episodes * request.terms.horizon <= LARGEST


def needed(request: Request) -> bool:
    """Return whether the influence values give too small an error: for a weighted estimator in a small sample.

    Errors by cluster, for an estimated π0 and of differences are computed from other values and stay as they are. A log
    that should be read once is not read again.
    """
    return (
        describe(request.estimator).weighted
        and request.own_error
        and request.samples.passes > 1
        and request.ess is not None
        and request.ess < MANY
        and fits(request)
    )


def spread(request: Request) -> Spread:
    """Return the spread of an estimate from at least two trajectories; it is computed once."""
    return request.samples.once(("spread", request.policy, request.estimator), lambda: Spread.of(_values(request)))


def left_out(theta: Ratios, columns: Floats) -> Floats:
    """Return d_i from the columns of all trajectories, (n, k), with correctly rounded sums, or NaN if f64 overflows."""
    y = np.hstack([np.ones((len(columns), 1)), columns])
    try:
        sums = np.array([math.fsum(column) for column in y.T])
    except (OverflowError, ValueError):
        return np.full(len(y), np.nan)
    with np.errstate(all="ignore"):
        num, den = y[:, theta.num], y[:, theta.den]
        rest = sums[theta.den] - den
        terms = theta.weights * (num - den * (sums[theta.num] / sums[theta.den])) / rest
        found: Floats = (len(y) - 1) * np.where(rest > 0, terms, 0.0).sum(axis=1)
    return found


def _values(request: Request) -> Floats:
    """Return d of every trajectory, or ψ for a weighted estimator if the log is too large or weights overflow f64."""
    weighted = describe(request.estimator).weighted
    if fits(request) or not weighted:
        theta, blocks = ratios(request)
        with np.errstate(all="ignore"):  # weights that overflow f64 give values that are not finite
            columns = np.concatenate([columns for _, columns in blocks()])
        d = left_out(theta, columns)
        if np.isfinite(d).all():
            return d
        if not weighted:
            raise WithheldError("values are too large for their sums")
    psi: Floats = request.samples.influence(request.policy, request.estimator)["value"].to_numpy()
    return psi
