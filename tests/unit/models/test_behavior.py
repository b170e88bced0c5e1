"""Estimated behaviour probabilities: right, cross-fitted, and flagged wherever they are used."""

from collections import Counter
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pyarrow.parquet
import pytest
from cli import offpolicy
from offpolicy.folds import fold_of
from offpolicy.logs.columns import ESTIMATED, SCORE
from offpolicy.policies import Mixture, TabularPolicy
from offpolicy.testing import Walk
from offpolicy.testing.walk import PLACES, START
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

WALK = Walk()
LEGAL = WALK.legal(np.arange(PLACES)[:, None])


def behavior():
    """Different in each place, and legal."""
    shares = LEGAL * np.random.default_rng(3).uniform(1, 4, size=LEGAL.shape)
    return TabularPolicy(shares / shares.sum(axis=1, keepdims=True), WALK.grid)


def logged(episodes, seed=0):
    return WALK.simulate(behavior(), episodes, seed)


def by_hand(log, folds, smoothing, seed=0):
    """The formula, row by row, in rational numbers."""
    rows = list(zip(log["episode"], log["place"], log["action"], strict=True))
    fold = dict(zip(log["episode"], fold_of(log["episode"], folds, seed), strict=True))
    found = []
    for episode, place, action in rows:
        others = Counter((s, a) for e, s, a in rows if folds == 1 or fold[e] != fold[episode])
        legal = [a for a in range(3) if LEGAL[place, a]]
        total = sum(others[place, a] + smoothing for a in legal)
        found.append(Fraction(others[place, action] + smoothing) / total)
    return [float(p) for p in found]


@pytest.mark.parametrize("folds", [1, 2, 5])
@pytest.mark.parametrize("smoothing", [Fraction(1), Fraction(1, 4)])
def test_counts_are_the_formula(folds, smoothing):
    log = logged(20)
    found = op.estimate_behavior(log, WALK, folds=folds, smoothing=float(smoothing), seed=7)
    assert found[ESTIMATED].to_list() == pytest.approx(by_hand(log, folds, smoothing, seed=7), rel=1e-15)
    assert found.drop(ESTIMATED, SCORE).equals(log)


def test_known_propensities_are_recovered_within_sampling_error():
    log = logged(4000)
    found = op.estimate_behavior(log.drop("behavior_prob"), WALK)
    visits = np.bincount(log["place"].to_numpy())[log["place"].to_numpy()]
    p = log["behavior_prob"].to_numpy()
    error = np.sqrt(p * (1 - p) / (visits / 2))
    assert (np.abs(found[ESTIMATED].to_numpy() - p) < 5 * error).all()
    assert np.abs(found[ESTIMATED].to_numpy() - p).max() > 0


def changed_rows(folds):
    """Which estimates move when an episode, back at its start, acts otherwise: its first, its fold's, the others."""
    log = logged(30)
    first = pl.col("action").first().over("episode")  # done again by the same episode
    (episode,) = log.filter((pl.col("step") > 0) & (pl.col("place") == START) & (pl.col("action") == first))[
        "episode"
    ].head(1)
    back = (pl.col("episode") == episode) & (pl.col("step") > 0) & (pl.col("place") == START)
    spoiled = log.with_columns(action=pl.when(back).then((first + 1) % 3).otherwise("action"))
    before, after = (op.estimate_behavior(each, WALK, folds=folds)[ESTIMATED] for each in (log, spoiled))
    fold = fold_of(log["episode"], folds)
    here = (log["episode"] == episode).to_numpy()
    same_fold = fold == fold[here][0]
    moved = (before != after).to_numpy()
    untouched = ~here | (log["step"] == 0).to_numpy()
    return moved[here & untouched], moved[same_fold & untouched], moved[~same_fold]


def test_no_estimate_depends_on_the_rows_of_its_own_episode():
    own_first_row, own_fold, others = changed_rows(folds=2)
    assert not own_first_row.any()
    assert not own_fold.any()
    assert others.any()


def test_without_folds_it_does():
    own_first_row, _, _ = changed_rows(folds=1)
    assert own_first_row.all()


def evaluated(log, **options):
    target = Mixture(WALK.policies["eager"], WALK.behavior, alpha=0.5)
    pi = target.probabilities(log.select("place").to_numpy(), log["step"].to_numpy())
    log = log.with_columns(target_prob=pi[np.arange(log.height), log["action"].to_numpy()])
    return op.evaluate(log, discount=WALK.discount, horizon=WALK.horizon, **options), target


def test_an_evaluation_with_estimates_is_close_to_one_with_the_truth():
    log = logged(4000, seed=1)
    known, target = evaluated(log)
    estimated, _ = evaluated(op.estimate_behavior(log.drop("behavior_prob"), WALK))
    truth = WALK.exact_values(target)[1][0, START]
    for estimator in ("step-is", "step-wis"):
        error = known[estimator].std_error
        assert abs(estimated[estimator].value - known[estimator].value) < 2 * error
        assert abs(estimated[estimator].value - truth) < 4 * error


def test_estimates_are_flagged_in_notes_settings_and_json():
    ev, _ = evaluated(op.estimate_behavior(logged(50).drop("behavior_prob"), WALK))
    note = "the behaviour probabilities were estimated (column 'behavior_prob_hat')"
    assert any(text.startswith(note) for text in ev.notes)
    assert note in str(ev)
    document = ev.to_dict()
    assert document["settings"]["behavior"] == "estimated"
    assert document["settings"]["columns"]["behavior_prob"] == ESTIMATED
    assert any(text.startswith(note) for text in document["notes"])


def test_estimates_are_flagged_on_the_command_line(tmp_path):
    path = tmp_path / "log.parquet"
    found = op.estimate_behavior(logged(50).drop("behavior_prob"), WALK)
    found.with_columns(target_prob=0.4).write_parquet(path)
    assert "behaviour probabilities were estimated" in " ".join(offpolicy("evaluate", path).out.split())
    document = offpolicy("evaluate", path, "--json").document
    assert document["settings"]["behavior"] == "estimated"
    assert offpolicy("check", path).code == 0


def test_logged_propensities_go_first_unless_the_estimates_are_named():
    log = op.estimate_behavior(logged(50), WALK)
    ev, _ = evaluated(log)
    assert (ev.settings["behavior"], ev.notes) == ("logged", [])
    assert ev["step-is"].value == evaluated(log.drop(ESTIMATED))[0]["step-is"].value
    named, _ = evaluated(log, columns=op.Columns(behavior_prob=ESTIMATED))
    assert named.settings["behavior"] == "estimated"
    assert named["step-is"].value == evaluated(log.drop("behavior_prob"))[0]["step-is"].value
    assert named["step-is"].value != ev["step-is"].value


def test_given_ratios_go_before_estimates():
    log = op.estimate_behavior(logged(50).drop("behavior_prob"), WALK).with_columns(ratio=1.0, target_prob=0.4)
    ev = op.evaluate(log)
    assert ev.settings["behavior"] == "logged"
    assert ev["step-is"].value == ev["mc"].value


def test_what_needs_no_weight_is_not_flagged():
    log = op.estimate_behavior(logged(50).drop("behavior_prob"), WALK).with_columns(target_prob=0.4, w=1.0)
    ev = op.evaluate(log, estimators=["mc"])
    assert (ev.settings["behavior"], ev.notes) == ("logged", [])
    policies = {"other": op.PolicyColumns(ratio="w"), "mixed": op.PolicyColumns(mixture_of="other", alpha=0.5)}
    assert op.evaluate(log, policies=policies).settings["behavior"] == "logged"
    policies["new"] = op.PolicyColumns(target_prob="target_prob")
    assert op.evaluate(log, policies=policies).settings["behavior"] == "estimated"


def test_check_looks_at_the_estimates():
    log = op.estimate_behavior(logged(50).drop("behavior_prob"), WALK).with_columns(
        target_prob=0.4, behavior_prob_hat=0.0
    )
    assert op.check(log).problems[0].column == ESTIMATED


def test_every_kind_of_log_gets_the_same_estimates(tmp_path):
    log = logged(200)
    truth = op.estimate_behavior(log, WALK)
    path = tmp_path / "log.parquet"
    log.write_parquet(path, row_group_size=100)
    once = pyarrow.parquet.ParquetFile(path)
    reader = pyarrow.RecordBatchReader.from_batches(once.schema_arrow, once.iter_batches(batch_size=64))
    for kind in (path, log.lazy(), pl.scan_parquet(path), reader):
        found = op.estimate_behavior(kind, WALK)
        assert isinstance(found, pl.LazyFrame)
        assert found.collect().equals(truth)
        assert pl.concat(found.collect_batches(chunk_size=50)).sort("episode", "step").equals(truth)
    assert op.estimate_behavior(log.to_pandas(), WALK).equals(truth)


def test_other_names_of_columns_and_ids_that_are_texts():
    log = logged(50).with_columns(pl.format("e{}", "episode").alias("episode"))
    renamed = log.rename({"episode": "patient", "action": "dose", "place": "at"}).drop("next_place")
    columns = op.Columns(episode="patient", action="dose", state=("at",))
    found = op.estimate_behavior(renamed, WALK, columns=columns)
    assert found[ESTIMATED].equals(op.estimate_behavior(log, WALK)[ESTIMATED])


def test_a_tree_with_a_leaf_for_each_place_is_counting():
    log = logged(400)
    tree = DecisionTreeClassifier(random_state=0)
    found = op.estimate_behavior(log, WALK, classifier=tree, smoothing=0.0)
    counted = op.estimate_behavior(log, WALK, smoothing=0.0)
    assert found[ESTIMATED].to_list() == pytest.approx(counted[ESTIMATED].to_list(), rel=1e-12)
    assert not hasattr(tree, "tree_")


def test_a_classifier_for_states_without_cells():
    """π(1|x) is logistic in x, which is what the classifier fits."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    p = 1 / (1 + np.exp(-(0.5 + x)))
    action = (rng.random(4000) < p).astype(int)
    log = pl.DataFrame({"episode": np.arange(4000), "step": 0, "state": x, "action": action, "reward": 0.0})
    domain = op.LoggedDomain(state_columns=("state",), actions=2, horizon=1, reward_range=(0.0, 1.0))
    found = op.estimate_behavior(log, domain, classifier=LogisticRegression())
    assert found[ESTIMATED].to_numpy() == pytest.approx(np.where(action == 1, p, 1 - p), abs=0.06)
    by_cells = op.estimate_behavior(log, domain, aggregate=op.Grid.over([(-6.0, 6.0)], scale=(2.0,)))
    assert (by_cells[ESTIMATED] - found[ESTIMATED]).abs().median() < 0.06


def test_an_action_that_other_folds_never_have_keeps_a_probability():
    """Two episodes in different folds, one action each."""
    (first, second) = (next(i for i in range(9) if fold_of([i], 2)[0] == fold) for fold in (0, 1))
    log = pl.DataFrame({"episode": [first, second], "step": 0, "place": 3, "action": [0, 2], "reward": 0.0}).sort(
        "episode"
    )
    log = log.with_columns(terminal=False)
    assert op.estimate_behavior(log, WALK)[ESTIMATED].to_list() == pytest.approx([1 / 4, 1 / 4])  # (0 + 1)/(1 + 3)
    tree = DecisionTreeClassifier()
    assert op.estimate_behavior(log, WALK, classifier=tree)[ESTIMATED].to_list() == pytest.approx([1 / 4, 1 / 4])
    bare = op.estimate_behavior(log, WALK, smoothing=0.0).with_columns(target_prob=0.5)
    with pytest.raises(op.BadLogError, match=f"{ESTIMATED} = 0"):
        op.evaluate(bare)


REFUSED = {
    "no cells": (
        {},
        op.LoggedDomain(state_columns=("place",), actions=3, horizon=12, reward_range=(0.0, 1.0)),
        "domain 'log' has no grid to count in: give aggregate=",
    ),
    "no folds": ({"folds": 0}, WALK, "folds must be a whole number of at least 1, not 0"),
    "less than nothing": ({"smoothing": -1.0}, WALK, "smoothing must be at least 0 and finite, not -1"),
    "no number": ({"smoothing": "x"}, WALK, "smoothing must be at least 0 and finite, not 'x'"),
    "one class": ({"classifier": LogisticRegression()}, WALK, "the classifier cannot be fitted to"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options, domain, says = REFUSED[case]
    log = logged(20)
    if case == "one class":
        log = log.with_columns(action=pl.lit(0, dtype=pl.Int32))
    with pytest.raises(op.OffPolicyError, match=says):
        op.estimate_behavior(log, domain, **options)


def test_an_action_that_the_domain_forbids_is_named():
    log = logged(20)
    at = log.filter(pl.col("place") == 1).row(0, named=True)
    here = (pl.col("episode") == at["episode"]) & (pl.col("step") == at["step"])
    spoiled = log.with_columns(action=pl.when(here).then(pl.lit(1, dtype=pl.Int32)).otherwise("action"))
    says = rf"episode {at['episode']}, step {at['step']}: action 1 is not legal in the state \[1\]"
    with pytest.raises(op.OffPolicyError, match=says):
        op.estimate_behavior(spoiled, WALK)


def test_too_few_episodes_for_folds_are_refused():
    with pytest.raises(op.OffPolicyError, match=r"are in one of 2 folds.*needs folds=1"):
        op.estimate_behavior(logged(1), WALK)
    assert op.estimate_behavior(logged(1), WALK, folds=1)[ESTIMATED].min() > 0
