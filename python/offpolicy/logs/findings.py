"""The problems that a scan has found, translated from the core's terms into the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from offpolicy import _core
from offpolicy.evaluation.plan import Plan
from offpolicy.logs.problem import EMPTY, EXAMPLES, Problem, ProblemKind, from_core, full, kinds_of
from offpolicy.logs.remedies import Done
from offpolicy.logs.repeated import RowPlace, repeated_names
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
        summary, column = whole.problems(), plan.columns.episode
        every = [*summary.kept, *(problem for group in summary.kinds for problem in group.examples)]
        names = repeated_names(every, source, column)
        names |= dict.fromkeys(rows_without_id(every, column), "null")

        def translated(problem: _core.FoundProblem) -> Problem:
            episode = "null" if lacks_id(problem, column) else problem.episode
            if problem.source is not None and problem.row is not None:
                episode = names.get((problem.source, problem.row), episode)
            return from_core(problem, episode, source.names, source.rows_are_the_logs, done)

        problems = [translated(problem) for problem in summary.kept]
        if not problems and whole.episodes == 0:
            return cls([EMPTY], 1, kinds_of([EMPTY]))

        # The pieces of an episode that is scattered count as episodes, so that the log has fewer than it seems to have.
        scattered = any(group.kind == "reappears" for group in summary.kinds)

        def counted(group: _core.FoundKind) -> ProblemKind:
            kind, rows = group.kind, group.rows
            most = whole.episodes - rows if kind == "reappears" else whole.episodes
            episodes = min(group.episodes, max(most, 1))
            own = [problem for problem in problems if problem.kind == kind][:EXAMPLES]
            return ProblemKind(
                kind,
                full(group.examples[0].message, kind, done),
                group.problems,
                rows,
                rows / source.rows if source.rows else None,
                episodes,
                episodes / whole.episodes if whole.episodes and not scattered else None,
                group.or_more,
                tuple(own or map(translated, group.examples)),
            )

        kinds = sorted(map(counted, summary.kinds), key=lambda kind: -kind.problems)
        return cls(problems, summary.found, tuple(kinds))


def lacks_id(problem: _core.FoundProblem, column: str) -> bool:
    """Return True if the problem is an id that is null."""
    return problem.kind == "null" and problem.column == column


def rows_without_id(found: Sequence[_core.FoundProblem], column: str) -> set[RowPlace]:
    """Return the rows whose id is null; the core reads what the array holds in its place."""
    return {
        (problem.source, problem.row)
        for problem in found
        if lacks_id(problem, column) and problem.source is not None and problem.row is not None
    }
