"""Summaries of the errors of runs.

    RMSE = √(mean over runs of e²),    bias = mean over runs of e,    e = estimate - V, or (estimate - V)/V

The truth V of a run may itself be an estimate; the square of its error is subtracted from the squares.
"""

from __future__ import annotations

import math

import numpy as np

from offpolicy.protocols import Floats

#: The number of largest squared errors in `top_ten`.
FEW = 10


def relative_summary(errors: Floats, truth_errors: Floats, shared: bool = False) -> dict[str, float | None]:
    """Return the summary of relative errors, with names `relative_…` except for `top_ten`, which has no unit."""
    found = summary(errors, truth_errors, shared)
    return {name if name == "top_ten" else f"relative_{name}": value for name, value in found.items()}


def summary(errors: Floats, truth_errors: Floats, shared: bool = False) -> dict[str, float | None]:
    """Return RMSE and bias over runs, each with its Monte-Carlo error, which is None for one run.

    If all runs share a simulated truth (`shared`), its error ε moves all errors alike: the bias by ε, and the RMSE by
    about ε · bias / RMSE.

    Two numbers show heavy tails: `median`, the median absolute error, which outliers do not move, and `top_ten`, the
    share of the ten largest squares in the sum of all. Both include the error of the truth.
    """
    root, error = root_mean_square(errors, truth_errors)
    bias, n = float(errors.mean()), len(errors)
    bias_error = float(errors.std(ddof=1) / math.sqrt(n)) if n > 1 else None
    if shared and error is not None and bias_error is not None and root > 0:
        common = float(truth_errors[0])
        error, bias_error = math.hypot(error, common * bias / root), math.hypot(bias_error, common)
    squares = np.sort(np.square(errors))
    top_ten = float(squares[-FEW:].sum() / squares.sum()) if squares[-1] > 0 else None
    tails = {"median": float(np.median(np.abs(errors))), "top_ten": top_ten}
    return {"rmse": root, "rmse_error": error, "bias": bias, "bias_error": bias_error} | tails


def root_mean_square(errors: Floats, truth_errors: Floats) -> tuple[float, float | None]:
    """Return the root mean square over runs, without the part of the truth's error, and its Monte-Carlo error."""
    squares = np.square(errors) - np.square(truth_errors)
    root = math.sqrt(max(float(squares.mean()), 0.0))
    if root == 0 or len(squares) < 2:
        return root, None
    return root, float(squares.std(ddof=1) / math.sqrt(len(squares)) / (2 * root))
