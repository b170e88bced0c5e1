"""An estimator of a plugin has all that ours have: errors, intervals, differences, a verdict, drivers, same bits."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from lab import Dr, StepIs, giving, lab
from offpolicy.evaluation.outcome import Moments
from offpolicy.testing import Walk

LOG = op.demo_log(episodes=600).with_columns(user=pl.col("episode") // 3)
BOUNDS = op.Bounds(reward=(0, 1), ratio=1.6)
PAIRS = [("lab-step-is", "step-is"), ("lab-dr", "dr"), ("lab-reg", "reg")]
BOTH = [name for pair in PAIRS for name in pair]


@pytest.fixture(autouse=True)
def brought(monkeypatch):
    lab(monkeypatch)


def evaluate(log=LOG, estimators=("lab-step-is", "lab-dr"), **options):
    return op.evaluate(log, estimators=list(estimators), **{"discount": 0.9, "horizon": 10} | options)


def close(a, b):
    return a == pytest.approx(b, rel=1e-11, abs=1e-12)


@pytest.fixture(scope="module")
def ev():
    with pytest.MonkeyPatch.context() as patch:
        lab(patch)
        yield evaluate(estimators=BOTH, paired=True, bounds=BOUNDS)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_what_the_core_estimates_a_plugin_estimates_too(ev, theirs, ours):
    assert close(ev[theirs].value, ev[ours].value)
    assert close(ev[theirs].std_error, ev[ours].std_error)
    assert (ev[theirs].ess, ev[theirs].episodes) == (ev[ours].ess, ev[ours].episodes)
    assert ev.values(theirs)["episode"].to_list() == ev.values(ours)["episode"].to_list()
    assert np.allclose(ev.values(theirs)["value"], ev.values(ours)["value"], rtol=1e-12)


def test_a_table_has_them_in_the_order_that_was_asked_for(ev):
    assert ev.table["estimator"].to_list() == BOTH
    assert ev.settings["estimators"] == BOTH


@pytest.mark.parametrize(("theirs", "ours"), PAIRS[:2])
@pytest.mark.parametrize("method", ["t", "normal", "t-skew", "likelihood", "bootstrap", "bootstrap-bca", "auto"])
def test_an_interval_is_that_of_the_same_values(ev, theirs, ours, method):
    mine, other = (ev[name].interval(method=method) for name in (theirs, ours))
    assert mine.low == pytest.approx(other.low, rel=1e-7)
    assert mine.high == pytest.approx(other.high, rel=1e-7)


@pytest.mark.parametrize("method", ["hoeffding", "bernstein"])
def test_a_range_that_the_plugin_tells_gives_intervals_for_finite_samples(ev, method):
    mine, other = (ev[name].interval(method=method) for name in ("lab-step-is", "step-is"))
    assert (mine.kind, close(mine.low, other.low), close(mine.high, other.high)) == ("finite-sample", True, True)


@pytest.mark.parametrize("method", ["betting", "sequence", "hcope", "anderson"])
def test_a_floor_is_all_that_sketches_of_values_need(ev, method):
    found = ev["lab-step-is"].interval(method=method, side="lower")
    assert found.reason is None or "vacuous" in found.reason
    assert found.low <= ev["lab-step-is"].value


def test_without_a_range_such_intervals_are_withheld(ev):
    found = ev["lab-dr"].interval(method="hoeffding")
    assert found.low is None
    assert found.reason == "no range of lab-dr is known"


def test_a_biased_estimator_has_no_finite_sample_interval_and_a_verdict_that_says_so(monkeypatch):
    biased = giving(lambda block: StepIs().values(block), range=StepIs.range)
    lab(monkeypatch, {"biased": biased})
    ev = evaluate(estimators=["biased"], bounds=BOUNDS)
    assert "is not the value, for it is biased" in ev["biased"].interval(method="hoeffding").reason
    assert ev.verdict.level == "fragile"
    assert "biased is biased" in ev.verdict.rule


@pytest.mark.parametrize(("theirs", "ours"), PAIRS[:2])
def test_the_difference_from_the_log_is_paired(ev, theirs, ours):
    mine, other = (ev.difference("target", estimator=name) for name in (theirs, ours))
    assert close(mine.value, other.value)
    assert close(mine.std_error, other.std_error)
    assert close(mine.interval(method="t").low, other.interval(method="t").low)
    assert mine.interval(method="bootstrap").low == pytest.approx(other.interval(method="bootstrap").low, rel=1e-6)


def test_a_finite_sample_bound_of_the_difference_is_that_of_ours(ev):
    lows = [ev.difference("target", estimator=name).interval(method="hoeffding").low for name in PAIRS[0]]
    assert close(lows[0], lows[1])


def test_the_verdict_and_the_leverage_are_those_of_the_same_values(ev):
    rows = {row["estimator"]: row for row in ev.leverage.to_dicts()}
    for theirs, ours in PAIRS[:2]:
        for name in ("concentration", "skewness", "without_largest", "without_ten"):
            assert rows[theirs][name] == pytest.approx(rows[ours][name], rel=1e-9), name
    verdicts = [ev.verdict_on(ev[name]) for name in ("lab-step-is", "step-is")]
    assert verdicts[0].level == verdicts[1].level
    assert ev.verdict_on(ev["lab-reg"]).level == "fragile"


def test_the_weights_are_watched_where_only_plugins_estimate(ev):
    alone = evaluate(estimators=["lab-step-is"])
    assert alone.table["estimator"].to_list() == ["lab-step-is"]
    assert alone.leverage["estimator"].to_list() == ["lab-step-is"]
    one = evaluate(estimators=["step-is"])
    assert alone.by_step.equals(one.by_step)
    assert alone.verdict_on(alone["lab-step-is"]).level == one.verdict_on(one["step-is"]).level


@pytest.mark.parametrize(
    "plumbing",
    [
        {"threads": 1},
        {"threads": 3},
        {"batch_rows": 17},
        {"order": "any"},
    ],
    ids=str,
)
def test_the_same_bits_whatever_the_plumbing(ev, plumbing):
    assert numbers(evaluate(**plumbing)) == numbers(evaluate())


def test_the_same_bits_from_files_in_any_order_and_through_map(tmp_path):
    cut = [0, 1500, 1501, 4000, LOG.height]  # inside of episodes
    paths = []
    for number, (start, end) in enumerate(pairwise(cut)):
        paths.append(str(tmp_path / f"{number}.parquet"))
        LOG[start:end].write_parquet(paths[-1], row_group_size=101)
    expected = numbers(evaluate())
    whole = tmp_path / "whole.parquet"
    LOG.write_parquet(whole, row_group_size=53)
    with ThreadPoolExecutor(2) as pool:
        logs = [whole, paths, paths[::-1], LOG.lazy(), LOG.to_arrow(), LOG.sample(fraction=1, shuffle=True, seed=1)]
        for log in logs:
            options = {"order": "any"} if log is logs[-1] else {}
            assert numbers(evaluate(log, **options)) == expected
        assert numbers(evaluate(paths, map=pool.map)) == expected


def numbers(ev):
    moved = ev.leverage.drop("capped").rows()
    return [(e.key, e.value, e.std_error, e.low, e.high) for e in ev.estimates], moved


def test_values_are_in_the_order_of_the_log_whatever_waits(monkeypatch):
    monkeypatch.setattr("offpolicy.logs.trajectories.ROWS", 40)
    turned = pl.concat(LOG.partition_by("episode")[::-1])
    ev = evaluate(turned, estimators=["step-is", "lab-step-is"])
    theirs, ours = ev.values("lab-step-is"), ev.values("step-is")
    assert theirs["episode"].to_list() == ours["episode"].to_list() == list(range(599, -1, -1))
    assert np.allclose(theirs["value"], ours["value"], rtol=1e-12)


def test_several_policies_and_mixtures_have_their_own_ratios():
    policies = {
        "new": op.PolicyColumns(target_prob="target_prob", q_hat="q_hat", v_hat="v_hat"),
        "half": op.PolicyColumns(mixture_of="new", alpha=0.5, q_hat="q_hat", v_hat="v_hat"),
    }
    ev = evaluate(estimators=["lab-dr", "dr"], policies=policies)
    for policy in policies:
        assert close(ev[policy, "lab-dr"].value, ev[policy, "dr"].value)
    assert ev["new", "lab-dr"].value != ev["half", "lab-dr"].value
    alone = evaluate(estimators=["lab-dr"], policies=policies)
    assert alone["half", "lab-dr"].value == ev["half", "lab-dr"].value


def test_clusters_and_estimated_probabilities_change_its_errors_as_ours():
    ev = evaluate(estimators=["lab-step-is", "step-is"], cluster="user")
    assert close(ev["lab-step-is"].std_error, ev["step-is"].std_error)
    assert ev["lab-step-is"].clusters == 200
    walk = Walk()
    log = op.estimate_behavior(walk.simulate(walk.behavior, 500, seed=2).drop("behavior_prob"), walk)
    log = op.annotate(log, walk.policies["eager"], columns=op.Columns.of(walk))
    ev = op.evaluate(log, estimators=["step-is", "lab-step-is"], discount=0.9)
    assert close(ev["lab-step-is"].std_error, ev["step-is"].std_error)
    assert ev["lab-step-is"].degrees == ev["step-is"].degrees


def test_a_column_of_its_own_is_needed_and_checked():
    log = LOG.with_columns(marginal=pl.col("target_prob") / pl.col("behavior_prob"))
    ev = evaluate(log, estimators=["lab-own"])
    expected = (log["marginal"] * log["reward"] * 0.9 ** log["step"]).sum() / 600
    assert close(ev["lab-own"].value, expected)
    with pytest.raises(op.MissingColumnError, match="'lab-own' of policy 'target' needs a column 'marginal'"):
        evaluate(estimators=["lab-own"])
    broken = log.with_columns(marginal=pl.when(pl.int_range(pl.len()) == 7).then(math.nan).otherwise("marginal"))
    with pytest.raises(op.BadLogError, match="marginal"):
        evaluate(broken, estimators=["lab-own"])
    assert evaluate(log, estimators=["lab-own"], order="any")["lab-own"].value == ev["lab-own"].value


def test_a_missing_model_is_told_as_of_ours():
    with pytest.raises(op.MissingColumnError, match="'lab-dr' of policy 'target' needs a column q_hat"):
        evaluate(LOG.drop("q_hat"), estimators=["lab-dr"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda block: np.where(block.episodes.to_numpy() == 7, np.nan, 1.0), "nan for episode 7"),
        (lambda block: np.where(block.episodes.to_numpy() == 9, -np.inf, 1.0), "-inf for episode 9"),
        (lambda block: np.ones(3), r"an array of shape \(3,\) for \d+ trajectories from episode \d+"),
        (lambda block: np.ones((len(block), 1)), r"an array of shape \(\d+, 1\)"),
        (lambda block: None, "an array of object"),
        (lambda block: np.array(["a"] * len(block)), "an array of <U1"),
    ],
)
def test_wrong_values_are_the_plugins_error(monkeypatch, values, message):
    lab(monkeypatch, {"odd": giving(values)})
    with pytest.raises(op.PluginError, match=f"estimator 'odd' of plugin 'lab' must give one finite.*{message}"):
        evaluate(estimators=["odd"])


def test_an_exception_and_an_undeclared_column_name_the_plugin(monkeypatch):
    lab(monkeypatch, {"failing": giving(lambda block: 1 / 0), "greedy": giving(lambda block: block["q_hat"])})
    with pytest.raises(op.PluginError, match="estimator 'failing' of plugin 'lab' failed: ZeroDivisionError"):
        evaluate(estimators=["failing"])
    with pytest.raises(op.PluginError, match="estimator 'greedy' of plugin 'lab' reads 'q_hat', which is not among"):
        evaluate(estimators=["greedy"])


@pytest.mark.parametrize(
    ("members", "member"),
    [
        ({"needs": "ratio"}, "needs"),
        ({"needs": (3,)}, "needs"),
        ({"unbiased": "yes"}, "unbiased"),
        ({"name": 3}, "name"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(monkeypatch, members, member):
    lab(monkeypatch, {"odd": giving(lambda block: np.ones(len(block)), **members)})
    with pytest.raises(op.PluginError, match=f"estimator 'odd' of plugin 'lab': {member} must be"):
        evaluate(estimators=["odd"])


def test_what_is_read_cannot_be_changed(monkeypatch):
    def spoil(block):
        block["reward"][:] = 0.0

    lab(monkeypatch, {"spoiling": giving(spoil)})
    with pytest.raises(op.PluginError, match="read-only"):
        evaluate(estimators=["spoiling"])


def test_one_reading_is_too_few():
    with pytest.raises(op.UsageError, match="'lab-step-is' has no value after one reading"):
        evaluate(passes=1)


def test_an_unknown_id_is_told_with_those_of_plugins():
    with pytest.raises(op.UsageError, match="no estimator 'lab-step-i'; did you mean 'lab-step-is'"):
        evaluate(estimators=["lab-step-i"])


def test_nobody_gets_them_without_asking():
    assert not [name for name in op.evaluate(LOG, discount=0.9).table["estimator"] if name.startswith("lab")]


def test_cross_fit_and_improve_take_them():
    walk = Walk()
    log = walk.simulate(walk.behavior, 400, seed=1).with_columns(marginal=1.0)
    cf = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["lab-dr", "dr", "lab-own"])
    assert close(cf["lab-dr"].value, cf["dr"].value)
    assert close(cf["lab-dr"].std_error, cf["dr"].std_error)
    assert cf.folds.filter(pl.col("estimator") == "lab-dr")["value"].null_count() == 0
    found = [op.improve(log, walk, generator="mixture", estimator=name) for name in ("lab-dr", "dr")]
    assert found[0].winner == found[1].winner
    scores = [each.candidates["score"].to_numpy() for each in found]
    assert np.allclose(*scores, rtol=1e-9)


def test_a_pooled_bound_of_a_modelled_estimator_is_made_fold_by_fold(monkeypatch):
    class Ranged(Dr):
        def range(self, bounds, terms):
            return bounds.range("dr", terms)

    lab(monkeypatch, {"ranged": Ranged})
    walk = Walk()
    log = walk.simulate(walk.behavior, 400, seed=1)
    bounds = op.Bounds(reward=walk.reward_range, ratio=4.0, q=(-1.0, 1.0))
    cf = op.cross_fit(log, walk, policy=walk.policies["eager"], estimators=["ranged", "dr"], bounds=bounds)
    mine, other = (cf[name].interval(method="hoeffding") for name in ("ranged", "dr"))
    assert (mine.assumptions.get("folds"), mine.reason) == (other.assumptions.get("folds"), other.reason)
    assert mine.low == pytest.approx(other.low)


def test_improve_refuses_a_biased_one_unless_it_shrinks_and_rewards_are_not_negative(monkeypatch):
    biased = giving(lambda block: StepIs().values(block))
    shrinking = giving(lambda block: StepIs().values(block) / 2, shrinks=True)
    lab(monkeypatch, {"biased": biased, "shrinking": shrinking})
    walk = Walk()
    log = walk.simulate(walk.behavior, 200, seed=1)
    for name in ("biased", "shrinking"):
        with pytest.raises(op.UsageError, match="knows nothing of its bias"):
            op.improve(log, walk, generator="mixture", estimator=name)
    paid = op.LoggedDomain(walk.state_columns, walk.actions, walk.horizon, reward_range=(0.0, 2.0))
    log = log.with_columns(pl.col("reward") + 0.05)
    found = op.improve(log, paid, generator={"eager": walk.policies["eager"]}, estimator="shrinking")
    assert found.candidates["value"].null_count() == 0


def test_moments_are_exact_and_know_no_order():
    x = np.array([1e16, 1.0, -1e16, 3.0, 1e-300, 2.0])
    for seed in range(5):
        assert Moments.of(np.random.default_rng(seed).permutation(x)) == Moments.of(x)
    assert Moments.of(x).value.value == 1.0
    shifted = Moments.of(np.array([0.0, 0.0, 0.0, 4.0]) + 2.0**40)
    assert (shifted.std_error.value, shifted.concentration) == (1.0, 0.75)
    one = Moments.of(np.array([5.0]))
    assert (one.value.value, one.std_error, one.concentration) == (5.0, None, 0.0)
    huge = Moments.of(np.array([1.7e308, -1.7e308, 1.7e308]))
    assert huge.std_error.value == pytest.approx(1.7e308 / 1.5, rel=1e-15)


def cut_off():
    """A log in which every seventh episode was cut off after six steps."""
    log = LOG.filter((pl.col("episode") % 7 != 0) | (pl.col("step") < 6))
    last = pl.col("step") == pl.col("step").max().over("episode")
    cut = pl.col("episode") % 7 == 0
    return log.with_columns(truncated=last & cut, terminal=last & ~cut)


@pytest.mark.parametrize("truncation", ["as-terminal", "bootstrap", "reduce-horizon"])
def test_truncated_episodes_are_mended_for_it_too(truncation):
    ev = evaluate(cut_off(), estimators=["lab-step-is", "step-is", "lab-dr", "dr"], truncation=truncation)
    for theirs, ours in PAIRS[:2]:
        assert close(ev[theirs].value, ev[ours].value)
        assert ev.verdict_on(ev[theirs]).level == ev.verdict_on(ev[ours]).level


def test_log_probabilities_make_its_ratios_too():
    logged = [pl.col(f"{who}_prob").log().alias(f"{who}_logprob") for who in ("behavior", "target")]
    log = LOG.with_columns(logged).drop("behavior_prob", "target_prob")
    ev = evaluate(log, estimators=["lab-dr", "dr"])
    assert close(ev["lab-dr"].value, ev["dr"].value)


def test_ids_that_are_texts_find_the_trajectories_that_weigh_most():
    ev = evaluate(LOG.with_columns(pl.format("user {}", pl.col("episode") + 1000).alias("episode")), BOTH[:2])
    rows = {row["estimator"]: row["without_ten"] for row in ev.leverage.to_dicts()}
    assert close(rows["lab-step-is"], rows["step-is"])


def test_a_product_beyond_floats_names_the_episode():
    steps = 1100
    log = pl.DataFrame({"episode": 3, "step": range(steps), "reward": 1.0, "ratio": 2.0})
    with pytest.raises(op.OffPolicyError, match=r"ratios of episode 3 up to t = 1024"):
        op.evaluate(log, estimators=["lab-step-is"])


def test_compare_measures_them():
    walk = Walk()
    policies = {"eager": walk.policies["eager"]}
    found = op.compare(walk, policies, estimators=["lab-dr", "dr"], sizes=40, runs=2, truth_episodes=500).table
    assert close(*found["rmse"])
