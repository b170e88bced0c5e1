"""The columns that a policy and a model imply for rows of a log: from tables in the core, or by asking them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.aggregation import Aggregation
from offpolicy.columns import ANNOTATED
from offpolicy.errors import SHOWN, BadLogError, MissingColumnError, OffPolicyError
from offpolicy.fitters.tabular_values import Tables, TabularValues
from offpolicy.grid import Grid, OutsideGridError
from offpolicy.problem import Problem
from offpolicy.protocols import Floats, Policy, ValueModel

#: Rows a policy or model of any kind is asked for at a time.
BATCH_ROWS = 1 << 18
#: What a model says.
MODELLED = ("q_hat", "v_hat", "r_hat")


@dataclass(frozen=True)
class Annotator:
    """Makes the new columns of a batch of rows."""

    policy: Policy | None
    model: ValueModel | None
    outputs: dict[str, str]
    states: Sequence[str]
    action: str
    step: str
    episode: str | None
    first_step: int
    threads: int
    tables: Tables | None = field(init=False)

    def __post_init__(self) -> None:
        """Finds what can be looked up."""
        object.__setattr__(self, "tables", Tables.of(self.policy, self.model))

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The new columns, in the order of `outputs`."""
        self._check(frame)
        found = self._from_tables(frame)
        rest = [role for role in self.outputs if role not in found]
        if rest:
            parts = [self._ask(part, rest) for part in frame.iter_slices(BATCH_ROWS)] or [self._ask(frame, rest)]
            found |= {role: np.concatenate([part[role] for part in parts]) for role in rest}
        return pl.DataFrame({name: pl.Series(name, found[role]) for role, name in self.outputs.items()})

    def _from_tables(self, frame: pl.DataFrame) -> dict[str, Floats]:
        """What tables over cells say, looked up in the core."""
        if self.tables is None:
            return {}
        cells = self._cells(frame, self.tables.aggregation)
        actions, steps = _integers(frame[self.action]), _integers(frame[self.step])
        closer = isinstance(self.model, TabularValues) and self.model.policy is not None
        wanted = [role in self.outputs and not (closer and role == "v_hat") for role in ANNOTATED]
        try:
            found = self.tables.look_up(cells, actions, steps, self.first_step, wanted, self.threads)
        except IndexError:
            horizon, _, action_count = self.tables.shape
            raise BadLogError(self._misfits(frame, action_count, horizon)) from None
        return {role: column for role, column in zip(ANNOTATED, found, strict=True) if column is not None}

    def _cells(self, frame: pl.DataFrame, aggregation: Aggregation) -> NDArray[np.int64]:
        columns = [frame[name].to_numpy() for name in self.states]
        if not isinstance(aggregation, Grid):
            return aggregation.index(np.stack(columns).T)
        try:
            return aggregation.index_columns(columns, self.threads)
        except OutsideGridError as outside:
            episode = frame[self.episode][outside.row] if self.episode else None
            raise BadLogError([outside.problem(episode, frame[self.step][outside.row], self.states)]) from None

    def _ask(self, frame: pl.DataFrame, roles: Sequence[str]) -> dict[str, Floats]:
        """What the policy and the model say when asked."""
        n = frame.height
        states = np.stack([frame[name].to_numpy() for name in self.states]).T
        actions = frame[self.action].to_numpy().astype(np.int64)
        steps = frame[self.step].to_numpy().astype(np.int64) - self.first_step
        asked: dict[str, Any] = {}
        if "target_prob" in roles:
            assert self.policy is not None
            pi = np.asarray(self.policy.probabilities(states, steps))
            if pi.ndim != 2 or len(pi) != n:
                raise OffPolicyError(f"the policy must give ({n}, actions) probabilities, not {pi.shape}")
            if (actions < 0).any() or (actions >= pi.shape[1]).any():
                raise BadLogError(self._misfits(frame, pi.shape[1], None))
            asked["target_prob"] = pi[np.arange(n), actions]
        if self.model is not None:
            asked["q_hat"] = self.model.q_hat(states, actions, steps) if "q_hat" in roles else None
            asked["v_hat"] = self.model.v_hat(states, steps) if "v_hat" in roles else None
            asked["r_hat"] = self.model.r_hat(states, actions) if "r_hat" in roles else None
        return {role: _column(role, asked[role], n) for role in roles}

    def _check(self, frame: pl.DataFrame) -> None:
        """Refuses what has no meaning: nulls, NaN, actions and steps that are no whole numbers."""
        for name in (self.action, self.step):
            if not frame[name].dtype.is_integer():
                raise MissingColumnError(f"column {name!r} must hold whole numbers, not {frame[name].dtype}")
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
        """Actions and steps that no table has."""
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
    """As the core takes them, without a copy where that is possible."""
    kept = column if column.dtype in (pl.Int32, pl.Int64) else column.cast(pl.Int64)
    return np.ascontiguousarray(kept.to_numpy())


def _column(role: str, values: Any, rows: int) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    if column.shape != (rows,):
        raise OffPolicyError(f"the model's {role} must give {rows} numbers, not an array of shape {column.shape}")
    return column
