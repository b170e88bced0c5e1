"""The check that lists every problem of a log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from offpolicy import _core
from offpolicy._util import scalars
from offpolicy._util.polars_calls import naming_the_log
from offpolicy.evaluation.evaluate import check_types
from offpolicy.evaluation.options import ProgressFunction
from offpolicy.evaluation.passes import Scanner
from offpolicy.evaluation.plan import Plan, Probabilities, RatioColumn, Settings, find_policies
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.logs.findings import Findings
from offpolicy.logs.problem import Problem, ProblemKind
from offpolicy.logs.sort import tidy
from offpolicy.logs.sources import open_log


@dataclass(frozen=True)
class Report:
    """The problems of a log.

    >>> import offpolicy as op
    >>> print(op.check(op.demo_log(episodes=3)))
    no problem found in 30 rows of 3 episodes
    """

    problems: list[Problem]
    found: int
    episodes: int
    rows: int | None
    #: One entry per kind of problem, the most frequent first.
    kinds: tuple[ProblemKind, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the log has no problem."""
        return self.found == 0

    @property
    def table(self) -> pl.DataFrame:
        """A table with one row per problem."""
        schema = {
            "kind": pl.String,
            "file": pl.String,
            "row": pl.Int64,
            "episode": pl.String,
            "step": pl.Int64,
            "column": pl.String,
            "value": pl.String,
            "message": pl.String,
        }
        rows = [asdict(problem) | {"episode": _text(problem.episode)} for problem in self.problems]
        return pl.DataFrame(rows, schema=schema)

    def __str__(self) -> str:
        """List the kinds of problems and then the problems, one per line."""
        if self.ok:
            size = f"{self.rows} rows of " if self.rows is not None else ""
            return f"no problem found in {size}{self.episodes} episodes"
        noun = "problem" if self.found == 1 else "problems"
        lines = [
            f"{self.found:,} {noun} found",
            *(f"{kind.kind}: {kind.problems:,}{kind.extent}" for kind in self.kinds),
        ]
        lines += map(str, self.problems)
        if self.found > len(self.problems):
            lines.append(f"… and {self.found - len(self.problems):,} more")
        return "\n".join(lines)


def _text(episode: int | str | None) -> str | None:
    return None if episode is None else str(episode)


@naming_the_log
def check(
    log: Any,
    *,
    columns: Columns | None = None,
    policies: Mapping[str, PolicyColumns] | None = None,
    horizon: int | None = None,
    density: bool = False,
    order: str = "sorted",
    dedupe: str | None = None,
    limit: int = 1000,
    threads: int | None = None,
    progress: ProgressFunction | None = None,
) -> Report:
    """Look for everything that `evaluate` would refuse, in every column that it could use.

    The arguments mean what they mean in `evaluate`; `limit` is the number of problems to list.

    >>> import offpolicy as op, polars as pl
    >>> log = op.demo_log(episodes=3).with_columns(reward=pl.lit(float("nan")))
    >>> report = op.check(log, limit=2)
    >>> report.ok, report.found, len(report.problems)
    (False, 30, 2)
    >>> print(report.problems[0])  # doctest: +ELLIPSIS
    frame, row 0, episode 0, step 0: reward = NaN: NaN is not a value; mend the column where it is made; ... [nan]
    """
    scalars.choice("order", order, ("sorted", "any"))
    scalars.choice("dedupe", dedupe, (None, "identical"))
    limit, threads = scalars.whole("limit", limit, 1, limit=scalars.MOST_ROWS), scalars.threads(threads)
    check_types(columns, policies)
    settings = Settings(horizon=horizon, density=density, problem_limit=limit)
    source = open_log(log)
    columns = (columns or Columns()).with_estimates(source.columns)
    for role in ("episode", "step", "reward"):
        columns.need(role, source.columns)
    behavior = columns.find("behavior_prob", source.columns)
    found = find_policies(source.columns, columns, policies)
    extra = [(behavior, "behavior_prob")] if behavior else []
    for policy in found:
        if isinstance(policy.ratio, Probabilities):
            extra.append((policy.ratio.target, "target_prob"))
        if isinstance(policy.ratio, RatioColumn):
            extra.append((policy.ratio.name, "ratio"))
        extra += [(name, role) for role, name in policy.models.items()]
    plan = Plan(
        columns=columns,
        settings=settings,
        terminal=columns.find("terminal", source.columns),
        truncated=columns.find("truncated", source.columns),
        policies=found,
        mc=False,
        check_only=True,
        extra=tuple(dict.fromkeys(extra)),
    )
    if order == "any" or dedupe:
        source, _ = tidy(source, plan.names(), columns, dedupe == "identical")
    whole = Scanner(source, threads or os.cpu_count() or 1, None, None, progress, plan).read(plan, _core.Pass.FIRST)
    findings = Findings.of(whole, source, plan)
    return Report(findings.problems, findings.found, whole.episodes, source.rows, findings.kinds)
