"""Quantiles by mpmath, to as many digits as it works with."""

import mpmath


def normal_quantile(p):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)


def t_quantile(p, degrees):
    """Newton's method on P(T ≤ x) = 1 - I_{ν/(ν+x²)}(ν/2, 1/2)/2, p > 1/2."""
    nu = mpmath.mpf(degrees)

    def cdf(x):
        return 1 - mpmath.betainc(nu / 2, 0.5, 0, nu / (nu + x * x), regularized=True) / 2

    def density(x):
        return mpmath.gamma((nu + 1) / 2) / (
            mpmath.sqrt(nu * mpmath.pi) * mpmath.gamma(nu / 2) * (1 + x * x / nu) ** ((nu + 1) / 2)
        )

    x = mpmath.mpf(0)
    for _ in range(400):
        step = (mpmath.mpf(p) - cdf(x)) / density(x) if x else (mpmath.mpf(p) - 0.5) / density(x)
        x += step
        if abs(step) < mpmath.mpf(10) ** -25 * (1 + x):
            return x
    raise ArithmeticError("no quantile")
