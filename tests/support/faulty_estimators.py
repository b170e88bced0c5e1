"""Estimators and intervals with one fault each, by the rule of the conformance suite that finds it."""

import itertools

import numpy as np
from lab import Dr, StepIs, giving
from offpolicy.intervals import Ends, Method, WithheldError
from offpolicy.intervals.normal import student

IS = StepIs().values


def estimator(values=IS, **members):
    return giving(values, **members)()


def mean_of_the_block(block):
    return IS(block) - block["reward"].mean()


def counting():
    calls = itertools.count()
    return estimator(lambda block: IS(block) + next(calls))


ESTIMATORS = {
    "values": [
        object(),
        estimator(lambda block: np.full(len(block), np.nan)),
        estimator(lambda block: IS(block)[:-1]),
        estimator(lambda block: 1 / 0),
    ],
    "description": [estimator(needs="ratio"), estimator(unbiased="yes")],
    "needs": [estimator(lambda block: IS(block) + block.by_trajectory_sum(block["q_hat"]))],
    "needs-unread": [estimator(needs=("ratio", "q_hat"))],
    "repeat": [counting()],
    "block": [estimator(mean_of_the_block), estimator(lambda block: IS(block) + block.trajectory[block.starts])],
    "unbiased": [
        estimator(lambda block: IS(block) * 1.0001, unbiased=True),
        estimator(lambda block: Dr().values(block) + 1e-6, needs=Dr.needs, unbiased=True),
    ],
    "shrinks": [estimator(lambda block: 2 * IS(block), shrinks=True)],
    "range": [
        estimator(range=lambda self, bounds, terms: bounds.returns(terms)),
        estimator(range=lambda self, bounds, terms: 1 / 0),
    ],
}


def method(ends, kind="asymptotic", **members):
    return Method(kind, ends, **members)


def fixed(half, kind="asymptotic"):
    return method(lambda request: request.around(request.value, half(request)), kind)


def withheld(request):
    raise WithheldError("never")


def by_ids(request):
    """An interval that looks at the order in which trajectories are read."""
    return request.around(request.value, 1 + 1e-9 * float(request.values()[0]))


def narrower(request):
    return request.around(request.value, 1 - request.confidence)


def wide_bounds(request):
    return request.around(request.value, (2 if request.side == "two" else 3) + request.confidence)


def random():
    calls = itertools.count()
    return fixed(lambda request: 9.0 + request.confidence + 1e-9 * next(calls))


INTERVALS = {
    "method": [object(), student],
    "ends": [
        method(lambda request: Ends(1.0, 0.0, {})),
        method(lambda request: 1 / 0),
        Method("certain", student),
    ],
    "withheld": [method(withheld)],
    "monotone": [method(narrower)],
    "sides": [method(wide_bounds)],
    "repeat": [random()],
    "order": [method(by_ids)],
    "coverage": [
        fixed(lambda request: 0.5 * request.std_error * request.confidence),
        fixed(lambda request: 1.4 * request.std_error * request.confidence, "finite-sample"),
    ],
}
