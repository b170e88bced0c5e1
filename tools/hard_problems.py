"""Problems from easy to hopeless whose true value is known, for measuring intervals and verdicts on their logs.

lognormal   ρ = exp(σZ − σ²/2), one step or ten; a reward of 1 where Z > 0, or one that does not depend on ρ
pareto      ρ = (1 − k) u^-k, one step: the weights have no variance from k = 1/2 on; a reward of 1 where ρ > 1
rare        two actions, of which π0 seldom takes the one that π1 takes half the time, and which alone is rewarded
seldom      three steps with ρ of 0.9 or 1.1, and a reward of 1 that hardly any trajectory sees
survival    action 0 goes on, action 1 stops, up to ten steps with a reward of 1 each
tabular     a random MDP, and π1 mixed with π0 or not; Q̂ is Q with an error of a tenth of its spread
bandit      one of two actions in a context x: π0 takes the first with probability ½x^k and π1 with ½, so that weights
            have a tail of shape k/(1+k); a reward of 0 or 1, or a lognormal revenue
chain       five steps with two actions, each of which costs something, and noise
ragged      survival for up to twenty steps, where π0 goes on in 80 of 100 steps and π1 in 90
clicks      one of two actions, and a reward of 1 that one trajectory in a thousand sees, or fewer
graph       sixteen steps with two actions, of which π0 and π1 take the first with given probabilities: up or down, and
            a reward of 1 or −1 for where the step leads; the other way in a quarter of steps
sepsis      an MDP of 40 states and 8 actions, up to twenty steps, which end with a reward of 1 or without; π1 takes the
            best action half the time and follows π0 otherwise

The logs of the following problems are misleading, so no interval can cover the truth:

unlogged    π1 takes an action that the log never shows; all rewards are 1
wrong       ρ of a lognormal problem of ten steps, times a factor: π0 was logged too small, or too large
shifted     a tabular problem whose V̂ is not the mean of its Q̂, but off by a share of the spread of Q
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
import polars as pl
from offpolicy import theory


@dataclass(frozen=True)
class Setting:
    """A name, the true value, γ, and a function that draws n trajectories."""

    name: str
    value: float
    discount: float
    draw: Callable[[np.random.Generator, int], pl.DataFrame]
    right: bool = True  # whether the log is not misleading
    large: bool = False  # whether to measure with many more trajectories too


def _frame(steps, **columns):
    """Return trajectories of `steps` steps from (n, steps) arrays."""
    n = len(next(iter(columns.values())))
    ids = {"episode": np.repeat(np.arange(n), steps), "step": np.tile(np.arange(steps), n)}
    return pl.DataFrame(ids | {name: values.reshape(-1) for name, values in columns.items()})


def _lognormal(sigma, steps, aligned):
    def draw(rng, n):
        z = rng.normal(size=(n, steps))
        reward = z > 0 if aligned else rng.random((n, steps)) < 0.5
        return _frame(steps, ratio=np.exp(sigma * z - sigma**2 / 2), reward=reward.astype(float))

    mean = NormalDist().cdf(sigma) if aligned else 0.5
    kind = "aligned" if aligned else "apart"
    return Setting(f"lognormal {sigma:g}, {steps} steps, {kind}", steps * mean, 1.0, draw)


def _pareto(k):
    def draw(rng, n):
        ratio = (1 - k) * (1 - rng.random((n, 1))) ** -k
        return _frame(1, ratio=ratio, reward=(ratio > 1).astype(float))

    return Setting(f"pareto {k:g}", (1 - k) ** ((1 - k) / k), 1.0, draw, large=True)


def _rare(chance):
    def draw(rng, n):
        rare = rng.random((n, 1)) < chance
        ratio = np.where(rare, 0.5 / chance, 0.5 / (1 - chance))
        return _frame(1, ratio=ratio, reward=rare.astype(float))

    return Setting(f"rare {chance:g}", 0.5, 1.0, draw)


def _seldom(chance, steps=3):
    def draw(rng, n):
        reward = np.zeros((n, steps))
        reward[:, -1] = rng.random(n) < chance
        return _frame(steps, ratio=rng.choice([0.9, 1.1], size=(n, steps)), reward=reward)

    return Setting(f"seldom {chance:g}", chance, 1.0, draw)


def _survival(go, logged=0.5, steps=10, name="survival"):
    def draw(rng, n):
        stops = rng.random((n, steps)) >= logged
        runs = np.cumsum(np.cumsum(stops, axis=1), axis=1) <= 1  # the step that stops is included
        ratio = np.where(stops, (1 - go) / (1 - logged), go / logged)
        return _frame(steps, ratio=ratio, reward=np.ones((n, steps))).filter(pl.Series(runs.reshape(-1)))

    return Setting(f"{name} {go:g}", float(sum(go**t for t in range(steps))), 1.0, draw)


def _bandit(k, revenue):
    def draw(rng, n):
        chance = 0.5 * (1 - rng.random((n, 1))) ** k
        first = rng.random((n, 1)) < chance
        ratio = 0.5 / np.where(first, chance, 1 - chance)
        reward = rng.lognormal(first * 1.0, 1.0) if revenue else rng.random((n, 1)) < 0.3 + 0.4 * first
        return _frame(1, ratio=ratio, reward=reward.astype(float))

    value = 0.5 * (np.exp(0.5) + np.exp(1.5)) if revenue else 0.5
    return Setting(f"bandit {k:g}{', revenue' * revenue}", float(value), 1.0, draw, large=not revenue)


def _chain(steps=5):
    def draw(rng, n):
        first = rng.random((n, steps)) < 0.5
        reward = -1 - 2.0 * first + rng.normal(size=(n, steps))
        return _frame(steps, ratio=np.where(first, 0.3, 0.7) / 0.5, reward=reward)

    return Setting("chain", -1.6 * steps, 1.0, draw)


def _clicks(chance):
    def draw(rng, n):
        first = rng.random((n, 1)) < 0.7
        reward = rng.random((n, 1)) < np.where(first, 0.5, 1.5) * chance
        return _frame(1, ratio=np.where(first, 0.4 / 0.7, 0.6 / 0.3), reward=reward.astype(float))

    return Setting(f"clicks {chance:g}", (0.4 * 0.5 + 0.6 * 1.5) * chance, 1.0, draw)


def _graph(logged, target, steps=16):
    def draw(rng, n):
        first = rng.random((n, steps)) < logged
        ratio = np.where(first, target / logged, (1 - target) / (1 - logged))
        up = first ^ (rng.random((n, steps)) < 0.25)
        return _frame(steps, ratio=ratio, reward=np.where(up, 1.0, -1.0))

    return Setting(f"graph {logged:g} → {target:g}", steps * (target - 0.5), 1.0, draw)


def _unlogged(share):
    def draw(rng, n):
        ratio = rng.choice([1.2, 0.8], size=(n, 1)) * (1 - share)
        return _frame(1, ratio=ratio, reward=np.ones((n, 1)))

    return Setting(f"unlogged {share:g}", 1.0, 1.0, draw, right=False)


def _wrong(factor):
    right = _lognormal(0.2, 10, True)

    def draw(rng, n):
        return right.draw(rng, n).with_columns(pl.col("ratio") * factor)

    return Setting(f"wrong {factor:g}", right.value, 1.0, draw, right=False)


def _tabular(seed, steps, mixed, shift=0.0):
    rng, discount = np.random.default_rng(seed), 0.95
    p = rng.dirichlet(np.full(3, 0.5), size=(3, 2))
    reward, behavior = rng.normal(size=(3, 2)), rng.dirichlet(np.full(2, 3.0), size=3)
    target = (1 - mixed) * rng.dirichlet(np.full(2, 0.5), size=3) + mixed * behavior
    mdp = theory.MDP(p, theory.Rewards(reward), initial=np.full(3, 1 / 3), horizon=steps, discount=discount)
    q = np.asarray(theory.q_values(mdp, target), dtype=float)
    q_hat = q + 0.1 * q.std() * rng.normal(size=q.shape)

    def draw(rng, n):
        s, found = rng.integers(3, size=n), []
        for t in range(steps):
            a = (rng.random(n) > behavior[s, 0]).astype(int)
            v_hat = (target[s] * q_hat[t, s]).sum(axis=1) + shift * q.std()
            noisy = reward[s, a] + rng.normal(size=n)
            found.append((target[s, a] / behavior[s, a], noisy, q_hat[t, s, a], v_hat))
            s = (rng.random((n, 1)) > np.cumsum(p[s, a], axis=1)[:, :-1]).sum(axis=1)
        columns = np.stack(found).transpose(1, 2, 0)
        return _frame(steps, **dict(zip(("ratio", "reward", "q_hat", "v_hat"), columns, strict=True)))

    name = f"tabular {seed}, {steps} steps, α={mixed:g}" + (f", shifted {shift:g}" if shift else "")
    return Setting(name, float(theory.value(mdp, target)), discount, draw, right=shift == 0)


def _sepsis(steps, best, states=40, actions=8, ends=0.1):
    """Make an MDP whose episodes end in the last state, some of them with a reward of 1 on the way there."""
    rng = np.random.default_rng(7)
    p = np.zeros((states, actions, states))
    p[:-1, :, :-1] = (1 - ends) * rng.dirichlet(np.full(states - 1, 0.1), size=(states - 1, actions))
    p[:-1, :, -1] = ends
    p[-1, :, -1] = 1
    lives = rng.beta(1, 1, size=(states, actions))
    lives[-1] = 0
    behavior = rng.dirichlet(np.full(actions, 1.0), size=states)
    mdp = theory.MDP(p, theory.Rewards(ends * lives), initial=np.append(np.full(states - 1, 1 / (states - 1)), 0.0),
                     horizon=steps, discount=1.0)  # fmt: skip
    q = np.zeros((states, actions))
    for _ in range(steps):
        q = ends * lives + p @ q.max(axis=1)
    target = (1 - best) * behavior + best * np.eye(actions)[q.argmax(axis=1)]

    def draw(rng, n):
        s, found, left = rng.integers(states - 1, size=n), [], np.ones(n, dtype=bool)
        for _ in range(steps):
            a = (rng.random((n, 1)) > np.cumsum(behavior[s], axis=1)[:, :-1]).sum(axis=1)
            then = (rng.random((n, 1)) > np.cumsum(p[s, a], axis=1)[:, :-1]).sum(axis=1)
            reward = (then == states - 1) & (rng.random(n) < lives[s, a]) & left
            found.append((target[s, a] / behavior[s, a], reward.astype(float), left))
            left, s = left & (then != states - 1), then
        ratio, reward, runs = np.stack(found).transpose(1, 2, 0)
        return _frame(steps, ratio=ratio, reward=reward).filter(pl.Series(runs.reshape(-1) > 0))

    return Setting(f"sepsis {best:g}, {steps} steps", float(theory.value(mdp, target)), 1.0, draw)


def settings() -> list[Setting]:
    """Return all problems."""
    lognormal = [(s, 1, kind) for s in (0.5, 1.0, 1.5, 2.0) for kind in (True, False)]
    lognormal += [(s, 10, True) for s in (0.2, 0.4, 0.6)]
    made = [partial(_lognormal, *args) for args in lognormal]
    made += [partial(_pareto, k) for k in (0.3, 0.6, 0.8)]
    made += [partial(_rare, chance) for chance in (0.1, 0.02, 0.005)]
    made += [partial(_seldom, chance) for chance in (0.01, 0.001)]
    made += [partial(_survival, go) for go in (0.7, 0.9)]
    made += [partial(_tabular, seed, steps, mixed) for seed in (1, 2) for steps in (5, 20) for mixed in (0.0, 0.5)]
    made += [partial(_bandit, k, revenue) for k, revenue in ((0.8, False), (0.8, True), (2.0, False))]
    made += [_chain, partial(_survival, 0.9, 0.8, 20, "ragged")]
    made += [partial(_clicks, chance) for chance in (0.001, 0.05)]
    made += [partial(_graph, *ps) for ps in ((0.6, 0.5), (0.6, 0.4), (0.5, 0.7), (0.5, 0.9))]
    made += [partial(_sepsis, *each) for each in ((5, 0.1), (20, 0.1), (20, 0.5))]
    made += [partial(_unlogged, share) for share in (0.02, 0.09)]
    made += [partial(_wrong, factor) for factor in (0.97, 1.03)]
    made += [partial(_tabular, 1, 5, 0.5, shift) for shift in (0.1, 0.5)]
    return [make() for make in made]
