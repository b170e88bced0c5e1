"""The effect of estimating π0 on standard errors: influence values less their projection on the score of π̂0.

Where probabilities were estimated by maximum likelihood, a weighted estimate has the influence values

    x_i = ψ_i − E[ψ Sᵀ] J⁻¹ S_i,    S_i = Σ_t ∂ log π̂0(a_t|s_t)/∂θ,    J = E[Σ_t s_t s_tᵀ] = E[S Sᵀ]

because E_θ[ψ(θ)] does not depend on θ if π1 does not, so that E[∂ψ/∂θ] = −E[ψ S]. The scores s_t of steps are
martingale differences, which gives both forms of J. For counts in cells z, J is known in closed form and the projection
is

    Σ_t h(z_t, a_t),    h(z, a) = m(z, a) − Σ_b n(z, b)/n(z) m(z, b),    m(z, a) = Σ_i ψ_i n_i(z, a) / n(z, a)

where n_i(z, a) counts the visits of trajectory i. For a logistic model `estimate_behavior` has already divided s_t by
the root of J, and the projection is b·S_i with b = Σ_i ψ_i S_i / n.

With folds, episode k contributes to the estimate of π0 for every fold but its own. If n_f of the n evaluated episodes
are in fold f, whose probabilities were estimated from N_f other episodes, then k contributes with the weight w_k,
whether it is evaluated itself or not:

    w_k = Σ_{f ≠ fold(k)} n_f/(n N_f),    x_i = ψ_i − n w_i projection_i,    SE² = s²(x)/n + τ² Σ_{k not evaluated} w_k²

where τ² is the variance of the projection. If the whole log is evaluated, n w_i is about 1 and the last sum is empty.
If π0 was estimated from the other part of a split, the error becomes larger, since the estimate is independent of the
evaluated trajectories. With p parameters, s² has n − 1 − p degrees of freedom.

Henmi & Eguchi, "A paradox concerning nuisance parameters and projected estimating functions" (Biometrika 2004); Hanna,
Niekum & Stone (ICML 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from offpolicy._util import polars_calls
from offpolicy._util.exact_sums import exact_dot, in_units
from offpolicy.logs.clusters import as_key
from offpolicy.logs.columns import SCORE
from offpolicy.logs.sources import Source
from offpolicy.protocols import Floats

#: The number of rows that are read at a time.
ROWS = 1 << 20
#: Scores have variance 1 and are rounded to multiples of this number, whose sums are exact up to 2¹³.
UNIT = 2.0**-40
LARGEST = 2.0**12
FIT = ("fold", "others", "total")


class UnaccountedError(Exception):
    """The reason why standard errors take estimated probabilities as known."""


@dataclass(frozen=True)
class Projection:
    """The projection of influence values, of shape (n, estimates), and the share of it that each trajectory loses."""

    values: Floats
    shares: Floats  # n w_i, (n,)
    outside: float  # Σ w_k² over the episodes that contribute to the estimate of π0 and are not evaluated
    parameters: int
    about: str


@dataclass(frozen=True)
class ScoredLog:
    """A log with the column of scores that `estimate_behavior` writes."""

    source: Source
    episode: str
    action: str | None
    steps: int

    def project(self, episodes: pl.Series, psi: Floats) -> Projection:
        """Return the projection of influence values on the score of π̂0; `psi` has mean 0 and shape (n, estimates)."""
        dtype = next(self.source.frames([SCORE], 1)).schema[SCORE]
        fields = {field.name: field.dtype for field in dtype.fields} if isinstance(dtype, pl.Struct) else {}
        if not {*FIT} < {*fields}:
            raise UnaccountedError(f"column {SCORE!r} is not as estimate_behavior writes it")
        shares, outside = self._shares(episodes)
        if "cell" in fields:
            values, parameters, about = self._of_counts(episodes, psi)
        else:
            values, parameters, about = self._of_model(episodes, psi)
        return Projection(values, shares, outside, parameters, about)

    def _frames(self, *fields: str, action: bool = False) -> Iterator[pl.DataFrame]:
        """Yield the episode, the fields and the action of every row."""
        names = [self.episode, SCORE, *([self.action] if action and self.action else [])]
        for frame in self.source.frames(names, ROWS):
            if frame.is_empty():
                continue
            if frame[SCORE].null_count() or any(frame[SCORE].struct.field(name).null_count() for name in fields):
                raise UnaccountedError(f"column {SCORE!r} is null in some rows")
            chosen = [pl.col(SCORE).struct.field(name).alias(name) for name in fields]
            last = [polars_calls.column(self.action).alias("action")] if action and self.action else []
            yield frame.select(as_key(self.episode, frame.schema[self.episode]).alias("episode"), *chosen, *last)

    def _shares(self, episodes: pl.Series) -> tuple[Floats, float]:
        """Return n w_i of every episode, and Σ w_k² over those that are not evaluated."""
        found = pl.concat(frame.unique() for frame in self._frames(*FIT)).unique()
        each = found.select(FIT).unique()
        if found.height != len(episodes) or each["total"].n_unique() > 1 or each["fold"].n_unique() < each.height:
            raise UnaccountedError("its probabilities are of several estimates")
        n, total = len(episodes), int(each["total"][0])
        folds = found.group_by(FIT).agg(evaluated=pl.len()).sort("fold")
        here, others = folds["evaluated"].to_numpy(), folds["others"].to_numpy()
        whole = others == total  # probabilities were estimated from all episodes, including those of the fold
        size = np.where(whole, total, total - others)
        if (here > size).any() or (others < 1).any() or (whole.any() and len(whole) > 1):
            raise UnaccountedError("its probabilities are of fewer episodes than are evaluated")
        each_share = here / (n * others)
        weight = each_share.sum() - np.where(whole, 0.0, each_share)
        away = total - size.sum()  # episodes of folds in which none is evaluated
        outside = float(((size - here) * weight**2).sum() + away * each_share.sum() ** 2)
        shares = folds.select("fold", share=pl.Series(n * weight))
        asked = pl.DataFrame({"episode": episodes.cast(found.schema["episode"])})
        joined = asked.join(found, on="episode", how="left", maintain_order="left")
        return joined.join(shares, on="fold", how="left", maintain_order="left")["share"].to_numpy(), outside

    def _of_counts(self, episodes: pl.Series, psi: Floats) -> tuple[Floats, int, str]:
        if self.action is None:
            raise UnaccountedError("the log has no column of the action beside the cells")
        keys = ["cell", "action"]
        table, units = _whole_numbers(psi, self.steps)
        ids = episodes.alias("episode")
        seen = None
        for frame in self._frames("cell", action=True):
            mine = table.with_columns(ids.cast(frame.schema["episode"]))
            sums = frame.join(mine, on="episode").group_by(keys).agg(pl.len().alias("n"), pl.col(table.columns).sum())
            seen = sums if seen is None else pl.concat([seen, sums]).group_by(keys).sum()
        assert seen is not None
        seen = seen.sort(keys)
        m = _numbers(seen, units) / seen["n"].to_numpy()[:, None]
        n, cell = seen["n"].to_numpy(), seen["cell"].rank("dense").to_numpy().astype(np.int64) - 1
        h = m - np.stack([(np.bincount(cell, n * each) / np.bincount(cell, n))[cell] for each in m.T], axis=1)
        parts, units = _whole_numbers(h, self.steps)
        rows = (
            frame.join(pl.concat([seen.select(keys), parts], how="horizontal"), on=keys)
            .group_by("episode")
            .agg(pl.col(parts.columns).sum())
            for frame in self._frames("cell", action=True)
        )
        cells = int(cell.max()) + 1
        return _aligned(episodes, rows, units), seen.height - cells, f"counts in {cells} cells"

    def _of_model(self, episodes: pl.Series, psi: Floats) -> tuple[Floats, int, str]:
        def sums() -> Iterator[pl.DataFrame]:
            for frame in self._frames("score"):
                score = np.rint(frame["score"].to_numpy() / UNIT)
                if not np.abs(score).max() < LARGEST / UNIT:
                    raise UnaccountedError("a step has too large a score")
                table = pl.DataFrame(score, [f"x{j}" for j in range(score.shape[1])])
                yield table.with_columns(frame["episode"]).group_by("episode").agg(pl.col(table.columns).sum())

        score = _aligned(episodes, sums(), [UNIT])
        if not np.abs(score).max() < LARGEST:
            raise UnaccountedError("an episode has too large a score")
        n, p = score.shape
        b = np.array([[float(exact_dot(s, x) / n) for x in psi.T] for s in score.T])
        values = np.stack([(score * each).sum(axis=1) for each in b.T], axis=1)
        return values, p, f"a logistic model of {p} parameters"


def _whole_numbers(x: Floats, addends: int) -> tuple[pl.DataFrame, list[float]]:
    """Return each column of x as two columns of whole numbers in different units, and the unit of each column."""
    parts = [in_units(column, addends) for column in x.T]
    columns = {f"x{2 * j + k}": whole for j, part in enumerate(parts) for k, (_, whole) in enumerate(part)}
    return pl.DataFrame(columns), [unit for part in parts for unit, _ in part]


def _numbers(sums: pl.DataFrame, units: list[float]) -> Floats:
    whole = sums.select(f"x{j}" for j in range(len(units))).to_numpy() * np.array(units)
    found: Floats = whole[:, 0::2] + whole[:, 1::2]
    return found


def _aligned(episodes: pl.Series, parts: Iterator[pl.DataFrame], units: list[float]) -> Floats:
    """Return the sums by episode, in the order of `episodes`, of whole numbers in two units or in one."""
    found = pl.concat(parts).group_by("episode").sum()
    asked = pl.DataFrame({"episode": episodes.cast(found.schema["episode"])})
    joined = asked.join(found, on="episode", how="left", maintain_order="left").drop("episode")
    if len(units) > 1:
        return _numbers(joined, units)
    return joined.select(f"x{j}" for j in range(joined.width)).to_numpy() * units[0]
