"""Bounds for finite samples against their formulas, written again in plain Python, from each side and both."""

import math
import statistics
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import bounded_log, episodes_of, with_ratio
from offpolicy.folds import share_of
from offpolicy.intervals import anderson, betting, hcope, sequence
from offpolicy.intervals.request import WithheldError
from offpolicy.intervals.sketch import SEED, Sketch

GAMMA, H = 0.9, 6
SKETCHED = ("betting", "sequence", "hcope", "anderson")


def shifted(log, a):
    """Σ_{t≤H} γ^{t-1} c_t (r_t - a) of each trajectory by the definition, an ended one going on with its weight."""
    found = {}
    for rows in episodes_of(log):
        steps = reference.absorbed([reference.exact_steps(rows)], H)[0]
        c, total = reference.cumulative_ratios(steps), Fraction(0)
        for t, step in enumerate(steps, start=1):
            total += Fraction(GAMMA) ** (t - 1) * c[t] * (step.reward - Fraction(a))
        found[rows[0]["episode"]] = total
    return found


def weighted(log, g):
    """c_H (G - g) of each trajectory by the definition."""
    found = {}
    for rows in episodes_of(log):
        steps = reference.exact_steps(rows)
        surplus = reference.discounted_return(steps, Fraction(GAMMA)) - g
        found[rows[0]["episode"]] = reference.cumulative_ratios(steps)[-1] * surplus
    return found


def annuity():
    return float(sum(Fraction(GAMMA) ** t for t in range(H)))


def round_of(episode):
    """From 0 to 39."""
    return math.floor(40 * share_of([episode], SEED)[0])


def in_rounds(x):
    """Values by round."""
    rounds = [[] for _ in range(40)]
    for episode, value in x.items():
        rounds[round_of(episode)].append(float(value))
    return rounds


def by_betting(x, delta, other=None, base=0.0):
    """The bound on the mean of x, or by another variable too, whose mean is less by `base`."""
    variables = [(in_rounds(each), start) for each, start in ((x, 0.0), (other, base)) if each is not None]
    n, enough, plan = len(x), math.log(1 / delta), []
    for k in range(1, 40):
        options = []
        for rounds, start in variables:
            seen = [value for part in rounds[:k] for value in part]
            if rounds[k] and any(seen):
                mean = math.fsum(seen) / len(seen)
                spread = math.sqrt((math.fsum((value - mean) ** 2 for value in seen) + mean**2) / len(seen))
                stake = min(math.sqrt(2 * enough / n) / spread, 0.9 / mean)
                promise = enough / (n * stake) + stake * spread**2 / 2
                options.append((promise, start, spread, sum(map(len, rounds[k:])), rounds[k], mean_of(rounds)))
        plan += [min(options)] if options else []

    def capital(m):
        total = 0.0
        for _, start, spread, left, part, _ in plan:
            stake = min(math.sqrt(2 * max(enough - total, 0) / left) / spread, 0.9 / (m - start))
            total += math.fsum(math.log(1 + stake * (value - m + start)) for value in part)
        return total

    low = max(0.0, *(game[1] for game in plan))
    return root(capital, delta, max(low, min(game[1] + game[-1] for game in plan)), low)


def mean_of(rounds):
    return statistics.fmean(value for part in rounds for value in part)


def by_sequence(x, delta, other=None, base=0.0):
    variables = [(each.values(), start) for each, start in ((x, 0.0), (other, base)) if each is not None]

    def capital(m):
        logs = [
            math.fsum(math.log(1 + f * (float(value) / (m - start) - 1)) for value in values)
            for values, start in variables
            for f in fractions
        ]
        top = max(logs)
        return top + math.log(math.fsum(math.exp(log - top) for log in logs) / len(logs))

    fractions = [2.0**-j for j in range(1, 21)]
    return root(capital, delta, max(start + float(max(values)) for values, start in variables), max(0.0, base))


def root(capital, delta, high, low=0.0):
    """Where the logarithm of the capital falls below ln(1/δ)."""
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if capital(middle) >= math.log(1 / delta) else (low, middle)
    return low


def by_anderson(x, delta):
    """U - ∫ min(1, F_n + ε) from 0 to U, for a U above all."""
    values = sorted(map(float, x.values()))
    n, upper = len(values), values[-1] + 1
    epsilon = math.sqrt(math.log(1 / delta) / (2 * n))
    edges = [0.0, *values, upper]
    below = [(b - a) * min(1.0, i / n + epsilon) for i, (a, b) in enumerate(pairwise(edges))]
    return upper - math.fsum(below)


def by_hcope(x, delta):
    """Theorem 1 of Thomas et al. (2015) with one c, its double sum written out."""
    rounds = in_rounds(x)
    before, rest = rounds[0] + rounds[1], [value for part in rounds[2:] for value in part]

    def promised(c):
        y, n = [min(value, c) for value in before], len(rest)
        spread = math.sqrt(2 * statistics.variance(y) * math.log(2 / delta) / n)
        return statistics.fmean(y) - 7 * c * math.log(2 / delta) / (3 * (n - 1)) - spread

    c = max(before, key=promised)
    y, n, log = [min(value, c) for value in rest], len(rest), math.log(2 / delta)
    pairs = math.fsum((a - b) ** 2 for a in y for b in y)
    bound = (math.fsum(y) / c - 7 * n * log / (3 * (n - 1)) - math.sqrt(log / (n - 1) * pairs / c**2)) / (n / c)
    return max(0.0, bound)


BY_DEFINITION = {"betting": by_betting, "sequence": by_sequence, "anderson": by_anderson, "hcope": by_hcope}


@pytest.fixture(scope="module", params=["step-is", "is"])
def estimator(request):
    return request.param


@pytest.fixture(scope="module", params=[(0.0, 1.0), (-2.0, 1.0), (0.5, 1.0), (-3.0, -1.0)], ids=str)
def case(request, estimator):
    reward = request.param
    log = bounded_log(3, 150, 5, reward)
    a, b = min(0.0, reward[0]), max(0.0, reward[1])
    if estimator == "is":
        total = sum(Fraction(GAMMA) ** t for t in range(H))
        lower, above = weighted(log, Fraction(a) * total), weighted(log, Fraction(b) * total)
    else:
        lower, above = shifted(log, a), shifted(log, b)
    upper = {i: -x for i, x in above.items()}
    assert min(*lower.values(), *upper.values()) >= 0
    ev = op.evaluate(log, discount=GAMMA, horizon=H, estimators=[estimator], bounds=op.Bounds(reward=reward))
    return ev[estimator], (a * annuity(), lower), (b * annuity(), upper)


@pytest.mark.parametrize("method", SKETCHED)
@pytest.mark.parametrize("delta", [0.5, 0.02])
def test_bounds_of_importance_sampling_by_reward_bounds_alone(case, method, delta):
    estimate, (floor, lower), (ceiling, upper) = case
    near = {"rel": 2e-4, "abs": 2e-4}  # what rounding to 15 bits costs
    low = floor + BY_DEFINITION[method](lower, delta)
    found = estimate.interval(1 - delta, method, side="lower")
    assert (found.low, found.high) == (pytest.approx(low, **near), None)
    assert found.low <= low + 1e-9
    if method == "hcope":
        return
    high = ceiling - BY_DEFINITION[method](upper, delta)
    found = estimate.interval(1 - delta, method, side="upper")
    assert (found.low, found.high) == (None, pytest.approx(high, **near))
    assert found.high >= high - 1e-9
    both = estimate.interval(1 - 2 * delta, method) if delta < 0.5 else None
    if both:
        assert (both.low, both.high) == (pytest.approx(low, **near), pytest.approx(high, **near))
        assert both.assumptions == {"lowest": floor, "highest": ceiling}


@pytest.mark.parametrize("method", ["betting", "sequence"])
@pytest.mark.parametrize("delta", [0.5, 0.02])
@pytest.mark.parametrize("reward", [(0.0, 1.0), (-2.0, 1.0), (0.5, 1.0), (-3.0, -1.0)], ids=str)
@pytest.mark.parametrize("ratio", [2.0, 1.3])
def test_bounds_of_importance_sampling_by_ratios_too(estimator, method, delta, reward, ratio):
    """Of the distances from what rewards bound, and of those from what ratios bound."""
    log = with_ratio(bounded_log(3, 150, 5, reward)).with_columns(pl.col("ratio").clip(0.0, ratio))
    bounds = op.Bounds(reward=reward, ratio=ratio)
    estimate = op.evaluate(log, discount=GAMMA, horizon=H, estimators=[estimator], bounds=bounds)[estimator]
    ends = min(0.0, reward[0]), max(0.0, reward[1])
    for side, sign, guess, limit in zip(
        ("lower", "upper"), (1, -1), ends, bounds.range(estimator, estimate.terms), strict=True
    ):
        total = sum(Fraction(GAMMA) ** t for t in range(H))
        floor = sign * guess * annuity()
        by_rewards = weighted(log, Fraction(guess) * total) if estimator == "is" else shifted(log, guess)
        values = weighted(log, 0) if estimator == "is" else shifted(log, 0)
        x = {i: sign * value for i, value in by_rewards.items()}
        other = {i: max(0, sign * (value - Fraction(limit))) for i, value in values.items()}
        more = {"other": other, "base": sign * limit - floor} if guess else {}
        found = estimate.interval(1 - delta, method, side=side)
        expected = sign * (floor + BY_DEFINITION[method](x, delta, **more))
        assert (found.low if side == "lower" else found.high) == pytest.approx(expected, rel=3e-4, abs=3e-4)
        assert found.assumptions.get("ratio") == (ratio if guess else None)


def test_bounds_of_the_mean_agree_on_values_that_need_no_rounding():
    x = {i: k / 64 for i, k in enumerate(np.random.default_rng(5).integers(0, 128, 400).tolist())}
    sketch = Sketch.of(list(x), np.array(list(x.values())), floor=0.0)
    for module, method in ((betting, "betting"), (sequence, "sequence"), (anderson, "anderson"), (hcope, "hcope")):
        assert module.lower(sketch, 0.05) == pytest.approx(BY_DEFINITION[method](x, 0.05), rel=1e-9)


def test_the_capital_at_a_betting_bound_is_what_rejects():
    x = np.random.default_rng(1).exponential(size=500)
    sketch = Sketch.of(range(500), x, floor=0.0)
    for module in (betting, sequence):
        bounds = [module.lower(sketch, delta) for delta in (1e-9, 1e-3, 0.05, 0.3)]
        assert bounds == sorted(bounds)
        assert 0 < bounds[0] < bounds[-1] < x.mean()


@pytest.mark.parametrize("side", ["two", "lower", "upper"])
@pytest.mark.parametrize("estimator", ["mc", "step-is", "dr", "dr-bsl", "is"])
def test_bernstein_and_hoeffding_by_their_formulas(estimator, side):
    log = bounded_log(3, 60, 5, (-1.0, 2.0))
    bounds = op.Bounds(reward=(-1.0, 2.0), ratio=2.0, q=(-0.5, 0.5))
    ev = op.evaluate(log, discount=GAMMA, horizon=H, baseline=0.25, estimators=[estimator], bounds=bounds)
    exact = reference.evaluate(episodes_of(log), estimator, GAMMA, horizon=H, baseline=0.25)
    s2, n, delta = float(exact.std_error_squared) * 60, 60, 0.1
    low, high = bounds.range(estimator, ev[estimator].terms)
    log_term = math.log((4 if side == "two" else 2) / delta)
    bernstein = math.sqrt(2 * s2 * log_term / n) + 7 * (high - low) * log_term / (3 * (n - 1))
    hoeffding = (high - low) * math.sqrt(math.log((2 if side == "two" else 1) / delta) / (2 * n))
    for method, half in (("bernstein", bernstein), ("hoeffding", hoeffding)):
        found = ev[estimator].interval(1 - delta, method, side=side)
        assert found.kind == "finite-sample"
        assert found.low == (None if side == "upper" else pytest.approx(float(exact.value) - half, rel=1e-12))
        assert found.high == (None if side == "lower" else pytest.approx(float(exact.value) + half, rel=1e-12))


@pytest.mark.parametrize("method", SKETCHED)
@pytest.mark.parametrize("estimator", ["mc", "dr", "dr-bsl"])
def test_other_averages_are_bounded_by_their_own_range(estimator, method):
    log = bounded_log(3, 150, 5, model=(0.0, 1.0)).drop("transition_ratio")
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=2.0, q=(0.0, 1.0))
    ev = op.evaluate(log, discount=GAMMA, horizon=H, baseline=0.5, estimators=[estimator], bounds=bounds)
    lowest, highest = bounds.range(estimator, ev[estimator].terms)
    values = dict(ev.values(estimator).iter_rows())
    found = ev[estimator].interval(0.9, method, side="lower")
    low = lowest + BY_DEFINITION[method]({i: x - lowest for i, x in values.items()}, 0.1)
    assert found.low == pytest.approx(low, rel=2e-4, abs=2e-4)
    assert ev[estimator].interval(0.9, method).assumptions["lowest"] == lowest
    if method != "hcope":
        high = highest - BY_DEFINITION[method]({i: highest - x for i, x in values.items()}, 0.1)
        assert ev[estimator].interval(0.9, method, side="upper").high == pytest.approx(high, rel=2e-4, abs=2e-4)


def test_no_bound_on_ratios_is_needed_for_importance_sampling_and_is_for_others():
    log = with_ratio(bounded_log(3, 50, 5))
    known = op.Bounds(reward=(0.0, 1.0), q=(-9.0, 9.0))
    ev = op.evaluate(log, horizon=H, estimators=["step-is", "is", "dr"], bounds=known)
    for method in ("betting", "sequence", "anderson"):
        for estimator in ("step-is", "is"):
            found = ev[estimator].interval(method=method)
            assert found.low is not None
            assert found.low == ev[estimator].interval(method=method, bounds=replace(known, ratio=2.0)).low
        assert "ratio=" in ev["dr"].interval(method=method).reason
    for estimator in ("step-is", "is"):
        assert "ratio=" in ev[estimator].interval(method="bernstein").reason


def test_a_return_that_bounds_exclude_contradicts_them_whatever_its_weight():
    log = pl.DataFrame({"episode": [0, 1], "step": 0, "reward": [0.5, 2.0], "ratio": [1.0, 0.0]})
    for sign, rewards in ((1, (0.0, 1.0)), (-1, (-1.0, 0.0))):
        signed, bounds = log.with_columns(pl.col("reward") * sign), op.Bounds(reward=rewards)
        found = op.evaluate(signed, horizon=1, estimators=["is"], bounds=bounds)["is"].interval(0.5, "betting")
        assert f"the log contradicts the given bounds: a trajectory has the value {2 * sign}, beyond" in found.reason


def test_a_weight_that_is_beyond_floats_on_the_way_has_no_bound():
    ratios = [1e200, 1e200, 1e-300, 1.0]
    log = pl.DataFrame({"episode": [0, 0, 0, 1], "step": [0, 1, 2, 0], "reward": 0.5, "ratio": ratios})
    found = op.evaluate(log, horizon=3, estimators=["is"], bounds=op.Bounds(reward=(0.0, 1.0)))["is"]
    assert found.value == pytest.approx(0.75e100)
    assert "the product of so many ratios is beyond the range of f64" in found.interval(0.5, "betting").reason


def test_weights_do_not_make_more_of_what_rounding_leaves_of_nothing():
    """All returns are the least possible one, but for rounding: 0.1 + 0.7 · (0.1 + …)."""
    n, steps = 40, 7
    log = pl.DataFrame(
        {
            "episode": np.repeat(np.arange(n), steps),
            "step": np.tile(np.arange(steps), n),
            "reward": np.tile([-0.1] * steps, n),
            "ratio": np.tile([1e3] * steps, n),
        }
    )
    bounds = op.Bounds(reward=(-0.1, 0.0), fixed_length=True)
    found = op.evaluate(log, discount=0.7, horizon=steps, estimators=["is"], bounds=bounds)["is"]
    assert found.interval(method="betting", side="lower").low == bounds.returns(found.terms)[0]


@pytest.mark.parametrize("method", ["bernstein", *SKETCHED])
def test_what_is_not_known_beforehand_is_not_taken_from_the_sample(method):
    log = bounded_log(3, 60, 5)
    unknown = op.evaluate(log, estimators=["step-is"], horizon=H)["step-is"].interval(method=method)
    assert f"{method} needs bounds=" in unknown.reason
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=2.0)
    seen = op.evaluate(log, estimators=["step-is"], bounds=bounds)["step-is"].interval(method=method)
    assert f"{method} needs horizon=" in seen.reason
    even = bounded_log(3, 120, 5, ragged=False)
    fixed = op.Bounds(reward=(0.0, 1.0), ratio=2.0, fixed_length=True)
    known = op.evaluate(even, estimators=["step-is"], bounds=fixed)["step-is"].interval(method=method)
    assert known.low is not None


@pytest.mark.parametrize("method", ["bernstein", *SKETCHED])
@pytest.mark.parametrize("estimator", ["wis", "step-wis", "wdr"])
def test_weighted_estimators_are_refused(method, estimator):
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=2.0, q=(-9.0, 9.0))
    ev = op.evaluate(bounded_log(3, 60, 5), estimators=[estimator], horizon=H, bounds=bounds)
    for side in ("two", "lower"):
        found = ev[estimator].interval(method=method, side=side)
        assert (found.low, found.high) == (None, None)
        assert f"{estimator} is a ratio of sums" in found.reason


def test_bounds_that_the_log_contradicts_bound_nothing():
    log = bounded_log(3, 60, 5)
    wrong = op.Bounds(reward=(0.0, 0.1), ratio=2.0)
    ev = op.evaluate(log, horizon=H, estimators=["step-is", "mc"], bounds=wrong)
    for method in ("hoeffding", "bernstein", "betting", "anderson", "sequence"):
        for estimator, bounds in (("mc", wrong), ("step-is", replace(wrong, ratio=0.5))):
            found = ev[estimator].interval(method=method, bounds=bounds)
            assert (found.low, found.high) == (None, None)
            assert "the log contradicts the given bounds" in found.reason
    values = ev.values("step-is")["value"]
    assert ev["step-is"].extremes == (values.min(), values.max())
    costs = op.Bounds(reward=(-0.1, 0.0))
    ev = op.evaluate(bounded_log(3, 60, 5, (-1.0, 0.0)), horizon=H, estimators=["mc"], bounds=costs)
    assert "beyond -0.6" in ev["mc"].interval(method="hoeffding").reason


@pytest.mark.parametrize("method", ["hoeffding", "bernstein", "betting", "anderson", "sequence", "hcope"])
def test_a_fixed_length_that_the_log_contradicts_bounds_nothing(method):
    log = pl.DataFrame({"episode": [0, 0, 1], "step": [0, 1, 0], "reward": 0.5, "ratio": 1.0})
    bounds = op.Bounds(reward=(0.5, 1.0), ratio=1.0, fixed_length=True)
    found = op.evaluate(log, horizon=2, estimators=["mc"], bounds=bounds)["mc"].interval(method=method, side="lower")
    assert found.low is None
    assert "fixed_length=True, and an episode has 1 of 2 steps" in found.reason


@pytest.mark.parametrize("method", ["hoeffding", "bernstein", "betting", "anderson", "sequence", "hcope"])
def test_nothing_is_promised_for_finite_samples_where_the_propensities_are_estimated(method):
    log = bounded_log(3, 300, 5)
    bounds = op.Bounds(reward=(0.0, 1.0), ratio=4.0)
    options = {"horizon": H, "estimators": ["step-is", "mc"], "bounds": bounds}
    names = ({}, {"behavior_prob": "behavior_prob_hat"})
    known, guessed = (op.evaluate(log.rename(chosen), **options) for chosen in names)
    for ev in (known, guessed):
        assert ev["mc"].interval(method=method, side="lower").low is not None
    assert known["step-is"].interval(method=method, side="lower").low is not None
    found = guessed["step-is"].interval(method=method, side="lower")
    assert found.low is None
    assert "it was estimated" in found.reason
    assert guessed["step-is"].low < guessed["step-is"].high


def test_hcope_bounds_from_below_only():
    ev = op.evaluate(bounded_log(3, 300, 5), horizon=H, estimators=["step-is"], bounds=op.Bounds(reward=(0.0, 1.0)))
    plain, lower, upper = (ev["step-is"].interval(0.9, "hcope", side=side) for side in ("two", "lower", "upper"))
    assert plain == lower
    assert (plain.side, plain.high) == ("lower", None)
    assert (upper.low, upper.high) == (None, None)
    assert "below only" in upper.reason
    assert plain.assumptions["pre_sample"] == sum(round_of(i) < 2 for i in ev.values("step-is")["episode"])
    few = op.evaluate(bounded_log(3, 5, 5), horizon=H, estimators=["mc"], bounds=op.Bounds(reward=(0.0, 1.0)))
    assert "pre-sample" in few["mc"].interval(method="hcope").reason


def test_a_bound_from_one_side_may_be_vacuous_too():
    ev = op.evaluate(bounded_log(3, 6, 5), horizon=H, estimators=["step-is"], bounds=op.Bounds(reward=(0.0, 1.0)))
    assert "vacuous" in ev["step-is"].interval(0.999999, "betting", side="lower").reason
    assert "vacuous" in ev["step-is"].interval(0.999999, "betting").reason


def test_nothing_above_the_floor_gives_the_floor():
    for module in (betting, sequence, anderson, hcope):
        assert module.lower(Sketch.of(range(300), np.full(300, -2.0), floor=-2.0), 0.05) == 0.0
    with pytest.raises(WithheldError, match="pre-sample"):
        hcope.lower(Sketch.of([1], np.ones(1), floor=0.0), 0.05)


@pytest.mark.parametrize("method", ["hoeffding", "bernstein", "betting", "sequence", "anderson", "likelihood"])
def test_opposite_rewards_swap_the_ends(method):
    log = bounded_log(3, 80, 5, (-1.0, 1.0))
    bounds = op.Bounds(reward=(-1.0, 1.0), ratio=2.0)
    arguments = {"estimators": ["step-is"], "interval": method, "bounds": bounds, "horizon": H}
    plus = op.evaluate(log, **arguments)["step-is"]
    minus = op.evaluate(log.with_columns(-pl.col("reward")), **arguments)["step-is"]
    assert (minus.low, minus.high) == (-plus.high, -plus.low)
    assert minus.interval(side="upper").high == -plus.interval(side="lower").low
