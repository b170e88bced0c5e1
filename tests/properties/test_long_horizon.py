"""Numeric promise 2: cumulative ratios far outside the range of a float neither over- nor underflow."""

import decimal
import math
import re
from decimal import Decimal
from itertools import accumulate, repeat
from operator import mul

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, skeleton

H = 100_000
# Each step rounds a division and a few products: an error of about √(4H)·2⁻⁵³ = 7e-14 at the end.
TOLERANCE = 1e-12


def near(expected):
    return pytest.approx(float(expected), rel=TOLERANCE, abs=0.0)


@pytest.fixture(autouse=True)
def _big_floats():
    with decimal.localcontext(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
        yield


def drifting_log(drifts, seed=0):
    """Episodes whose mean ratio is exp(drift): c_H = e^(drift·H) or so."""
    rng = np.random.default_rng(seed)
    log = skeleton([H] * len(drifts))
    n = log.height
    behavior = rng.uniform(0.2, 0.3, n)
    noise = rng.uniform(0.9, 1.1, n)
    return log.with_columns(
        reward=rng.uniform(0.5, 1.5, n),
        behavior_prob=behavior,
        target_prob=behavior * np.exp(np.repeat(drifts, H)) * noise,
        q_hat=rng.uniform(0.0, 1.0, n),
        v_hat=rng.uniform(0.0, 1.0, n),
        r_hat=rng.uniform(0.0, 1.0, n),
    )


class Exact:
    """The same log in 40 digits with unbounded exponents."""

    def __init__(self, log, gamma):
        columns = {
            name: [[Decimal(x) for x in part[name]] for part in log.partition_by("episode")] for name in log.columns[2:]
        }
        self.r, self.q, self.v, self.r_hat = (columns[k] for k in ("reward", "q_hat", "v_hat", "r_hat"))
        self.n, self.h = len(self.r), len(self.r[0])
        rho = [
            [target / behavior for target, behavior in zip(*pair, strict=True)]
            for pair in zip(columns["target_prob"], columns["behavior_prob"], strict=True)
        ]
        self.c = [list(accumulate(ratios, mul, initial=Decimal(1))) for ratios in rho]
        self.power = list(accumulate(repeat(Decimal(gamma), self.h - 1), mul, initial=Decimal(1)))
        self.d = [sum(cs) / self.n for cs in zip(*self.c, strict=True)]

    def total(self, i, term):
        return sum(power * term(i, t) for t, power in enumerate(self.power))

    def values(self, estimator):
        c, d = self.c, self.d
        terms = {
            "mc": lambda i, t: self.r[i][t],
            "step-is": lambda i, t: c[i][t + 1] * self.r[i][t],
            "dr": lambda i, t: c[i][t] * self.v[i][t] + c[i][t + 1] * (self.r[i][t] - self.q[i][t]),
            "step-wis": lambda i, t: c[i][t + 1] / d[t + 1] * self.r[i][t],
            "wdr": lambda i, t: c[i][t] / d[t] * self.v[i][t] + c[i][t + 1] / d[t + 1] * (self.r[i][t] - self.q[i][t]),
            "dr-v2": lambda i, t: c[i][t + 1] * (self.r[i][t] - self.r_hat[i][t]),
            "is": lambda i, t: c[i][-1] * self.r[i][t],
            "wis": lambda i, t: c[i][-1] / d[-1] * self.r[i][t],
        }
        first = [self.v[i][0] if estimator == "dr-v2" else Decimal(0) for i in range(self.n)]
        return [first[i] + self.total(i, terms[estimator]) for i in range(self.n)]

    def value(self, estimator):
        return sum(self.values(estimator)) / self.n

    def std_error(self, estimator):
        values = self.values(estimator)
        if estimator == "step-wis":
            c, d = self.c, self.d
            r = [sum(c[j][t + 1] * self.r[j][t] for j in range(self.n)) / self.n / d[t + 1] for t in range(H)]
            psi = [self.total(i, lambda i, t: c[i][t + 1] / d[t + 1] * (self.r[i][t] - r[t])) for i in range(self.n)]
        elif estimator == "wis":
            theta = self.value("wis")
            psi = [x - self.c[i][-1] / self.d[-1] * theta for i, x in enumerate(values)]
        else:
            psi = [x - sum(values) / self.n for x in values]
        return (sum(p * p for p in psi) / (self.n * (self.n - 1))).sqrt()


@pytest.mark.slow
@pytest.mark.parametrize("drift", [0.1, -0.1], ids=["growing", "shrinking"])
def test_weights_beyond_floats_cancel_in_the_weighted_estimators(drift):
    log = drifting_log([drift, drift, drift])
    exact = Exact(log, 0.999)
    assert abs(exact.c[0][-1].log10()) > 4000
    ev = op.evaluate(log, discount=0.999, estimators=["wis", "step-wis", "wdr", "mc"])
    for estimator in ("wis", "step-wis", "wdr", "mc"):
        assert ev[estimator].value == near(exact.value(estimator))
    for estimator in ("wis", "step-wis", "mc"):
        assert ev[estimator].std_error == near(exact.std_error(estimator))
    values = ev.values("step-wis")["value"].to_list()
    assert values == [near(x) for x in exact.values("step-wis")]


@pytest.mark.slow
def test_a_vanishing_discount_cancels_an_exploding_weight():
    gamma = 0.9
    log = drifting_log([-math.log(gamma)] * 2, seed=1)
    exact = Exact(log, gamma)
    assert exact.power[-1] < Decimal("1e-4000")
    assert exact.c[0][-1] > Decimal("1e4000")
    ev = op.evaluate(log, discount=gamma, estimators=["step-is", "dr", "dr-v2", "step-wis"])
    for estimator in ("step-is", "dr", "dr-v2", "step-wis"):
        assert ev[estimator].value == near(exact.value(estimator))
        assert ev[estimator].std_error == near(exact.std_error(estimator))


@pytest.mark.slow
def test_shrinking_weights_leave_the_early_steps():
    log = drifting_log([-0.1, -0.05], seed=2)
    exact = Exact(log, 1.0)
    ev = op.evaluate(log, estimators=["step-is", "dr", "dr-v2"])
    for estimator in ("step-is", "dr", "dr-v2"):
        assert ev[estimator].value == near(exact.value(estimator))
        assert ev[estimator].std_error == near(exact.std_error(estimator))


@pytest.mark.parametrize(("ratio", "log10s"), [(10.0, {"is": 1003.0, "step-is": 1000.0458}), (0.1, {"is": -997.0})])
def test_a_value_that_no_float_can_hold_is_an_error_with_its_log10(ratio, log10s):
    log = skeleton([1000, 1000]).with_columns(reward=1.0, ratio=pl.lit(ratio))
    for estimator, log10 in log10s.items():
        with pytest.raises(op.OffPolicyError, match="log10") as caught:
            op.evaluate(log, estimators=[estimator])
        numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", str(caught.value))]
        assert any(abs(number - log10) < 0.1 for number in numbers)
        assert estimator in str(caught.value)


def test_the_other_estimators_survive_a_value_that_no_float_can_hold():
    log = skeleton([1000, 1000]).with_columns(reward=1.0, ratio=10.0)
    ev = op.evaluate(log, estimators=["mc", "wis", "step-wis"])
    for estimator in ("mc", "wis", "step-wis"):
        assert ev[estimator].value == near(1000.0)


def test_no_table_has_an_infinite_or_nan_cell():
    for ratio in (10.0, 0.1):
        log = skeleton([1000, 700]).with_columns(reward=1.0, ratio=ratio)
        floats = op.evaluate(log).table.select(pl.selectors.float())
        cells = [cell for row in floats.iter_rows() for cell in row if cell is not None]
        assert all(map(math.isfinite, cells))


def test_huge_and_tiny_ratios_in_one_episode():
    ratios = [1e200, 1e200, 1e-200, 1e-200, 3.0, 1e-200, 1e-200, 1e200, 1e200, 0.5]
    rewards = [0.0, 0.0, 0.0, 2.0, 1.0, 0.0, 5.0, 0.0, 7.0, 1.0]
    log = skeleton([10, 10]).with_columns(
        ratio=pl.Series(ratios + ratios[::-1]), reward=pl.Series(rewards + [0.0] * 9 + [3.0])
    )
    ev = op.evaluate(log, discount=0.5)
    for estimator in ("is", "step-is", "wis", "step-wis"):
        expected = reference.evaluate(episodes_of(log), estimator, 0.5)
        assert ev[estimator].value == near(expected.value)
        assert ev[estimator].std_error == near(expected.std_error)
        assert ev[estimator].ess == near(expected.ess)


def test_one_weight_dwarfs_another_by_more_than_a_float_spans():
    log = skeleton([3, 3, 3]).with_columns(
        ratio=pl.Series([1e-200] * 3 + [1e200] * 3 + [2e200] * 3),
        reward=pl.Series([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
    )
    ev = op.evaluate(log, estimators=["wis", "step-wis"])
    for estimator in ("wis", "step-wis"):
        expected = reference.evaluate(episodes_of(log), estimator, 1.0)
        assert ev[estimator].value == near(expected.value)
        assert ev[estimator].std_error == near(expected.std_error)
        assert ev[estimator].ess == near(expected.ess)


@pytest.mark.parametrize("probability", [0.1, 1e-300, 5e-324])
def test_equal_probabilities_are_a_ratio_of_one_however_small(probability):
    log = skeleton([500, 400]).with_columns(
        reward=0.25, behavior_prob=pl.lit(probability), target_prob=pl.lit(probability)
    )
    ev = op.evaluate(log, estimators=["mc", "is", "step-is", "wis", "step-wis"])
    assert set(ev.table["value"]) == {112.5}


def test_a_ratio_of_probabilities_beyond_floats_is_no_infinity():
    tiny = 1e-320
    log = skeleton([2, 2]).with_columns(
        reward=pl.Series([0.0, 2.0, 0.0, 6.0]),
        behavior_prob=pl.Series([tiny, 1.0, tiny, 0.5]),
        target_prob=pl.Series([1.0, tiny, 1.0, tiny]),
    )
    ev = op.evaluate(log, estimators=["is", "step-is", "step-wis"])
    for estimator in ("is", "step-is", "step-wis"):
        expected = reference.evaluate(episodes_of(log), estimator, 1.0)
        assert ev[estimator].value == near(expected.value)


def test_a_ratio_below_normal_floats_keeps_its_digits():
    log = skeleton([2, 2]).with_columns(
        reward=pl.Series([0.0, 2.0, 0.0, 6.0]),
        behavior_prob=pl.Series([0.7, 3e-300, 0.9, 7e-300]),
        target_prob=pl.Series([1.1e-300, 0.3, 1.3e-300, 0.6]),
    )
    log = log.with_columns(target_prob=pl.col("target_prob") * pl.Series([1e-20, 1.0, 1e-20, 1.0]))
    ev = op.evaluate(log, estimators=["is", "step-is", "wis"])
    for estimator in ("is", "step-is", "wis"):
        expected = reference.evaluate(episodes_of(log), estimator, 1.0)
        assert ev[estimator].value == near(expected.value)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e300])
def test_standard_errors_of_values_whose_squares_no_float_can_hold(scale):
    log = skeleton([1, 1, 1]).with_columns(reward=pl.Series([1.0, 2.5, 4.0]) * scale, ratio=pl.Series([1.5, 0.5, 0.25]))
    ev = op.evaluate(log)
    for estimator in ("mc", "is", "step-is", "wis", "step-wis"):
        expected = reference.evaluate(episodes_of(log), estimator, 1.0)
        assert ev[estimator].value == near(expected.value)
        assert ev[estimator].std_error == near(expected.std_error)


@pytest.mark.parametrize("horizon", [5_000, 20_000])
def test_wis_of_a_constant_return_has_no_error_however_far_the_weights_spread(horizon):
    rng = np.random.default_rng(1)
    log = skeleton(np.full(40, horizon))
    ratio = rng.choice([0.5, 1.5], log.height)
    ev = op.evaluate(log.with_columns(ratio=ratio, reward=pl.lit(0.1)), discount=0.5, estimators=["wis"])
    assert ev["wis"].std_error == 0.0
    assert ev["wis"].value == pytest.approx(0.2, rel=1e-12)
