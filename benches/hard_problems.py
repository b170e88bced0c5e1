"""Problems from easy to hopeless whose true value is known: logs to measure intervals and verdicts on.

lognormal   ρ = exp(σZ − σ²/2), one step or ten; a reward of 1 where Z > 0, or one that does not depend on ρ
pareto      ρ = (1 − k) u^-k, one step: the weights have no variance from k = 1/2 on; a reward of 1 where ρ > 1
rare        two actions, of which π0 seldom takes the one that π1 takes half the time, and which alone is rewarded
seldom      three steps with ρ of 0.9 or 1.1, and a reward of 1 that hardly any trajectory sees
survival    action 0 goes on, action 1 stops, up to ten steps with a reward of 1 each
tabular     a random MDP, and π1 mixed with π0 or not; Q̂ is Q with an error of a tenth of its spread

and such as no interval can cover, for what is logged is not what it seems:

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
    """A name, the true value, γ, and how n trajectories are drawn."""

    name: str
    value: float
    discount: float
    draw: Callable[[np.random.Generator, int], pl.DataFrame]
    right: bool = True  # the log is what it seems
    large: bool = False  # worth a look at many more trajectories


def _frame(steps, **columns):
    """Whole trajectories of so many steps, as (n, steps) arrays."""
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


def _survival(go, steps=10):
    def draw(rng, n):
        stops = rng.random((n, steps)) < 0.5
        runs = np.cumsum(np.cumsum(stops, axis=1), axis=1) <= 1  # the step that stops is still there
        ratio = np.where(stops, (1 - go) / 0.5, go / 0.5)
        return _frame(steps, ratio=ratio, reward=np.ones((n, steps))).filter(pl.Series(runs.reshape(-1)))

    return Setting(f"survival {go:g}", float(sum(go**t for t in range(steps))), 1.0, draw)


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


def settings() -> list[Setting]:
    """All of them."""
    lognormal = [(s, 1, kind) for s in (0.5, 1.0, 1.5, 2.0) for kind in (True, False)]
    lognormal += [(s, 10, True) for s in (0.2, 0.4, 0.6)]
    made = [partial(_lognormal, *args) for args in lognormal]
    made += [partial(_pareto, k) for k in (0.3, 0.6, 0.8)]
    made += [partial(_rare, chance) for chance in (0.1, 0.02, 0.005)]
    made += [partial(_seldom, chance) for chance in (0.01, 0.001)]
    made += [partial(_survival, go) for go in (0.7, 0.9)]
    made += [partial(_tabular, seed, steps, mixed) for seed in (1, 2) for steps in (5, 20) for mixed in (0.0, 0.5)]
    made += [partial(_unlogged, share) for share in (0.02, 0.09)]
    made += [partial(_wrong, factor) for factor in (0.97, 1.03)]
    made += [partial(_tabular, 1, 5, 0.5, shift) for shift in (0.1, 0.5)]
    return [make() for make in made]
