"""A tiny MDP with wrong models of it, and all its trajectories with their probabilities."""

from fractions import Fraction
from itertools import product

import polars as pl
import reference

H = 3
GAMMA = 0.75
END = 3
START = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
PI0 = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)], [Fraction(5, 8), Fraction(3, 8)]]
PI1 = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 8), Fraction(7, 8)]]
# P[s][a] over the next states 0, 1, 2 and the end; P_HAT is a wrong model of it with the same support.
P = [[[2, 1, 4, 1], [1, 0, 3, 4]], [[1, 5, 2, 0], [4, 2, 1, 1]], [[3, 3, 0, 2], [0, 2, 6, 0]]]
P_HAT = [[[1, 3, 3, 1], [2, 0, 4, 2]], [[3, 4, 1, 0], [1, 1, 2, 4]], [[2, 1, 0, 5], [0, 4, 4, 0]]]
REWARDS = [[(0, 1), (-1, 2)], [(1, 3), (0, 5)], [(2, -2), (1, 4)]]
REWARD_PROB = [Fraction(1, 4), Fraction(3, 4)]


def any_q(t, s, a):
    """An arbitrary wrong Q̂."""
    return Fraction((7 * t + 5 * s + 3 * a) % 11 - 4, 4)


def v_of(q, t, s):
    return sum(PI1[s][a] * q(t, s, a) for a in (0, 1))


def r_hat(s, a):
    return Fraction(s - 2 * a + 1, 2)


def trajectories(t=1, s=None):
    """Pairs of probability under π0 and steps (s, a, r, s')."""
    if t > H or s == END:
        yield Fraction(1), []
        return
    starts = [(START[s], s) for s in range(3)] if s is None else [(Fraction(1), s)]
    for (p_start, state), a, k, following in product(starts, (0, 1), (0, 1), range(4)):
        last = t == H
        p_next = Fraction(P[state][a][following], 8) if not last else Fraction(int(following == END))
        p = p_start * PI0[state][a] * REWARD_PROB[k] * p_next
        if p:
            for p_rest, rest in trajectories(t + 1, following):
                yield p * p_rest, [(state, a, REWARDS[state][a][k], following), *rest]


def rows(steps, q=any_q):
    """A trajectory as rows of a log; every number is a dyadic rational, or a ratio of small integers."""
    out = []
    for t, (s, a, reward, following) in enumerate(steps, start=1):
        observed = t < H and following != END
        change = Fraction(P_HAT[s][a][following], P[s][a][following]) if observed else Fraction(1)
        row = {
            "reward": reward,
            "behavior_prob": PI0[s][a],
            "target_prob": PI1[s][a],
            "q_hat": q(t, s, a),
            "v_hat": v_of(q, t, s),
            "r_hat": r_hat(s, a),
            "transition_ratio": change,
        }
        out.append(row)
    return out


def mean_reward(s, a):
    return sum(p * r for p, r in zip(REWARD_PROB, REWARDS[s][a], strict=True))


def dynamic_programming(reward, transitions):
    """Q of π1 in the MDP with these mean rewards and transitions."""
    table = {}

    def q(t, s, a):
        return table[t, s, a]

    for t in range(H, 0, -1):
        for s, a in product(range(3), (0, 1)):
            onward = sum(Fraction(transitions[s][a][n], 8) * v_of(q, t + 1, n) for n in range(3) if t < H)
            table[t, s, a] = reward(s, a) + Fraction(GAMMA) * onward
    return q


TRUE_Q = dynamic_programming(mean_reward, P)
MODEL_Q = dynamic_programming(r_hat, P_HAT)
VALUE = sum(START[s] * v_of(TRUE_Q, 1, s) for s in range(3))
ALL = list(trajectories())
# DR takes any Q̂; DR-v2 needs the Q̂ that R̂ and P̂ imply.
UNBIASED = {"is": any_q, "step-is": any_q, "dr": any_q, "dr-bsl": any_q, "dr-v2": MODEL_Q}


def value_of(estimator, episode):
    return reference.evaluate([episode], estimator, GAMMA, horizon=H, baseline=0.5).value


def frame_of(episodes):
    return pl.DataFrame(
        [
            {"episode": i, "step": t, **{name: float(x) for name, x in row.items()}}
            for i, episode in enumerate(episodes)
            for t, row in enumerate(episode)
        ]
    )
