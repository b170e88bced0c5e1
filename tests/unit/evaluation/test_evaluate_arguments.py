"""Wrong arguments are refused as such, by name, before a row is read."""

import math

import offpolicy as op
import pytest
from logs import random_log, skeleton


@pytest.fixture
def log():
    return random_log(131)


@pytest.mark.parametrize(
    "argument", [{"order": "some"}, {"dedupe": "all"}, {"truncation": "guess"}, {"estimators": ["drr"]}]
)
def test_an_unknown_choice_is_refused_with_the_known_ones(log, argument):
    ((name, _),) = argument.items()
    known = {"order": "any", "dedupe": "identical", "truncation": "as-terminal", "estimators": "dr"}[name]
    with pytest.raises(op.UsageError, match=known):
        op.evaluate(log, **argument)


@pytest.mark.parametrize("discount", [-0.1, 1.5, float("nan"), float("inf")])
def test_a_discount_outside_zero_and_one_is_refused(log, discount):
    with pytest.raises(op.UsageError, match="discount"):
        op.evaluate(log, discount=discount)


@pytest.mark.parametrize("argument", ["horizon", "threads", "batch_rows"])
@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_sizes_are_positive_integers(log, argument, size):
    with pytest.raises(op.UsageError, match=argument):
        op.evaluate(log, **{argument: size})


@pytest.mark.parametrize("baseline", [math.nan, math.inf])
def test_a_baseline_is_finite(log, baseline):
    with pytest.raises(op.UsageError, match="baseline"):
        op.evaluate(log, baseline=baseline)


def test_dr_bsl_needs_its_baseline(log):
    with pytest.raises(op.UsageError, match="baseline"):
        op.evaluate(log, estimators=["dr-bsl"])


def test_no_estimator_at_all_is_refused(log):
    with pytest.raises(op.UsageError, match="estimator"):
        op.evaluate(log, estimators=[])


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_a_mixture_is_between_its_policies(alpha):
    with pytest.raises(op.UsageError, match="alpha"):
        op.PolicyColumns(mixture_of="a", alpha=alpha)


POLICIES = {
    "none": {},
    "a mixture of nothing": {"m": {"mixture_of": "a", "alpha": 0.5}},
    "a mixture of itself": {"m": {"mixture_of": "m", "alpha": 0.5}},
    "the name of the behaviour policy": {"behavior": {"target_prob": "target_prob"}},
}


@pytest.mark.parametrize("case", POLICIES)
def test_wrong_policies_are_refused(log, case):
    policies = {name: op.PolicyColumns(**columns) for name, columns in POLICIES[case].items()}
    with pytest.raises(op.UsageError, match="polic"):
        op.evaluate(log, policies=policies)


def test_a_policy_with_an_absent_column_is_refused_by_name(log):
    with pytest.raises(op.MissingColumnError, match="absent"):
        op.evaluate(log, policies={"a": op.PolicyColumns(target_prob="absent")})


BOUNDS = {
    "reward upside down": {"reward": (1.0, 0.0), "ratio": 2.0, "q": (0.0, 1.0)},
    "reward not a number": {"reward": (0.0, math.nan), "ratio": 2.0, "q": (0.0, 1.0)},
    "ratio negative": {"reward": (0.0, 1.0), "ratio": -1.0, "q": (0.0, 1.0)},
    "ratio infinite": {"reward": (0.0, 1.0), "ratio": math.inf, "q": (0.0, 1.0)},
    "q upside down": {"reward": (0.0, 1.0), "ratio": 2.0, "q": (1.0, 0.0)},
    "q not a number": {"reward": (0.0, 1.0), "ratio": 2.0, "q": (math.nan, 1.0)},
    "ratio for too few steps": {"reward": (0.0, 1.0), "ratio": [2.0, 2.0], "q": (0.0, 1.0)},
}


@pytest.mark.parametrize("case", BOUNDS)
def test_wrong_bounds_are_refused(case):
    log = skeleton([3, 3]).with_columns(reward=0.5, ratio=1.0, q_hat=0.5, v_hat=0.5)
    estimate = op.evaluate(log, estimators=["dr"], horizon=3)["dr"]
    with pytest.raises(op.UsageError, match=case.split()[0]):
        estimate.interval(method="hoeffding", bounds=op.Bounds(**BOUNDS[case]))


def test_a_column_that_is_there_twice_is_refused(log):
    table = log.to_arrow()
    twice = table.append_column("reward", table["reward"])
    with pytest.raises(op.OffPolicyError, match="reward"):
        op.evaluate(twice)


def test_a_mixture_of_a_mixture_is_a_mixture(log):
    policies = {
        "a": op.PolicyColumns(target_prob="target_prob"),
        "half": op.PolicyColumns(mixture_of="a", alpha=0.5),
        "half of half": op.PolicyColumns(mixture_of="half", alpha=0.5),
        "three quarters": op.PolicyColumns(mixture_of="a", alpha=0.75),
    }
    ev = op.evaluate(log, policies=policies)
    for estimator in ("is", "step-wis"):
        expected = pytest.approx(ev["three quarters", estimator].value, rel=1e-12)
        assert ev["half of half", estimator].value == expected


@pytest.mark.parametrize("source", [None, 3, object(), {"reward": [1.0]}, []])
def test_something_that_is_no_log_is_refused(source):
    with pytest.raises(op.OffPolicyError):
        op.evaluate(source)


def test_our_errors_are_value_errors():
    for error in (op.BadLogError, op.MissingColumnError, op.BadFileError, op.UsageError):
        assert issubclass(error, op.OffPolicyError)
    assert issubclass(op.OffPolicyError, ValueError)
