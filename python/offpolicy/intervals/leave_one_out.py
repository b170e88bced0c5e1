"""What single trajectories say of the error of an estimate: each is left out once.

    d_i = (n − 1) (θ − θ_{−i})        θ_{−i}: the estimate without trajectory i

For an average d_i = x_i − x̄. For a weighted estimator, Σ_k w_k A_k/B_k with ratios of sums (see `ratios`), no
difference of nearly equal numbers is formed:

    d_i = (n − 1) Σ_k w_k (a_{k,i} − b_{k,i} A_k/B_k) / (B_k − b_{k,i})

that is the influence of i with each term over 1 − b_{k,i}/B_k, its share of the weight left out. In a small sample a
trajectory of much weight draws the estimate to itself and looks as if it hardly erred; without it one sees how much it
did. From these values

    SE = √(Σ d² / (n (n − 1)))                                    Quenouille's and Tukey's jackknife; for averages s/√n
    ν  = min(n − 1, 2 / ((κ − 3)/n + 2/(n − 1)))                  Satterthwaite: 2 (E s²)² / Var s², κ the kurtosis of d
    γ  = m_3 / m_2^{3/2}                                          the skewness of d

A step at which one trajectory has all the weight says nothing of its error, and its term is left out. `t` takes SE and
ν of a weighted estimator in a small sample, `t-skew` all three of any estimator.

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

#: Trajectories times steps up to which they are left out one by one, all in memory. In a larger log the shares of
#: single trajectories are small unless its weights are hopeless, and the influence values themselves are taken.
LARGEST = 1 << 20
#: Effective sample size from which on leaving out a trajectory changes nothing that can be measured.
MANY = 1000


@dataclass(frozen=True)
class Spread:
    """SE, ν and γ of values of single trajectories."""

    error: float
    degrees: float
    skewness: float

    @classmethod
    def of(cls, d: Floats) -> Spread:
        """Return those of values whose mean would be 0 without bias, whatever their order and unit.

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
        squared = centred * centred  # products, for a power is not odd to the last bit
        moments = (squared, squared * centred, squared * squared)
        square, cube, fourth = (float(exact_sum(values) / n) for values in moments)
        error = unit * math.sqrt(float(exact_sum(d**2)) / (n * (n - 1)))
        if square == 0:
            return cls(error, n - 1.0, 0.0)
        degrees = 2 / ((fourth / square**2 - 3) / n + 2 / (n - 1))
        return cls(error, min(n - 1.0, degrees), cube / square**1.5)


def fits(request: Request) -> bool:
    """True where trajectories can be left out one by one at next to no cost."""
    return request.episodes * request.terms.horizon <= LARGEST


def needed(request: Request) -> bool:
    """True where the influence values of a weighted estimator tell too small an error: in a small sample.

    Errors by cluster, of an estimated π0 and of differences are made of other values, and a log that should be read
    once is not read again.
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
    """Return the spread of an estimate of at least two trajectories, made once."""
    return request.samples.once(("spread", request.policy, request.estimator), lambda: Spread.of(_values(request)))


def left_out(theta: Ratios, columns: Floats) -> Floats:
    """d_i from the columns of all trajectories, (n, k), whose sums are rounded once; NaN where f64 cannot hold them."""
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
    """d of every trajectory, or ψ of a weighted estimator whose log is too large, or its weights for f64."""
    weighted = describe(request.estimator).weighted
    if fits(request) or not weighted:
        theta, blocks = ratios(request)
        with np.errstate(all="ignore"):  # weights beyond f64 give values that are not finite
            columns = np.concatenate([columns for _, columns in blocks()])
        d = left_out(theta, columns)
        if np.isfinite(d).all():
            return d
        if not weighted:
            raise WithheldError("values are too large for their sums")
    psi: Floats = request.samples.influence(request.policy, request.estimator)["value"].to_numpy()
    return psi
