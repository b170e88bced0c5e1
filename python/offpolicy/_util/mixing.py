"""The mixture of a policy π with the behaviour policy π0, and its importance ratio:

    π_α(a|s) = (1-α) π(a|s) + α π0(a|s),    π_α / π0 = (1-α) ρ + α,    ρ = π / π0

The ratio follows from ρ alone, because the ratio of π0 to itself is 1. `rust/core/src/pass/ratios.rs` has the same
formula for the core.
"""

from __future__ import annotations

from typing import Any


def mixed(alpha: float, ours: Any, theirs: Any = 1.0) -> Any:
    """Return (1-α)·ours + α·theirs of numbers, arrays or Polars expressions; a ratio is mixed with 1, the ratio of π0.

    >>> mixed(0.25, 2.0), mixed(0.5, 0.8, 0.4)
    (1.75, 0.6000000000000001)
    """
    return (1 - alpha) * ours + alpha * theirs
