"""Step-wise importance sampling whose weights are capped at a constant C:

    x = Σ_t γ^{t−1} min(ρ_{1:t}, C) r_t

A few trajectories with huge weights then move it no more, at the price of a bias: with rewards that are never negative
it is too low on average, and never too high. Ionides, "Truncated importance sampling" (Journal of Computational and
Graphical Statistics 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from offpolicy import Bounds
from offpolicy.evaluation.bounds import Range, Terms
from offpolicy.logs.block import Block
from offpolicy.protocols import Estimator, Floats


@dataclass(frozen=True)
class CappedStepIs(Estimator):
    """The estimator; its needs are the ratios, and rewards, which every estimator has.

    >>> import offpolicy as op
    >>> ev = op.evaluate(op.demo_log(), discount=0.9, estimators=["step-is", "capped-step-is"])
    >>> ev["capped-step-is"].std_error < ev["step-is"].std_error
    True
    """

    name = "step-wise importance sampling with capped weights"
    needs = ("ratio",)
    unbiased = False
    shrinks = True
    equation = "Σ_t γ^{t−1} min(ρ_{1:t}, C) r_t"
    reference = "Ionides (2008)"

    cap: float = 10.0

    def values(self, block: Block) -> Floats:
        """Return x of each trajectory."""
        weights = np.minimum(block.cumulative_ratio(), self.cap)
        return block.by_trajectory_sum(block.discounts * weights * block["reward"])

    def range(self, bounds: Bounds, terms: Terms) -> Range:
        """Return C times the range of a return: no step has more weight."""
        least, most = bounds.returns(terms)
        return min(0.0, self.cap * least), max(0.0, self.cap * most)
