"""Fig. 2 of Jiang & Li (2016): the comparison of Fig. 1 on Sailing, with a kernel-based model.

Sizes are the paper's. The paper makes the same claims about Fig. 2 as about Fig. 1, with two exceptions. The truth of a
target is exact, by dynamic programming over all states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from offpolicy.experiments.claims import Claim, as_good, better, every
from offpolicy.extensions import plugins
from offpolicy.protocols import Policy

from offpolicy_paper.errors import TWO_FOLD, Errors
from offpolicy_paper.split_claims import baseline, best_split, ends
from offpolicy_paper.splits import ALPHAS, Splits

SIZES = (5, 50, 500, 1000, 1500, 2000, 2450, 2495)
RUNS = 4000
#: The α of targets for which WIS is as good as DR, the second and third graph.
LEVEL = (0.25, 0.5)


def experiment(**options: Any) -> Splits:
    """Make the experiment in the domain with these options."""
    domain: Any = plugins.domain("sailing", **options)
    baseline = domain.reward_range[0] / 2
    return Splits("sailing", domain, plugins.fitter("kernel"), true_value, 1000, SIZES, 2500, baseline)


def true_value(domain: Any, policy: Policy, seed: np.random.SeedSequence) -> tuple[float, float]:
    """Return V(π) and its error 0."""
    return float(domain.value(policy)), 0.0


def claims(errors: Errors) -> list[Claim]:
    """Return the paper's claims about Fig. 2: that it is like Fig. 1, and the exceptions."""
    split = errors.total * 3 // 5
    others = [("step-is", errors.total), ("step-wis", errors.total), ("dr-bsl", errors.total)]
    others += [("reg", size) for size in errors.sizes]
    dr = errors("dr", split, 0.75)
    beaten = [(alpha, "step-is") for alpha in ALPHAS] + [(alpha, "step-wis") for alpha in ALPHAS if alpha not in LEVEL]
    return [
        *ends(errors),
        best_split("DR at its best split beats IS on all the data for every α, WIS at α=0 and α=0.75", errors, beaten),
        *baseline(errors),
        every("WIS is as good as DR at α=0.25 and α=0.5", [_level(errors, alpha) for alpha in LEVEL]),
        every(
            f"at α=0.75, DR with a 3:2 split (|D_test|={split}) beats all other estimators",
            [better(f"{n} {size}", dr, errors(n, size, 0.75), ("DR 3:2", f"{n} {size}")) for n, size in others],
        ),
        better(
            "at α=0.75, 2-fold DR improves further on DR with a 3:2 split",
            errors(TWO_FOLD, errors.total, 0.75),
            dr,
            ("2-fold DR", "DR 3:2"),
        ),
    ]


def _level(errors: Errors, alpha: float) -> Claim:
    size = errors.best_size("dr", alpha)
    rivals = errors.rest("step-wis", errors.total, alpha), errors.rest("dr", size, alpha)
    return as_good(f"α={alpha}", *rivals, ("WIS on all", f"DR at {size}"))
