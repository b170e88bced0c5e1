"""P̂/P of the transitions of a log, for DR-v2, Jiang & Li (2016), eq. (12):

    p_t = P̂(s_{t+1}|s_t, a_t) / P(s_{t+1}|s_t, a_t)

P is the domain's, and P̂ is that of the model, with V̂(s_t) = Σ_a π(a|s_t) (R̂(s_t, a) + γ Σ_s' P̂(s'|s_t, a) V̂(s')).
Then γ Σ_s' P̂ V̂ is the mean of γ p_t V̂(s_{t+1}) given s_t and a_t, and DR-v2 is unbiased for every P̂ that is 0
wherever P is 0.

A model has no P̂ for a pair of state and action that it never saw. For such a row DR-v2 takes the term of DR,
V̂(s_t) + ρ_t (r_t + γ X_{t+1} − Q̂(s_t, a_t)), which is unbiased for any Q̂. This is the term of DR-v2 with p_t = 0 and
Q̂ in place of R̂.

After the last row of an episode V̂ = 0, so that p_t does not matter and is set to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from offpolicy.errors import SHOWN, BadLogError, UnknownTransitionsError
from offpolicy.errors.kinds.of_models import no_probability, ratio_of_some_folds
from offpolicy.errors.kinds.of_simulation import wrong_array
from offpolicy.evaluation.estimators import describe
from offpolicy.logs.columns import PolicyColumns
from offpolicy.logs.problem import Problem
from offpolicy.logs.successors import ORDER, Successors
from offpolicy.protocols import Actions, Floats, Setting, States

#: A probability may exceed 1 by this much because of rounding.
ROUNDING = 1e-9


def knows_transitions(thing: object) -> bool:
    """Return whether a domain or a model has P(s'|s, a); a model may still raise `UnknownTransitionsError`."""
    return callable(getattr(thing, "transition_probability", None))


def unknown_ratio(domain: Setting | None, model: object) -> str | None:
    """Return why P̂/P is unknown for a domain and the values of a model, or None if it is known."""
    if domain is None:
        return "no domain was given, whose P it is"
    if not knows_transitions(domain):
        return f"domain {domain.name!r} has no transition_probability, P(s'|s, a)"
    return refusal(model, coordinates=len(domain.state_columns))


def refusal(model: Any, coordinates: int) -> str | None:
    """Return why the values of a model have no P̂ for states with so many coordinates, or None; no rows are needed."""
    if not knows_transitions(model):
        return f"{type(model).__name__} has no transition_probability, P̂(s'|s, a)"
    states, actions = np.zeros((0, coordinates), dtype=np.int64), np.zeros(0, dtype=np.int64)
    try:
        model.transition_probability(states, actions, states)
    except UnknownTransitionsError as error:
        return error.message
    return None


class RatioOfFolds:
    """The decision whether `dr-v2` gets P̂/P in cross-fitting, alike for all folds, which are evaluated together."""

    def __init__(self, domain: Setting, estimators: Sequence[str] | None, allowed: bool) -> None:
        """Leave P̂/P out if no estimator uses it or the domain does not know P."""
        asked = allowed and (estimators is None or any("transition_ratio" in describe(e).reads for e in estimators))
        self.domain = domain
        self.known: bool | None = None if asked and knows_transitions(domain) else False
        self.notes: list[str] = []

    def ask(self, values: Sequence[object]) -> None:
        """Decide by the models of the first fold; raise an error if those of another fold differ."""
        if self.known is False:
            return
        why = next((why for each in values if (why := unknown_ratio(self.domain, each))), None)
        if self.known and why is not None:
            raise ratio_of_some_folds(why=why)
        self.known = why is None
        if why is not None:
            self.notes = [f"dr-v2 takes P̂/P = 1: {why}"]
            return
        remark = getattr(values[0], "transition_remark", None)
        law = f"dr-v2 has P̂/P of every transition, with P of domain {self.domain.name!r} and P̂ of the model"
        self.notes = [law if remark is None else f"{law}; {remark}"]

    def named(self, into: Mapping[str, PolicyColumns]) -> Mapping[str, PolicyColumns]:
        """Return the columns of the policies, with those of P̂/P if it is known."""
        if not self.known:
            return into
        numbered = enumerate(into.items())
        return {name: replace(each, transition_ratio=f"transition_ratio_{i}") for i, (name, each) in numbered}


@dataclass(frozen=True)
class TransitionRatio:
    """A function that computes p_t for a batch of rows, which have their successors beside them."""

    domain: Any
    successors: Successors
    episode: str | None
    step: str

    def __call__(self, frame: pl.DataFrame, model: Any, states: States, actions: Actions) -> Floats:
        """Return p_t, which is NaN where the model has no P̂."""
        self._check(frame)
        follows = self.successors.follows(frame)
        next_states = self.successors.next_states(frame, follows)
        p_hat = _probabilities(model, "model", states, actions, next_states)
        p = np.ones(len(states))
        p[follows] = _probabilities(self.domain, "domain", states[follows], actions[follows], next_states[follows])
        if not (p > 0).all():
            raise BadLogError(
                [
                    self._problem(frame, row, self._named(), _shown(next_states[row]), "impossible-transition", why)
                    for row in np.flatnonzero(~(p > 0))[:SHOWN].tolist()
                    for why in [self._contradiction(states[row], actions[row])]
                ]
            )
        ratio: Floats = np.where(follows | np.isnan(p_hat), p_hat / p, 1.0)
        return ratio

    def _check(self, frame: pl.DataFrame) -> None:
        """Raise an error for rows without a valid successor."""
        follows, in_order, *following = (frame[name] for name in self.successors.names)
        goes_on, step = follows.fill_null(False), frame[self.step]
        finite = "must be there and finite"
        found = [
            (~in_order, self.step, step, "out-of-order", ORDER),
            (follows.is_null(), "terminal", follows, "not-finite", "must be there"),
            *(
                (goes_on & ~_is_finite(column), f"next_{name}", column, "not-finite", finite)
                for name, column in zip(self.successors.states, following, strict=True)
            ),
        ]
        problems = [
            self._problem(frame, row, column, str(values[row]), kind, why)
            for bad, column, values, kind, why in found
            for row in bad.arg_true().head(SHOWN).to_list()
        ]
        if problems:
            raise BadLogError(problems)

    def _named(self) -> str:
        return ", ".join(f"next_{name}" for name in self.successors.states)

    def _contradiction(self, state: States, action: Any) -> str:
        return (
            f"cannot follow the state {_shown(state)} and action {action}: domain {self.domain.name!r} gives it "
            "probability 0, so that the log is not one of this domain"
        )

    def _problem(self, frame: pl.DataFrame, row: int, column: str, value: str, kind: str, why: str) -> Problem:
        episode = frame[self.episode][row] if self.episode else None
        return Problem(kind, None, None, episode, frame[self.step][row], column, value, why)


def _probabilities(whose: Any, what: str, states: States, actions: Actions, next_states: States) -> Floats:
    """Return the checked probabilities of a domain or a model; only a model may return NaN, for an unknown pair."""
    found = np.asarray(whose.transition_probability(states, actions, next_states), dtype=np.float64)
    if found.shape != (len(states),):
        raise wrong_array(
            who=f"the {what}'s transition_probability",
            expected=f"{len(states)} numbers",
            found=f"an array of shape {found.shape}",
        )
    wrong = ~((found >= 0) & (found <= 1 + ROUNDING) | (np.isnan(found) & (what == "model")))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise no_probability(
            what=what,
            next_state=_shown(next_states[row]),
            state=_shown(states[row]),
            action=actions[row],
            found=found[row],
        )
    return found


def _is_finite(column: pl.Series) -> pl.Series:
    return column.is_finite().fill_null(False) if column.dtype.is_float() else column.is_not_null()


def _shown(state: States) -> str:
    return ", ".join(map(str, state.tolist()))
