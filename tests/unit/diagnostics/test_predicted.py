"""The effective sample size that single ratios predict, against enumeration, and what the verdict makes of it."""

from fractions import Fraction
from itertools import product

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from logs import one_step_log
from offpolicy.diagnostics import predicted


def squared_weight(stop, ratios, horizon):
    """E[c_t²] of every step, by enumerating lengths and ratios; an episode goes on with probability 1 − stop."""
    found = [Fraction(0)] * horizon
    for length in range(1, horizon + 1):
        chance = (1 - stop) ** (length - 1) * (stop if length < horizon else 1)
        for path in product(ratios, repeat=length):
            p, weights = chance, [Fraction(1)]
            for q, rho in path:
                p *= q
                weights.append(weights[-1] * rho)
            for step in range(horizon):
                found[step] += p * weights[min(step + 1, length)] ** 2
    return found


def test_the_prediction_is_exact_where_lengths_and_ratios_are_independent():
    stop, horizon = Fraction(1, 3), 5
    ratios = [(Fraction(1, 4), Fraction(2)), (Fraction(3, 4), Fraction(2, 3))]
    expected = squared_weight(stop, ratios, horizon)
    running = np.array([float((1 - stop) ** t) for t in range(horizon)])
    v = np.full(horizon, float(sum(p * rho**2 for p, rho in ratios)) - 1)
    assert predicted.sizes(1000, running, v) == pytest.approx([1000 / float(w) for w in expected], rel=1e-12)
    assert predicted.leaning(1000, running, v) == pytest.approx(float(expected[-1]) ** 3 / 1000, rel=1e-12)


def test_ratios_without_any_spread_predict_all_episodes_and_infinite_ones_none():
    running = np.array([1.0, 0.5, 0.25])
    assert predicted.sizes(7, running, np.zeros(3)).tolist() == [7, 7, 7]
    assert predicted.sizes(7, running, np.array([0.0, np.inf, 0.0])).tolist() == [7, 0, 0]


def test_a_few_long_sessions_do_not_pass_for_a_close_policy():
    """One session in twenty has 40 steps: its weights decide, and most logs lack the largest."""
    rng, n = np.random.default_rng(2), 5000
    lengths = np.where(rng.random(n) < 0.05, 40, 1)
    episode = np.repeat(np.arange(n), lengths)
    step = np.arange(len(episode)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = rng.random(len(episode)) < 0.5
    log = pl.DataFrame({"episode": episode, "step": step, "reward": first.astype(float)})
    ev = op.evaluate(log.with_columns(ratio=pl.Series(np.where(first, 1.3, 0.7))), estimators=["step-is"])
    v = 0.5 * (1.3**2 + 0.7**2) - 1
    expected = n / (1 + v + 0.05 * ((1 + v) ** 40 - (1 + v)))
    assert ev.diagnostics["predicted_ess"].item() == pytest.approx(expected, rel=0.1)
    assert ev.verdict.level == "fragile"


def test_an_advised_number_of_episodes_is_more_than_the_log_has():
    for n in (300, 1300, 3300):
        first = np.random.default_rng(n).random((n, 16)) < 0.5
        log = pl.DataFrame(
            {
                "episode": np.repeat(np.arange(n), 16),
                "step": np.tile(np.arange(16), n),
                "reward": first.reshape(-1).astype(float),
                "ratio": np.where(first, 1.4, 0.6).reshape(-1),
            }
        )
        for estimate in (ev := op.evaluate(log)).estimates:
            advice = ev.verdict_on(estimate).advice
            if "log about " in advice:
                assert int(advice.split("log about ")[1].split(" ")[0].replace(",", "")) > n


def test_a_single_cluster_is_told_as_that():
    log = one_step_log(np.random.default_rng(1).normal(size=200)).with_columns(ratio=1.0, user=1)
    ev = op.evaluate(log, cluster="user", estimators=["step-is"])
    found = ev.verdict_on(ev["step-is"])
    assert "1 cluster is few" in found.rule
    assert "clusters" in found.advice


def test_a_task_that_goes_on_is_not_reliable_where_later_rewards_weigh_more_than_the_error():
    log = op.demo_log()
    options = {"discount": 0.9, "bounds": op.Bounds(reward=(0, 1)), "horizon": 10, "estimators": ["dr"]}
    ends, goes_on = op.evaluate(log, **options), op.evaluate(log, continuing=True, **options)
    assert (ends.verdict.level, goes_on.verdict.level) == ("reliable", "fragile")
    assert "the task goes on" in goes_on.verdict.rule
