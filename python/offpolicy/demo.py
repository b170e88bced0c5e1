"""A small example with a known answer: which customers should get an offer?

A customer has an engagement of 0, 1 or 2 and may get an offer (action 1) in each of up to 10 weeks; a customer with
engagement 0 may leave. The reward is a purchase. The logged policy sends an offer with probability ½ (π0), and the new
policy with probability 0.7 (π1).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from offpolicy._util import scalars

HORIZON = 10
DEMO_DISCOUNT = 0.9
BEHAVIOR_SENDS, TARGET_SENDS = 0.5, 0.7
PURCHASE = np.array([[0.1, 0.2], [0.3, 0.4], [0.6, 0.7]])  # engagement, action
UP, DOWN = np.array([0.3, 0.5]), np.array([0.3, 0.1])  # action
LEAVES = 0.2  # from engagement 0
START = 1


def _transitions() -> np.ndarray:
    """Return P(s'|s, a) over engagements 0, 1, 2; a row adds to 1 less the probability of leaving."""
    moves = np.zeros((3, 2, 3))
    for s in range(3):
        stays = 1 - LEAVES if s == 0 else 1.0
        for a in range(2):
            for step, chance in ((1, UP[a]), (-1, DOWN[a]), (0, 1 - UP[a] - DOWN[a])):
                moves[s, a, min(max(s + step, 0), 2)] += stays * chance
    return moves


def _values(sends: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and V of a policy for each step, by backward induction."""
    q, v = np.zeros((HORIZON, 3, 2)), np.zeros((HORIZON + 1, 3))
    for t in reversed(range(HORIZON)):
        q[t] = PURCHASE + DEMO_DISCOUNT * _transitions() @ v[t + 1]
        v[t] = q[t] @ [1 - sends, sends]
    return q, v


def demo_value() -> float:
    """Return the exact value of the demo's new policy.

    >>> import offpolicy as op
    >>> round(op.demo_value(), 4)
    3.0774
    """
    return float(_values(TARGET_SENDS)[1][0, START])


def demo_log(episodes: int = 2000, seed: int = 0) -> pl.DataFrame:
    """Simulate a log of the demo with all columns; its model is 10% too low everywhere.

    >>> import offpolicy as op
    >>> op.demo_log(episodes=2).columns
    ['episode', 'step', 'reward', 'behavior_prob', 'target_prob', 'q_hat', 'v_hat', 'r_hat']
    """
    episodes = scalars.whole("episodes", episodes, 0, limit=scalars.MOST_ROWS)
    rng = np.random.default_rng(scalars.whole("seed", seed, 0))
    q, v = (0.9 * values for values in _values(TARGET_SENDS))
    moves = _transitions().cumsum(axis=2)
    parts, state, alive = [], np.full(episodes, START), np.ones(episodes, dtype=bool)
    for t in range(HORIZON):
        who = np.flatnonzero(alive)
        s, a = state[who], rng.integers(0, 2, size=who.size)
        sends = np.where(a == 1, TARGET_SENDS, 1 - TARGET_SENDS)
        parts.append(
            pl.DataFrame(
                {
                    "episode": who,
                    "step": np.full(who.size, t, dtype=np.int32),
                    "reward": (rng.random(who.size) < PURCHASE[s, a]).astype(float),
                    "behavior_prob": np.where(a == 1, BEHAVIOR_SENDS, 1 - BEHAVIOR_SENDS),
                    "target_prob": sends,
                    "q_hat": q[t, s, a],
                    "v_hat": v[t, s],
                    "r_hat": 0.9 * PURCHASE[s, a],
                }
            )
        )
        draw = rng.random(who.size)
        state[who] = (draw[:, None] > moves[s, a]).sum(axis=1)
        alive[who] = state[who] < 3
    return pl.concat(parts).sort("episode", "step")
