"""What an `Evaluation` offers beside the numbers: lookup, verdict, diagnostics, JSON."""

import json

import offpolicy as op
import polars as pl
import pytest
from logs import one_step_log, random_log


@pytest.fixture
def two(log):
    a = op.PolicyColumns(target_prob="target_prob", q_hat="q_hat", v_hat="v_hat")
    return op.evaluate(log, discount=0.9, policies={"a": a, "b": op.PolicyColumns(target_prob="behavior_prob")})


def test_an_estimate_of_one_of_several_policies_is_named_by_both(two):
    assert two["a", "step-is"].value != two["b", "step-is"].value
    assert two["b", "step-is"].value == two["behavior", "mc"].value
    with pytest.raises((KeyError, op.OffPolicyError)):
        two["step-is"]


@pytest.mark.parametrize("key", ["drr", ("target", "drr"), ("nobody", "dr")])
def test_an_unknown_estimate_is_refused_with_the_known_ones(log, key):
    with pytest.raises((KeyError, op.OffPolicyError), match="step-wis"):
        op.evaluate(log)[key]


def test_values_of_an_estimator_that_was_not_asked_for_are_refused(log):
    with pytest.raises((KeyError, op.OffPolicyError)):
        op.evaluate(log, estimators=["mc"]).values("dr")


@pytest.mark.parametrize(("n", "level"), [(10, "unusable"), (50, "fragile"), (500, "reliable")])
def test_the_verdict_follows_the_effective_sample_size(n, level):
    """Every other trajectory counts for next to nothing where there are fewer than 500."""
    weights = [1.0 if n == 500 or i % 2 == 0 else 1e-9 for i in range(n)]
    ratio = pl.Series(weights) / (sum(weights) / n)
    ev = op.evaluate(one_step_log([float(i % 5) for i in range(n)], ratio=ratio))
    assert ev["step-is"].ess == pytest.approx(n if n == 500 else n / 2)
    assert ev.verdict.level == level
    assert str(ev.verdict)
    assert ev.verdict.rule


def test_diagnostics_have_a_row_for_each_policy(two):
    assert {"ess", "largest_share", "mean_weight"} <= set(two.diagnostics.columns)
    same = two.diagnostics.filter(pl.col("policy") == "b")
    n = two.episodes
    assert same["ess"].item() == n
    assert same["largest_share"].item() == pytest.approx(1 / n, rel=1e-15)
    assert same["mean_weight"].item() == 1.0


def test_an_evaluation_goes_through_json(log):
    ev = op.evaluate(log, discount=0.9, baseline=0.5)
    document = json.loads(json.dumps(ev.to_dict(), allow_nan=False))
    text = json.dumps(document)
    for row in ev.table.iter_rows(named=True):
        assert repr(row["value"]) in text
        assert row["estimator"] in text


def test_one_trajectory_goes_through_json():
    ev = op.evaluate(random_log(121, episodes=1))
    assert "null" in json.dumps(ev.to_dict(), allow_nan=False)


def test_an_evaluation_prints_its_table(log):
    text = repr(op.evaluate(log))
    assert "step-is" in text


@pytest.mark.parametrize("factor", [0.5, 0.9, 3.0])
def test_a_mean_weight_far_from_one_is_unusable_whatever_the_effective_sample_size(factor):
    log = op.demo_log(episodes=2000)
    ev = op.evaluate(log.with_columns(target_prob=pl.col("target_prob") * factor), density=True)
    assert ev["step-is"].ess > 100
    assert ev.verdict.level == "unusable"
    assert "mean weight" in ev.verdict.rule
    assert op.evaluate(log).verdict.level == "reliable"


def test_a_model_alone_is_never_called_reliable():
    ev = op.evaluate(op.demo_log(episodes=500).rename({"behavior_prob": "behaviour_prob"}))
    assert {estimate.estimator for estimate in ev.estimates} == {"mc", "reg"}
    assert ev.verdict.level == "fragile"
    assert "did you mean 'behaviour_prob'" in ev.notes[0]


def test_a_policy_without_any_weight_does_not_cost_the_others_theirs(log):
    policies = {
        "new": op.PolicyColumns(target_prob="target_prob"),
        "dead": op.PolicyColumns(target_prob="zero"),
    }
    dead = log.with_columns(zero=pl.lit(0.0))
    ev = op.evaluate(dead, policies=policies)
    assert ev["new", "step-wis"].value == op.evaluate(log, estimators=["step-wis"])["step-wis"].value
    assert {e.estimator for e in ev.estimates if e.policy == "dead"} == {"is", "step-is"}
    assert "'dead'" in ev.notes[0]
    with pytest.raises(op.OffPolicyError, match="policy 'dead' is zero at t = 1"):
        op.evaluate(dead, policies=policies, estimators=["step-wis"])


def test_an_evaluation_is_printed_as_its_verdict_table_and_notes(log):
    text = str(op.evaluate(log, discount=0.9))
    assert text.splitlines()[0] == str(op.evaluate(log, discount=0.9).verdict)
    assert all(name in text for name in ("low", "high", "step-wis"))
