"""The three estimators and their standard errors from their definitions, in rational arithmetic.

    ρ_t = π1/π0,  c_t = ρ_1⋯ρ_t,  D_t = (1/n) Σ_i c_t,  R_t = Σ_i c_t r_t / Σ_i c_t

    step-is   X_i = Σ_t γ^{t-1} c_t r_t                                    SE = s/√n
    dr        X_i = Σ_t γ^{t-1} [c_{t-1} V̂_t + c_t (r_t − Q̂_t)]            SE = s/√n
    step-wis  Σ_t γ^{t-1} R_t,  ψ_i = Σ_t γ^{t-1} (c_t/D_t)(r_t − R_t)     SE = √(Σψ²/(n(n−1)))

Episodes must have equal lengths, as in the benchmark. The numbers of every contestant are compared with these.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import polars as pl

ESTIMATORS = ("step-is", "step-wis", "dr")


class Estimate(NamedTuple):
    value: float
    std_error: float


Estimates = dict[str, Estimate]


def estimates(log: pl.DataFrame, discount: float) -> Estimates:
    """Compute the estimates exactly, hence slowly: meant for a few hundred rows."""
    gamma = Fraction(discount)
    episodes = [_Episode(rows) for rows in log.partition_by("episode", maintain_order=True)]
    n, steps = len(episodes), range(len(episodes[0].reward))
    weight = [sum(e.c[t] for e in episodes) for t in steps]
    mean_reward = [sum(e.c[t] * e.reward[t] for e in episodes) / weight[t] for t in steps]
    psi = [sum(gamma**t * e.c[t] / (weight[t] / n) * (e.reward[t] - mean_reward[t]) for t in steps) for e in episodes]
    wis = sum(gamma**t * mean_reward[t] for t in steps)
    return {
        "step-is": _mean([e.step_is(gamma) for e in episodes]),
        "step-wis": Estimate(float(wis), math.sqrt(sum(p * p for p in psi) / (n * (n - 1)))),
        "dr": _mean([e.dr(gamma) for e in episodes]),
    }


class _Episode:
    def __init__(self, rows: pl.DataFrame):
        def exact(name: str) -> list[Fraction]:
            return [Fraction(x) for x in rows[name]]

        self.reward, self.q, self.v = exact("reward"), exact("q_hat"), exact("v_hat")
        self.c = []
        product = Fraction(1)
        for target, behavior in zip(exact("target_prob"), exact("behavior_prob"), strict=True):
            product *= target / behavior
            self.c.append(product)

    def step_is(self, gamma: Fraction) -> Fraction:
        return sum(gamma**t * c * r for t, (c, r) in enumerate(zip(self.c, self.reward, strict=True)))

    def dr(self, gamma: Fraction) -> Fraction:
        """Compute DR by the recursion DR_t = V̂_t + ρ_t (r_t + γ DR_{t+1} − Q̂_t), backwards."""
        following = Fraction(0)
        for t in reversed(range(len(self.c))):
            rho = self.c[t] / (self.c[t - 1] if t else 1)
            following = self.v[t] + rho * (self.reward[t] + gamma * following - self.q[t])
        return following


def _mean(values: list[Fraction]) -> Estimate:
    n = len(values)
    mean = sum(values) / n
    return Estimate(float(mean), math.sqrt(sum((x - mean) ** 2 for x in values) / (n * (n - 1))))
