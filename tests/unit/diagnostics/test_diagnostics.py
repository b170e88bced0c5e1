"""Diagnostics against their definitions in exact rational arithmetic, and what they find in bad logs."""

import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import detail_bits, episodes_of, one_step_log, random_log, with_ratio
from offpolicy.diagnostics import e_value, pareto

GAMMA = 0.9
CLOSE = 1e-12


def evaluate(log, **options):
    return op.evaluate(log, **{"discount": GAMMA} | options)


def exact_steps(log, alpha=0.0):
    return [reference.exact_steps(rows, alpha) for rows in episodes_of(log)]


def close(x):
    return pytest.approx(float(x), rel=CLOSE, abs=1e-300)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("horizon", [1, 5, 19])
def test_every_step_has_its_effective_sample_size_and_means(seed, horizon):
    log = random_log(seed, episodes=9, horizon=horizon)
    steps = exact_steps(log)
    weights = [reference.cumulative_ratios(s)[1:] for s in reference.absorbed(steps, horizon)]
    for row in evaluate(log).by_step.iter_rows(named=True):
        t = row["step"] - 1
        c, running = [w[t] for w in weights], [s for s in steps if len(s) > t]
        assert row["running"] == len(running)
        assert row["ess"] == close(sum(c) ** 2 / sum(x * x for x in c))
        assert row["mean_weight"] == close(sum(c) / 9)
        assert row["mean_ratio"] == close(sum(s[t].rho for s in running) / len(running))
        assert row["mean_squared_ratio"] == close(sum(s[t].rho ** 2 for s in running) / len(running))


@pytest.mark.parametrize("seed", range(3))
def test_the_predicted_effective_sample_size_grows_with_the_steps_that_an_episode_runs(seed):
    """n/w with w = 1 + Σ p v Π (1 + v of the steps before), v = E[ρ²]/E[ρ]² - 1, p the share that runs; and w³/n."""
    steps = exact_steps(log := random_log(seed, episodes=9, horizon=7))
    w, grown, found = Fraction(1), Fraction(1), evaluate(log)
    for row in found.by_step.iter_rows(named=True):
        rho = [s[row["step"] - 1].rho for s in steps if len(s) >= row["step"]]
        share, mean = Fraction(len(rho), 9), sum(rho) / len(rho)
        v = sum(x * x for x in rho) / len(rho) / mean**2 - 1
        w, grown = w + share * v * grown, grown * (1 + v)
        assert row["predicted_ess"] == pytest.approx(float(9 / w), rel=1e-9)
    about = found.diagnostics.row(0, named=True)
    assert about["predicted_ess"] == pytest.approx(float(9 / w), rel=1e-9)
    assert about["predicted_leaning"] == pytest.approx(float(w**3 / 9), rel=1e-9)
    assert evaluate(random_log(seed, episodes=9, horizon=1)).diagnostics["predicted_leaning"].item() is None


def test_steps_of_mixtures_and_logged_ratios():
    log = random_log(7, episodes=8, horizon=6)
    new = op.PolicyColumns(target_prob="target_prob")
    both = {"new": new, "mixed": op.PolicyColumns(mixture_of="new", alpha=0.25)}
    found = evaluate(log, policies=both).by_step
    for name, alpha in (("new", 0.0), ("mixed", 0.25)):
        last = [reference.cumulative_ratios(s)[-1] for s in exact_steps(log, alpha)]
        row = found.filter(pl.col("policy") == name).row(-1, named=True)
        assert row["ess"] == close(sum(last) ** 2 / sum(c * c for c in last))
    logged = evaluate(with_ratio(log)).by_step.drop("policy").to_dicts()
    for found, expected in zip(logged, evaluate(log).by_step.drop("policy").to_dicts(), strict=True):
        assert found == pytest.approx(expected, rel=CLOSE)


@pytest.mark.parametrize("seed", range(3))
def test_the_control_variate_is_the_difference_of_step_is_and_dr(seed):
    log = random_log(seed, episodes=11, horizon=7)
    gamma = Fraction(GAMMA)
    values = [(reference.step_is(s, gamma), reference.dr(s, gamma)) for s in exact_steps(log)]
    control = [a - b for a, b in values]
    mean = sum(control) / 11
    error = sum((x - mean) ** 2 for x in control) / (11 * 10)
    for asked in (["dr"], ["step-is", "dr"], None):
        row = evaluate(log, estimators=asked).diagnostics.row(0, named=True)
        assert row["control_variate"] == pytest.approx(float(mean), rel=1e-10)
        assert row["control_error"] == close(reference.square_root(error))
        assert row["variance_ratio"] == close(spread([a for a, _ in values]) / spread([b for _, b in values]))
    assert evaluate(log, estimators=["step-is"]).diagnostics["control_variate"].item() is None


def spread(values):
    mean = sum(values) / len(values)
    return sum((x - mean) ** 2 for x in values)


def test_mean_ratio_and_its_e_value():
    log = random_log(3, episodes=9, horizon=7)
    rho = [s.rho for steps in exact_steps(log) for s in steps]
    row = evaluate(log).diagnostics.row(0, named=True)
    assert row["mean_ratio"] == close(sum(rho) / len(rho))
    excess, squares = sum(r - 1 for r in rho), sum((r - 1) ** 2 for r in rho)
    with mpmath.workdps(40):
        rates = [mpmath.mpf(2) ** -k for k in range(1, 21)]
        terms = [mpmath.e ** (r * mpmath.mpf(float(excess)) - (-mpmath.log(1 - r) - r) * float(squares)) for r in rates]
        expected = mpmath.log10(sum(terms) / 20)
    assert row["log10_e_value"] == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("rate", [2.0**-1, 2.0**-5])
def test_an_e_value_is_at_most_the_product_of_its_bets(rate):
    """exp(λS − φQ) ≤ Π(1 + λx) for x ≥ −1: what makes its expectation at most 1."""
    rng = np.random.default_rng(5)
    for x in (rng.exponential(size=100) - 1, np.full(9, -1.0), rng.pareto(1.1, 50) - 1, np.array([0.0])):
        bet = np.log1p(rate * x).sum()
        assert rate * x.sum() - (-math.log1p(-rate) - rate) * (x * x).sum() <= bet + 1e-12


def test_right_probabilities_seldom_have_large_e_values_and_wrong_ones_do():
    rng = np.random.default_rng(1)
    ratio = rng.choice([0.2, 1.8], size=(2000, 50))
    logs = [one_step_log([0.0] * 50, ratio=pl.Series(row)) for row in ratio]
    large = sum(evaluate(log).diagnostics["log10_e_value"].item() >= 1 for log in logs)
    assert large <= 0.1 * len(logs)
    wrong = one_step_log([0.0] * 2000, ratio=pl.Series(ratio.reshape(-1)[:2000] * 1.1))
    assert evaluate(wrong).diagnostics["log10_e_value"].item() > 3


def test_the_tail_index_is_that_of_zhang_and_stephens():
    """The same estimator in fifty digits."""
    rng = np.random.default_rng(2)
    for k in (-0.3, 0.2, 0.9):
        u = np.sort(rng.random(80))
        x = (u**-k - 1) / k if k else -np.log(u)
        largest = np.sort(np.append(x, 0.0) + 3.0)[::-1]
        assert pareto.shape(largest) == pytest.approx(slow_shape(largest), rel=1e-8, abs=1e-9)


def slow_shape(largest):
    with mpmath.workdps(50):
        x = sorted(mpmath.mpf(w) - mpmath.mpf(largest[-1]) for w in largest[:-1])
        n = len(x)
        points = 30 + int(mpmath.floor(mpmath.sqrt(n)))
        quartile = x[int(n / 4 + 0.5) - 1]
        theta = [
            1 / x[-1] + (1 - mpmath.sqrt(points / (j - mpmath.mpf(0.5)))) / (3 * quartile) for j in range(1, points + 1)
        ]
        shapes = [sum(mpmath.log(1 - b * y) for y in x) / n for b in theta]
        logs = [n * (mpmath.log(-b / k) - k - 1) for b, k in zip(theta, shapes, strict=True)]
        weights = [1 / sum(mpmath.e ** (other - log) for other in logs) for log in logs]
        best = sum(b * w for b, w in zip(theta, weights, strict=True))
        k = sum(mpmath.log(1 - best * y) for y in x) / n
        return float((n * k + 5) / (n + 10))


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_the_tail_index_finds_the_shape(k):
    u = (np.arange(2000) + 0.5) / 2000
    assert pareto.shape(np.append(u**-k, 1.0)) == pytest.approx(k, abs=0.05)


def test_the_order_of_equal_ratios_does_not_make_a_tail():
    """Their products differ by rounding alone."""
    ups = np.random.default_rng(4).random((1000, 8)) < 0.5
    in_order = np.where(ups, 1.1, 0.9).prod(axis=1)
    counted = 1.1 ** ups.sum(axis=1) * 0.9 ** (~ups).sum(axis=1)
    largest, equal = np.sort(in_order)[:-97:-1], np.sort(counted)[:-97:-1]
    assert len(np.unique(largest)) > len(np.unique(equal))
    assert pareto.shape(largest) == pytest.approx(pareto.shape(equal), rel=1e-6)


def test_a_tail_is_scored_in_the_log_and_does_not_depend_on_scale():
    rng = np.random.default_rng(3)
    ratio = rng.pareto(1.25, 4000) + 1
    found = [
        evaluate(one_step_log([0.0] * 4000, ratio=pl.Series(ratio * s))).diagnostics["k_hat"].item() for s in (1, 8)
    ]
    tail = math.ceil(min(4000 / 5, 3 * math.sqrt(4000)))
    largest = np.sort(ratio)[::-1][: tail + 1]
    assert found == pytest.approx([pareto.shape(largest)] * 2, rel=1e-9)


def test_weights_without_a_tail_have_no_index():
    assert evaluate(one_step_log([0.0] * 400)).diagnostics["k_hat"].item() is None
    assert evaluate(one_step_log([0.0] * 12, ratio=pl.Series(range(1, 13)))).diagnostics["k_hat"].item() is None


@pytest.mark.parametrize("estimator", ["is", "step-is", "wis", "dr", "dr-v2"])
def test_leverage_is_the_estimate_without_the_largest_weights(estimator):
    log = random_log(21, episodes=30, horizon=4)
    episodes = episodes_of(log)
    last = [reference.cumulative_ratios(s)[-1] for s in exact_steps(log)]
    falling = sorted(range(30), key=lambda i: -last[i])
    row = evaluate(log).leverage.filter(pl.col("estimator") == estimator).row(0, named=True)
    for name, k in (("value", 0), ("without_largest", 1), ("without_ten", 10)):
        rest = [episodes[i] for i in sorted(falling[k:])]
        assert row[name] == close(reference.evaluate(rest, estimator, GAMMA).value)
    cut = [min(Fraction(1), last[falling[9]] / c) for c in last]
    if estimator == "wis":
        returns = [reference.discounted_return(s, Fraction(GAMMA)) for s in exact_steps(log)]
        kept = [c * share for c, share in zip(last, cut, strict=True)]
        capped = sum(c * g for c, g in zip(kept, returns, strict=True)) / sum(kept)
    else:
        values = reference.evaluate(episodes, estimator, GAMMA).values
        first = [s[0].v_hat if estimator.startswith("dr") else 0 for s in exact_steps(log)]
        capped = sum(v + (x - v) * share for v, x, share in zip(first, values, cut, strict=True)) / 30
    assert row["capped"] == close(capped)
    ids = log["episode"].unique(maintain_order=True).to_list()
    assert evaluate(log).diagnostics["leader"].item() == str(ids[falling[0]])


def test_lengths_are_counted():
    log = random_log(5, episodes=40, horizon=6)
    expected = log.group_by("episode").len()["len"].value_counts().sort("len")
    found = evaluate(log)
    assert found.lengths.rows() == expected.rows()
    summary = found.details.length_summary()
    lengths = log.group_by("episode").len()["len"]
    assert (summary["shortest"], summary["longest"]) == (lengths.min(), lengths.max())
    assert summary["mean"] == pytest.approx(lengths.mean())
    assert summary["median"] == lengths.quantile(0.5, "lower")


def test_extreme_ratios_are_watched_too():
    """Ratios beyond the square root of the largest float: products leave f64, diagnostics do not."""
    log = random_log(8, episodes=6, horizon=12, ragged=False)
    scale = pl.when(pl.col("step") % 2 == 0).then(1e200).otherwise(1e-200)
    wild = with_ratio(log).with_columns(ratio=pl.col("ratio") * scale)
    found, steps = evaluate(wild, estimators=["step-wis"]), exact_steps(wild)
    weights = [reference.cumulative_ratios(s)[1:] for s in steps]
    for row in found.by_step.iter_rows(named=True):
        c = [w[row["step"] - 1] for w in weights]
        assert row["ess"] == close(sum(c) ** 2 / sum(x * x for x in c))
        assert row["mean_ratio"] == close(sum(s[row["step"] - 1].rho for s in steps) / 6)


def test_a_log_read_in_pieces_has_the_same_diagnostics(tmp_path):
    log = random_log(9, episodes=50, horizon=20)
    expected = detail_bits(evaluate(log))
    for size in (1, 7, 100):
        assert detail_bits(evaluate(log.lazy(), batch_rows=size)) == expected


def test_diagnostics_can_be_left_out():
    log = random_log(10, episodes=20)
    bare, full = evaluate(log, diagnostics=False), evaluate(log)
    assert bare.table.equals(full.table)
    assert bare.by_step.is_empty()
    for name in ("ess", "largest_share", "mean_weight"):
        assert bare.diagnostics[name].item() == full.diagnostics[name].item()
    assert bare.diagnostics["k_hat"].item() is None


def test_diagnostics_go_through_json():
    document = evaluate(random_log(11, episodes=20, horizon=400)).to_dict()
    text = json.loads(json.dumps(document, allow_nan=False))
    assert text["diagnostics"][0]["policy"] == "target"
    assert {"shortest", "median", "mean", "longest"} == set(text["lengths"])
    steps = [row["step"] for row in text["by_step"]]
    assert steps[0] == 1
    assert steps[-1] == 400
    assert len(steps) <= 200


def test_a_policy_without_ratios_has_none(log):
    bare = evaluate(log.drop("behavior_prob"), estimators=["reg"])
    assert bare.by_step.is_empty()
    assert bare.diagnostics["mean_ratio"].item() is None


def test_the_e_value_of_what_no_float_holds_says_nothing():
    assert e_value.log10_e_value(1e200, None) is None


@pytest.mark.parametrize("estimator", ["is", "step-is", "dr", "dr-bsl", "dr-v2", "wis", "step-wis", "wdr"])
def test_concentration_is_the_share_of_one_trajectory_in_the_variance(estimator):
    """Also where it is none of those that weigh most."""
    log = random_log(31, episodes=14, horizon=4)
    weight = (pl.col("target_prob") / pl.col("behavior_prob")).product().over("episode")
    log = log.with_columns(reward=pl.when(weight == weight.min()).then(1e4).otherwise("reward"))
    episodes = episodes_of(log)
    if estimator in reference.SELF_NORMALISED:
        deviations = reference.influence(reference.absorbed(exact_steps(log), 4), estimator, Fraction(GAMMA))
    else:
        values = reference.evaluate(episodes, estimator, GAMMA, baseline=0.5).values
        deviations = [x - sum(values) / len(values) for x in values]
    squares = [x * x for x in deviations]
    ev = evaluate(log, baseline=0.5)
    found = {row["estimator"]: row for row in ev.leverage.iter_rows(named=True)}[estimator]
    assert found["concentration"] == close(max(squares) / sum(squares))
    cubes = sum((x - sum(deviations) / 14) ** 3 for x in deviations)
    assert found["skewness"] == pytest.approx(float(cubes) / 14 / float(sum(squares) / 14) ** 1.5, rel=1e-9)


def test_a_weight_beside_which_a_cap_leaves_nothing_has_no_capped_estimate():
    """Ten weights of 1e200 and more, of which the cap takes all that rounding does not lose."""
    weights = [10.0 ** (200 + 9 * i) for i in range(10)] + [1.0] * 5
    log = pl.DataFrame({"episode": range(15), "step": [0] * 15, "reward": [1.0] * 15, "ratio": weights})
    leverage = op.evaluate(log, estimators=["wis", "is"]).leverage
    capped = dict(zip(leverage["estimator"], leverage["capped"], strict=True))
    assert capped["wis"] is None
