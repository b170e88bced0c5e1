"""Fig. 2 of Jiang & Li (2016): the comparison of Fig. 1 on Sailing, with a kernel-based model.

Sizes are the paper's. The truth of a target is exact: dynamic programming over all states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from offpolicy import plugins
from offpolicy.experiments.splits import Splits
from offpolicy.protocols import Policy

SIZES = (5, 50, 500, 1000, 1500, 2000, 2450, 2495)
RUNS = 4000


def experiment(**options: Any) -> Splits:
    """The experiment, in the domain with these options."""
    domain: Any = plugins.domain("sailing", **options)
    baseline = domain.reward_range[0] / 2
    return Splits("sailing", domain, plugins.fitter("kernel"), true_value, 1000, SIZES, 2500, baseline)


def true_value(domain: Any, policy: Policy, seed: np.random.SeedSequence) -> tuple[float, float]:
    """V(π), without error."""
    return float(domain.value(policy)), 0.0
