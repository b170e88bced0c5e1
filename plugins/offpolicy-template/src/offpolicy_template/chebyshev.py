"""An interval by Chebyshev's inequality, with the standard error that the sample tells:

    x̄ ∓ SE / √δ        |x̄ − E x| exceeds k standard errors with probability 1/k² at most

It takes no law of the mean for granted, and is wide: 4.5 standard errors for δ = 0.05. Since SE is estimated, the
promise holds in the limit of many trajectories. A bound from one side has Cantelli's √(1/δ − 1) in the place of 1/√δ.
"""

from __future__ import annotations

import math

from offpolicy.intervals import Ends, Method, Request, WithheldError


def ends(request: Request) -> Ends:
    """Return the ends on the sides that are wanted."""
    if request.std_error is None:
        raise WithheldError(f"{request.method} needs a standard error, and {request.estimator} has none")
    delta = 1 - request.confidence
    factor = math.sqrt(1 / delta) if request.side == "two" else math.sqrt(1 / delta - 1)
    return request.around(request.value, factor * request.std_error, factor=factor)


def chebyshev() -> Method:
    """Return the method, which needs no more than a standard error, also that of clusters."""
    return Method("asymptotic", ends, by_cluster=True)
