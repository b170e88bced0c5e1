"""Differences from the logged policy: sums in rationals, floors by enumeration, and how often the bounds hold."""

from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, file_pieces, random_log
from offpolicy import intervals
from offpolicy.intervals import anderson, betting, hcope, sequence
from offpolicy.intervals.normal import student_quantile
from offpolicy.intervals.sketch import Sketch

H, GAMMA, BASELINE = 5, 0.9, -2.0
ESTIMATORS = tuple(name for name in reference.UNIQUE if name != "mc")
LOWERS = {"betting": betting.lower, "sequence": sequence.lower, "hcope": hcope.lower, "anderson": anderson.lower}


@pytest.fixture(scope="module")
def log():
    return random_log(seed=5, episodes=40, horizon=H)


def evaluated(log, **options):
    return op.evaluate(log, discount=GAMMA, horizon=H, baseline=BASELINE, paired=True, **options)


def exact(log, estimator):
    """Δ and its standard error: d_i = ψ_i − G_i, with influence values for what is a ratio of sums."""
    episodes = episodes_of(log)
    found = reference.evaluate(episodes, estimator, GAMMA, horizon=H, baseline=BASELINE)
    returns = reference.evaluate(episodes, "mc", GAMMA, horizon=H)
    psi = found.values
    if estimator in reference.SELF_NORMALISED:
        steps = reference.absorbed([reference.exact_steps(episode) for episode in episodes], H)
        psi = reference.influence(steps, estimator, Fraction(GAMMA))
    d = [x - g for x, g in zip(psi, returns.values, strict=True)]
    mean = sum(d) / len(d)
    spread = sum((x - mean) ** 2 for x in d) / (len(d) * (len(d) - 1))
    return float(found.value - returns.value), reference.square_root(spread)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_differences_are_those_of_rational_sums(estimator, log):
    found = evaluated(log).difference("target", "behavior", estimator=estimator)
    value, error = exact(log, estimator)
    assert found.value == pytest.approx(value, rel=1e-10, abs=1e-12)
    assert found.std_error == pytest.approx(error, rel=1e-10)
    assert (found.policy, found.against, found.estimator) == ("target", "behavior", estimator)
    assert (found.episodes, found.withheld) == (40, None)


def test_a_policy_does_not_differ_from_itself(log):
    ev = evaluated(log.with_columns(target_prob="behavior_prob"))
    for estimator in ("is", "step-is", "wis", "step-wis", "dr-bsl"):
        found = ev.difference("target", "behavior", estimator=estimator)
        assert (found.value, found.std_error) == (0.0, 0.0), estimator


def test_differences_have_the_same_bits_however_the_log_is_cut(log, tmp_path):
    def bits(ev):
        return {key: (found.value, found.std_error, found.extremes) for key, found in ev.paired.items()}

    whole = evaluated(log)
    pieces = evaluated(file_pieces(log, tmp_path, cuts=[3, 4, 11]), threads=2)
    assert bits(whole) == bits(pieces)
    bounds = op.Bounds(reward=(-10.0, 10.0))
    for method in ("t", "betting", "bootstrap"):
        found, cut = (
            ev.difference("target", estimator="step-is").interval(0.9, method, bounds) for ev in (whole, pieces)
        )
        assert found.low is not None
        assert found == cut


def test_estimates_are_the_same_with_and_without_pairs(log):
    assert evaluated(log).table.equals(op.evaluate(log, discount=GAMMA, horizon=H, baseline=BASELINE).table)


def test_t_and_bootstrap_are_those_of_the_mean_of_pairs(log):
    ev = evaluated(log)
    found = ev.difference("target", "behavior", estimator="step-is")
    half = student_quantile(0.975, 39) * found.std_error
    t = found.interval(0.95, "t")
    assert (t.low, t.high) == pytest.approx((found.value - half, found.value + half))
    assert (t.kind, t.method) == ("asymptotic", "t")
    d = ev.values("step-is")["value"] - ev.values("mc")["value"]
    as_rewards = pl.DataFrame({"episode": ev.values("mc")["episode"], "step": 0, "reward": d})
    plain = op.evaluate(as_rewards, estimators=["mc"])["mc"]
    for method in ("bootstrap", "bootstrap-bca"):
        ours, theirs = found.interval(0.9, method), plain.interval(0.9, method)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-6)


def small_log(seed, n, behavior=(0.5, 0.5), target=(0.7, 0.3)):
    """Two steps with rewards of -1, 0 or 1; an episode may end after the first."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(n):
        for step in range(2):
            action = int(rng.random() < behavior[1])
            reward = float(rng.choice([-1, 0, 1], p=[0.2, 0.3, 0.5] if action == 0 else [0.4, 0.4, 0.2]))
            rows.append((episode, step, reward, behavior[action], target[action]))
            if rng.random() < 0.3:
                break
    names = ("episode", "step", "reward", "behavior_prob", "target_prob")
    return pl.DataFrame(rows, schema=names, orient="row")


#: The mean rewards of the actions are 0.3 and -0.2, and the second step comes with probability 0.7.
TRUE = (0.7 * 0.3 - 0.3 * 0.2 - 0.05) * (1 + 0.7 * GAMMA)
BOUNDS = op.Bounds(reward=(-1.0, 1.0))
TOTAL = 1 + GAMMA


@pytest.mark.parametrize("estimator", ["step-is", "is"])
@pytest.mark.parametrize(
    ("method", "side"),
    [(method, side) for method in LOWERS for side in ("lower", "upper") if (method, side) != ("hcope", "upper")],
)
def test_a_bound_is_that_of_values_above_a_floor_that_needs_no_ratio(method, estimator, side):
    log = small_log(1, 60)
    ev = op.evaluate(log, discount=GAMMA, horizon=2, paired=True)
    found = ev.difference("target", estimator=estimator).interval(0.9, method, BOUNDS, side=side)
    sign, a = (1, Fraction(-1)) if side == "lower" else (-1, Fraction(1))
    gamma, values = Fraction(GAMMA), []
    for episode in episodes_of(log):
        steps = reference.exact_steps(episode)
        g, c = reference.discounted_return(steps, gamma), reference.cumulative_ratios(steps)[1:]
        full = a * (1 + gamma)
        if estimator == "is":
            x = full + c[-1] * (g - full)
        else:
            rewards = [step.reward for step in steps] + [Fraction(0)] * (2 - len(steps))
            weights = list(c) + [c[-1]] * (2 - len(c))
            x = full + sum(gamma**t * w * (r - a) for t, (w, r) in enumerate(zip(weights, rewards, strict=True)))
        values.append(float(sign * (x - g)))
    floor = -2 * TOTAL
    assert min(values) >= floor
    ids = [episode[0]["episode"] for episode in episodes_of(log)]
    expected = sign * (floor + LOWERS[method](Sketch.of(ids, np.array(values), floor), 1 - 0.9))
    assert (found.low if side == "lower" else found.high) == pytest.approx(expected, abs=1e-3)
    assert found.kind == intervals.METHODS[method].kind


@pytest.mark.parametrize("method", ["betting", "hoeffding", "bernstein"])
def test_finite_sample_bounds_hold_as_often_as_they_say(method):
    """At level 0.8 each end misses in at most 20% of logs; 120 logs leave room for chance."""
    bounds = op.Bounds(reward=(-1.0, 1.0), ratio=1.4)
    low = high = 0
    for seed in range(120):
        ev = op.evaluate(small_log(seed, 40), discount=GAMMA, horizon=2, estimators=["step-is"], paired=True, threads=1)
        gain = ev.difference("target", estimator="step-is")
        low += gain.interval(0.8, method, bounds, side="lower").low > TRUE
        high += gain.interval(0.8, method, bounds, side="upper").high < TRUE
    assert max(low, high) <= 120 * 0.2 + 2 * np.sqrt(120 * 0.2 * 0.8)


def test_the_range_of_a_difference_is_that_of_the_value_less_a_return():
    log = small_log(3, 50)
    bounds = op.Bounds(reward=(-1.0, 1.0), ratio=1.4)
    gain = op.evaluate(log, discount=GAMMA, horizon=2, estimators=["step-is"], paired=True).difference(
        "target", estimator="step-is"
    )
    found = gain.interval(0.9, "hoeffding", bounds)
    lowest, highest = bounds.range("step-is", gain.estimate.terms)
    assert found.assumptions == {"lowest": pytest.approx(lowest - TOTAL), "highest": pytest.approx(highest + TOTAL)}
    assert (
        "vacuous: it holds every possible difference"
        in gain.interval(0.9, "hoeffding", op.Bounds(reward=(-1.0, 1.0), ratio=9.0)).reason
    )


def test_what_the_log_contradicts_is_withheld():
    gain = op.evaluate(small_log(3, 50), discount=GAMMA, horizon=2, paired=True).difference(
        "target", estimator="step-is"
    )
    for method in ("betting", "hoeffding"):
        narrow = gain.interval(0.9, method, op.Bounds(reward=(-0.1, 0.1), ratio=1.4))
        assert narrow.low is None
        assert "the log contradicts the given bounds" in narrow.reason


@pytest.mark.parametrize(
    ("estimator", "method", "why"),
    [
        ("wis", "betting", "ratio of sums"),
        ("wis", "bootstrap", "ask for t"),
        ("reg", "betting", "only if its model is right"),
        ("dr", "betting", "give ratio="),
        ("magic", "t", "no values of single trajectories"),
    ],
)
def test_intervals_that_cannot_be_had_are_withheld_with_the_reason(estimator, method, why, log):
    bounds = op.Bounds(reward=(-10.0, 10.0))
    found = evaluated(log).difference("target", estimator=estimator).interval(0.9, method, bounds)
    assert (found.low, found.high) == (None, None)
    assert why in found.reason


def test_one_pass_knows_no_difference_of_a_weighted_estimate(log):
    ev = evaluated(log, passes=1)
    assert "needs passes=2" in ev.difference("target", estimator="step-wis").reason
    assert ev.difference("target", estimator="dr").value is not None


def test_the_document_has_differences_where_they_were_asked_for(log):
    ev = evaluated(log)
    rows = {row["estimator"]: row for row in ev.to_dict()["estimates"]}
    gain = ev.difference("target", estimator="dr")
    assert rows["dr"]["difference"] == {"against": "behavior", "value": gain.value, "std_error": gain.std_error}
    assert "difference" not in rows["mc"]
    assert ev.to_dict()["settings"]["paired"] is True
    assert "difference" not in op.evaluate(log, discount=GAMMA).to_dict()["estimates"][1]


def test_only_the_logged_policy_can_be_compared_with(log):
    ev = evaluated(log)
    with pytest.raises(op.UsageError, match="compared with 'behavior', the logged policy, alone; not with 'other'"):
        ev.difference("target", "other", estimator="dr")
    with pytest.raises(op.UsageError, match="'behavior' is the logged policy itself"):
        ev.difference("behavior", estimator="mc")
    with pytest.raises(op.UsageError, match="no estimate 'dr' of policy 'targt'"):
        ev.difference("targt", estimator="dr")
    with pytest.raises(op.UsageError, match=r"evaluate\(\.\.\., paired=True\)"):
        op.evaluate(log, discount=GAMMA).difference("target", "behavior", estimator="dr")
    with pytest.raises(op.UsageError, match='paired=True cannot be had with truncation="bootstrap"'):
        op.evaluate(log, paired=True, truncation="bootstrap")
