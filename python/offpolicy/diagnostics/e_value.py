"""Evidence that logged probabilities are wrong: if π0 is right, E[ρ_t | past] ≤ 1 for all policies.

With x = ρ_t − 1 ≥ −1 of every step of every trajectory, S = Σx and Q = Σx², and for each λ in (0, 1),

    1 + λx ≥ exp(λx − φ(λ)x²),    φ(λ) = −ln(1 − λ) − λ    (Fan, Grama & Liu 2015)

so that exp(λS − φ(λ)Q) is at most a product of factors whose expectations are at most 1. It is therefore an e-value,
and so is its mean over λ = 2^-1, …, 2^-20. If the logged probabilities are right, it exceeds 1/δ with a probability of
at most δ (Markov), in logs of any size and shape. A mean of ρ_t below 1 is no such evidence, because the target policy
may take actions that are not logged.
"""

from __future__ import annotations

import math

#: How often λ is halved, down to a millionth, which suits logs of up to 10^12 steps.
HALVINGS = 20


def log10_e_value(excess: float | None, squared_excess: float | None) -> float | None:
    """Return log10 of the e-value of Σ(ρ − 1) and Σ(ρ − 1)², or None if these are out of f64 range.

    >>> log10_e_value(0.0, 0.0)
    0.0
    >>> log10_e_value(1000.0, 10_000.0) > 3 > 0 > log10_e_value(-50.0, 10_000.0)
    True
    """
    if excess is None or squared_excess is None:
        return None
    rates = [2.0**-k for k in range(1, HALVINGS + 1)]
    logs = [rate * excess - (-math.log1p(-rate) - rate) * squared_excess for rate in rates]
    top = max(logs)
    return (top + math.log(sum(math.exp(log - top) for log in logs) / len(logs))) / math.log(10)
