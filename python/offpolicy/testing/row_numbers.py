"""A test for steps whose result depends on the row's position in the batch, for random domains too.

Copies of one state and action in a batch are draws from the same distribution. The Kruskal–Wallis statistic compares
the rows:

    H = (N − 1) Σ_j m (r̄_j − r̄)² / Σ_ij (r_ij − r̄)²,    r_ij the rank of the result of row j with seed i

If all rows have the same distribution, whatever it is, H is approximately χ² with rows − 1 degrees of freedom.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from offpolicy.protocols import Actions, Floats, States
from offpolicy.testing.faults import Faults

#: The number of copies of a row in a batch, of batches, and of pairs of state and action.
COPIES, BATCHES, PAIRS = 64, 16, 16
#: The number of standard deviations of χ² that chance does not exceed.
FAR = 7.0


def check_row_numbers(faults: Faults, domain: Any, states: States, actions: Actions, seed: int) -> None:
    """Note a reward, a next state or an end that depends on the row's position in the batch."""
    _, different = np.unique(np.column_stack([states, actions]), axis=0, return_index=True)
    for i in np.sort(different)[:: max(1, len(different) // PAIRS)]:
        copies = np.repeat(states[i : i + 1], COPIES, axis=0), np.repeat(actions[i : i + 1], COPIES)
        results = [
            domain.step(*(given.copy() for given in copies), np.random.default_rng([seed, int(i), batch]))
            for batch in range(BATCHES)
        ]
        then, rewards, done = (np.stack(part).astype(float) for part in zip(*results, strict=True))
        found = {"reward": rewards, "done": done}
        found |= {f"next {name}": then[:, :, k] for k, name in enumerate(domain.state_columns)}
        for what, values in found.items():
            if not faults.expect(
                _statistic(values) <= COPIES - 1 + FAR * math.sqrt(2 * (COPIES - 1)),
                "step-row-number",
                f"{what} of action {actions[i]} in the state {states[i]} depends on the number of the row",
                "a row of the result depends on its own state and action alone, wherever it stands",
                "look for np.arange(len(states)), for an index, or for what is kept from one call to the next",
            ):
                return


def _statistic(values: Floats) -> float:
    """Return H of a (batches, rows) array, or 0 if all values are equal."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # equal values share the mean of their ranks
    ranks = middle[inverse].reshape(values.shape)
    away = ranks - ranks.mean()
    spread = float((away**2).sum())
    return 0.0 if spread == 0 else (values.size - 1) * len(values) * float((away.mean(axis=0) ** 2).sum()) / spread
