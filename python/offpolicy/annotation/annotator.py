"""The columns that a policy and a model imply for rows of a log.

Values that have `lookup_many` (`offpolicy.protocols.BatchedValues`) and policies that have `lookup`, such as those with
tables in the core, are asked for all rows at once. Columns that they leave out are computed batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util.probabilities import Tally, checked, counted
from offpolicy.annotation.transition_ratio import TransitionRatio
from offpolicy.errors import SHOWN, BadLogError
from offpolicy.errors.kinds.of_columns import wrong_type
from offpolicy.errors.kinds.of_models import wrong_answers
from offpolicy.errors.kinds.of_simulation import wrong_array
from offpolicy.grid import OutsideGridError
from offpolicy.logs.columns import coding
from offpolicy.logs.problem import Problem
from offpolicy.logs.transitions import array_of
from offpolicy.models.tables import OutsideTablesError
from offpolicy.protocols import Floats, LoggedRows, Policy, Question, ValueModel

#: The largest number of rows for which other policies and models are asked at a time.
BATCH_ROWS = 1 << 18
#: The columns that a model gives.
MODELLED = ("q_hat", "v_hat", "r_hat")


@dataclass(frozen=True)
class Annotation:
    """The columns to write for one policy; `outputs` maps roles to names."""

    policy: Policy | None
    model: ValueModel | None
    outputs: dict[str, str]

    @cached_property
    def question(self) -> Question:
        """The question that a look-up answers for this annotation."""
        return Question(self.policy, self.model, frozenset(self.outputs) & {"target_prob", *MODELLED})


@dataclass(frozen=True)
class Annotator:
    """A function that makes the new columns for a batch of rows."""

    annotations: Sequence[Annotation]
    states: Sequence[str]
    action: str
    step: str
    episode: str | None
    first_step: int
    threads: int
    ratio: TransitionRatio | None = None
    tally: Tally = field(default_factory=Tally)

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the new columns in the order of the annotations and their outputs."""
        self._check(frame)
        columns: dict[str, Floats] = {}
        for annotation, mine in zip(self.annotations, self._looked_up(frame), strict=True):
            made = mine | self._asked(frame, annotation, [role for role in annotation.outputs if role not in mine])
            if "transition_ratio" in made:
                made |= self._with_a_known_ratio(frame, annotation, made)
            columns |= {name: made[role] for role, name in annotation.outputs.items()}
        return pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})

    def _looked_up(self, frame: pl.DataFrame) -> Iterator[dict[str, Floats]]:
        """Yield, for each annotation, the columns that its policy and model can look up for all rows at once."""
        rows, waiting = self._rows(frame), [annotation.question for annotation in self.annotations]
        while waiting:
            try:
                answers = self._answers(waiting, rows)
            except OutsideTablesError as outside:
                raise BadLogError(self._misfits(frame, outside.actions, outside.horizon)) from None
            except OutsideGridError as outside:
                episode = frame[self.episode][outside.row] if self.episode else None
                raise BadLogError([outside.problem(episode, frame[self.step][outside.row], self.states)]) from None
            yield from answers
            waiting = waiting[len(answers) :]

    def _answers(self, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
        """Answer as many of the first questions as the values of the first one can answer together."""
        policy, values, n = questions[0].policy, questions[0].values, len(rows.step_column)
        with counted(self.tally):
            many = getattr(values, "lookup_many", None)
            answers = _checked(many(questions, rows), questions, n) if callable(many) else [{}]
            alone = getattr(policy, "lookup", None) if "target_prob" in questions[0].roles - answers[0].keys() else None
            if callable(alone):
                answers[0]["target_prob"] = _column("target_prob", alone(rows), n)
        return answers

    def _with_a_known_ratio(
        self, frame: pl.DataFrame, annotation: Annotation, made: dict[str, Floats]
    ) -> dict[str, Floats]:
        """Use DR's term, with Q̂ in place of R̂ and without V̂ of the next state, where the model has no P̂."""
        unknown = np.isnan(made["transition_ratio"])
        if not unknown.any():
            return {}
        q_hat = made["q_hat"] if "q_hat" in made else self._asked(frame, annotation, ["q_hat"])["q_hat"]
        return {
            "transition_ratio": np.where(unknown, 0.0, made["transition_ratio"]),
            "r_hat": np.where(unknown, q_hat, made["r_hat"]),
        }

    def _asked(self, frame: pl.DataFrame, annotation: Annotation, roles: Sequence[str]) -> dict[str, Floats]:
        """Compute the columns of these roles batch by batch."""
        if not roles:
            return {}
        batches = [self._ask(part, annotation, roles) for part in frame.iter_slices(BATCH_ROWS)]
        batches = batches or [self._ask(frame, annotation, roles)]
        return {role: np.concatenate([batch[role] for batch in batches]) for role in roles}

    def _ask(self, frame: pl.DataFrame, annotation: Annotation, roles: Sequence[str]) -> dict[str, Floats]:
        """Compute the columns of these roles for one batch."""
        policy, model = annotation.policy, annotation.model
        n, rows = frame.height, self._rows(frame)
        states, actions, steps = rows.states, rows.actions, rows.steps
        asked: dict[str, Any] = {}
        if "target_prob" in roles:
            assert policy is not None
            with counted(self.tally):
                pi = checked(policy.probabilities(states, steps), "the policy", n)
            if (actions < 0).any() or (actions >= pi.shape[1]).any():
                raise BadLogError(self._misfits(frame, pi.shape[1], None))
            asked["target_prob"] = pi[np.arange(n), actions]
        if model is not None:
            asked["q_hat"] = model.q_hat(states, actions, steps) if "q_hat" in roles else None
            asked["v_hat"] = model.v_hat(states, steps) if "v_hat" in roles else None
            asked["r_hat"] = model.r_hat(states, actions) if "r_hat" in roles else None
        if "transition_ratio" in roles:
            assert self.ratio is not None
            asked["transition_ratio"] = self.ratio(frame, model, states, actions)
        return {role: _column(role, asked[role], n) for role in roles}

    def _rows(self, frame: pl.DataFrame) -> LoggedRows:
        columns = [array_of(frame[name]) for name in self.states]
        return LoggedRows(
            columns, _integers(frame[self.action]), _integers(frame[self.step]), self.first_step, self.threads
        )

    def _check(self, frame: pl.DataFrame) -> None:
        """Raise an error for nulls, NaN, and actions and steps that are not whole numbers."""
        for name in (self.action, self.step):
            if not frame[name].dtype.is_integer():
                how = f": {coding(frame[name])}" if name == self.action else ""
                raise wrong_type(column=repr(name), expected="whole numbers", found=f"{frame[name].dtype}{how}")
        problems = []
        for name in dict.fromkeys((*self.states, self.action, self.step)):
            column = frame[name]
            if column.null_count() or (column.dtype.is_float() and not column.is_finite().all()):
                bad = column.is_null() | (~column.is_finite() if column.dtype.is_float() else False)
                problems += self._problems(frame, name, bad, "must be there and finite", "not-finite")
        before = frame[self.step] < self.first_step
        if before.any():
            why = f"steps count from {self.first_step} here"
            problems += self._problems(frame, self.step, before, why, "no-such-step")
        if problems:
            raise BadLogError(problems)

    def _misfits(self, frame: pl.DataFrame, actions: int, horizon: int | None) -> list[Problem]:
        """Return the problems of actions and steps outside the tables."""
        unknown = ~frame[self.action].is_between(0, actions - 1)
        why = f"must be an action from 0 to {actions - 1}"
        problems = self._problems(frame, self.action, unknown, why, "no-such-action")
        if horizon is not None:
            late = frame[self.step] >= horizon + self.first_step
            why = f"is beyond the horizon of {horizon} steps that the policy or model was made for"
            problems += self._problems(frame, self.step, late, why, "beyond-horizon")
        return problems

    def _problems(self, frame: pl.DataFrame, name: str, bad: pl.Series, why: str, kind: str) -> list[Problem]:
        return [
            Problem(
                kind=kind,
                file=None,
                row=None,
                episode=frame[self.episode][i] if self.episode else None,
                step=frame[self.step][i],
                column=name,
                value=str(frame[name][i]),
                message=why,
            )
            for i in bad.arg_true().head(SHOWN).to_list()
        ]


def _integers(column: pl.Series) -> NDArray[Any]:
    """Convert to the integers that the core takes, without a copy where possible."""
    kept = column if column.dtype in (pl.Int32, pl.Int64) else column.cast(pl.Int64)
    return np.ascontiguousarray(kept.to_numpy())


def _checked(answers: Any, questions: Sequence[Question], rows: int) -> list[dict[str, Floats]]:
    """Return the answers of a look-up; raise an error if their number or their shapes are wrong."""
    if not isinstance(answers, list) or not 1 <= len(answers) <= len(questions):
        raise wrong_answers(most=len(questions))
    return [
        {role: _column(role, column, rows) for role, column in answer.items() if role in question.roles}
        for answer, question in zip(answers, questions, strict=False)
    ]


def _column(role: str, values: Any, rows: int) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (rows,):
        raise wrong_array(
            who=f"the model's {role}", expected=f"{rows} numbers", found=f"an array of shape {column.shape}"
        )
    return column
