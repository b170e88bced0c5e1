"""This package in the race: one call, two threads, all checks of bad input, and like its peers no diagnostics."""

import offpolicy as op
from agreement import agree, agree_on_parquet
from definition import ESTIMATORS, Estimate, Estimates
from workload import DISCOUNT

THREADS = 2


def evaluate(log, estimators=ESTIMATORS, diagnostics=False, **options) -> op.Evaluation:
    given = {"discount": DISCOUNT, "estimators": list(estimators), "threads": THREADS, "diagnostics": diagnostics}
    return op.evaluate(log, **given, **options)


def evaluate_without_wis_error(log) -> op.Evaluation:
    """Return the three values and the errors of step-is and dr, which take one pass."""
    return evaluate(log, passes=1)


def policy(target_prob: str, **model: str) -> op.PolicyColumns:
    return op.PolicyColumns(target_prob=target_prob, **model)


def mixture(of: str, alpha: float) -> op.PolicyColumns:
    return op.PolicyColumns(mixture_of=of, alpha=alpha)


def run(log) -> Estimates:
    found = evaluate(log)
    return {name: Estimate(found[name].value, found[name].std_error) for name in ESTIMATORS}


def check() -> None:
    agree(run)
    agree_on_parquet(run)
