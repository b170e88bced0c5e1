"""Fig. 1 of Jiang & Li (2016): errors of IS, WIS, REG, DR and DR-bsl on Mountain Car, over |D_test|, for four targets.

Sizes are the paper's. The truth of a target is a mean of roll-outs from starts spread evenly over the state space (one
in each cell of a grid), which leaves little of the variance of the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy import plugins
from offpolicy.experiments.claims import Claim, better, every
from offpolicy.experiments.errors import Errors
from offpolicy.experiments.splits import ALPHAS, Splits
from offpolicy.protocols import Floats, Policy, States
from offpolicy.simulation import draw

#: π(a|s) of states, the numbers of the starts that they come from, and their step.
Probabilities = Callable[[States, NDArray[np.int64], int], Floats]

SIZES = (10, 100, 1000, 2000, 3000, 4000, 4900, 4990)
RUNS = 4000
#: What the paper compares with.
RIVALS = ("step-is", "step-wis")
#: Starts a side; their square is the number of roll-outs a target.
SIDE = 80


def experiment(**options: Any) -> Splits:
    """The experiment, in the domain with these options; `substeps` is 4 as in the paper's text unless given."""
    domain: Any = plugins.domain("mountain-car", **options)
    fitter = plugins.fitter("tabular")
    return Splits("mountain-car", domain, fitter, true_value, 2000, SIZES, 5000, baseline=-1.0)


def true_value(domain: Any, policy: Policy, seed: np.random.SeedSequence) -> tuple[float, float]:
    """V(π) and its standard error, by stratified starts."""
    rng = np.random.default_rng(seed)
    starts = spread_starts(domain, SIDE, rng)
    returns = rolled(domain, starts, lambda states, _, t: policy.probabilities(states, t), rng).reshape(SIDE, SIDE)
    # Neighbouring cells have nearly the same mean: half their squared difference is nearly the variance within.
    spread = np.square(np.diff(returns, axis=0)).mean() / 2
    return float(returns.mean()), float(np.sqrt(spread / returns.size))


def spread_starts(domain: Any, side: int, rng: np.random.Generator) -> States:
    """A first state in each cell of a grid."""
    corner = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2)
    low, high = np.array(domain.start_range).T
    states: States = low + (corner + rng.random(corner.shape)) / side * (high - low)
    return states


def rolled(domain: Any, states: States, probabilities: Probabilities, rng: np.random.Generator) -> Floats:
    """The discounted return from each start."""
    running, total, weight = np.arange(len(states)), np.zeros(len(states)), 1.0
    for t in range(domain.horizon):
        actions = draw(probabilities(states, running, t), rng)
        states, rewards, done = domain.step(states, actions, rng)
        total[running] += weight * rewards
        running, states, weight = running[~done], states[~done], weight * domain.discount
    return total


def claims(errors: Errors) -> list[Claim]:
    """What the paper says of Fig. 1."""
    return [
        every(
            "IS and WIS get better as |D_test| increases", [_grows(errors, name) for name in ("step-is", "step-wis")]
        ),
        every("REG gets worse as D_reg shrinks, for every α", [_regression(errors, alpha) for alpha in ALPHAS]),
        every("DR is best at an intermediate |D_test|, for every α", [_between(errors, alpha) for alpha in ALPHAS]),
        every(
            "DR at its best split beats IS and WIS on all the data, for every α",
            [_best_split(errors, alpha, rival) for alpha in ALPHAS for rival in RIVALS],
        ),
        *_baseline(errors),
    ]


def _grows(errors: Errors, name: str) -> Claim:
    few, names = errors.sizes[0], ("on all", f"on {errors.sizes[0]}")
    parts = [
        better(f"α={alpha}", errors(name, errors.total, alpha), errors(name, few, alpha), names) for alpha in ALPHAS
    ]
    return every(name, parts)


def _regression(errors: Errors, alpha: float) -> Claim:
    few, many = errors.sizes[0], errors.sizes[-1]
    names = (f"REG at |D_test|={few}", f"at {many}")
    return better(f"α={alpha}", errors("reg", few, alpha), errors("reg", many, alpha), names)


def _between(errors: Errors, alpha: float) -> Claim:
    size = errors.best_size("dr", alpha)
    ends = [
        better(str(end), errors.rest("dr", size, alpha), errors.rest("dr", end, alpha), (f"DR at {size}", f"at {end}"))
        for end in (errors.sizes[0], errors.sizes[-1])
    ]
    return every(f"α={alpha}", ends)


def _best_split(errors: Errors, alpha: float, rival: str) -> Claim:
    size = errors.best_size("dr", alpha)
    names = (f"DR at {size}", f"{rival} on all")
    return better(f"α={alpha}", errors.rest("dr", size, alpha), errors.rest(rival, errors.total, alpha), names)


def _baseline(errors: Errors) -> list[Claim]:
    """DR-bsl against IS and WIS, at every |D_test| and α."""
    found = []
    for rival in RIVALS:
        parts = [
            better("", errors("dr-bsl", size, alpha), errors(rival, size, alpha), ("DR-bsl", rival))
            for size in errors.sizes
            for alpha in ALPHAS
        ]
        held = sum(part.verdict == "held" for part in parts)
        lost = sum(part.verdict == "not held" for part in parts)
        verdict = "held" if 2 * held > len(parts) else "not held" if 2 * lost >= len(parts) else "undecided"
        evidence = f"better in {held} of {len(parts)} settings, worse in {lost}"
        found.append(Claim(f"DR-bsl outperforms {rival} most of the time", verdict, evidence))
    return found
