"""The mixture of a policy π with the behaviour policy π0, and its importance ratio:

    π_α(a|s) = (1-α) π(a|s) + α π0(a|s),    π_α / π0 = (1-α) ρ + α,    ρ = π / π0

The ratio needs neither π nor π0 once ρ is known: π0 has the ratio 1 to itself. `rust/core/src/pass/ratios.rs` has the
same formula for the scan.
"""

from __future__ import annotations

from typing import Any


def mixed(alpha: float, ours: Any, theirs: Any = 1.0) -> Any:
    """Return (1-α)·ours + α·theirs of numbers, arrays or Polars expressions; ratios are mixed with 1, that of π0.

    >>> mixed(0.25, 2.0), mixed(0.5, 0.8, 0.4)
    (1.75, 0.6000000000000001)
    """
    return (1 - alpha) * ours + alpha * theirs
