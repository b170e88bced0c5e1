"""Fig. 1 of Jiang & Li (2016): errors of IS, WIS, REG, DR and DR-bsl on Mountain Car, over |D_test|, for four targets.

Sizes are the paper's. The truth of a target is a mean of roll-outs from starts spread evenly over the state space (one
in each cell of a grid), which removes most of the variance of the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from offpolicy.experiments.claims import Claim
from offpolicy.extensions import plugins
from offpolicy.protocols import Floats, Policy, States
from offpolicy.simulation.rollouts import draw

from offpolicy_paper.errors import Errors
from offpolicy_paper.split_claims import RIVALS, baseline, best_split, ends
from offpolicy_paper.splits import ALPHAS, Splits

#: Maps states, the numbers of the starts that they come from, and their step to π(a|s).
Probabilities = Callable[[States, NDArray[np.int64], int], Floats]

SIZES = (10, 100, 1000, 2000, 3000, 4000, 4900, 4990)
RUNS = 4000
#: The number of starts per axis of the state space; its square is the number of roll-outs per target.
SIDE = 80


def experiment(**options: Any) -> Splits:
    """Make the experiment in the domain with these options; `substeps` is 4 by default, as in the paper's text."""
    domain: Any = plugins.domain("mountain-car", **options)
    fitter = plugins.fitter("tabular")
    return Splits("mountain-car", domain, fitter, true_value, 2000, SIZES, 5000, baseline=-1.0)


def true_value(domain: Any, policy: Policy, seed: np.random.SeedSequence) -> tuple[float, float]:
    """Return V(π) and its standard error, by stratified starts."""
    rng = np.random.default_rng(seed)
    starts = spread_starts(domain, SIDE, rng)
    returns = rolled(domain, starts, lambda states, _, t: policy.probabilities(states, t), rng).reshape(SIDE, SIDE)
    # Neighbouring cells have nearly the same mean, so half their squared difference is nearly the variance in a cell.
    spread = np.square(np.diff(returns, axis=0)).mean() / 2
    return float(returns.mean()), float(np.sqrt(spread / returns.size))


def spread_starts(domain: Any, side: int, rng: np.random.Generator) -> States:
    """Draw one first state in each cell of a grid."""
    corner = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    low, high = np.array(domain.start_range).T
    states: States = low + (corner + rng.random(corner.shape)) / side * (high - low)
    return states


def rolled(domain: Any, states: States, probabilities: Probabilities, rng: np.random.Generator) -> Floats:
    """Return the discounted return from each start."""
    running, total, weight = np.arange(len(states)), np.zeros(len(states)), 1.0
    for t in range(domain.horizon):
        actions = draw(probabilities(states, running, t), rng)
        states, rewards, done = domain.step(states, actions, rng)
        total[running] += weight * rewards
        running, states, weight = running[~done], states[~done], weight * domain.discount
    return total


def claims(errors: Errors) -> list[Claim]:
    """Return the paper's claims about Fig. 1."""
    every_alpha = [(alpha, rival) for alpha in ALPHAS for rival in RIVALS]
    return [
        *ends(errors),
        best_split("DR at its best split beats IS and WIS on all the data, for every α", errors, every_alpha),
        *baseline(errors),
    ]
