"""MAGIC by its definition, in rational arithmetic: Thomas & Brunskill (2016), with influence functions for covariances.

    g_j = Σ_i [Σ_{t≤j} γ^{t-1} w_t r_t + γ^j w_j V̂_{j+1} - Σ_{t≤j} γ^{t-1} (w_t Q̂_t - w_{t-1} V̂_t)],   w_t = c_t / Σc_t
    Ω_jk = Σ_i ψ_j ψ_k / (n (n-1)),   b_j = distance of g_j from g_H ∓ 1.645 √Ω_HH,   x = argmin xᵀ (Ω + b bᵀ) x

over the simplex, found by trying every set of lengths with a share. Square roots are rounded after 300 bits, and so are
the entries of the matrix.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from linear_equations import solve
from reference import Step, cumulative_ratios, mean

QUANTILE = Fraction(NormalDist().inv_cdf(0.95))
BITS = 300


@dataclass(frozen=True)
class Blend:
    value: Fraction
    values: list[Fraction]
    std_error_squared: Fraction | None
    lengths: list[int]
    shares: list[Fraction]
    returns: list[Fraction]
    covariance: list[list[Fraction]] | None
    matrix: list[list[Fraction]] | None


def lengths(horizon: int) -> list[int]:
    """J: all up to 31, else 32 of them."""
    if horizon < 32:
        return list(range(horizon + 1))
    return [max(k, math.floor(Fraction(horizon * k * k, 31 * 31))) for k in range(32)]


def returns(log: list[list[Step]], gamma: Fraction, j: int) -> list[Fraction]:
    """The trajectories' shares in g_j, times n: the formula of the paper with D_t for Σ_i c_t."""
    weights = [cumulative_ratios(steps) for steps in log]
    d = [mean([c[t] for c in weights]) for t in range(len(log[0]) + 1)]
    found = []
    for c, steps in zip(weights, log, strict=True):
        w = [c_t / d_t for c_t, d_t in zip(c, d, strict=True)]
        rewards = sum(gamma ** (t - 1) * w[t] * steps[t - 1].reward for t in range(1, j + 1))
        after = gamma**j * w[j] * steps[j].v_hat if j < len(steps) else 0
        control = sum(
            gamma ** (t - 1) * (w[t] * steps[t - 1].q_hat - w[t - 1] * steps[t - 1].v_hat) for t in range(1, j + 1)
        )
        found.append(rewards + after - control)
    return found


def influence(log: list[list[Step]], gamma: Fraction, j: int) -> list[Fraction]:
    """ψ_j of each trajectory: g_j is a sum of ratios of means, A_t over D_t up to j and B_t over D_{t-1} up to j+1."""
    weights = [cumulative_ratios(steps) for steps in log]
    both, horizon = list(zip(weights, log, strict=True)), len(log[0])
    psi = [Fraction(0)] * len(log)

    def add_ratio(power, top, bottom):
        ratio = mean(top) / mean(bottom)
        for i in range(len(log)):
            psi[i] += power * (top[i] - ratio * bottom[i]) / mean(bottom)

    for t in range(1, j + 1):
        top = [c[t] * (steps[t - 1].reward - steps[t - 1].q_hat) for c, steps in both]
        add_ratio(gamma ** (t - 1), top, [c[t] for c in weights])
    for t in range(1, min(j + 1, horizon) + 1):
        top = [c[t - 1] * steps[t - 1].v_hat for c, steps in both]
        add_ratio(gamma ** (t - 1), top, [c[t - 1] for c in weights])
    return psi


def blend(log: list[list[Step]], gamma: Fraction) -> Blend:
    n, chosen = len(log), lengths(len(log[0]))
    each = [returns(log, gamma, j) for j in chosen]
    g = [mean(values) for values in each]
    if n == 1:
        shares = [Fraction(int(j == chosen[-1])) for j in chosen]
        return Blend(g[-1], each[-1], None, chosen, shares, g, None, None)
    psi = [influence(log, gamma, j) for j in chosen]
    products = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in psi] for p in psi]
    covariance = [[entry / (n * (n - 1)) for entry in row] for row in products]
    half = QUANTILE * square_root(covariance[-1][-1])
    bias = [max(abs(value - g[-1]) - half, Fraction(0)) for value in g]
    matrix = [[rounded(covariance[j][k] + bias[j] * bias[k]) for k in range(len(g))] for j in range(len(g))]
    shares = least(matrix)
    return Blend(
        sum(x * value for x, value in zip(shares, g, strict=True)),
        [sum(x * values[i] for x, values in zip(shares, each, strict=True)) for i in range(n)],
        quadratic(covariance, shares),
        chosen,
        shares,
        g,
        covariance,
        matrix,
    )


def least(matrix: list[list[Fraction]]) -> list[Fraction]:
    """The minimum over the simplex; on the set of its positive shares it is the minimum over Σx = 1 alone."""
    different = [j for j, row in enumerate(matrix) if row not in matrix[j + 1 :]]
    best = None
    for size in range(1, len(different) + 1):
        for support in itertools.combinations(different, size):
            system = [[matrix[j][k] for k in support] + [Fraction(1)] for j in support]
            system.append([Fraction(1)] * size + [Fraction(0)])
            solution = solve(system, [Fraction(0)] * size + [Fraction(1)])
            if solution is None or min(solution[:size]) < 0:
                continue
            shares = [Fraction(0)] * len(matrix)
            for j, share in zip(support, solution, strict=False):
                shares[j] = share
            found = quadratic(matrix, shares)
            if best is None or found <= best[0]:
                best = found, shares
    assert best is not None
    return best[1]


def quadratic(matrix: list[list[Fraction]], shares: list[Fraction]) -> Fraction:
    some = [j for j, share in enumerate(shares) if share]
    return sum((shares[j] * shares[k] * matrix[j][k] for j in some for k in some), start=Fraction(0))


def square_root(x: Fraction) -> Fraction:
    """√x, to 300 bits."""
    if x == 0:
        return x
    shift = 2 * BITS + x.denominator.bit_length() - x.numerator.bit_length()
    shift += shift % 2
    return Fraction(math.isqrt(math.floor(x * Fraction(2) ** shift))) / Fraction(2) ** (shift // 2)


def rounded(x: Fraction) -> Fraction:
    """x, to 300 bits."""
    shift = BITS + x.denominator.bit_length() - abs(x.numerator).bit_length()
    return Fraction(round(x * Fraction(2) ** shift)) / Fraction(2) ** shift if x else x
