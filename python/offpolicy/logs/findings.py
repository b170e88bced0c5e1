"""The problems that a scan has found, translated from the core's terms into the user's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from offpolicy import _core
from offpolicy.evaluation.plan import Plan
from offpolicy.logs.problem import EMPTY, EXAMPLES, NO_ROW, Problem, ProblemKind, from_core, full, kinds_of
from offpolicy.logs.remedies import Done
from offpolicy.logs.repeated import name_repeated
from offpolicy.logs.sources import Source


@dataclass(frozen=True)
class Findings:
    """The first problems of a log, how many there are in all, and a summary of each kind."""

    problems: list[Problem]
    found: int
    kinds: tuple[ProblemKind, ...]

    @classmethod
    def of(cls, whole: _core.Whole, source: Source, plan: Plan) -> Findings:
        """Translate what the core has found; a log without rows counts as a problem too."""
        settings = plan.settings
        done = Done(source.is_sorted, source.is_deduped, settings.truncation, settings.density)
        document = json.loads(whole.problems())
        examples = [problem for group in document["kinds"] for problem in group["examples"]]
        name_repeated([*document["kept"], *examples], source, plan.columns.episode)
        name_nulls([*document["kept"], *examples], plan.columns.episode)

        def translated(problem: dict[str, Any]) -> Problem:
            return from_core(problem, source.names, source.rows_are_the_logs, done)

        problems = [translated(problem) for problem in document["kept"]]
        if not problems and whole.episodes == 0:
            return cls([EMPTY], 1, kinds_of([EMPTY]))

        # The pieces of an episode that is scattered count as episodes, so that the log has fewer than it seems to have.
        scattered = any(group["kind"] == "reappears" for group in document["kinds"])

        def counted(group: dict[str, Any]) -> ProblemKind:
            kind, rows = group["kind"], group["rows"]
            most = whole.episodes - rows if kind == "reappears" else whole.episodes
            episodes = min(group["episodes"], max(most, 1))
            own = [problem for problem in problems if problem.kind == kind][:EXAMPLES]
            return ProblemKind(
                kind,
                full(group["examples"][0]["message"], kind, done),
                group["problems"],
                rows,
                rows / source.rows if source.rows else None,
                episodes,
                episodes / whole.episodes if whole.episodes and not scattered else None,
                group["or_more"],
                tuple(own or map(translated, group["examples"])),
            )

        kinds = sorted(map(counted, document["kinds"]), key=lambda kind: -kind.problems)
        return cls(problems, document["found"], tuple(kinds))


def name_nulls(found: Sequence[dict[str, Any]], column: str) -> None:
    """Write null as the id of rows that have none; the core reads what the array holds in its place.

    >>> problem = {"kind": "null", "column": "user", "episode": {"Text": ""}, "place": {"source": 0, "row": 1}}
    >>> name_nulls([problem], "user")
    >>> problem["episode"]
    {'Text': 'null'}
    """

    def row_of(problem: dict[str, Any]) -> tuple[int, int] | None:
        place = problem["place"]
        return (place["source"], place["row"]) if place and place["row"] != NO_ROW else None

    without = [problem for problem in found if problem["kind"] == "null" and problem["column"] == column]
    rows = {row for problem in without if (row := row_of(problem)) is not None}
    for problem in [*without, *(problem for problem in found if row_of(problem) in rows)]:
        problem["episode"] = {"Text": "null"}
