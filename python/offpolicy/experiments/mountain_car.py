"""Fig. 1 of Jiang & Li (2016): errors of IS, WIS, REG, DR and DR-bsl on Mountain Car, over |D_test|, for four targets.

Sizes are the paper's. The truth of a target is a mean of roll-outs from starts spread evenly over the state space (one
in each cell of a grid), which leaves little of the variance of the start.
"""

from __future__ import annotations

import numpy as np

from offpolicy import plugins
from offpolicy.experiments.splits import Splits
from offpolicy.protocols import Domain, Floats, Policy
from offpolicy.simulation import draw

SIZES = (10, 100, 1000, 2000, 3000, 4000, 4900, 4990)
RUNS = 4000
#: Starts a side; their square is the number of roll-outs a target.
SIDE = 80
LOW, HIGH = np.array([-1.2, -0.07]), np.array([0.6, 0.07])


def experiment(substeps: int = 4) -> Splits:
    """The experiment, with the paper's four inner steps or another number."""
    domain = plugins.domain("mountain-car", substeps=substeps)
    fitter = plugins.fitter("tabular")
    return Splits("mountain-car", domain, fitter, true_value, 2000, SIZES, 5000, baseline=-1.0)


def true_value(domain: Domain, policy: Policy, seed: np.random.SeedSequence) -> tuple[float, float]:
    """V(π) and its standard error, by stratified starts."""
    rng = np.random.default_rng(seed)
    returns = rolled(domain, policy, rng).reshape(SIDE, SIDE)
    # Neighbouring cells have nearly the same mean: half their squared difference is nearly the variance within.
    spread = np.square(np.diff(returns, axis=0)).mean() / 2
    return float(returns.mean()), float(np.sqrt(spread / returns.size))


def rolled(domain: Domain, policy: Policy, rng: np.random.Generator) -> Floats:
    """The discounted return from one start in each cell."""
    corner = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1).reshape(-1, 2)
    states = LOW + (corner + rng.random(corner.shape)) / SIDE * (HIGH - LOW)
    running, total, weight = np.arange(len(states)), np.zeros(len(states)), 1.0
    for t in range(domain.horizon):
        actions = draw(policy.probabilities(states, t), rng)
        states, rewards, done = domain.step(states, actions, rng)
        total[running] += weight * rewards
        running, states, weight = running[~done], states[~done], weight * domain.discount
    return total
