"""The bootstrap over trajectories, heuristic: the spread of the estimate over resamples of the log.

    bootstrap       [θ_(k), θ_(B+1−k)],  k = ⌊(B + 1) δ/2⌋        percentiles of B sorted replicates
    bootstrap-bca   the same with Φ(z_0 + (z_0 + z)/(1 − a (z_0 + z))) instead of δ/2, z = Φ⁻¹(δ/2)
                    z_0 = Φ⁻¹(share of replicates below θ),  a = Σψ³ / (6 (Σψ²)^{3/2}): bias and acceleration

with the influence ψ of each trajectory. A resample in which no trajectory has weight has no estimate: it counts as −∞
for the lower end and +∞ for the upper end, and the interval is withheld if there are many of them. Nothing is
guaranteed for a finite sample: if a few weights dominate, the resamples know as little about all other trajectories as
the log. If episodes come in clusters, whole clusters are resampled and ψ is that of a cluster. If no resample differs
from the estimate, there is no interval. Resamples are computed from rounded columns (`replicates`); an end that lies on
the wrong side of the estimate by no more than that rounding is set to the estimate.

The cost of B replicates of n trajectories with k columns is proportional to B·n·k.

Efron, "Better bootstrap confidence intervals" (JASA 1987).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from offpolicy._util.exact_sums import exact_sum
from offpolicy._util.scalars import whole
from offpolicy.intervals.poisson import MOST
from offpolicy.intervals.ratios import ratios
from offpolicy.intervals.replicates import Quanta, ReplicateSums, influence
from offpolicy.intervals.request import Ends, Request, WithheldError
from offpolicy.intervals.rounding import rounding
from offpolicy.protocols import Floats

#: The largest number of floats that the sums may take: 1 GiB.
LARGEST_STATE = 1 << 27
NORMAL = NormalDist()


@dataclass(frozen=True)
class Bootstrap:
    """θ of the log and of its resamples (NaN if undefined), the acceleration a, and the unit to which θ is rounded."""

    theta: float
    replicates: Floats
    acceleration: float
    unit: float = 0.0

    @property
    def undefined(self) -> int:
        """The number of resamples without an estimate."""
        return int(np.count_nonzero(np.isnan(self.replicates)))

    @property
    def bias(self) -> float:
        """The bias z_0, for which a replicate equal to θ counts half."""
        below = np.count_nonzero(self.replicates < self.theta)
        equal = np.count_nonzero(self.replicates == self.theta)
        share = (below + equal / 2) / max(1, len(self.replicates) - self.undefined)
        if not 0 < share < 1:
            raise WithheldError("all resamples are on one side of the estimate")
        return NORMAL.inv_cdf(share)

    def corrected(self, level: float) -> float:
        """Return the level of BCa that replaces a level of the percentile interval."""
        z = self.bias + NORMAL.inv_cdf(level)
        stretch = 1 - self.acceleration * z
        if stretch <= 0:
            raise WithheldError(f"the acceleration, {self.acceleration:.2g}, is too large for a correction")
        return NORMAL.cdf(self.bias + z / stretch)

    def ends(self, request: Request, below: float, above: float, **assumptions: Any) -> Ends:
        """Return the replicates that have these shares of all replicates below and above them."""
        low = _ordered(self.replicates, below) if request.wants_low else None
        high = -_ordered(-self.replicates, above) if request.wants_high else None
        if not all(math.isfinite(end) for end in (low, high) if end is not None):
            raise WithheldError(
                f"{len(self.replicates)} resamples, {self.undefined} of them without weight, do not reach so far "
                "into the tails"
            )
        slack = max(abs(self.theta - request.value), self.unit) + rounding(request)
        if np.nanmax(np.abs(self.replicates - self.theta)) <= slack:
            raise WithheldError(
                f"no resample of {request.estimator} differs from it by more than rounding, so that nothing in the log "
                "tells its error"
            )
        if low is not None and 0 < low - request.value <= slack:
            low = request.value
        if high is not None and 0 < request.value - high <= slack:
            high = request.value
        about = {"replicates": len(self.replicates), "seed": request.seed, "undefined": self.undefined}
        return Ends(low, high, about | assumptions)


def percentile(request: Request) -> Ends:
    """Return the interval between percentiles."""
    return bootstrap(request).ends(request, request.tail, request.tail)


def bca(request: Request) -> Ends:
    """Return the interval corrected for bias and acceleration."""
    found = bootstrap(request)
    below = found.corrected(request.tail) if request.wants_low else request.tail
    above = 1 - found.corrected(request.quantile) if request.wants_high else request.tail
    return found.ends(request, below, above, bias=found.bias, acceleration=found.acceleration)


def bootstrap(request: Request) -> Bootstrap:
    """Return the resamples, which are made once for each number of replicates and seed."""
    request = replace(request, replicates=whole("replicates", request.replicates, 1))
    key = ("bootstrap", request.policy, request.estimator, request.replicates, request.seed)
    return request.samples.once(key, lambda: _resample(request))


def _resample(request: Request) -> Bootstrap:
    theta, blocks = ratios(request)
    if (numbers := request.replicates * theta.columns) > LARGEST_STATE:
        raise WithheldError(
            f"{request.replicates} replicates of {theta.columns} sums are {numbers:,} numbers, more than "
            f"{LARGEST_STATE:,}: ask for fewer replicates"
        )
    clusters = request.samples.clusters
    most = 1 if clusters is None else MOST  # how often a resample may contain one cluster
    sums = ReplicateSums(request.replicates, request.seed, Quanta.of(blocks(), most * request.episodes))
    for ids, columns in blocks():
        sums.add((ids if clusters is None else clusters.of(ids), columns))
    psi = influence(theta, sums, blocks())
    if clusters is not None:
        psi = clusters.sums(pl.concat(ids for ids, _ in blocks()), psi)
    return Bootstrap(*sums.estimates(theta), acceleration(psi), sums.unit(theta))


def acceleration(psi: Floats) -> float:
    """Return a from the influence values of the trajectories, in any unit."""
    psi = psi / (float(np.abs(psi).max()) or 1.0)
    cubes, squares = float(exact_sum(psi**3)), float(exact_sum(psi**2))
    return cubes / (6 * squares**1.5) if squares > 0 else 0.0


def _ordered(replicates: Floats, level: float) -> float:
    """Return the ⌊(B+1) level⌋-th smallest replicate, or −∞ if it has no estimate or there are too few."""
    place = math.floor((len(replicates) + 1) * level + 1e-9)  # 1 − 0.9 is a little less than 0.1
    ordered = np.sort(np.where(np.isnan(replicates), -np.inf, replicates))
    return float(ordered[place - 1]) if place >= 1 else -math.inf
