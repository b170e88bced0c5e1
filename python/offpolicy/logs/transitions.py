"""The steps of a log as a fitter reads them: batches of (s, a, r, s').

s' is in the columns `next_…` if the log has them, and otherwise in the episode's next row. `offpolicy.logs.endings` has
the rule for which last rows end their episode. If a last row does not, its s' is not known and only its reward counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util.polars_calls import naming_the_log
from offpolicy.errors import SHOWN, BadLogError
from offpolicy.errors.kinds.of_columns import wrong_type
from offpolicy.logs.columns import Columns, coding
from offpolicy.logs.endings import ended
from offpolicy.logs.problem import Problem
from offpolicy.logs.sources import open_log
from offpolicy.logs.steps import counted_from, smallest_step
from offpolicy.logs.successors import ORDER, logged_successors
from offpolicy.protocols import Actions, Floats, Setting, States

BATCH_ROWS = 1 << 18
#: The advice for states that are not numbers.
COUNTED = ": a fitter that counts takes texts, such as 'tabular' with aggregate=op.Categories.of(log, ...)"


@dataclass(frozen=True, eq=False)
class Transitions:
    """A batch of n steps; the matrices of states are made on first use, since some fitters need none."""

    episodes: pl.Series
    state_columns: Sequence[NDArray[Any]]  # one array of n values per coordinate
    next_columns: Sequence[NDArray[Any]]
    action_column: Actions  # with the integer type of the log
    rewards: Floats
    terminal: NDArray[np.bool_]
    known: NDArray[np.bool_]  # whether s' is known or the episode has ended, so that the transition counts
    step_column: NDArray[Any]
    first_step: int

    @cached_property
    def states(self) -> States:
        """The states s, of shape (n, k)."""
        return np.stack(self.state_columns).T

    @cached_property
    def next_states(self) -> States:
        """The next states s', of shape (n, k)."""
        return np.stack(self.next_columns).T

    @cached_property
    def actions(self) -> Actions:
        """The actions a, as 64-bit integers."""
        return self.action_column.astype(np.int64, copy=False)

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The steps t, counted from 0."""
        steps: NDArray[np.int64] = np.subtract(self.step_column, self.first_step, dtype=np.int64)
        return steps


@naming_the_log
def transitions(
    log: Any,
    domain: Setting,
    columns: Columns | None = None,
    batch_rows: int | None = None,
    texts: bool = False,
) -> Iterator[Transitions]:
    """Yield every step of a log once, in batches of bounded memory; with `texts`, states may be texts or categories."""
    source, columns = open_log(log), columns or Columns()
    layout = _Layout(source.columns, domain, columns, ", ".join(source.names), texts)
    held: pl.DataFrame | None = None
    row = 0
    for frame in source.frames(layout.names, batch_rows or BATCH_ROWS):
        layout.check(frame, row)
        if row == 0 and frame.height:
            again = (each[layout.step] for each in source.frames([layout.step]))
            layout.first_step = counted_from(smallest_step(chain([frame[layout.step]], again)))
        if not layout.has_next:
            layout.check_order(frame, row, held)
        row += frame.height
        whole = frame if held is None else pl.concat([held, frame])
        if layout.has_next:
            yield layout.batch(whole, None)
        elif whole.height > 1:  # the last row waits for the next batch, which may go on with its episode
            yield layout.batch(whole[:-1], whole[1:])
            held = whole[-1:]
        else:
            held = whole
    if held is not None and held.height:
        yield layout.batch(held, None)


class _Layout:
    """The columns of a log that a fitter needs, with their checks."""

    def __init__(self, available: Sequence[str], domain: Setting, columns: Columns, file: str, texts: bool) -> None:
        self.domain, self.columns, self.file, self.first_step, self.texts = domain, columns, file, 0, texts
        self.states = list(columns.states(available, domain.state_columns))
        self.terminal = columns.find("terminal", available)
        self.next_states = logged_successors(self.states, self.terminal, available)
        self.has_next = bool(self.next_states)
        self.truncated = None if self.terminal else columns.find("truncated", available)
        self.marks = [name for name in (self.terminal, self.truncated) if name]
        needed = [columns.need(role, available) for role in ("episode", "step", "action", "reward")]
        self.episode, self.step, self.action, self.reward = needed
        self.names = [*needed, *self.states, *self.next_states, *self.marks]

    def check(self, frame: pl.DataFrame, row: int) -> None:
        """Refuse wrong types, nulls, NaN and actions that do not exist."""
        self._check_types(frame)
        action = frame[self.action]
        marks = [frame[name] for name in self.marks if frame[name].dtype != pl.Boolean]
        whole = within(action, self.domain.actions) and all(within(column, 2) for column in marks)
        if whole and all(map(sound, (frame[name] for name in self.names))):
            return
        problems = []
        for name in self.names:
            column = frame[name]
            bad = column.is_null()
            if column.dtype.is_float():
                bad = bad | ~column.is_finite().fill_null(True)
            problems += self._problems(frame, row, name, bad, "must be there and finite", "not-finite")
        outside = ~action.is_between(0, self.domain.actions - 1).fill_null(True)
        why = f"must be an action from 0 to {self.domain.actions - 1}"
        problems += self._problems(frame, row, self.action, outside, why, "no-such-action")
        for column in marks:
            neither = ~column.is_between(0, 1).fill_null(True)
            why = "must be true or false, or 1 or 0"
            problems += self._problems(frame, row, column.name, neither, why, "not-a-mark")
        if problems:
            raise BadLogError(problems)

    def _check_types(self, frame: pl.DataFrame) -> None:
        whole = {name: "whole numbers" for name in (self.step, self.action) if not frame[name].dtype.is_integer()}
        numbers = [name for name in self.names if name not in (self.episode, self.step, self.action, *self.marks)]
        counted = [name for name in (*self.states, *self.next_states) if is_text(frame[name].dtype)]
        taken = counted if self.texts else []
        wrong = whole | {n: "numbers" for n in numbers if n not in taken and not _is_number(frame[n].dtype)}
        for name in self.marks:
            if not (frame[name].dtype == pl.Boolean or frame[name].dtype.is_integer()):
                wrong[name] = "true and false"
        for name, kind in wrong.items():
            hint = f": {coding(frame[name])}" if name == self.action else COUNTED if name in counted else ""
            raise wrong_type(column=repr(name), expected=kind, found=f"{frame[name].dtype}{hint}")

    def check_order(self, frame: pl.DataFrame, row: int, before: pl.DataFrame | None) -> None:
        """Refuse rows of an episode that do not follow each other in order: s' is taken from the next row."""
        rows = frame if before is None else pl.concat([before, frame])
        episode, step = rows[self.episode], rows[self.step].cast(pl.Int64)
        expected = pl.select(
            pl.when(episode == episode.shift(1)).then(step.shift(1) + 1).otherwise(pl.lit(self.first_step))
        ).to_series()
        bad = (step != expected).fill_null(False)
        if before is not None:
            bad = bad[1:]
        problems = self._problems(frame, row, self.step, bad, ORDER, "out-of-order")
        if problems:
            raise BadLogError(problems)

    def _problems(self, frame: pl.DataFrame, row: int, name: str, bad: pl.Series, why: str, kind: str) -> list[Problem]:
        return [
            Problem(
                kind=kind,
                file=self.file,
                row=row + i,
                episode=frame[self.episode][i],
                step=frame[self.step][i],
                column=name,
                value=str(frame[name][i]),
                message=why,
            )
            for i in bad.arg_true().head(SHOWN).to_list()
        ]

    def batch(self, frame: pl.DataFrame, following: pl.DataFrame | None) -> Transitions:
        """Return the arrays of these rows; `following` has the row after each, if s' must be found there."""
        n = frame.height
        state, step = _columns(frame, self.states), frame[self.step].to_numpy()
        last = np.ones(n, dtype=bool)
        if self.has_next:
            next_state = _columns(frame, self.next_states)
        else:
            next_state = [column.copy() for column in state]
            if following is not None:
                last = (frame[self.episode] != following[self.episode]).to_numpy().copy()
                for column, after in zip(next_state, _columns(following, self.states), strict=True):
                    column[~last] = after[~last]
        early = step + 1 - self.first_step < self.domain.horizon
        ends = ended(last, early, *(self._marks(frame, name) for name in (self.terminal, self.truncated)))
        return Transitions(
            episodes=frame[self.episode],
            state_columns=state,
            next_columns=next_state,
            action_column=frame[self.action].to_numpy(),
            rewards=frame[self.reward].to_numpy().astype(np.float64, copy=False),
            terminal=ends,
            known=np.ones(n, dtype=bool) if self.has_next else ~last | ends,
            step_column=step,
            first_step=self.first_step,
        )

    @staticmethod
    def _marks(frame: pl.DataFrame, name: str | None) -> NDArray[np.bool_] | None:
        return None if name is None else frame[name].to_numpy().astype(bool, copy=False)


def is_text(dtype: pl.DataType) -> bool:
    """Return whether a column holds texts or categories, which a fitter can only count."""
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _is_number(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype == pl.Boolean


def sound(column: pl.Series) -> bool:
    """Return whether a column surely has no null, NaN or infinity: a sum is finite only if all its terms are."""
    return not column.null_count() and (not column.dtype.is_float() or math.isfinite(column.sum()))


def within(column: pl.Series, size: int) -> bool:
    """Return whether all numbers of a column are from 0 to size - 1."""
    values = column.to_numpy()
    return not len(values) or bool(values.min() >= 0 and values.max() < size)


def _columns(frame: pl.DataFrame, names: Sequence[str]) -> list[NDArray[Any]]:
    return [array_of(frame[name]) for name in names]


def array_of(column: pl.Series) -> NDArray[Any]:
    """Return a column of the state as an array; texts and categories become Python strings."""
    return column.cast(pl.String).to_numpy().astype(object) if is_text(column.dtype) else column.to_numpy()
