"""Random decision processes in rational numbers, all their trajectories, and what enumeration says of them."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import reference
from offpolicy import theory

STATES, ACTIONS = 3, 2


@dataclass(frozen=True)
class Step:
    t: int
    state: int
    action: int
    reward: Fraction
    following: int


@dataclass(frozen=True)
class Process:
    """`outcomes[t][s][a]` lists (probability, next state, reward); steps count from 0."""

    initial: list[Fraction]
    outcomes: list
    discount: Fraction
    terminal: frozenset[int] = frozenset()

    @property
    def horizon(self):
        return len(self.outcomes)

    def paths(self, policy):
        """Every trajectory that a policy [t][s][a] makes, with its probability."""
        for s, p in enumerate(self.initial):
            if p:
                yield from self._onward(policy, p, s, 0, [])

    def _onward(self, policy, probability, s, t, steps):
        if t == self.horizon or s in self.terminal:
            yield probability, steps
            return
        for a in range(ACTIONS):
            for p, following, reward in self.outcomes[t][s][a]:
                reached = probability * policy[t][s][a] * p
                if reached:
                    step = Step(t, s, a, reward, following)
                    yield from self._onward(policy, reached, following, t + 1, [*steps, step])

    def value(self, policy):
        return sum(p * self.discounted(steps) for p, steps in self.paths(policy))

    def discounted(self, steps):
        return sum((self.discount**step.t * step.reward for step in steps), start=Fraction(0))

    def mdp(self):
        """The same as arrays of Fractions: P, and mean and variance of the reward given s, a and s'."""
        shape = (self.horizon, len(self.initial), ACTIONS, len(self.initial))
        p, first, second = (np.full(shape, Fraction(0)) for _ in range(3))
        for t, s, a in np.ndindex(*shape[:3]):
            for chance, following, reward in self.outcomes[t][s][a]:
                p[t, s, a, following] += chance
                first[t, s, a, following] += chance * reward
                second[t, s, a, following] += chance * reward**2
        mean = first / np.where(p > 0, p, 1)
        rewards = theory.Rewards(mean, second / np.where(p > 0, p, 1) - mean**2)
        return theory.MDP(p, rewards, np.array(self.initial), self.horizon, self.discount, sorted(self.terminal))


def random_process(seed, horizon=3, parts=6, terminal=True, next_state_rewards=True):
    """Two or three outcomes for each (t, s, a), with probabilities in `parts`; state 2 may be terminal."""
    rng = np.random.default_rng(seed)

    def outcomes():
        found = []
        by_action = Fraction(int(rng.integers(-4, 5)), 2)
        for p in shares(rng, parts, 3):
            reward = Fraction(int(rng.integers(-4, 5)), 2) if next_state_rewards else by_action
            found.append((p, int(rng.integers(STATES)), reward))
        return found

    table = [[[outcomes() for _ in range(ACTIONS)] for _ in range(STATES)] for _ in range(horizon)]
    ends = frozenset({2} if terminal else ())
    return Process(shares(rng, parts, STATES), table, Fraction(int(rng.integers(1, 5)), 4), ends)


def random_policies(seed, horizon=3, parts=6):
    """π0 and π1, [t][s][a]: π1 may rule an action out, and π0 the same."""
    rng = np.random.default_rng([seed, 1])
    behavior, target = [], []
    for _ in range(horizon):
        here, there = [], []
        for _ in range(STATES):
            p0, p1 = Fraction(int(rng.integers(1, parts)), parts), Fraction(int(rng.integers(0, parts + 1)), parts)
            p0 = p1 if p1 in (0, 1) and rng.random() < 0.5 else p0
            here.append([p0, 1 - p0])
            there.append([p1, 1 - p1])
        behavior.append(here)
        target.append(there)
    return np.array(behavior), np.array(target)


def random_q(seed, horizon=3):
    rng = np.random.default_rng([seed, 2])
    shape = (horizon, STATES, ACTIONS)
    return np.array([Fraction(int(x), 4) for x in rng.integers(-12, 13, np.prod(shape))]).reshape(shape)


def shares(rng, parts, count):
    """`count` numbers, some of them 0, that add to 1."""
    cuts = sorted(int(cut) for cut in rng.integers(0, parts + 1, size=count - 1))
    return [Fraction(b - a, parts) for a, b in zip([0, *cuts], [*cuts, parts], strict=True)]


def annotated(steps, behavior, target, q_hat=None, r_hat=None):
    """A trajectory as the reference reads it."""
    found = []
    for x in steps:
        cell = x.t, x.state, x.action
        v_hat = sum(target[x.t, x.state] * q_hat[x.t, x.state]) if q_hat is not None else Fraction(0)
        found.append(
            reference.Step(
                rho=target[cell] / behavior[cell],
                reward=x.reward,
                q_hat=q_hat[cell] if q_hat is not None else Fraction(0),
                v_hat=v_hat,
                r_hat=r_hat[cell] if r_hat is not None else Fraction(0),
            )
        )
    return found


def moments(process, behavior, target, estimator, q_hat=None, r_hat=None, baseline=0):
    """Mean and variance of an estimator's value over all trajectories."""
    options = process.discount, process.horizon, baseline
    weighed = [
        (p, reference.per_trajectory(annotated(steps, behavior, target, q_hat, r_hat), estimator, *options))
        for p, steps in process.paths(behavior)
    ]
    mean = sum(p * x for p, x in weighed)
    return mean, sum(p * (x - mean) ** 2 for p, x in weighed)


def influence_variance(process, behavior, target, estimator, q_hat=None):
    """E[ψ²] of `wis`, `step-wis` or `wdr` with the true means: ended episodes keep their weight."""
    horizon, gamma = process.horizon, process.discount
    log = [
        (p, reference.absorbed([annotated(steps, behavior, target, q_hat)], horizon)[0])
        for p, steps in process.paths(behavior)
    ]
    weighed = [(p, reference.cumulative_ratios(steps), steps) for p, steps in log]
    if estimator == "wis":
        v = sum(p * c[horizon] * reference.discounted_return(steps, gamma) for p, c, steps in weighed)
        return sum(p * (c[horizon] * (reference.discounted_return(steps, gamma) - v)) ** 2 for p, c, steps in weighed)
    if estimator == "step-wis":
        v = [sum(p * c[t + 1] * steps[t].reward for p, c, steps in weighed) for t in range(horizon)]
        return sum(
            p * sum(gamma**t * c[t + 1] * (steps[t].reward - v[t]) for t in range(horizon)) ** 2
            for p, c, steps in weighed
        )
    a = [sum(p * c[t + 1] * (steps[t].reward - steps[t].q_hat) for p, c, steps in weighed) for t in range(horizon)]
    b = [sum(p * c[t] * steps[t].v_hat for p, c, steps in weighed) for t in range(horizon)]

    def psi(c, steps):
        residuals = (c[t + 1] * (steps[t].reward - steps[t].q_hat - a[t]) for t in range(horizon))
        values = (c[t] * (steps[t].v_hat - b[t]) for t in range(horizon))
        return sum(gamma**t * sum(both) for t, both in enumerate(zip(residuals, values, strict=True)))

    return sum(p * psi(c, steps) ** 2 for p, c, steps in weighed)
