"""Evidence that logged probabilities are wrong: E[ρ_t | past] ≤ 1 whatever the policies are, if only π0 is right.

With x = ρ_t − 1 ≥ −1 of every step of every trajectory, S = Σx and Q = Σx², and for each λ in (0, 1),

    1 + λx ≥ exp(λx − φ(λ)x²),    φ(λ) = −ln(1 − λ) − λ    (Fan, Grama & Liu 2015)

so that exp(λS − φ(λ)Q) is at most a product of factors whose expectations are at most 1: an e-value, and so is its mean
over λ = 2^-1, …, 2^-20. Under right probabilities it exceeds 1/δ with a probability of at most δ (Markov), in logs of
any size and shape. A mean below 1 says nothing of the kind: the target policy may take actions that are not logged.
"""

from __future__ import annotations

import math

#: How often λ is halved, down to a millionth: for logs of up to 10^12 steps.
HALVINGS = 20


def log10_e_value(excess: float | None, squared_excess: float | None) -> float | None:
    """log10 of the e-value of Σ(ρ − 1) and Σ(ρ − 1)²; None where no f64 holds these.

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
