"""The next state of each row of a log, from its columns `next_…` or else from the next row of its episode."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util.phrase import phrase
from offpolicy._util.polars_calls import column, exactly
from offpolicy._util.words import given
from offpolicy.errors.kinds.of_columns import no_end_of_episodes, wrong_type
from offpolicy.logs.columns import Columns
from offpolicy.protocols import States

FOLLOWS, IN_ORDER, NEXT = "__offpolicy_follows__", "__offpolicy_in_order__", "__offpolicy_next_{}__"
#: The message for rows that are out of order in a log without columns of the next state.
ORDER = phrase(
    "the log has no columns of the next state, so that the rows of an episode must come one after the other: log the "
    "next states, or sort the log by episode and step, as {order} does where it can be given",
    order=given("order", "any"),
)


def logged_successors(states: Sequence[str], terminal: str | None, available: Collection[str]) -> list[str]:
    """Return the columns of the next state, or none if the log lacks one of them."""
    names = [f"next_{name}" for name in states]
    if not all(name in available for name in names):
        return []
    if terminal is None:
        raise no_end_of_episodes()
    return names


@dataclass(frozen=True)
class Successors:
    """Temporary columns that say for each row whether its episode goes on, and in which state.

    With them a row can be used without the row that follows it.
    """

    states: tuple[str, ...]
    expressions: tuple[pl.Expr, ...]

    @classmethod
    def of(cls, states: Sequence[str], columns: Columns, schema: pl.Schema, first_step: int) -> Successors:
        """Return the expressions of the temporary columns for a log of this schema."""
        following = [NEXT.format(name) for name in states]
        terminal = columns.find("terminal", schema)
        if logged := logged_successors(states, terminal, schema):
            assert terminal is not None
            if not (schema[terminal] == pl.Boolean or schema[terminal].is_integer()):
                raise wrong_type(column=repr(terminal), expected="true and false", found=schema[terminal])
            pairs = zip(logged, following, strict=True)
            moved = [column(name).alias(new) for name, new in pairs]
            return cls(
                tuple(states),
                ((~column(terminal).cast(pl.Boolean)).alias(FOLLOWS), pl.lit(True).alias(IN_ORDER), *moved),
            )
        episode = column(columns.need("episode", schema))
        step = column(columns.need("step", schema)).cast(pl.Int64, strict=False)
        same, after = (episode == episode.shift(-1)).fill_null(False), step.shift(-1)
        in_order = pl.when(same).then(after == step + 1).otherwise(after == first_step).fill_null(True)
        own = exactly(states)
        moved = [column.shift(-1).fill_null(column).alias(new) for column, new in zip(own, following, strict=True)]
        return cls(tuple(states), (same.alias(FOLLOWS), in_order.alias(IN_ORDER), *moved))

    @property
    def names(self) -> list[str]:
        """The names of the temporary columns."""
        return [FOLLOWS, IN_ORDER, *(NEXT.format(name) for name in self.states)]

    def follows(self, frame: pl.DataFrame) -> NDArray[np.bool_]:
        """Return for each row whether its episode goes on."""
        return frame[FOLLOWS].to_numpy().astype(bool)

    def next_states(self, frame: pl.DataFrame, follows: NDArray[np.bool_]) -> States:
        """Return s' for the rows in which the episode goes on, and the row's own state for the others."""
        pairs = [(frame[name].to_numpy(), frame[NEXT.format(name)].to_numpy()) for name in self.states]
        return np.stack([np.where(follows, after, now) for now, after in pairs]).T
