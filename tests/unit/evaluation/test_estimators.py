"""Every estimator against the exact reference: value, standard error, ESS and per-trajectory values."""

import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, random_log, with_ratio

DISCOUNTS = [0.0, 0.5, 0.9, 1.0]
BASELINE = 0.375


def near(expected):
    return pytest.approx(float(expected), rel=1e-12, abs=0.0)


def assert_exact(ev, key, expected, *, policy=None):
    """`key` is an estimator id, or a pair of policy and estimator."""
    estimate = ev[key]
    assert estimate.value == near(expected.value)
    assert estimate.std_error == near(expected.std_error)
    assert estimate.ess == near(expected.ess)
    if estimate.estimator == "magic":  # has none
        return
    values = ev.values(key if isinstance(key, str) else key[1], policy=policy)
    assert values.columns == ["episode", "value"]
    assert values["value"].to_list() == [near(value) for value in expected.values]


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("ragged", [True, False], ids=["ragged", "fixed"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_estimator_is_its_definition(seed, ragged, discount):
    log = random_log(seed, ragged=ragged)
    ev = op.evaluate(log, discount=discount, baseline=BASELINE)
    episodes = episodes_of(log)
    assert set(ev.table["estimator"]) == set(reference.ESTIMATORS)
    for estimator in reference.ESTIMATORS:
        assert_exact(ev, estimator, reference.evaluate(episodes, estimator, discount, baseline=BASELINE))


@pytest.mark.parametrize("estimator", reference.ESTIMATORS)
def test_an_estimator_asked_for_alone_is_the_same(estimator):
    log = random_log(4)
    alone = op.evaluate(log, discount=0.9, baseline=BASELINE, estimators=[estimator])
    together = op.evaluate(log, discount=0.9, baseline=BASELINE)
    assert alone.table["estimator"].to_list() == [estimator]
    assert alone[estimator].value == together[estimator].value
    assert alone[estimator].std_error == together[estimator].std_error
    assert alone[estimator].ess == together[estimator].ess
    if estimator != "magic":
        assert alone.values(estimator).equals(together.values(estimator))


@pytest.mark.parametrize("estimator", reference.ESTIMATORS)
def test_steps_may_count_from_one(estimator):
    arguments = {"discount": 0.9, "baseline": BASELINE, "estimators": [estimator]}
    from_zero = op.evaluate(random_log(5), **arguments)
    from_one = op.evaluate(random_log(5, first_step=1), **arguments)
    assert from_one.table.equals(from_zero.table)


@pytest.mark.parametrize("estimator", [e for e in reference.ESTIMATORS if e not in reference.UNWEIGHTED])
def test_a_ratio_column_stands_for_the_two_probabilities(estimator):
    log = with_ratio(random_log(6))
    ev = op.evaluate(log, discount=0.9, baseline=BASELINE, estimators=[estimator])
    assert_exact(ev, estimator, reference.evaluate(episodes_of(log), estimator, 0.9, baseline=BASELINE))


def test_a_renamed_ratio_wins_over_the_probabilities():
    log = random_log(6).with_columns(weight=pl.lit(1.0))
    ev = op.evaluate(log, columns=op.Columns(ratio="weight"), estimators=["step-is", "mc"])
    assert ev["step-is"].value == ev["mc"].value


def test_columns_can_be_renamed():
    log = random_log(7)
    names = [f.upper() for f in log.columns]
    renamed = log.rename(dict(zip(log.columns, names, strict=True)))
    columns = op.Columns(**dict(zip(log.columns, names, strict=True)))
    plain = op.evaluate(log, discount=0.9)
    assert op.evaluate(renamed, discount=0.9, columns=columns).table.equals(plain.table)


def test_a_target_probability_of_zero_ends_the_weight_and_not_the_episode():
    log = random_log(8, episodes=5, horizon=4)
    zero = (pl.col("step") == 1) & (pl.col("episode") != log["episode"][0])
    log = log.with_columns(target_prob=pl.when(zero).then(0.0).otherwise("target_prob"))
    ev = op.evaluate(log, discount=0.9, baseline=BASELINE)
    for estimator in reference.ESTIMATORS:
        expected = reference.evaluate(episodes_of(log), estimator, 0.9, baseline=BASELINE)
        assert_exact(ev, estimator, expected)


def test_a_longer_horizon_moves_only_the_baseline():
    log = random_log(9, horizon=4)
    longest = op.evaluate(log, discount=0.9, baseline=BASELINE)
    longer = op.evaluate(log, discount=0.9, baseline=BASELINE, horizon=9)
    assert (longest.horizon, longer.horizon) == (4, 9)
    for estimator in reference.ESTIMATORS:
        expected = reference.evaluate(episodes_of(log), estimator, 0.9, baseline=BASELINE, horizon=9)
        assert_exact(longer, estimator, expected)
        if estimator != "dr-bsl":
            assert longer[estimator].value == longest[estimator].value
    assert longer["dr-bsl"].value != longest["dr-bsl"].value


def test_dr_v2_without_transition_ratios_has_ratio_one():
    log = random_log(10).drop("transition_ratio")
    ev = op.evaluate(log, discount=0.9, estimators=["dr-v2"])
    assert_exact(ev, "dr-v2", reference.evaluate(episodes_of(log), "dr-v2", 0.9))


POLICIES = {
    "a": {"target_prob": "target_prob", "q_hat": "q_hat", "v_hat": "v_hat", "r_hat": "r_hat"},
    "b": {"target_prob": "pb", "q_hat": "qb", "v_hat": "vb"},
    "c": {"ratio": "rc"},
}


def many_policies_log(seed):
    log, other = random_log(seed), random_log(seed + 100)
    other = pl.concat([other] * 10)[: log.height]
    return log.drop("transition_ratio").with_columns(
        pb=other["target_prob"],
        qb=other["q_hat"],
        vb=other["v_hat"],
        rc=other["target_prob"] / other["behavior_prob"],
    )


@pytest.mark.parametrize("ragged_seed", [21, 22])
def test_several_policies_and_mixtures_in_one_scan(ragged_seed):
    log = many_policies_log(ragged_seed)
    policies = {name: op.PolicyColumns(**columns) for name, columns in POLICIES.items()}
    policies["mix"] = op.PolicyColumns(mixture_of="b", alpha=0.25, q_hat="qb", v_hat="vb")
    policies["mix of ratio"] = op.PolicyColumns(mixture_of="c", alpha=0.5)
    ev = op.evaluate(log, discount=0.9, policies=policies)

    cases = {name: (columns, 0.0) for name, columns in POLICIES.items()}
    cases["mix"] = (POLICIES["b"], 0.25)
    cases["mix of ratio"] = (POLICIES["c"], 0.5)
    importance = {"is", "step-is", "wis", "step-wis"}
    expected_rows = {("behavior", "mc")}
    for name, (columns, alpha) in cases.items():
        source = log.drop("target_prob") if "ratio" in columns else log
        episodes = episodes_of(source, **columns)
        model = {"reg", "dr", "wdr", "magic"} if "q_hat" in columns else set()
        for estimator in importance | model | ({"dr-v2"} if "r_hat" in columns else set()):
            expected = reference.evaluate(episodes, estimator, 0.9, alpha=alpha)
            assert_exact(ev, (name, estimator), expected, policy=name)
            expected_rows.add((name, estimator))
    assert set(ev.table.select("policy", "estimator").iter_rows()) == expected_rows


def test_one_more_policy_changes_no_bit_of_the_others():
    log = many_policies_log(23)
    a = op.PolicyColumns(target_prob="target_prob", q_hat="q_hat", v_hat="v_hat")
    b = op.PolicyColumns(target_prob="pb", q_hat="qb", v_hat="vb")
    both = op.evaluate(log, discount=0.9, policies={"a": a, "b": b}).table
    alone = op.evaluate(log, discount=0.9, policies={"a": a}).table
    assert both.filter(pl.col("policy") != "b").equals(alone)


def test_the_table_and_the_estimates_agree():
    log = random_log(24)
    ev = op.evaluate(log, discount=0.9, baseline=BASELINE)
    columns = ["policy", "estimator", "value", "std_error", "low", "high", "episodes", "steps", "ess"]
    assert ev.table.columns == columns
    for row in ev.table.iter_rows(named=True):
        estimate = ev[row["estimator"]]
        for name in columns[2:]:
            assert row[name] == getattr(estimate, name)
        assert row["policy"] == ("behavior" if row["estimator"] == "mc" else "target")
        assert (row["episodes"], row["steps"]) == (ev.episodes, ev.steps) == (7, log.height)


def test_none_means_every_estimator_that_the_columns_allow():
    log = random_log(25)

    def names(frame, **arguments):
        return set(op.evaluate(frame, **arguments).table["estimator"])

    importance = {"mc", "is", "step-is", "wis", "step-wis"}
    assert names(log.select("episode", "step", "reward")) == {"mc"}
    assert names(log.drop("q_hat", "v_hat", "r_hat")) == importance
    assert names(log.drop("q_hat", "v_hat", "r_hat"), baseline=1.0) == importance | {"dr-bsl"}
    assert names(log.drop("q_hat")) == importance | {"reg", "dr-v2"}
    assert names(log.drop("r_hat")) == importance | {"reg", "dr", "wdr", "magic"}
