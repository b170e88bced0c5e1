"""Errors advise what helps: the column that is missing, the call that works, the bound that is needed."""

import subprocess
import sys

import offpolicy as op
import polars as pl
import pytest
from cli import COMMAND, offpolicy
from logs import random_log
from offpolicy.testing import Walk


@pytest.fixture
def log():
    return random_log(23, episodes=40, horizon=3, ragged=False)


@pytest.fixture
def path(log, tmp_path):
    file = tmp_path / "log.parquet"
    log.write_parquet(file)
    return file


def message_of(error, call, *arguments, **settings):
    with pytest.raises(error) as caught:
        call(*arguments, **settings)
    return str(caught.value)


def test_values_of_several_policies_are_asked_for_by_a_call_that_works(log):
    policies = {name: op.PolicyColumns(target_prob="target_prob") for name in ("new", "old")}
    ev = op.evaluate(log, estimators=["step-is"], policies=policies)
    said = message_of(op.UsageError, ev.values, "step-is")
    assert "(new, old)" in said
    assert said.endswith("as in ev.values('step-is', 'new')")
    assert ev.values("step-is", "new").height == 40
    assert message_of(op.UsageError, ev.__getitem__, "step-is").endswith("as in ev['new', 'step-is']")


@pytest.mark.parametrize("missing", ["target_prob", "behavior_prob"])
def test_a_missing_probability_is_named_alone_with_what_is_there(log, missing):
    bad = log.rename({missing: f"{missing}s"})
    said = message_of(op.MissingColumnError, op.evaluate, bad, estimators=["step-is"])
    assert f"needs {missing}, which the log does not have; did you mean '{missing}s'?" in said
    assert "its columns are episode, step, reward" in said
    assert said.endswith(f"name it with Columns({missing}=...)")
    (note,) = op.evaluate(bad).notes
    assert f"weights need {missing}, which the log does not have" in note


def test_both_probabilities_or_ratios_are_asked_for_where_neither_is_there(log):
    said = message_of(op.MissingColumnError, op.evaluate, log.drop("behavior_prob", "target_prob"), estimators=["is"])
    assert "Columns(behavior_prob=...) and Columns(target_prob=...), or ratios with Columns(ratio=...)" in said


def test_columns_of_a_policy_are_named_where_they_belong(log, path):
    policies = {"new": op.PolicyColumns(q_hat="q_hat", v_hat="v_hat")}
    said = message_of(op.MissingColumnError, op.evaluate, log, estimators=["dr"], policies=policies)
    assert said.endswith("name it with PolicyColumns(target_prob=...)")
    run = offpolicy("evaluate", path, "--estimator", "dr", "--policy", "new=q_hat=q_hat,v_hat=v_hat")
    assert run.code == 1
    assert "name it with --policy NAME=COLUMN" in run.err


@pytest.mark.parametrize("role", ["episode", "step", "reward"])
@pytest.mark.parametrize("call", [op.evaluate, op.check])
def test_a_missing_key_lists_the_columns(log, role, call):
    said = message_of(op.MissingColumnError, call, log.rename({role: f"my_{role}"}))
    assert f"my_{role}" in said
    assert "its columns are" in said
    assert f"Columns({role}=...)" in said


def test_a_wide_log_lists_its_first_columns_only(log):
    wide = log.rename({"episode": "id"}).with_columns(pl.lit(0).alias(f"extra-{i}") for i in range(90))
    said = message_of(op.MissingColumnError, op.evaluate, wide)
    assert "extra-5" in said
    assert "extra-50" not in said
    assert f" and {len(wide.columns) - 20} more" in said


@pytest.mark.parametrize("method", ["betting", "sequence", "hcope", "anderson"])
def test_methods_that_need_the_reward_range_alone_say_so(log, path, method):
    ev = op.evaluate(log, estimators=["step-is", "dr"], horizon=3, interval=method)
    assert "bounds=Bounds(reward=...)" in ev["step-is"].interval(side="lower").reason
    assert "bounds=Bounds(reward=..., ratio=..., q=...)" in ev["dr"].interval(side="lower").reason
    run = offpolicy("evaluate", path, "--estimator", "step-is", "--interval", method, "--horizon", "3")
    assert f"{method} needs --reward-range: " in run.out
    again = ("--reward-range=-9,9", "--estimator", "step-is", "--horizon", "3", "--interval", method)
    assert offpolicy("evaluate", path, *again).code == 0


def test_bounds_and_the_horizon_are_asked_for_at_once(log, path):
    assert "needs bounds=Bounds(reward=..., ratio=...) and horizon=:" in (
        op.evaluate(log, estimators=["step-is"], interval="hoeffding")["step-is"].reason
    )
    run = offpolicy("evaluate", path, "--estimator", "step-is", "--interval", "hoeffding")
    assert "hoeffding needs --reward-range, --ratio-bound and --horizon: " in run.out


def test_estimators_may_be_a_list_with_commas_on_the_command_line(path):
    found = [
        offpolicy("evaluate", path, "--json", *given).document["estimates"]
        for given in (("--estimator", "dr,step-is"), ("--estimator", "dr", "--estimator", "step-is"))
    ]
    assert [row["estimator"] for row in found[0]] == ["dr", "step-is"] or len(found[0]) == 2
    assert found[0] == found[1]
    run = offpolicy("evaluate", path, "--estimator", "dr,stepis")
    assert run.code == 2
    assert "did you mean 'step-is'?" in run.err


def test_a_text_with_commas_is_answered_with_a_list_in_python(log):
    assert "several are a list: ['dr', 'step-is']" in message_of(
        op.UsageError, op.evaluate, log, estimators="dr, step-is"
    )


@pytest.mark.parametrize("given", ["new=target_prob,qhat=q_hat", "new=target_prob,vhat=v_hat", "new=rato=w"])
def test_a_role_that_is_nearly_right_is_hinted_at(path, given):
    run = offpolicy("evaluate", path, "--policy", given)
    assert run.code == 2
    assert "did you mean '" in run.err
    assert "_hat'?" in run.err or "'ratio'?" in run.err


ACTIONS = {
    "texts": pl.format("move-{}", "action"),
    "categories": pl.format("move-{}", "action").cast(pl.Categorical),
    "fractions": pl.col("action").cast(pl.Float64),
}


@pytest.mark.parametrize("case", ACTIONS)
def test_actions_of_another_type_are_told_how_to_become_numbers(case):
    walk = Walk()
    log = walk.simulate(walk.behavior, 20, seed=1).with_columns(ACTIONS[case].alias("action"))
    policy = walk.policies["eager"]
    calls = (
        lambda: op.fitter("tabular").fit(log, walk),
        lambda: op.cross_fit(log, walk, policy=policy),
        lambda: op.annotate(log, policy=policy, columns=op.Columns.of(walk)).collect(),
        lambda: op.estimate_behavior(log, walk),
    )
    for call in calls:
        said = message_of(op.WrongTypeError, call)
        assert "column 'action' must hold whole numbers, not" in said
        assert 'pl.col("action").replace_strict({' in said
        assert "': 0" in said or "0.0: 0" in said


@pytest.mark.parametrize("address", ["s3://no-such-bucket/log.parquet", "ftp://nowhere/log.parquet"])
def test_an_address_that_cannot_be_read_is_a_clean_error(address):
    run = subprocess.run([*COMMAND, "evaluate", address], capture_output=True, text=True, timeout=300)
    assert run.returncode == 1
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"error: {address}: it cannot be read from here (")
    assert "Warning" not in run.stderr
    assert ".py" not in run.stderr
    assert sys.executable not in run.stderr


def test_an_interval_that_no_estimate_has_ends_with_1_and_shows_the_numbers(path, tmp_path):
    given = ("evaluate", path, "--estimator", "step-is", "--interval", "betting")
    run = offpolicy(*given, "--out", tmp_path / "result.json")
    assert run.code == 1
    assert "step-is" in run.out
    assert (tmp_path / "result.json").exists()
    assert run.err.startswith("error: no betting interval could be made: betting needs --reward-range")
    as_json = offpolicy(*given, "--json")
    assert as_json.code == 1
    assert as_json.document["estimates"][0]["value"] is not None


def test_an_interval_that_some_estimates_have_ends_with_0(path):
    bounds = ("--reward-range=-9,9", "--horizon", "3")
    run = offpolicy("evaluate", path, "--estimator", "step-is,step-wis", "--interval", "betting", *bounds)
    assert run.code == 0
    assert "step-wis is a ratio of sums" in run.out


def test_an_interval_that_nobody_asked_for_may_be_missing(tmp_path):
    one = random_log(3, episodes=1, horizon=3)
    one.write_parquet(tmp_path / "one.parquet")
    assert offpolicy("evaluate", tmp_path / "one.parquet", "--estimator", "step-is").code == 0
    assert offpolicy("evaluate", tmp_path / "one.parquet", "--estimator", "step-is", "--interval", "t").code == 1
