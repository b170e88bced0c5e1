"""Ways to replace the missing rewards of episodes that were cut off before the horizon (`offpolicy.logs.endings`).

    as-terminal      nothing, as if the episode had ended there
    bootstrap        what the model expects: Q̂(s_T, a_T) − R̂(s_T, a_T) = γ E[V̂(s_{T+1})] is added to the last reward r_T
    reduce-horizon   no rewards are missing: H is the length of the shortest episode that was cut off, for all episodes

For the last two, the log is first checked as it is and then rewritten to temporary files, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from offpolicy._util import polars_calls, words
from offpolicy._util.interruptible import interruptible
from offpolicy._util.polars_calls import column, exactly
from offpolicy._util.scratch import ScratchFolder
from offpolicy.errors.kinds.of_arguments import not_together
from offpolicy.errors.kinds.of_logs import one_policy_at_a_time, truncation_needs_column, truncation_needs_rewards
from offpolicy.evaluation.estimators import RETURNS, Description, named
from offpolicy.evaluation.plan import Plan
from offpolicy.logs.endings import cut_off
from offpolicy.logs.reading import Reading
from offpolicy.logs.sources import ParquetSource, Source, several
from offpolicy.logs.steps import counted_from

#: A column that marks the rows at which an episode was cut off.
CUT = "__offpolicy_cut__"
#: For each kind, the estimators that have no meaning with it, and why.
SENSELESS: dict[str, tuple[Callable[[Description], bool], str]] = {
    "bootstrap": (
        lambda about: about.of_behavior or about.model == "transitions",
        "it does not take a model's value for the rewards that are missing",
    ),
    "reduce-horizon": (
        lambda about: about.model in ("value", "transitions", "blend"),
        "it counts on V̂, which is of more steps than the reduced horizon has",
    ),
}


@dataclass(frozen=True)
class Cut:
    """The number of episodes that were cut off, and the number of steps of the shortest of them."""

    episodes: int
    shortest: int


@dataclass(frozen=True)
class Mended:
    """The mended log, the plan for it, and a record of what was done."""

    source: Source
    plan: Plan
    repairs: dict[str, Any]
    remarks: list[str] = field(default_factory=list)
    #: A remark on what replaced the missing rewards.
    taken: str | None = None


def with_checks(plan: Plan) -> Plan:
    """Return the plan extended by the columns that a bootstrap needs, so that the first pass checks them."""
    if plan.settings.truncation != "bootstrap":
        return plan
    return replace(plan, extra=tuple(zip(_model(plan), ("q_hat", "r_hat"), strict=True)))


def read_by_mending(plan: Plan) -> list[str]:
    """Return the columns that mending reads beside those of a scan."""
    if plan.settings.truncation != "bootstrap":
        return []
    names = [*_model(plan), plan.policies[0].models.get("transition_ratio")]
    return [name for name in names if name is not None]


def mend(source: Source, plan: Plan, cut: Cut, explicit: bool, beside: Sequence[str] = ()) -> Mended:
    """Return the mended log and its plan, without estimators that have no meaning for it.

    If the estimators were named explicitly, such an estimator is refused instead. `beside` names columns that standard
    errors need; a log that keeps all its rows keeps them too.
    """
    if plan.settings.truncation == "as-terminal":
        remark = f"{cut.episodes} truncated episodes were taken as ended"
        return Mended(source, plan, {"truncated_as_terminal": cut.episodes}, [remark], remark)
    plan, remarks = _without_senseless(plan, explicit)
    first, last = _extent(source, plan)
    if plan.settings.truncation == "reduce-horizon":
        horizon, step = cut.shortest, column(plan.columns.step)
        shorter = replace(plan, settings=replace(plan.settings, horizon=horizon))
        made = rewritten(source, plan.names(), lambda piece: piece.filter(step - first < horizon))
        remarks.append(f"{cut.episodes} episodes were truncated: all are evaluated for their first {horizon} steps")
        return Mended(made, shorter, {"horizon_reduced_to": horizon}, remarks)
    q_hat, r_hat = _model(plan)
    ends = _cut_rows(source, plan, first, plan.settings.horizon or last - first + 1)
    keys = [plan.columns.episode, plan.columns.step]
    key_types = pl.Schema({name: ends.schema[name] for name in keys})
    expected = pl.when(CUT).then(column(q_hat) - column(r_hat)).otherwise(0.0)
    reward = column(plan.columns.reward).cast(pl.Float64)

    def completed(piece: pl.LazyFrame) -> pl.LazyFrame:
        marked = polars_calls.cast(piece, key_types).join(
            ends.lazy(), on=exactly(keys), how="left", maintain_order="left"
        )
        return marked.with_columns(reward + expected).drop(CUT)

    names = list(dict.fromkeys([*plan.names(), q_hat, r_hat, *beside]))
    if ratio := plan.policies[0].models.get("transition_ratio"):
        no_reward = (pl.col(ratio) == 0) & (pl.col(q_hat) == pl.col(r_hat)) & (pl.col(q_hat) != 0)
        _refuse_q_for_r(source, ends, keys, no_reward)
    made = rewritten(source, names, completed)
    remark = f"the later rewards of {cut.episodes} truncated episodes were taken from the model"
    return Mended(made, plan, {"truncated_bootstrapped": cut.episodes}, [*remarks, remark], remark)


def check_mended(before: Reading | None, after: Reading | None, plan: Plan, name: str) -> None:
    """Refuse a log that changed between the first pass and its rewriting; only what mending touches may differ."""
    if before is None or after is None:
        return
    if plan.settings.truncation == "reduce-horizon":  # rows are left out
        after = replace(before, episodes=after.episodes)
    before.check(after, name, but=[plan.columns.reward])


def _model(plan: Plan) -> tuple[str, str]:
    """Return the columns of Q̂ and R̂, and refuse a plan with several policies or without these columns."""
    if len(plan.policies) != 1:
        raise one_policy_at_a_time()
    (policy,) = plan.policies
    for role in ("q_hat", "r_hat"):
        if role not in policy.models:
            raise truncation_needs_column(role=role, policy=repr(policy.name))
    return policy.models["q_hat"], policy.models["r_hat"]


def _without_senseless(plan: Plan, explicit: bool) -> tuple[Plan, list[str]]:
    kind = str(plan.settings.truncation)
    is_senseless, why = SENSELESS[kind]
    senseless = named(is_senseless)
    asked = {estimator for policy in plan.policies for estimator in policy.estimators} | (
        {RETURNS} if plan.mc else set()
    )
    if not (found := [estimator for estimator in senseless if estimator in asked]):
        return plan, []
    if explicit:
        raise not_together(what=f"estimator {found[0]!r}", other=words.given("truncation", kind), why=why)
    for policy in plan.policies:
        plan = plan.without(policy.name, senseless)
    return replace(plan, mc=plan.mc and RETURNS not in senseless), [f"{', '.join(found)} left out: {why}"]


def _extent(source: Source, plan: Plan) -> tuple[int, int]:
    """Return the first and the last step of the log."""
    step = column(plan.columns.step)
    found = [piece.select(step.min(), step.max().alias("last")) for piece in source.pieces()]
    whole = pl.concat(found, how="vertical_relaxed").select(step.min(), pl.col("last").max())
    smallest, last = interruptible(lambda _: whole.collect(engine="streaming")).row(0)
    return counted_from(smallest), last


def _cut_rows(source: Source, plan: Plan, first: int, horizon: int) -> pl.DataFrame:
    """Return the episode and step of every row at which an episode was cut off, with a column `CUT` that is true.

    An episode may be spread over pieces, so that its last row is known only when all have been read. The scan has
    checked that only last rows are marked, so that `any` gives the mark of the last row.
    """
    episode, step = column(plan.columns.episode), column(plan.columns.step).cast(pl.Int64)
    marks = [None if name is None else column(name) for name in (plan.terminal, plan.truncated)]
    known = [mark for mark in marks if mark is not None]
    pieces = [piece.select(episode, step, *(mark.cast(pl.Boolean) for mark in known)) for piece in source.pieces()]
    ends = pl.concat(pieces, how="vertical_relaxed").group_by(episode).agg(step.max(), *(mark.any() for mark in known))
    cut = ends.filter(cut_off(pl.lit(True), step - first + 1 < horizon, *marks))
    return interruptible(lambda _: cut.select(episode, step, pl.lit(True).alias(CUT)).collect(engine="streaming"))


def _refuse_q_for_r(source: Source, ends: pl.DataFrame, keys: list[str], no_reward: pl.Expr) -> None:
    """Refuse cut-off rows for which `annotate(domain=...)` wrote Q̂ instead of R̂ because P̂ is unknown there."""
    types = pl.Schema({name: ends.schema[name] for name in keys})
    pieces = [piece.cast(types).filter(no_reward).join(ends.lazy(), on=keys).select(keys) for piece in source.pieces()]
    found = interruptible(lambda _: pl.concat(pieces).collect(engine="streaming"))
    if found.height:
        episode, step = found.row(0)
        raise truncation_needs_rewards(rows=found.height, episode=episode, step=step)


def rewritten(source: Source, names: list[str], change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Source:
    """Write the named columns of a log, changed, to temporary files, one per piece so that rows keep their order."""
    folder, paths = ScratchFolder(), []

    def write(go_on: Callable[[], None]) -> None:
        for number, piece in enumerate(source.pieces()):
            go_on()
            paths.append(folder.path / f"{number}.parquet")
            polars_calls.write_parquet(change(piece.select(exactly(names))), paths[-1], {})

    with source.unchanged():
        interruptible(write)
    made = ParquetSource([str(path) for path in paths], keep=folder)
    made.names = source.names if len(source.names) == len(paths) else [several(source.names)] * len(paths)
    made.is_sorted, made.is_deduped = source.is_sorted, source.is_deduped
    made.rows_are_the_logs = False
    return made
