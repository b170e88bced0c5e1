"""Whole trajectories as arrays, as estimators of other packages read them: the rows of all, one after another.

    c_t = ρ_{1:t} = ρ_1 ρ_2 ⋯ ρ_t        `cumulative_ratio`
    γ^{t−1}                              `discounts`
    Σ_t x_t                              `by_trajectory_sum`

What these give for a trajectory does not depend on the others in its block, not even in the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util.arrays import Floats
from offpolicy._util.visible import visible
from offpolicy.errors.kinds.of_logs import no_f64_holds_it
from offpolicy.errors.kinds.of_plugins import undeclared_column

#: Products below this may have lost digits, or all of them.
SMALL = 1e-290


@dataclass(frozen=True, eq=False)
class Block:
    """n whole trajectories; a column has one number per step, and `lengths` tells how many steps each trajectory has.

    >>> import numpy as np, polars as pl
    >>> from offpolicy.logs.block import Block
    >>> columns = {"reward": np.array([1.0, 2.0, 4.0]), "ratio": np.array([2.0, 3.0, 0.5])}
    >>> block = Block(pl.Series(["a", "b"]), np.array([2, 1]), columns, discount=0.5, horizon=2)
    >>> block.cumulative_ratio().tolist(), block.discounts.tolist()
    ([2.0, 6.0, 0.5], [1.0, 0.5, 1.0])
    >>> block.by_trajectory_sum(block.discounts * block.cumulative_ratio() * block["reward"]).tolist()
    [8.0, 2.0]
    """

    episodes: pl.Series
    lengths: NDArray[np.int64]
    columns: Mapping[str, Floats]
    discount: float
    horizon: int
    reader: str = "the estimator"

    def __len__(self) -> int:
        """n."""
        return len(self.lengths)

    def __getitem__(self, need: str) -> Floats:
        """Return the column of a role such as `reward` or `q_hat`, or one of the estimator's own, by row."""
        if need not in self.columns:
            raise undeclared_column(who=self.reader, name=repr(need), known=", ".join(map(repr, self.columns)))
        return self.columns[need]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The row of the first step of each trajectory."""
        found: NDArray[np.int64] = np.cumsum(self.lengths) - self.lengths
        return found

    @cached_property
    def trajectory(self) -> NDArray[np.int64]:
        """The number of the trajectory of each row, from 0."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def step(self) -> NDArray[np.int64]:
        """The step of each row, t − 1."""
        found: NDArray[np.int64] = np.arange(len(self.trajectory)) - self.starts[self.trajectory]
        return found

    @cached_property
    def discounts(self) -> Floats:
        """γ^{t−1} of each row."""
        powers = np.power(self.discount, np.arange(int(self.lengths.max(initial=1)), dtype=np.float64))
        found: Floats = powers[self.step]
        return found

    def by_trajectory_sum(self, x: Floats) -> Floats:
        """Return the sum of x over the steps of each trajectory, from the first to the last."""
        return np.bincount(self.trajectory, weights=x, minlength=len(self)).astype(np.float64, copy=False)

    def cumulative_ratio(self, ratio: Floats | None = None) -> Floats:
        """Return ρ_{1:t} of each row, of the policy's ratios or of others; one that no f64 can hold is refused.

        A product may leave the range of f64 on its way and come back.
        """
        rho = self["ratio"] if ratio is None else ratio
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            c = self._products(rho)
        if np.isfinite(c).all() and ((np.abs(c) > SMALL) | (rho == 0)).all():
            return c
        return self._scaled_products(rho)

    def _products(self, rho: Floats) -> Floats:
        """Return plain products, trajectory by trajectory or step by step, whichever has fewer turns."""
        c = np.array(rho, dtype=np.float64)
        longest = int(self.lengths.max(initial=0))
        if len(self) <= longest:
            for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
                c[start : start + length] = np.cumprod(c[start : start + length])
            return c
        running = self.starts[self.lengths > 1] + 1
        ends = (self.starts + self.lengths)[self.lengths > 1]
        while len(running):
            c[running] *= c[running - 1]
            on = running + 1 < ends
            running, ends = running[on] + 1, ends[on]
        return c

    def _scaled_products(self, rho: Floats) -> Floats:
        """Return the same products, as mantissas and exponents on the way: f64 has to hold the results alone."""
        mantissa, exponent = np.frexp(np.asarray(rho, dtype=np.float64))
        exponent = exponent.astype(np.int64)
        for t in range(1, int(self.lengths.max(initial=0))):
            at = self.starts[self.lengths > t] + t
            mantissa[at], more = np.frexp(mantissa[at] * mantissa[at - 1])
            exponent[at] = np.where(mantissa[at] == 0, 0, exponent[at] + exponent[at - 1] + more)
        with np.errstate(over="ignore", under="ignore"):
            c: Floats = np.ldexp(mantissa, np.clip(exponent, -5000, 5000).astype(np.int32))
        for row in np.flatnonzero(~np.isfinite(c))[:1]:
            log10 = (np.log2(abs(mantissa[row])) + exponent[row]) * np.log10(2)
            episode = visible(str(self.episodes[int(self.trajectory[row])]))
            where = f"the product of ratios of episode {episode} up to t = {self.step[row] + 1} (counted from 1)"
            raise no_f64_holds_it(what=f"{where} has log10 {log10:.1f}: no f64 can hold it")
        return c
