"""Columns of log-probabilities: the same estimates, and numbers where probabilities would vanish."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.testing import Walk

LOG = op.demo_log(episodes=200, seed=4)
LOGS = LOG.with_columns(
    behavior_logprob=pl.col("behavior_prob").log(), target_logprob=pl.col("target_prob").log()
).drop("behavior_prob", "target_prob")
IDS = ["is", "step-is", "step-wis", "dr"]


def values(ev):
    return [ev[name].value for name in IDS]


PLAIN = values(op.evaluate(LOG, estimators=IDS))


@pytest.mark.parametrize("form", ["frame", "query", "file", "files"])
def test_estimates_are_those_of_the_probabilities_whatever_the_form(form, tmp_path):
    log = LOGS
    if form == "query":
        log = LOGS.lazy()
    if form == "file":
        LOGS.write_parquet(tmp_path / "log.parquet")
        log = str(tmp_path / "log.parquet")
    if form == "files":  # the second half first, and an episode cut in two
        half = LOGS.height // 2
        LOGS[half:].write_parquet(tmp_path / "a.parquet")
        LOGS[:half].write_parquet(tmp_path / "b.parquet")
        log = tmp_path
    ev = op.evaluate(log, estimators=IDS)
    assert values(ev) == pytest.approx(PLAIN, rel=1e-12)
    assert ev.settings["columns"]["ratio"] == "ratio"
    assert "__offpolicy" not in str(ev.to_dict())


@pytest.mark.parametrize("role", ["behavior", "target"])
def test_one_of_the_two_may_be_a_probability(role):
    mixed = LOGS.with_columns(LOG[f"{role}_prob"]).drop(f"{role}_logprob")
    assert values(op.evaluate(mixed, estimators=IDS)) == pytest.approx(PLAIN, rel=1e-12)


def test_probabilities_go_first_unless_the_logarithms_are_named():
    both = LOG.with_columns(behavior_logprob=pl.lit(np.nan), lt=pl.col("target_prob").log())
    assert values(op.evaluate(both, estimators=IDS)) == PLAIN
    named = op.evaluate(both, estimators=IDS, columns=op.Columns(target_logprob="lt"))
    assert values(named) == pytest.approx(PLAIN, rel=1e-12)


def test_several_policies_and_mixtures():
    log = LOGS.with_columns(plain=LOG["target_prob"])
    policies = {
        "a": op.PolicyColumns(target_logprob="target_logprob"),
        "b": op.PolicyColumns(target_prob="plain"),
        "c": op.PolicyColumns(mixture_of="a", alpha=0.5),
    }
    ev = op.evaluate(log, estimators=["step-is"], policies=policies)
    expected = op.evaluate(
        LOG,
        estimators=["step-is"],
        policies={"a": op.PolicyColumns(target_prob="target_prob"), "c": op.PolicyColumns(mixture_of="a", alpha=0.5)},
    )
    for name, like in (("a", "a"), ("b", "a"), ("c", "c")):
        assert ev[name, "step-is"].value == pytest.approx(expected[like, "step-is"].value, rel=1e-12)
    assert ev.settings["policies"]["a"]["target_logprob"] == "target_logprob"


def test_probabilities_that_no_float_holds_have_a_ratio():
    low = LOGS.with_columns(pl.col("behavior_logprob") - 2000.0, pl.col("target_logprob") - 2000.0)
    assert values(op.evaluate(low, estimators=IDS)) == pytest.approx(PLAIN, rel=1e-10)


def test_a_target_of_minus_infinity_has_weight_zero():
    never = pl.when(pl.col("step") == 1).then(-float("inf")).otherwise(pl.col("target_logprob"))
    zero = pl.when(pl.col("step") == 1).then(0.0).otherwise(pl.col("target_prob"))
    logs = (LOGS.with_columns(target_logprob=never), LOG.with_columns(target_prob=zero))
    ours, theirs = (op.evaluate(log, estimators=["step-is"])["step-is"].value for log in logs)
    assert ours == pytest.approx(theirs, rel=1e-12)


def at_row_3(column, value):
    here = pl.int_range(pl.len()) == 3
    return LOGS.with_columns(pl.when(here).then(pl.lit(value)).otherwise(pl.col(column)).alias(column))


BAD = {
    "null behaviour": ("behavior_logprob", None, "must be finite"),
    "NaN behaviour": ("behavior_logprob", float("nan"), "must be finite"),
    "behaviour of zero": ("behavior_logprob", -float("inf"), "must be finite"),
    "infinite behaviour": ("behavior_logprob", float("inf"), "must be finite"),
    "behaviour above 1": ("behavior_logprob", 0.5, "density=True takes densities"),
    "NaN target": ("target_logprob", float("nan"), "must be finite or -inf"),
    "null target": ("target_logprob", None, "must be finite or -inf"),
    "target above 1": ("target_logprob", 0.5, "density=True takes densities"),
    "a ratio beyond floats": ("behavior_logprob", -800.0, "no float holds their ratio"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_logarithm_is_refused_with_its_place(case):
    column, value, says = BAD[case]
    row = LOGS.row(3, named=True)
    with pytest.raises(op.BadLogError, match=says) as caught:
        op.evaluate(at_row_3(column, value))
    (problem,) = caught.value.problems
    assert (problem.episode, problem.step) == (row["episode"], row["step"])
    assert problem.column in ("behavior_logprob", "target_logprob")


def test_densities_may_be_above_one():
    log = LOGS.with_columns(pl.col("behavior_logprob") + 5.0, pl.col("target_logprob") + 5.0)
    assert values(op.evaluate(log, estimators=IDS, density=True)) == pytest.approx(PLAIN, rel=1e-10)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(op.UsageError, match="give one of them"):
        op.evaluate(
            LOG.with_columns(lt=pl.lit(0.0), p=pl.lit(0.5)),
            columns=op.Columns(target_prob="p", target_logprob="lt"),
        )
    with pytest.raises(op.UsageError, match="give one of target_prob="):
        op.PolicyColumns(target_prob="p", target_logprob="lt")
    with pytest.raises(op.MissingColumnError, match="neither behavior_logprob nor behavior_prob"):
        op.evaluate(LOGS.drop("behavior_logprob"), policies={"a": op.PolicyColumns(target_logprob="target_logprob")})


def test_drivers_take_the_logarithm_of_the_behaviour(tmp_path):
    walk = Walk()
    log = walk.simulate(walk.behavior, 100, seed=1)
    eager = walk.policies["eager"]
    known = op.cross_fit(log, walk, policy=eager, estimators=["dr"])["dr"].value
    only = log.with_columns(behavior_logprob=pl.col("behavior_prob").log()).drop("behavior_prob")
    only.write_parquet(tmp_path / "log.parquet")
    for given in (only, str(tmp_path / "log.parquet")):
        assert op.cross_fit(given, walk, policy=eager, estimators=["dr"])["dr"].value == pytest.approx(known, rel=1e-12)
        best = op.improve(given, walk, generator={"eager": eager}, estimator="step-is")
        assert best.candidates["score"].null_count() == 0
