"""What crosses the boundary to the core: typed objects, made once; a job that travels is the same elsewhere."""

import json
import pickle

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from logs import random_log
from offpolicy import _core
from offpolicy._core import Job, Merger, Pass, PolicySpec, Spec
from offpolicy.errors import InternalError, StateError
from offpolicy.evaluation.plan import Plan

LOG = random_log(seed=5, episodes=14, horizon=11)
EVALUATION = op.evaluate(LOG, discount=0.1 + 0.2, baseline=1 / 3)
PLAN, NORMALISERS = EVALUATION.samples.plan, EVALUATION.samples.normalisers


def state(job):
    frame = LOG.select(PLAN.names())
    return _core.scan_table(job, frame, 7, 0, 1, None).encode()


def whole(job):
    merger = Merger(job)
    merger.add(_core.scan_table(job, LOG.select(PLAN.names()), 7, 0, 2, None))
    return merger.finish()


def jobs():
    second = PLAN.second().spec()
    return [Job(PLAN.spec(), Pass.FIRST), Job(second, Pass.SECOND, NORMALISERS)]


@pytest.mark.parametrize("job", jobs(), ids=["first", "second"])
def test_a_job_that_has_travelled_makes_the_same_states(job):
    assert state(pickle.loads(pickle.dumps(job))) == state(job)


def test_what_travels_is_text_and_bytes():
    reader, (plan, name, normalisers) = jobs()[1].__reduce__()
    assert reader is _core.travelled_job
    assert json.loads(plan)["plan"]["discount"] == 0.1 + 0.2
    assert (name, type(normalisers)) == ("second", bytes)


def damaged(change):
    _, (plan, name, normalisers) = jobs()[1].__reduce__()
    document = json.loads(plan)
    change(document["plan"])
    return json.dumps(document), name, normalisers


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(reward=99),
        lambda plan: plan["policies"][1].update(q_hat=99),
        lambda plan: plan["policies"][1].update(ratio={"probabilities": {"behavior": 0, "target": 99}}),
        lambda plan: plan["policies"][1].update(ratio={"mixture": {"of": 1, "alpha": 0.5}}),
        lambda plan: plan["policies"][1]["estimators"].append("best"),
        lambda plan: plan.update(discount=1.5),
        lambda plan: plan.pop("slots"),
    ],
)
def test_a_plan_that_does_not_fit_together_is_refused_on_arrival(change):
    with pytest.raises(InternalError, match="the plan cannot be read"):
        _core.travelled_job(*damaged(change))


def test_other_things_than_a_job_are_refused_on_arrival():
    _, (plan, name, normalisers) = jobs()[1].__reduce__()
    with pytest.raises(InternalError, match="the plan cannot be read"):
        _core.travelled_job(plan[:-1], name, normalisers)
    with pytest.raises(InternalError, match='there is no pass "third"'):
        _core.travelled_job(plan, "third", normalisers)
    with pytest.raises(StateError, match="checksum"):
        _core.travelled_job(plan, name, normalisers[:-1] + bytes([normalisers[-1] ^ 1]))
    with pytest.raises(StateError, match="no state of offpolicy"):
        _core.travelled_job(plan, name, b"normalisers")


def spec(*policies, **more):
    return Spec(
        episode="episode", step="step", reward="reward", policies=[PolicySpec("behavior", ["mc"]), *policies], **more
    )


def test_a_spec_reads_each_column_once_and_checks_what_it_is_told():
    pair = ("behavior_prob", "target_prob")
    target = PolicySpec("target", ["dr"], probabilities=pair, q_hat="q", v_hat="q")
    made = spec(target, PolicySpec("mixed", ["step-is"], mixture=("target", 0.5)), terminal="done")
    assert made.names == ["episode", "step", "done", "reward", "behavior_prob", "target_prob", "q"]
    with pytest.raises(InternalError, match="more than one ratio"):
        PolicySpec("target", ["is"], probabilities=pair, ratio="rho")
    with pytest.raises(InternalError, match="unknown variant `best`"):
        PolicySpec("target", ["best"])
    with pytest.raises(InternalError, match='mixes "nobody", which is not before it'):
        spec(PolicySpec("mixed", ["is"], mixture=("nobody", 0.5)))
    with pytest.raises(InternalError, match='no column has the role "colour"'):
        spec(extra=[("red", "colour")])
    for wrong in ({"discount": 2.0}, {"discount": float("nan")}, {"baseline": float("inf")}):
        with pytest.raises(InternalError, match="do not fit together"):
            spec(**wrong)
    with pytest.raises(TypeError):
        spec(discount="0.9")
    with pytest.raises(OverflowError):
        spec(horizon=-1)


def test_a_pass_is_one_of_four_things():
    passes = [Pass.FIRST, Pass.SECOND, Pass.VALUES, Pass.INFLUENCE]
    assert [each.name for each in passes] == ["first", "second", "values", "influence"]
    assert len({*passes, Pass.FIRST}) == 4
    assert Pass.FIRST == Pass.FIRST != Pass.SECOND
    with pytest.raises(TypeError):
        Job(PLAN.spec(), "first")


def test_normalisers_are_made_once_and_an_outcome_is_asked_for_once():
    first = whole(Job(PLAN.spec(), Pass.FIRST))
    assert first.normalisers is first.normalisers
    second = whole(Job(PLAN.second().spec(), Pass.SECOND, first.normalisers))
    outcome = first.outcome(second)
    assert [row.value.value for row in outcome.estimates if row.estimator == "dr"] == [EVALUATION["dr"].value]
    with pytest.raises(InternalError, match="an outcome is made once"):
        first.outcome(second)
    with pytest.raises(InternalError, match="a first and a second pass of one plan"):
        second.outcome(first)


def test_a_number_beyond_f64_is_told_by_its_logarithm():
    log = LOG.with_columns(reward=pl.lit(1e308))
    found = op.evaluate(log, discount=0.9, estimators=None).details.outcome
    (mean,) = (row.value for row in found.estimates if row.estimator == "mc")
    assert mean.value is None
    assert 308 < mean.log10 < 310


def test_each_pass_writes_its_plan_once(monkeypatch):
    made, write = [], Plan.spec
    monkeypatch.setattr(Plan, "spec", lambda self: made.append(1) or write(self))
    op.evaluate(LOG, discount=0.9)
    assert len(made) == 2


def test_a_discount_is_taken_to_the_last_bit():
    log = pl.DataFrame({"episode": [0, 0], "step": [0, 1], "reward": [0.0, 1.0]})
    for discount in np.random.default_rng(1).uniform(0.3, 1.0, 200).tolist():
        assert op.evaluate(log, discount=discount, estimators=["mc"])["mc"].value == discount
