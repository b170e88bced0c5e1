"""Lower bounds: V − Cσ, the low ends of intervals, and how often they hold."""

import json
import math
from statistics import NormalDist

import offpolicy as op
import polars as pl
import pytest
from improving import LOG, by_policies, scores
from scipy import stats


@pytest.mark.parametrize(
    ("against", "value", "error"), [("difference", "gain", "gain_error"), ("value", "value", "std_error")]
)
def test_a_bound_of_an_interval_is_one_sided(against, value, error):
    best = by_policies(interval="t", confidence=0.9, against=against)
    for row in best.candidates.filter(pl.col(error) > 0).iter_rows(named=True):
        quantile = stats.t.ppf(0.9, row["episodes"] - 1)
        assert row["score"] == pytest.approx(row[value] - quantile * row[error], rel=1e-9)
    assert best.behavior.bound == pytest.approx(
        best.behavior.value - stats.t.ppf(0.9, 119) * best.behavior.std_error, rel=1e-9
    )
    assert (best.caution, best.confidence) == (None, 0.9)


def test_v_minus_c_sigma_is_the_normal_bound_of_the_level_it_implies():
    level = 0.97
    by_caution = by_policies(caution=NormalDist().inv_cdf(level))
    assert by_caution.confidence == pytest.approx(level, rel=1e-12)
    by_level = by_policies(interval="normal", confidence=level)
    for name, score in scores(by_caution).items():
        assert score == pytest.approx(scores(by_level)[name], rel=1e-9)


@pytest.mark.parametrize("caution", [0.0, 1.0, 2.5, 9.0])
def test_the_level_is_that_of_the_normal_law_and_is_corrected_for_the_number_of_candidates(caution):
    best = by_policies(caution=caution)
    tail = math.erfc(caution / math.sqrt(2)) / 2
    assert best.caution == caution
    assert best.confidence == pytest.approx(1 - tail, rel=1e-12)
    assert best.number_of_candidates == 4
    assert best.corrected_confidence == pytest.approx(max(0, 1 - 4 * tail), abs=1e-12)


def test_a_bound_beyond_the_range_of_floats_is_none():
    best = by_policies(caution=1e308, log=LOG.with_columns(pl.col("reward") * 1e3), against="value")
    assert best.candidates["score"].null_count() == 4
    assert set(best.candidates["reason"]) == {"V - 1e+308σ is beyond the range of f64"}
    json.dumps(best.to_dict(), allow_nan=False)


def test_a_bound_that_cannot_be_had_is_told_and_never_wins():
    best = by_policies(interval="hoeffding")
    assert best.winner == "behavior"
    assert best.candidates["score"].null_count() == 4
    assert all("give ratio=" in reason for reason in best.candidates["reason"])
    assert "no candidate has a bound" in best.conclusion


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"caution": -0.1}, "caution must be at least 0"),
        ({"caution": math.inf}, "caution must be at least 0 and finite"),
        ({"caution": math.nan}, "caution must be at least 0"),
        ({"caution": "x"}, "caution must be at least 0 and finite, not 'x'"),
        ({"caution": "1"}, "caution must be at least 0 and finite, not '1'"),
        ({"caution": True}, "caution must be at least 0 and finite, not True"),
        ({"caution": 1.0, "interval": "t"}, "not both"),
        ({"confidence": 0.9}, "confidence is for the lower end of an interval"),
        ({"bounds": op.Bounds(reward=(0, 1))}, "bounds are for the lower end of an interval"),
        ({"interval": "tt"}, "no interval 'tt'"),
        ({"interval": "t", "confidence": 0.5}, "above 0.5 and below 1"),
        ({"interval": "t", "confidence": 1.0}, "above 0.5 and below 1"),
        ({"interval": "t", "confidence": "0.9"}, "above 0.5 and below 1, not '0.9'"),
        ({"train_fraction": 1.0}, "train_fraction must be between 0 and 1"),
        ({"columns": op.Columns(state=("place", "speed"))}, "no column 'speed'"),
        ({"columns": op.Columns(reward="gain")}, "no column 'gain'"),
    ],
)
def test_wrong_arguments_are_refused(options, says):
    with pytest.raises(op.OffPolicyError, match=says):
        by_policies(**options)
