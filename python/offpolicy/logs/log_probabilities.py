"""Ratios from log-probabilities: ρ_t = exp(ln π1(a_t|s_t) − ln π0(a_t|s_t)).

The ratio can be an ordinary number even if π1 and π0 are too small for a float. It is written to a column of its own
before the log is scanned: into the frame, or file by file into temporary copies. A log may have one of the two as a
probability and the other as its logarithm.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import polars as pl

from offpolicy._util import words
from offpolicy._util.interruptible import interruptible
from offpolicy._util.phrase import phrase
from offpolicy.errors import SHOWN, BadLogError
from offpolicy.errors.kinds.of_arguments import given_twice
from offpolicy.errors.kinds.of_columns import no_behavior_probability
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.logs.problem import Problem
from offpolicy.logs.sources import FrameSource, Source
from offpolicy.logs.truncation import rewritten

#: The columns of π0 and π1, each with True if it holds logarithms.
Pair: TypeAlias = tuple[tuple[str, bool], tuple[str, bool]]

RATIO = "__offpolicy_ratio_{}__"
#: The natural logarithm of the largest float.
LARGEST = math.log(sys.float_info.max)
#: How far rounding may lift a probability above 1, or its logarithm above 0.
ROUNDING = 4 * 2.0**-52


@dataclass(frozen=True)
class LogRatios:
    """The ratios to write, by the names of their columns, and the names of all columns once they are written."""

    pairs: dict[str, Pair]
    columns: Columns
    policies: Mapping[str, PolicyColumns] | None

    @classmethod
    def of(
        cls, available: Collection[str], columns: Columns, policies: Mapping[str, PolicyColumns] | None
    ) -> LogRatios | None:
        """Return the ratios to write, or None if no policy needs a logarithm."""
        behavior = _chosen(columns, "behavior", available)
        if policies is None:
            target = _chosen(columns, "target", available)
            given = columns.find("ratio", available) and columns.renamed("ratio")
            if given or behavior is None or target is None or not (behavior[1] or target[1]):
                return None
            name = RATIO.format(0)
            return cls({name: (behavior, target)}, replace(columns, ratio=name), None)
        pairs: dict[str, Pair] = {}
        revised: dict[str, PolicyColumns] = {}
        for number, (policy, chosen) in enumerate(policies.items()):
            chosen.check(policy, available)
            log = chosen.target_logprob
            column = log or chosen.target_prob
            if column is None or behavior is None or not (behavior[1] or log):
                if log is not None:
                    raise no_behavior_probability(policy=repr(policy))
                revised[policy] = chosen
                continue
            name = RATIO.format(number)
            pairs[name] = behavior, (column, log is not None)
            revised[policy] = replace(chosen, target_prob=None, target_logprob=None, ratio=name)
        return cls(pairs, columns, revised) if pairs else None

    def written(self, source: Source, columns: Columns, names: Collection[str], density: bool) -> Source:
        """Return the log with the ratios and the named columns, and refuse rows whose values are not probabilities."""
        _refuse(source, columns, dict.fromkeys(self.pairs.values()), density)
        made = [
            (_logarithm(*target) - _logarithm(*behavior)).exp().alias(name)
            for name, (behavior, target) in self.pairs.items()
        ]
        if (frame := source.in_memory) is not None:
            return FrameSource(frame.with_columns(made))
        needed = {*names, *(name for pair in self.pairs.values() for name, _ in pair)}
        kept = [name for name in source.columns if name in needed]
        return rewritten(source, kept, lambda query: query.with_columns(made))


def with_behavior(source: Source, columns: Columns) -> Source:
    """Return the log with `behavior_prob`, computed from its logarithm if the log has only that."""
    behavior = _chosen(columns, "behavior", source.columns)
    if behavior is None or not behavior[1]:
        return source
    made = pl.col(behavior[0]).cast(pl.Float64).exp().alias(columns.behavior_prob)
    if (frame := source.in_memory) is not None:
        return FrameSource(frame.with_columns(made))
    return rewritten(source, source.columns, lambda query: query.with_columns(made))


def _chosen(columns: Columns, who: str, available: Collection[str]) -> tuple[str, bool] | None:
    """Return the column of π0 or π1 and whether it holds logarithms.

    A name that the user chose comes first, then a column of probabilities, then one of logarithms.
    """
    plain, log = columns.find(f"{who}_prob", available), columns.find(f"{who}_logprob", available)
    if log and (columns.renamed(f"{who}_logprob") or not plain):
        if columns.renamed(f"{who}_prob"):
            raise given_twice(who=who)
        return log, True
    return (plain, False) if plain else None


def _logarithm(name: str, is_log: bool) -> pl.Expr:
    column = pl.col(name).cast(pl.Float64)
    return column if is_log else column.log()


def _refuse(source: Source, columns: Columns, pairs: Collection[Pair], density: bool) -> None:
    """Refuse values that are neither probabilities nor logarithms of them, and ratios too large for a float."""
    for behavior, target in pairs:
        for column, above_0 in ((behavior, True), (target, False)):
            name, is_log = column
            value = pl.col(name).cast(pl.Float64)
            if is_log:
                lowest = value > -math.inf if above_0 else pl.lit(True)
                highest = value < math.inf if density else value <= ROUNDING
                least = "finite" if above_0 else "finite or -inf"
                expected = f"must be {least}, the logarithm of a {'density' if density else 'probability'}"
            else:
                lowest = value > 0 if above_0 else value >= 0
                highest = value < math.inf if density else value <= 1 + ROUNDING
                expected = f"must be {'above 0' if above_0 else 'at least 0'}{'' if density else ' and at most 1'}"
            if not density:
                larger = "{expected}; {density} takes densities, which may be larger"
                expected = phrase(larger, expected=expected, density=words.switched_on("density"))
            _refuse_rows(source, columns, name, ~(value.is_not_nan() & lowest & highest).fill_null(False), expected)
        large = _logarithm(*target) - _logarithm(*behavior) > LARGEST
        beyond = (
            f"is so much above {behavior[0]} that no float holds their ratio; was one of them logged in other units?"
        )
        _refuse_rows(source, columns, target[0], large, beyond)


def _refuse_rows(source: Source, columns: Columns, name: str, bad: pl.Expr, why: str) -> None:
    episode, step = (columns.need(role, source.columns) for role in ("episode", "step"))
    pieces = [piece.filter(bad).select(episode, step, name) for piece in source.pieces()]
    query = pl.concat(pieces, how="vertical_relaxed")
    shown = interruptible(lambda _: query.head(SHOWN).collect(engine="streaming"))
    if shown.is_empty():
        return
    found = interruptible(lambda _: query.select(pl.len()).collect(engine="streaming")).item()
    places = [
        Problem("no-log-probability", None, None, at, number, name, str(value), why)
        for at, number, value in shown.iter_rows()
    ]
    raise BadLogError(places, found)
