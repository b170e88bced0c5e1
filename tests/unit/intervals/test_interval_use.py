"""Every interval through evaluate, improve, cross_fit and the command line; the same bits whatever the plumbing."""

import json
import math
import random

import offpolicy as op
import polars as pl
import pytest
from cli import offpolicy
from crossing import Fixed
from improving import EAGER, LOG, WALK, by_policies
from logs import bits, bounded_log, file_pieces
from offpolicy import intervals
from offpolicy.testing import Walk

BOUNDS = op.Bounds(reward=(0.0, 1.0), ratio=2.0, q=(0.0, 1.0))
ARGUMENTS = {"discount": 0.9, "horizon": 6, "baseline": 0.5, "bounds": BOUNDS, "confidence": 0.8}


@pytest.fixture(scope="module")
def bounded():
    """Rewards, ratios and models within the bounds."""
    return bounded_log(21, 120, 6, model=(0.0, 1.0)).drop("transition_ratio")


@pytest.fixture(scope="module")
def pieces(bounded, tmp_path_factory):
    cuts = random.Random(4).sample(range(bounded.height), k=9)
    return file_pieces(bounded, tmp_path_factory.mktemp("pieces"), cuts, row_group_size=37)


@pytest.mark.parametrize("method", intervals.METHODS)
def test_every_method_has_the_same_bits_for_any_plumbing(bounded, pieces, method):
    expected = bits(op.evaluate(bounded, interval=method, **ARGUMENTS))
    assert any(low is not None for *_, low, _, _, _, _ in expected)
    backwards = pl.concat(bounded.partition_by("episode", maintain_order=True)[::-1])
    sources = [
        (pieces[::-1], {"threads": 2}),
        (random.Random(1).sample(pieces, len(pieces)), {"map": map}),
        (bounded.lazy(), {"batch_rows": 7}),
        (backwards, {"threads": 1}),
        (bounded.sample(fraction=1.0, shuffle=True, seed=2), {"order": "any"}),
    ]
    for source, options in sources:
        assert bits(op.evaluate(source, interval=method, **ARGUMENTS, **options)) == expected


@pytest.mark.parametrize("method", intervals.METHODS)
def test_an_evaluation_says_what_its_intervals_are(bounded, method):
    ev = op.evaluate(bounded, interval=method, **ARGUMENTS)
    document = json.loads(json.dumps(ev.to_dict(), allow_nan=False))
    for row, estimate in zip(document["estimates"], ev.estimates, strict=True):
        found = estimate.interval()
        assert row["interval"]["kind"] == found.kind == intervals.METHODS[method].kind
        assert row["interval"]["side"] == ("lower" if method == "hcope" else "two")
        assert (row["low"], row["high"], row["reason"]) == (found.low, found.high, found.reason)
        assert found.assumptions or found.reason
        if found.low is not None and found.high is not None:
            assert found.low < found.high


@pytest.mark.parametrize("method", intervals.METHODS)
def test_a_bound_from_one_side_has_one_end(bounded, method):
    estimate = op.evaluate(bounded, **ARGUMENTS)["step-is"]
    lower, upper = (estimate.interval(0.875, method, side=side) for side in ("lower", "upper"))
    assert (lower.side, upper.side) == ("lower", "upper")
    assert (lower.low is None, lower.high) == (False, None)
    assert (upper.low, upper.high is None) == (None, method == "hcope")


@pytest.mark.parametrize("method", intervals.METHODS)
def test_more_confidence_is_wider(bounded, method):
    estimate = op.evaluate(bounded, **ARGUMENTS)["step-is"]
    found = [estimate.interval(level, method) for level in (0.5, 0.8, 0.95)]
    lows = [each.low for each in found]
    assert lows == sorted(lows, reverse=True)
    if method != "hcope":
        highs = [each.high for each in found]
        assert highs == sorted(highs)


def test_wrong_words_are_refused(bounded):
    estimate = op.evaluate(bounded, **ARGUMENTS)["step-is"]
    with pytest.raises(op.UsageError, match="did you mean 'betting'"):
        estimate.interval(method="beting")
    with pytest.raises(op.UsageError, match="side must be one of 'two', 'lower', 'upper', not 'left'"):
        estimate.interval(side="left")


@pytest.mark.parametrize("method", intervals.METHODS)
def test_improve_asks_for_a_lower_bound(method):
    bounds = op.Bounds(reward=WALK.reward_range, ratio=3.0)
    scored = op.annotate(LOG, EAGER, columns=op.Columns(state=("place",)))
    settings = {"discount": WALK.discount, "horizon": WALK.horizon, "baseline": WALK.reward_range[0]}
    ev = op.evaluate(scored, estimators=["step-is", "dr-bsl"], paired=True, **settings)
    promises = intervals.METHODS[method].kind in intervals.PROMISES  # otherwise costs are counted from the lowest
    gain = ev.difference("target", "behavior", estimator="step-is" if promises else "dr-bsl")
    for against, what in (("difference", gain), ("value", ev["step-is"])):
        best = by_policies(interval=method, confidence=0.8, bounds=bounds, against=against)
        expected = what.interval(0.8, method, bounds, side="lower")
        assert expected.low is not None
        score = best.candidates.row(by_predicate=pl.col("candidate") == "eager", named=True)["score"]
        assert score == pytest.approx(expected.low, rel=1e-9)
        assert best.kind == expected.kind


def test_a_domain_knows_the_bounds_of_its_rewards():
    known = op.Bounds(reward=WALK.reward_range)
    best, told = (by_policies(interval="betting", bounds=bounds).candidates for bounds in (None, known))
    assert best["score"].null_count() == 0
    assert best.equals(told)
    cf = op.cross_fit(LOG, policy=EAGER, domain=WALK, estimators=["step-is"], interval="betting")
    assert cf["step-is"].interval() == cf["step-is"].interval(bounds=known)
    assert cf["step-is"].low is not None
    assert op.Bounds.of(Walk(reward_range=(0.0, math.inf))) is None


@pytest.mark.parametrize("method", ["bernstein", "betting", "anderson", "hoeffding", "hcope"])
@pytest.mark.parametrize("side", ["two", "lower"])
def test_cross_fitting_averages_bounds_of_folds(method, side):
    walk = Walk()
    log = walk.simulate(walk.behavior, 300, seed=0)
    bounds = op.Bounds(reward=(-0.05, 1.0), ratio=3.0, q=(-0.6, 1.0))
    cf = op.cross_fit(log, policy=walk.policies["eager"], domain=walk, folds=2, estimators=["dr"], bounds=bounds)
    found = cf["dr"].interval(0.8, method, side=side)
    each = [(fold.evaluation["dr"].interval(0.9, method, side=side), fold.evaluation.episodes) for fold in cf.parts]
    for end in ("low", "high"):
        ends = [getattr(part, end) for part, _ in each]
        expected = None if None in ends else math.fsum(n / 300 * x for x, (_, n) in zip(ends, each, strict=True))
        assert getattr(found, end) == (None if expected is None else pytest.approx(expected, rel=1e-9))
    assert found.low is not None
    assert (found.kind, found.confidence, found.assumptions["folds"]) == ("finite-sample", 0.8, 2)


def test_models_fitted_anew_keep_no_promise_for_every_look():
    walk = Walk()
    log = walk.simulate(walk.behavior, 60, seed=0)
    bounds = op.Bounds(reward=(-0.05, 1.0), ratio=3.0, q=(-0.6, 1.0))
    cf = op.cross_fit(log, policy=walk.policies["eager"], domain=walk, fitter=Fixed(), bounds=bounds)
    assert "every look" in cf["dr"].interval(method="sequence").reason
    assert cf["step-is"].interval(method="sequence").low is not None
    assert cf["dr"].interval(method="bootstrap").low is not None
    assert cf["step-is"].sketch().episodes == 60
    with pytest.raises(op.UsageError, match="several models"):
        cf["dr"].sketch()


@pytest.mark.parametrize("method", ["bernstein", "betting", "hcope", "likelihood", "bootstrap-bca"])
def test_the_command_line_has_them_too(bounded, tmp_path, method):
    path = tmp_path / "log.parquet"
    bounded.write_parquet(path)
    words = ["evaluate", path, "--discount", 0.9, "--horizon", 6, "--estimator", "step-is", "--estimator", "step-wis"]
    words += ["--interval", method, "--reward-range", "0,1", "--ratio-bound", 2, "--confidence", 0.8]
    document = json.loads(offpolicy(*words, "--json").out)
    ev = op.evaluate(bounded, interval=method, estimators=["step-is", "step-wis"], **ARGUMENTS)
    assert [row["low"] for row in document["estimates"]] == ev.table["low"].to_list()
    shown = offpolicy(*words)
    assert shown.code == 0
    assert f"80% {method} interval" in shown.out
    assert ("≥" in shown.out) == (method == "hcope")
    assert ("ratio of sums" in shown.out) == (method in ("bernstein", "betting", "hcope", "likelihood"))


def test_the_command_line_says_what_is_missing_in_its_own_words(bounded, tmp_path):
    path = tmp_path / "log.parquet"
    bounded.write_parquet(path)
    words = ["evaluate", path, "--estimator", "step-is", "--interval", "betting"]
    assert "betting needs --reward-range" in offpolicy(*words).out
    assert "betting needs --horizon" in offpolicy(*words, "--reward-range", "0,1").out
