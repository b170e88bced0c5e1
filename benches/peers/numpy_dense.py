"""Plain vectorised NumPy on dense arrays, trajectories × steps, with the same errors.

Sums over steps are products with a vector, and two arrays are reused, because new ones cost page faults.
"""

import math

import numpy as np
import polars as pl
from agreement import agree
from definition import Estimate, Estimates
from workload import DISCOUNT

NAME = "NumPy, dense arrays"


def prepare(log: pl.DataFrame) -> dict[str, np.ndarray]:
    steps = log["step"].max() + 1
    names = ("reward", "behavior_prob", "target_prob", "q_hat", "v_hat")
    return {name: log[name].to_numpy().reshape(-1, steps) for name in names}


def run(data: dict[str, np.ndarray], discount: float) -> Estimates:
    r, b, p, q, v = data.values()
    n, steps = r.shape
    discounts = discount ** np.arange(steps)
    c = p / b
    np.cumprod(c, axis=1, out=c)
    term = c * r
    step_is = term @ discounts
    weight = c.sum(axis=0)
    mean_reward = term.sum(axis=0) / weight
    scale = discounts * n / weight
    psi = term @ scale - c @ (scale * mean_reward)
    np.multiply(c, q, out=term)
    dr = step_is - term @ discounts + v[:, 0]
    np.multiply(c[:, :-1], v[:, 1:], out=term[:, 1:])
    dr += term[:, 1:] @ discounts[1:]
    wis = Estimate(float(discounts @ mean_reward), math.sqrt(psi @ psi / (n * (n - 1))))
    return {"step-is": _mean(step_is), "step-wis": wis, "dr": _mean(dr)}


def check() -> None:
    agree(lambda log: run(prepare(log), DISCOUNT))


def _mean(values: np.ndarray) -> Estimate:
    return Estimate(float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))))
