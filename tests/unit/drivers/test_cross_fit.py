"""`op.cross_fit`: each trajectory once, with a model that has not seen it; the same bits for every kind of log."""

from fractions import Fraction
from itertools import product

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from crossing import Fixed, Recording, exact_tabular, exactly_annotated
from logs import bits, episodes_of, file_pieces, value_bits
from offpolicy.folds import fold_of, share_of, split
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.policies import FromCallable, Mixture, TabularPolicy, Uniform
from offpolicy.testing import Walk
from offpolicy.testing.walk import START
from polars.testing import assert_frame_equal
from tiny_mdp import ACTIONS, STATES, TinyDomain, tiny_log

WALK = Walk()
EAGER = WALK.policies["eager"]
GRID = op.Grid((STATES,))
TINY = TinyDomain()
PI1 = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], [Fraction(1, 2), Fraction(1, 2)]]
TARGET = TabularPolicy(np.array(PI1, dtype=float), GRID)
TABULAR = Tabular(aggregate=GRID)


@pytest.fixture(scope="module")
def walked():
    return WALK.simulate(WALK.behavior, 200, seed=0)


def cross(log, **options):
    return op.cross_fit(log, **({"policy": EAGER, "domain": WALK} | options))


@pytest.mark.parametrize("folds", [2, 3, 7, 200])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_fixed_external_model_gives_what_plain_evaluation_gives_bit_for_bit(walked, folds, lazy):
    scored = op.annotate(walked, EAGER, Fixed(), op.Columns(state=("place",)))
    plain = op.evaluate(scored, discount=WALK.discount, horizon=WALK.horizon)
    cf = cross(walked.lazy() if lazy else walked, fitter=Fixed(), folds=folds)
    assert bits(cf) == bits(plain)
    assert value_bits(cf, "dr") == value_bits(plain, "dr")
    assert cf.verdict == plain.verdict


def shards(log, folder):
    """The log cut inside episodes, its files in another order."""
    return file_pieces(log, folder / "shards", [7, 8, 211, 700, 1111], row_group_size=50)[::-1]


def whole_episodes_in_another_order(log):
    return pl.concat(log.partition_by("episode", maintain_order=True)[::-1])


KINDS = {
    "a lazy frame": lambda log, folder: log.lazy(),
    "one file": lambda log, folder: file_pieces(log, folder / "one", [])[0],
    "files in any order": shards,
    "a glob": lambda log, folder: str(shards(log, folder)[0].parent / "*.parquet"),
    "an Arrow table": lambda log, folder: log.to_arrow(),
    "an Arrow stream": lambda log, folder: log.to_arrow().to_reader(),
    "other order": lambda log, folder: whole_episodes_in_another_order(log),
    "wide ids": lambda log, folder: log.with_columns(pl.col("episode").cast(pl.UInt64)),
}


@pytest.mark.parametrize("options", [{"folds": 3}, {"train_fraction": 0.4}, {"folds": 2, "behavior": "counts"}])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_order_and_cut_of_a_log_gives_the_same_bits(walked, kind, options, tmp_path):
    expected, found = cross(walked, **options), cross(KINDS[kind](walked, tmp_path), **options)
    assert bits(found) == bits(expected)
    assert_frame_equal(found.folds, expected.folds, check_exact=True)


def test_ids_may_be_texts(walked, tmp_path):
    log = walked.with_columns(episode=pl.format("user-{}", "episode"))
    expected = cross(log)
    assert expected.folds["episodes"].to_list() != cross(walked).folds["episodes"].to_list()
    assert bits(cross(shards(log, tmp_path))) == bits(expected)


def test_every_episode_is_evaluated_once_by_a_model_that_has_not_seen_it(walked):
    log = walked.with_columns(place=pl.col("episode"))
    fitter = Recording()
    cf = cross(log, fitter=fitter, folds=5, policy=Uniform(3), estimators=["dr"])
    every = set(log["episode"])
    assert len(fitter.models) == 5
    for fold, model in enumerate(fitter.models):
        mine = {e for e in every if fold_of([e], 5)[0] == fold}
        assert set(model.asked) == mine
        assert model.seen == every - mine
    assert sorted(e for model in fitter.models for e in model.asked) == sorted(log["episode"])
    assert cf["dr"].episodes == len(every)
    assert set(cf.values("dr")["episode"]) == every


def test_a_split_fits_to_the_first_by_hash_and_evaluates_the_others(walked):
    log = walked.with_columns(place=pl.col("episode"))
    fitter = Recording()
    cf = cross(log, fitter=fitter, train_fraction=0.4, policy=Uniform(3), seed=3)
    (model,) = fitter.models
    first = {e for e in set(log["episode"]) if share_of([e], 3)[0] < 0.4}
    assert model.seen == first
    assert set(model.asked) == set(log["episode"]) - first
    assert cf["dr"].episodes == 200 - len(first) == cf.folds["episodes"][0]
    assert cf.folds["train_episodes"].unique().to_list() == [len(first)]


def test_a_split_is_the_steps_one_by_one_with_reg_beside(walked):
    cf = cross(walked, train_fraction=0.4, estimators=["dr"])
    train, test = split(walked, 0.4)
    values = op.fitter("tabular").fit(train, WALK).values(EAGER, WALK.horizon, WALK.discount)
    by_hand = op.evaluate(
        op.annotate(test, EAGER, values), discount=WALK.discount, horizon=WALK.horizon, estimators=["dr", "reg"]
    )
    assert bits(cf) == bits(by_hand)
    first = test.filter(pl.col("step") == 0).select("place").to_numpy()
    assert cf["reg"].value == pytest.approx(values.v_hat(first, 0).mean(), rel=1e-14)
    assert any("reg is the mean" in note for note in cf.notes)


def test_pooled_values_and_errors_are_those_of_rational_arithmetic():
    log = tiny_log(seed=5, episodes=14)
    cf = op.cross_fit(log, policy=TARGET, domain=TINY, fitter=TABULAR, folds=3)
    gamma, horizon = Fraction(TINY.discount), TINY.horizon
    exact, each = [], {}
    for rows in episodes_of(log):
        fold = fold_of([rows[0]["episode"]], 3)[0]
        others = log.filter(pl.Series(fold_of(log["episode"], 3) != fold))
        model = exact_tabular(others, PI1, STATES, ACTIONS, horizon, gamma, TINY.reward_range[0])
        exact.append(exactly_annotated(rows, model, PI1))
        each.setdefault(int(fold), []).append(exact[-1])
    assert len(each) == 3
    for estimator in ("dr", "dr-v2", "wdr", "reg", "step-is"):
        true = reference.evaluate(exact, estimator, gamma, horizon=horizon)
        assert cf[estimator].value == pytest.approx(float(true.value), rel=1e-12)
        assert cf[estimator].std_error == pytest.approx(true.std_error, rel=1e-12)
        for fold, part in each.items():
            row = cf.folds.row(by_predicate=(pl.col("fold") == fold) & (pl.col("estimator") == estimator), named=True)
            true = reference.evaluate(part, estimator, gamma, horizon=horizon)
            assert row["value"] == pytest.approx(float(true.value), rel=1e-12)
            assert row["std_error"] == pytest.approx(true.std_error, rel=1e-12)
            assert (row["episodes"], row["train_episodes"]) == (len(part), 14 - len(part))
            assert row["steps"] == sum(map(len, part))


COIN = op.LoggedDomain(state_columns=("state",), actions=2, horizon=2, reward_range=(0.0, 4.0), discount=0.5)
TOSS = TabularPolicy(np.array([[0.25, 0.75], [0.75, 0.25]]), op.Grid((2,)))


def tosses():
    """All trajectories of a coin tossed twice under the uniform policy: probability and (state, action, reward)."""
    for a, b, lucky in product((0, 1), (0, 1), (0, 1)):
        chance = Fraction(1, 4) * (Fraction(1, 4) if lucky else Fraction(3, 4))
        yield chance, [(0, a, 1.0 + a), (a, b, 4.0 * lucky if b == a else 1.0)]


def coin_log(trajectories):
    rows = [
        {"episode": e, "step": t, "state": s, "action": a, "reward": r, "behavior_prob": 0.5}
        for e, steps in enumerate(trajectories)
        for t, (s, a, r) in enumerate(steps)
    ]
    return pl.DataFrame(rows)


def test_the_mean_over_all_possible_logs_is_the_true_value():
    """Unbiased, Jiang & Li (2016), 6.1; a model of the very trajectories that it evaluates is not."""
    truth = Fraction(0)
    crossed, in_sample = Fraction(0), Fraction(0)
    fitter = Tabular(aggregate=op.Grid((2,)))
    for (p, one), (q, two) in product(tosses(), tosses()):
        log = coin_log([one, two])
        cf = op.cross_fit(log, policy=TOSS, domain=COIN, fitter=fitter, estimators=["dr"])
        assert cf.folds["train_episodes"].to_list() == [1, 1]
        crossed += p * q * Fraction(cf["dr"].value)
        values = fitter.fit(log, COIN).values(TOSS, 2, 0.5)
        ev = op.evaluate(op.annotate(log, TOSS, values), discount=0.5, estimators=["dr"])
        in_sample += p * q * Fraction(ev["dr"].value)
    for p, steps in tosses():
        weight = Fraction(1)
        for t, (s, a, r) in enumerate(steps):
            weight *= Fraction(TOSS.table[s][a]) / Fraction(1, 2)
            truth += p * Fraction(1, 2) ** t * weight * Fraction(r)
    assert float(crossed) == pytest.approx(float(truth), rel=1e-13)
    assert abs(float(in_sample) - float(truth)) > 0.05


def test_many_logs_are_right_on_average_and_the_error_is_what_it_says():
    truth = WALK.exact_values(EAGER)[1][0, START]
    found = [cross(WALK.simulate(WALK.behavior, 60, seed), folds=2, estimators=["dr"])["dr"] for seed in range(150)]
    values, errors = (np.array([getattr(each, name) for each in found]) for name in ("value", "std_error"))
    assert abs(values.mean() - truth) < 3.5 * values.std(ddof=1) / np.sqrt(len(values))
    assert 0.8 < np.sqrt((errors**2).mean()) / values.std(ddof=1) < 1.25


@pytest.mark.parametrize("seed", [0, 1])
def test_as_many_folds_as_episodes(seed):
    log = tiny_log(seed=2, episodes=9)
    cf = op.cross_fit(log, policy=TARGET, domain=TINY, fitter=TABULAR, folds=9, seed=seed, estimators=["dr"])
    folds = fold_of(sorted(set(log["episode"])), 9, seed)
    assert cf.folds["fold"].to_list() == sorted(set(folds))
    assert cf.folds["episodes"].to_list() == [int((folds == f).sum()) for f in sorted(set(folds))]
    assert cf["dr"].episodes == 9
    mean = (cf.folds["value"] * cf.folds["episodes"]).sum() / 9
    assert cf["dr"].value == pytest.approx(mean, rel=1e-12)
    alone, others = (cf.folds.filter((pl.col("episodes") == 1) == single) for single in (True, False))
    assert alone.height
    assert alone["std_error"].is_null().all()
    assert set(alone["reason"]) == {"a single trajectory has no standard error"}
    assert others["reason"].is_null().all()
    assert [note for note in cf.notes if "single trajectory" in note] == [
        f"folds {', '.join(map(str, alone['fold']))}: a single trajectory has no standard error"
    ]


def test_another_seed_makes_other_folds(walked):
    assert cross(walked, seed=1)["dr"].value != cross(walked)["dr"].value
    assert cross(walked, seed=1)["step-is"].value == cross(walked)["step-is"].value


def counts_of_others(log, parts, smoothing):
    """π̂0 of each row from the rows of other parts, in rational numbers."""
    rows = list(zip(log["place"], log["action"], parts, strict=True))
    legal = WALK.legal(np.arange(7)[:, None])
    found = []
    for place, action, part in rows:
        seen = [a for s, a, other in rows if s == place and other != part]
        total = sum(seen.count(a) + smoothing for a in range(3) if legal[place, a])
        found.append(float((seen.count(action) + smoothing) / total))
    return found


@pytest.mark.parametrize("options", [{"folds": 3}, {"train_fraction": 0.5}])
def test_an_estimated_behaviour_policy_has_not_seen_its_episodes_either(options):
    log = WALK.simulate(WALK.behavior, 30, seed=4)
    fold = "folds" in options
    parts = fold_of(log["episode"], 3, seed=2) if fold else share_of(log["episode"], seed=2) < 0.5
    cf = cross(log, behavior="counts", smoothing=0.5, seed=2, estimators=["step-is", "dr"], **options)
    known = log.with_columns(behavior_prob=pl.Series(counts_of_others(log, parts, Fraction(1, 2))))
    expected = cross(known, seed=2, estimators=["step-is", "dr"], **options)
    for estimator in ("step-is", "dr"):
        assert cf[estimator].value == pytest.approx(expected[estimator].value, rel=1e-12)
    assert cf.evaluation.settings["behavior"] == "estimated"
    assert any("estimated" in note for note in cf.notes)
    assert not any("behaviour probabilities" in note for note in expected.notes)


def test_a_behaviour_policy_may_be_estimated_by_a_grid_or_a_classifier(walked):
    from sklearn.tree import DecisionTreeClassifier

    counted = cross(walked, behavior="counts", estimators=["dr"])["dr"].value
    bare = walked.drop("behavior_prob")
    assert cross(bare, behavior=WALK.grid, estimators=["dr"])["dr"].value == counted
    tree = DecisionTreeClassifier(random_state=0)
    known = op.estimate_behavior(bare, WALK, classifier=tree, folds=2)
    tree = cross(bare, behavior=tree, estimators=["dr"])
    assert tree["dr"].value == cross(known, estimators=["dr"])["dr"].value != counted
    assert tree.to_dict()["settings"]["cross_fit"]["behavior"].startswith("DecisionTreeClassifier")


def test_estimates_that_the_log_has_already_are_used_and_flagged(walked):
    found = op.estimate_behavior(walked.drop("behavior_prob"), WALK)
    assert any("estimated" in note for note in cross(found).notes)
    both = op.estimate_behavior(walked, WALK)
    assert cross(both)["dr"].value == cross(walked)["dr"].value
    chosen = cross(both, columns=op.Columns(behavior_prob="behavior_prob_hat"))
    assert bits(chosen) == bits(cross(found))
    assert any("estimated" in note for note in chosen.notes)


def test_several_policies_are_evaluated_in_one_scan(walked):
    policies = {"eager": EAGER, "half": Mixture(EAGER, WALK.behavior, 0.5), "mix:a:0.25": Uniform(3, WALK.legal)}
    together = cross(walked.lazy(), policy=policies, estimators=["dr", "dr-v2"])
    for name, policy in policies.items():
        alone = cross(walked, policy=policy, estimators=["dr", "dr-v2"])
        for estimator in ("dr", "dr-v2"):
            assert together[name, estimator].value == alone[estimator].value
            assert together[name, estimator].std_error == alone[estimator].std_error
    assert together.folds.filter(pl.col("policy") == "half").height == 4


def test_a_fold_without_weight_has_no_wdr_of_its_own():
    log = tiny_log(seed=2, episodes=12)
    fold = pl.Series(fold_of(log["episode"], 3))
    always = FromCallable(lambda states, step: np.tile([1.0, 0.0], (len(states), 1)))
    log = log.with_columns(action=pl.when(fold == 1).then(1).otherwise(0))
    cf = op.cross_fit(log, policy=always, domain=TINY, fitter=TABULAR, folds=3, estimators=["dr", "wdr"])
    wdr, dr = (cf.folds.filter(pl.col("estimator") == name)["value"].to_list() for name in ("wdr", "dr"))
    assert wdr[1] is None
    assert None not in [wdr[0], wdr[2], *dr]
    reasons = dict(cf.folds.filter(pl.col("estimator") == "wdr").select("fold", "reason").rows())
    assert reasons[0] is reasons[2] is None
    assert reasons[1].startswith("every weight of policy 'target' is zero at t = 1 ")
    assert [note for note in cf.notes if note.startswith("fold")] == [f"fold 1: {reasons[1]}"]
    assert "fold 1: every weight" in cf["wdr"].interval(method="hoeffding").reason


def test_what_no_f64_can_hold_is_missing_in_the_folds_too():
    log = tiny_log(seed=2, episodes=12).with_columns(behavior_prob=1e-200)
    cf = op.cross_fit(log, policy=TARGET, domain=TINY, fitter=TABULAR, folds=3)
    rows = cf.folds.filter(pl.col("estimator") == "is")
    assert rows["value"].is_null().any()
    for row in rows.filter(pl.col("value").is_null()).iter_rows(named=True):
        assert "no f64 can hold it" in row["reason"]


NAMES = {
    "episode": "user",
    "step": "t",
    "reward": "gain",
    "action": "choice",
    "place": "spot",
    "next_place": "next_spot",
}
RENAMED = op.Columns(episode="user", step="t", reward="gain", action="choice", state=("spot",), terminal="over")


@pytest.mark.parametrize("fitter", ["tabular", "kernel", Tabular(columns=RENAMED)])
@pytest.mark.parametrize("lazy", [False, True])
def test_columns_may_have_other_names_for_every_fitter(walked, fitter, lazy):
    expected = cross(walked, fitter=fitter if isinstance(fitter, str) else "tabular")
    log = walked.rename(NAMES | {"terminal": "over"}).with_columns(reward=pl.lit("not this"), step=pl.lit(None))
    found = cross(log.lazy() if lazy else log, fitter=fitter, columns=RENAMED)
    assert bits(found) == bits(expected)
    assert found.to_dict()["settings"]["columns"]["reward"] == "gain"


def test_steps_may_count_from_one(walked):
    shifted = walked.with_columns(pl.col("step") + 1)
    assert bits(cross(shifted)) == bits(cross(walked)) == bits(cross(shifted.lazy()))


def test_stale_scores_in_the_log_are_not_looked_at(walked):
    stale = walked.with_columns(q_hat=pl.lit(float("nan")), target_prob=7.0, ratio=pl.lit(None), transition_ratio=9.0)
    assert bits(cross(stale)) == bits(cross(walked))


class Told:
    """A fitter that is told the domain."""

    def fit(self, log, domain):
        self.horizon, self.discount, self.actions = domain.horizon, domain.discount, domain.actions
        return Fixed()


def test_horizon_and_discount_are_the_domains_unless_given(walked):
    told = Told()
    cf = cross(walked, fitter=told, horizon=20, discount=0.5, truncation="as-terminal")
    assert (told.horizon, told.discount, told.actions) == (20, 0.5, 3)
    assert (cf.evaluation.horizon, cf.evaluation.settings["discount"]) == (20, 0.5)
    cf = cross(walked, fitter=told)
    assert (told.horizon, told.discount) == (12, 0.95)
    assert (cf.evaluation.horizon, cf.evaluation.settings["discount"]) == (12, 0.95)


def test_a_log_in_no_order_is_sorted_on_request(walked):
    log = walked.drop("next_place").sample(fraction=1.0, shuffle=True, seed=1)
    with pytest.raises(op.BadLogError, match="order"):
        cross(log)
    found = cross(log, order="any")
    assert bits(found) == bits(cross(walked.drop("next_place")))
    assert found.evaluation.repairs["sorted"] is True


def test_the_files_of_the_user_are_the_source_and_values_outlive_the_call(walked, tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    walked.write_parquet(path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    ev = cross(path, estimators=["dr"]).evaluation
    assert [source["source"] for source in ev.sources] == [str(path)]
    assert list(scratch.iterdir())
    assert value_bits(ev, "dr") == value_bits(cross(walked, estimators=["dr"]), "dr")
    del ev
    assert not list(scratch.iterdir())
