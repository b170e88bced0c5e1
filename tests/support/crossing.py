"""Fitters and references for cross-fitting: models that ignore, remember or exactly count what they are fitted to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Fixed:
    """A fitter that ignores its log: always the same external Q̂, V̂ and R̂."""

    def fit(self, log, domain):
        return self

    def values(self, policy, horizon, discount):
        return self

    def q_hat(self, states, actions, step):
        return np.sin(1.3 * states[:, 0] + 2.1 * actions + 0.7 * np.asarray(step))

    def v_hat(self, states, step):
        return np.cos(0.9 * states[:, 0] - 0.4 * np.asarray(step)) / 3

    def r_hat(self, states, actions):
        return 0.1 * states[:, 0] - 0.3 * actions


@dataclass(frozen=True)
class Recording:
    """A fitter whose models know the episodes that they saw, and note which they are asked of; the state is the id."""

    models: list = field(default_factory=list)

    def fit(self, log, domain):
        model = Remembering(set(log.lazy().collect()["episode"]))
        self.models.append(model)
        return model


@dataclass
class Remembering:
    seen: set
    asked: list = field(default_factory=list)

    def values(self, policy, horizon, discount):
        return self

    def q_hat(self, states, actions, step):
        self.asked += states[:, 0].tolist()
        return np.zeros(len(states))

    def v_hat(self, states, step):
        return np.zeros(len(states))

    def r_hat(self, states, actions):
        return np.zeros(len(states))


def exact_tabular(log: pl.DataFrame, policy, states, actions, horizon, discount, unseen):
    """Q̂(t, s, a), V̂(t, s) and R̂(s, a) of a counted model, t from 0, in rational numbers; policy[s][a] too."""
    rewards, following = defaultdict(list), defaultdict(list)
    for row in log.iter_rows(named=True):
        pair = row["state"], row["action"]
        rewards[pair].append(Fraction(row["reward"]))
        following[pair].append(None if row["terminal"] else row["next_state"])

    def r(s, a):
        found = rewards[s, a]
        return sum(found) / len(found) if found else Fraction(unseen)

    def q(t, s, a):
        return r(s, a) + (discount * mean_after(t + 1, s, a) if t + 1 < horizon else 0)

    def mean_after(t, s, a):
        after = following[s, a] or [s]
        return sum(Fraction(0) if n is None else v(t, n) for n in after) / len(after)

    known = {}

    def v(t, s):
        if (t, s) not in known:
            known[t, s] = sum(policy[s][a] * q(t, s, a) for a in range(actions))
        return known[t, s]

    return q, v, r


def exactly_annotated(rows, model, policy):
    """Rows of one episode with what an exact model says of them."""
    q, v, r = model
    return [
        row
        | {
            "target_prob": policy[row["state"]][row["action"]],
            "q_hat": q(row["step"], row["state"], row["action"]),
            "v_hat": v(row["step"], row["state"]),
            "r_hat": r(row["state"], row["action"]),
        }
        for row in rows
    ]
