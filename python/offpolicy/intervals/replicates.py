"""Estimates of B resamples, from sums of the columns of an estimate (`ratios`) with Poisson counts (`poisson`).

    S_b = Σ_i N_b(i) y_i        N_b(i) ~ Poisson(1),  y_i: the columns of trajectory i

is linear, so that a block of trajectories adds a product of matrices, (B × n) · (n × k), and need not be kept. Columns
are rounded to multiples of a power of 2, about 2⁻³¹ of their largest entry for a million trajectories. Then no sum is
rounded: the bits are the same for any order and partition, and shards add up. Each estimate is computed from S_b as θ
is from the sums of the log: **the normalisers are those of the resample**.

The columns are read twice, once to find the units and once for all resamples. An average keeps its n values in memory
for both; for the weighted estimators the log is read each time, in bounded memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from offpolicy.errors.kinds.of_evaluation import other_resamples
from offpolicy.folds import hash_of
from offpolicy.intervals import poisson
from offpolicy.intervals.ratios import Block, Ratios
from offpolicy.intervals.request import WithheldError
from offpolicy.protocols import Floats

#: Words and trajectories of one product of matrices. Up to `FEW` columns, small products that stay in a cache are
#: fastest; for more columns, large products are, which the threads of a BLAS can share with little waiting.
WORDS, TRAJECTORIES, FEW, MANY_TRAJECTORIES = 64, 256, 8, 4096
#: The exponent of the smallest float above 0, of which every float is a multiple.
SMALLEST = -1074


@dataclass(frozen=True)
class Quanta:
    """The unit to which each column is rounded, for a log of n trajectories."""

    n: int
    units: Floats  # (k,), powers of 2

    @classmethod
    def of(cls, blocks: Iterable[Block], n: int) -> Quanta:
        """Return the units that follow from the largest entry of each column."""
        largest = np.max([np.abs(columns).max(axis=0) for _, columns in blocks], axis=0)
        if not np.isfinite(largest).all():
            raise WithheldError("the product of so many ratios is beyond the range of f64")
        bits = 52 - math.ceil(math.log2(cls.most(n)))
        exponents = np.maximum(np.where(largest > 0, np.frexp(largest)[1] - bits, SMALLEST), SMALLEST)
        return cls(n, np.ldexp(1.0, exponents))

    @staticmethod
    def most(n: int) -> float:
        """Return more trajectories than any resample will have: twelve standard deviations above the mean."""
        return n + 12 * math.sqrt(n) + 64

    def integers(self, columns: Floats) -> Floats:
        """Return y_0 = 1 and the other columns as whole numbers of units."""
        return np.hstack([np.ones((len(columns), 1)), np.rint(columns / self.units)])

    def floats(self, sums: Floats) -> Floats:
        """Convert sums of whole numbers of units to sums of columns."""
        found: Floats = sums * np.concatenate([[1.0], self.units])
        return found


class ReplicateSums:
    """The sums of B resamples and of the log itself, as whole numbers of units, which can be merged over shards."""

    def __init__(self, replicates: int, seed: int, quanta: Quanta) -> None:
        """Start with sums of 0."""
        self.words = -(-replicates // poisson.LANES)
        self.replicates, self.seed, self.quanta = replicates, seed, quanta
        self.sums = np.zeros((self.words * poisson.LANES, 1 + len(quanta.units)))
        self.log = np.zeros(1 + len(quanta.units))

    def add(self, block: Block) -> None:
        """Add a block of trajectories, each of which may be added once."""
        episodes, columns = block
        keys, y = hash_of(episodes, self.seed), self.quanta.integers(columns)
        self.log += y.sum(axis=0)
        size = TRAJECTORIES if y.shape[1] <= FEW else MANY_TRAJECTORIES
        memory = np.empty((size, WORDS * poisson.LANES))
        for start in range(0, len(keys), size):
            some, theirs = keys[start : start + size], y[start : start + size]
            for first in range(0, self.words, WORDS):
                words = range(first, min(first + WORDS, self.words))
                rows = slice(words.start * poisson.LANES, words.stop * poisson.LANES)
                out = memory[: len(some)] if len(words) == WORDS else None
                self.sums[rows] += poisson.weights(some, words, out).T @ theirs

    def merge(self, other: ReplicateSums) -> None:
        """Add the sums of another part of the log, which must have the same units."""
        same = np.array_equal(self.quanta.units, other.quanta.units)
        if not same or (self.replicates, self.seed) != (other.replicates, other.seed):
            raise other_resamples()
        self.sums += other.sums
        self.log += other.log

    def estimates(self, theta: Ratios) -> tuple[float, Floats]:
        """Return θ of the log and θ of each resample."""
        assert self.sums[:, 0].max() <= Quanta.most(self.quanta.n), "a sum may have been rounded"
        every = np.vstack([self.log, self.sums[: self.replicates]])
        found = theta.value(self.quanta.floats(every))
        return float(found[0]), found[1:]

    def unit(self, theta: Ratios) -> float:
        """Return by how much θ moves at most if every column of every trajectory moves by its unit."""
        gradient = theta.gradient(self.quanta.floats(self.log[None])[0])
        return self.quanta.n * float(np.abs(gradient[1:]) @ self.quanta.units)


def influence(theta: Ratios, sums: ReplicateSums, blocks: Iterable[Block]) -> Floats:
    """Return ψ_i/n of every trajectory, in the order of the blocks; all of them must have been added to the sums."""
    log = sums.quanta.floats(sums.log[None])[0]
    gradient = theta.gradient(log) * np.concatenate([[1.0], sums.quanta.units])
    return np.concatenate([(sums.quanta.integers(columns) * gradient).sum(axis=1) for _, columns in blocks])
