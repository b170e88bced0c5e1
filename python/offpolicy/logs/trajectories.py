"""Values of single trajectories and their steps, which some intervals need; they are read when first asked for.

`values` takes one more scan by the core and keeps n numbers in memory. `steps` yields the weights, rewards and model
values of each step in blocks of trajectories padded up to H, for statistics that are not sums over trajectories:

    c_t = ρ_{1:t},  kept at c_T after the end;    r_t, Q̂_t, V̂_t = 0 after the end

in f64. A product that is too large becomes infinite, which the caller must check.

Values of estimators of plugins are computed here from blocks of whole trajectories (`offpolicy.logs.block`) and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from offpolicy import _core
from offpolicy._util import polars_calls
from offpolicy._util.forked import check_not_forked
from offpolicy._util.mixing import mixed
from offpolicy._util.visible import visible
from offpolicy.errors.kinds.of_logs import beyond_floats, no_values_of_trajectories
from offpolicy.evaluation.estimators import describe, from_plugin
from offpolicy.evaluation.from_plugins import FromPlugin
from offpolicy.evaluation.plan import BEHAVIOR, MixedRatio, Plan, PlannedPolicy, Probabilities, RatioColumn
from offpolicy.logs.block import Block
from offpolicy.logs.clusters import Clusters
from offpolicy.logs.crossing import Crossing
from offpolicy.logs.reading import Reading, Recount
from offpolicy.logs.sources import Source
from offpolicy.protocols import Floats

Made = TypeVar("Made")

#: How many rows of the log are read at a time, and how many numbers a padded block may have.
ROWS = 1 << 18
NUMBERS = 1 << 20
_RATIO, _ROW = "__offpolicy_ratio__", "__offpolicy_row__"


@dataclass(frozen=True)
class Steps:
    """A block of n trajectories: their ids, and a matrix (n, steps) of the weights and of each requested column."""

    episodes: pl.Series
    c: Floats
    columns: dict[str, Floats]


@dataclass
class Samples:
    """The log of an evaluation, and a cache of small results made from its trajectories."""

    scan: Callable[[Plan, _core.Pass, _core.Normalisers | None], _core.Whole]
    source: Source
    plan: Plan
    normalisers: _core.Normalisers
    clusters: Clusters | None = None
    passes: int = 2  # 1 to read the log only once, unless a request needs more
    crossing: Crossing = field(default_factory=Crossing, repr=False)
    reading: Reading | None = None  # the summary of the first pass
    horizon: int = 0
    kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the result of `make`, which is called once per key."""
        if key not in self.kept:
            self.kept[key] = make()
        found: Made = self.kept[key]
        return found

    def values(self, policy: str, estimator: str, baseline: float | None = None) -> pl.DataFrame:
        """Return an estimator's value of each trajectory, in columns `episode` and `value`.

        `baseline` replaces the baseline of `dr-bsl`.
        """
        if (about := from_plugin(estimator)) is not None:
            return self._by_plugin(policy, about)
        return self._of_trajectories(_core.Pass.VALUES, policy, estimator, baseline)

    def influence(self, policy: str, estimator: str) -> pl.DataFrame:
        """Return the values ψ_i whose spread is the standard error: columns `episode` and `value`, in the log's order.

        SE² = Σ (ψ_i − ψ̄)² / (n (n − 1)). For a mean over trajectories ψ_i is the value of trajectory i; for a weighted
        estimator it is its influence value, and ψ̄ = 0.
        """
        if (about := from_plugin(estimator)) is not None:
            return self._by_plugin(policy, about)
        return self._of_trajectories(_core.Pass.INFLUENCE, policy, estimator, None)

    def _by_plugin(self, policy: str, about: FromPlugin) -> pl.DataFrame:
        """Return the values that a plugin gives to the trajectories, in the order of the log."""
        check_not_forked()

        def make() -> pl.DataFrame:
            parts = [
                pl.DataFrame({"episode": block.episodes, "value": about.values(block), "place": places})
                for block, places in self._blocks(policy, about)
            ]
            return pl.concat(parts, how="vertical_relaxed").sort("place").drop("place")

        return self.once(("by plugin", policy, about.id), make)

    def _blocks(self, policy: str, about: FromPlugin) -> Iterator[tuple[Block, pl.Series]]:
        """Read what an estimator of a plugin needs, with the row of the log in which each trajectory begins."""
        target = next(target for target in self.plan.policies if target.name == policy)
        names = {"reward": self.plan.columns.reward}
        names |= {need: target.models[need] for need in about.needs if need != "ratio"}
        form, shares = self._form(target) if about.uses_weights else (None, [])
        with polars_calls.reading(self.source):  # whose reader is stricter than ours
            for frame in self._whole_episodes([*names.values()], form):
                whole = _mixed(frame, shares)
                columns = names | ({"ratio": _RATIO} if about.uses_weights else {})
                for rows, runs in _cut(whole, whole[self.plan.columns.episode].rle().struct.unnest()):
                    lengths = runs["len"].to_numpy().astype(np.int64)
                    arrays = {need: _unchangeable(rows[name].to_numpy()) for need, name in columns.items()}
                    block = Block(runs["value"], lengths, arrays, self.plan.settings.discount, self.horizon, about.who)
                    yield block, rows[_ROW].gather(block.starts)

    def _of_trajectories(self, pass_: _core.Pass, policy: str, estimator: str, baseline: float | None) -> pl.DataFrame:
        check_not_forked()
        if describe(estimator).blended:
            raise no_values_of_trajectories(estimator=estimator)

        def chosen(target: PlannedPolicy) -> PlannedPolicy:
            return replace(target, estimators=(estimator,) if target.name == policy else ())

        settings = self.plan.settings if baseline is None else replace(self.plan.settings, baseline=baseline)
        targets = tuple(map(chosen, self.plan.policies))
        plan = replace(self.plan, settings=settings, policies=targets, mc=describe(estimator).of_behavior, paired=False)
        whole = self.scan(plan, pass_, self.normalisers)
        index = [BEHAVIOR, *(target.name for target in self.plan.policies)].index(policy)
        episodes, values = whole.values(index)
        if None in values:
            episode = episodes[values.index(None)]
            raise beyond_floats(episode=visible(str(episode)))
        return pl.DataFrame({"episode": episodes, "value": values}, strict=False)

    def steps(self, policy: str, *roles: str, horizon: int | None = None) -> Iterator[Steps]:
        """Yield the weights of every trajectory, with the columns of some roles: `reward`, `q_hat`, `v_hat`.

        They are padded to `horizon`, or else to the longest trajectory of their block.
        """
        target = next(target for target in self.plan.policies if target.name == policy)
        names = {role: target.models.get(role, self.plan.columns.reward) for role in roles}
        form, shares = self._form(target)
        with polars_calls.reading(self.source):  # Polars may refuse a file that our reader takes
            for frame in self._whole_episodes([*names.values()], form):
                yield from self._padded(_mixed(frame, shares), names, horizon)

    def _form(self, policy: PlannedPolicy) -> tuple[Probabilities | RatioColumn, list[float]]:
        """Return the ratio at the bottom of the policy's mixtures, and the α of each mixture, the innermost first."""
        named = {target.name: target for target in self.plan.policies}
        shares: list[float] = []
        form = policy.ratio
        while isinstance(form, MixedRatio):
            shares.insert(0, form.alpha)
            form = named[form.of].ratio
        assert form is not None  # the estimator was computed with it
        return form, shares

    def _whole_episodes(self, names: list[str], form: Probabilities | RatioColumn | None) -> Iterator[pl.DataFrame]:
        """Yield rows of whole trajectories; the outer ones of a batch and those that cross files come at the end."""
        key, step = self.plan.columns.episode, self.plan.columns.step
        keys, waiting, recount = polars_calls.exactly([key, step]), [], Recount()
        used = list(dict.fromkeys([*names, *(() if form is None else astuple(form))]))
        chosen = [*keys, *(each.cast(pl.Float64) for each in polars_calls.exactly(used))]
        if form is not None:
            chosen.append(_ratio(form).alias(_RATIO))
        with self.source.unchanged():
            for rows in self.source.read(list(dict.fromkeys([key, step, *used])), ROWS):
                if not rows.is_empty():
                    numbers = pl.int_range(recount.rows, recount.rows + rows.height, dtype=pl.Int64)
                    frame = rows.select(chosen).with_columns(numbers.alias(_ROW))
                    recount.add(frame)
                    ids = frame[key]
                    outer = (ids == ids[0]) | (ids == ids[-1]) | self.crossing.among(ids)
                    waiting.append(frame.filter(outer))
                    whole = frame.filter(~outer)
                    recount.add_episodes(whole[key])
                    yield whole
        last = pl.concat(waiting, how="vertical_relaxed").sort(keys) if waiting else None
        if last is not None:
            recount.add_episodes(last[key])
        if self.reading is not None:
            recount.check(self.reading, self.source.name)
        if last is not None:
            yield last

    def _padded(self, frame: pl.DataFrame, names: dict[str, str], horizon: int | None) -> Iterator[Steps]:
        runs = frame[self.plan.columns.episode].rle().struct.unnest()
        longest: Any = runs["len"].max()
        width, start = horizon or int(longest or 1), 0
        for block in runs.iter_slices(max(1, NUMBERS // width)):
            lengths = block["len"].to_numpy().astype(np.int64)
            row = np.repeat(np.arange(len(lengths)), lengths)
            step = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            rows, at, shape = frame.slice(start, len(row)), (row, step), (len(lengths), width)
            start += len(row)
            with np.errstate(over="ignore", invalid="ignore"):
                c: Floats = _spread(rows[_RATIO], at, shape, after=1.0).cumprod(axis=1)
            columns = {role: _spread(rows[name], at, shape, after=0.0) for role, name in names.items()}
            yield Steps(block["value"], c, columns)


def _ratio(form: Probabilities | RatioColumn) -> pl.Expr:
    if isinstance(form, RatioColumn):
        return polars_calls.column(form.name).cast(pl.Float64)
    target, behavior = polars_calls.exactly([form.target, form.behavior])
    return target.cast(pl.Float64) / behavior.cast(pl.Float64)


def _mixed(frame: pl.DataFrame, shares: Sequence[float]) -> pl.DataFrame:
    """Return the frame with the ratio (1−α)ρ + α for each α in turn."""
    if not shares:
        return frame
    rho: Floats = frame[_RATIO].to_numpy()
    for alpha in shares:
        rho = mixed(alpha, rho)
    return frame.with_columns(pl.Series(_RATIO, rho))


def _cut(frame: pl.DataFrame, runs: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Cut whole trajectories into pieces of up to `ROWS` rows, or of one trajectory, each with its ids and lengths."""
    ends = runs["len"].cum_sum().to_numpy()
    first = row = 0
    while first < runs.height:
        last = max(int(np.searchsorted(ends, row + ROWS, side="right")), first + 1)
        end = int(ends[last - 1])
        yield frame.slice(row, end - row), runs.slice(first, last - first)
        first, row = last, end


def _unchangeable(values: Any) -> Floats:
    found: Floats = values.view()
    found.flags.writeable = False
    return found


def _spread(values: pl.Series, at: tuple[Any, Any], shape: tuple[int, int], after: float) -> Floats:
    padded = np.full(shape, after)
    padded[at] = values.to_numpy()
    return padded
