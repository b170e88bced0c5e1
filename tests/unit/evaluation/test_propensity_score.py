"""Standard errors that know that π0 was estimated: exact on small logs, right in simulations, silent elsewhere."""

import random
from fractions import Fraction

import numpy as np
import offpolicy as op
import polars as pl
import pytest
import reference
from logs import bits, episodes_of, file_pieces, skeleton
from offpolicy.folds import fold_of
from offpolicy.logs.columns import ESTIMATED, SCORE
from offpolicy.testing import Walk
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

ACTIONS, CELLS = 3, 2
WALK = Walk()
DOMAIN = op.LoggedDomain(state_columns=("state",), actions=ACTIONS, horizon=3, reward_range=(-9.0, 9.0))
GRID = op.Grid((CELLS,))


def small_log(episodes=50, seed=0):
    """Ragged episodes in two cells, with three actions, and a model of no use."""
    rng = np.random.default_rng(seed)
    log = skeleton(rng.integers(1, 4, episodes))
    n = log.height
    return log.with_columns(
        state=rng.integers(0, CELLS, n),
        action=rng.integers(0, ACTIONS, n),
        reward=rng.normal(1, 1, n),
        target_prob=rng.uniform(0.1, 0.9, n),
        q_hat=rng.normal(size=n),
        v_hat=rng.normal(size=n),
    )


def counted(log, **options):
    return op.estimate_behavior(log, DOMAIN, aggregate=GRID, **options)


def exact_error(log, estimator, folds, evaluated=lambda episode: True):
    """The formulas of `offpolicy.evaluation.propensity_score`, episode by episode, in rational numbers."""
    every = sorted(set(log["episode"]))
    fold = dict(zip(every, fold_of(every, folds).tolist(), strict=True))
    episodes = [e for e in episodes_of(log, behavior_prob=ESTIMATED) if evaluated(e[0]["episode"])]
    exact, n = [reference.exact_steps(episode) for episode in episodes], len(episodes)
    if estimator in reference.SELF_NORMALISED:
        psi = reference.influence(reference.absorbed(exact, 3), estimator, Fraction(1))
    else:
        psi = reference.evaluate(episodes, estimator, 1.0, horizon=3).values
    psi = [each - reference.mean(psi) for each in psi]
    visits, sums = {}, {}
    for episode, each in zip(episodes, psi, strict=True):
        for row in episode:
            key = row["state"], row["action"]
            visits[key] = visits.get(key, 0) + 1
            sums[key] = sums.get(key, Fraction(0)) + each
    h = {}
    for z, a in visits:
        here = [key for key in visits if key[0] == z]
        mean = sum(sums[key] for key in here) / sum(visits[key] for key in here)
        h[z, a] = sums[z, a] / visits[z, a] - mean
    projection = [sum(h[row["state"], row["action"]] for row in episode) for episode in episodes]
    others = {f: [k for k in every if folds == 1 or fold[k] != f] for f in range(folds)}
    ids = [episode[0]["episode"] for episode in episodes]
    weight = {k: sum(Fraction(1, n * len(others[fold[i]])) for i in ids if k in others[fold[i]]) for k in every}
    x = [each - n * weight[i] * taken for i, each, taken in zip(ids, psi, projection, strict=True)]
    spread = sum((each - reference.mean(x)) ** 2 for each in x) / (n * (n - 1 - (len(visits) - CELLS)))
    outside = sum(w * w for k, w in weight.items() if k not in ids)
    tau = sum(taken * taken for taken in projection) / n
    return reference.square_root(spread + tau * outside)


@pytest.mark.parametrize("folds", [1, 2, 3])
@pytest.mark.parametrize("estimator", ["is", "step-is", "wis", "step-wis", "dr", "wdr"])
def test_the_standard_error_is_that_of_the_formula(estimator, folds):
    log = counted(small_log(), folds=folds)
    found = op.evaluate(log)[estimator]
    assert found.std_error == pytest.approx(exact_error(log, estimator, folds), rel=1e-11)
    assert found.std_error != pytest.approx(op.evaluate(log.drop(SCORE))[estimator].std_error, rel=1e-3)
    assert found.interval().assumptions["quantile"] == pytest.approx(2.0141033888808453)  # t with 50 − 1 − 4


@pytest.mark.parametrize("folds", [1, 2, 3])
def test_a_part_of_the_log_uses_probabilities_that_others_share(folds):
    log = counted(small_log(episodes=90), folds=folds)
    part = op.evaluate(log.filter(pl.col("episode") % 3 > 0))
    for estimator in ("step-is", "step-wis"):
        expected = exact_error(log, estimator, folds, lambda episode: episode % 3 > 0)
        assert part[estimator].std_error == pytest.approx(expected, rel=1e-11)


def test_a_fold_alone_has_probabilities_of_others_and_a_larger_error():
    log = counted(small_log(episodes=120), folds=2)
    mine = set(log.filter(pl.col(SCORE).struct.field("fold") == 1)["episode"])
    alone = log.filter(pl.col("episode").is_in(mine))
    found = op.evaluate(alone)["step-is"].std_error
    assert found == pytest.approx(exact_error(log, "step-is", 2, lambda episode: episode in mine), rel=1e-11)
    assert found > op.evaluate(alone.drop(SCORE))["step-is"].std_error


def test_a_bootstrapped_log_keeps_what_the_estimation_of_propensities_wrote():
    log = counted(small_log()).with_columns(r_hat=0.5)
    last = pl.col("step") == pl.col("step").max().over("episode")
    cut = log.with_columns(truncated=last & (pl.col("episode") % 5 == 0))
    options = {"truncation": "bootstrap", "estimators": ["step-is", "dr"], "horizon": int(log["step"].max()) + 2}
    ev, known = op.evaluate(cut, **options), op.evaluate(cut.drop(SCORE), **options)
    assert any("account for the estimation" in note for note in ev.notes)
    assert ev["step-is"].value == known["step-is"].value
    assert ev["step-is"].std_error != known["step-is"].std_error


def chain(seed, episodes, horizon):
    """π0 is constant in each of three states."""
    rng = np.random.default_rng(seed)
    p, q = np.array([0.3, 0.6, 0.5]), np.array([0.5, 0.4, 0.7])
    state, rows = np.zeros(episodes, dtype=int), []
    for _ in range(horizon):
        action = (rng.random(episodes) < p[state]).astype(int)
        reward = 0.5 + action * (state + 1) / 2 + rng.normal(0, 0.3, episodes)
        rows.append((state, action, reward, np.where(action == 1, q[state], 1 - q[state])))
        state = (state + (rng.random(episodes) < 0.3 + 0.5 * action)) % 3
    return as_log(rows, episodes, horizon)


def slope(seed, episodes, horizon):
    """π0 is logistic in the state."""
    rng = np.random.default_rng(seed)
    state, rows = rng.normal(size=episodes), []
    for _ in range(horizon):
        p, q = 1 / (1 + np.exp(-0.5 * state)), 1 / (1 + np.exp(-0.5 + 0.3 * state))
        action = (rng.random(episodes) < p).astype(int)
        reward = 0.5 + action * (1 + 0.5 * state) + rng.normal(0, 0.3, episodes)
        rows.append((state, action, reward, np.where(action == 1, q, 1 - q)))
        state = 0.5 * state + 0.4 * action - 0.2 + rng.normal(0, 0.7, episodes)
    return as_log(rows, episodes, horizon)


def as_log(rows, episodes, horizon):
    names = ("state", "action", "reward", "target_prob")
    columns = (np.stack(each, axis=1).ravel() for each in zip(*rows, strict=True))
    return skeleton([horizon] * episodes).with_columns(**dict(zip(names, columns, strict=True)))


@pytest.mark.parametrize(
    ("simulate", "how"),
    [(chain, {"aggregate": op.Grid((3,))}), (slope, {"classifier": LogisticRegression()})],
    ids=["counts", "logistic"],
)
@pytest.mark.slow
def test_reported_errors_are_the_spread_over_many_logs(simulate, how):
    """Where probabilities are taken as known they are 1.3 to 1.7 times as wide."""
    domain = op.LoggedDomain(state_columns=("state",), actions=2, horizon=5, reward_range=(-9.0, 9.0))
    found = {"step-is": [], "step-wis": []}
    for seed in range(400):
        log = op.estimate_behavior(simulate(seed, 500, 5), domain, **how)
        ev, known = (
            op.evaluate(each, estimators=list(found), threads=1, diagnostics=False) for each in (log, log.drop(SCORE))
        )
        for name, rows in found.items():
            rows.append((ev[name].value, ev[name].std_error, ev[name].low, ev[name].high, known[name].std_error))
    for rows in found.values():
        value, error, low, high, known = np.array(rows).T
        assert error.mean() == pytest.approx(value.std(ddof=1), rel=0.1)
        assert 0.92 <= np.mean((low < value.mean()) & (value.mean() < high)) <= 0.98
        assert known.mean() > 1.25 * value.std(ddof=1)


def test_a_logistic_model_of_every_cell_is_counting():
    """One-hot states and no penalty: the same probabilities, the same score space, three actions."""
    log = small_log(episodes=80)
    hot = log.with_columns(*((pl.col("state") == z).cast(pl.Float64).alias(f"state_{z}") for z in range(CELLS)))
    names = tuple(f"state_{z}" for z in range(CELLS))
    domain = op.LoggedDomain(state_columns=names, actions=ACTIONS, horizon=3, reward_range=(-9.0, 9.0))
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000)
    fitted = op.estimate_behavior(hot, domain, classifier=model, folds=1, smoothing=0.0)
    by_counts = op.evaluate(counted(log, folds=1, smoothing=0.0))
    by_model = op.evaluate(fitted)
    for estimator in ("step-is", "step-wis", "dr"):
        assert by_model[estimator].std_error == pytest.approx(by_counts[estimator].std_error, rel=1e-5)
    assert any("(a logistic model of 4 parameters)" in note for note in by_model.notes)
    with_intercept = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)  # one direction too many
    again = op.evaluate(op.estimate_behavior(hot, domain, classifier=with_intercept, folds=1, smoothing=0.0))
    assert again["step-is"].std_error == pytest.approx(by_counts["step-is"].std_error, rel=1e-5)


def test_a_penalty_that_leaves_nothing_to_estimate_leaves_the_error():
    domain = op.LoggedDomain(state_columns=("state",), actions=2, horizon=5, reward_range=(-9.0, 9.0))
    model = LogisticRegression(C=1e-9, fit_intercept=False)
    log = op.estimate_behavior(slope(0, 300, 5), domain, classifier=model)
    known = op.evaluate(log.drop(SCORE))["step-is"].std_error
    assert op.evaluate(log)["step-is"].std_error == pytest.approx(known, rel=0.005)


@pytest.fixture(params=["counts", "logistic"])
def scored(request):
    log = small_log(episodes=70).with_columns(episode=pl.format("e{}", "episode")).sort("episode", "step")
    if request.param == "counts":
        return counted(log)
    return op.estimate_behavior(log, DOMAIN, classifier=LogisticRegression())


def test_same_bits_for_every_kind_of_log(scored, tmp_path):
    expected = bits(op.evaluate(scored))
    assert any("account for the estimation" in note for note in op.evaluate(scored).notes)
    paths = file_pieces(scored, tmp_path, cuts=[3, 40, 41, 90], row_group_size=7)
    for kind in (paths, paths[::-1], scored.lazy(), scored.to_arrow().to_reader()):
        assert bits(op.evaluate(kind, batch_rows=11, threads=2)) == expected
    shuffled = scored.sample(fraction=1.0, shuffle=True, seed=1)
    assert bits(op.evaluate(shuffled, order="any")) == expected
    assert bits(op.evaluate(pl.concat([shuffled, shuffled]), dedupe="identical")) == expected


def test_clusters_of_one_episode_change_nothing(scored):
    iid, alone = op.evaluate(scored), op.evaluate(scored, cluster="episode")
    for estimator in ("step-is", "step-wis", "dr"):
        assert alone[estimator].std_error == pytest.approx(iid[estimator].std_error, rel=1e-12)


def test_clusters_and_estimates_go_together(scored):
    users = random.Random(0)
    table = {episode: users.randrange(300) for episode in sorted(set(scored["episode"]))}
    log = scored.with_columns(user=pl.col("episode").replace_strict(table))
    both, clustered = op.evaluate(log, cluster="user"), op.evaluate(log.drop(SCORE), cluster="user")
    assert both["step-is"].std_error < clustered["step-is"].std_error
    assert both["step-is"].degrees == len(set(table.values())) - 1


def test_nothing_changes_where_nothing_was_estimated(scored):
    known = scored.with_columns(behavior_prob=pl.col(ESTIMATED))
    ev, without = op.evaluate(known), op.evaluate(known.drop(SCORE))
    assert (bits(ev), ev.notes) == (bits(without), without.notes)
    estimated = op.evaluate(scored)
    assert estimated["mc"].std_error == ev["mc"].std_error
    assert estimated["reg"].std_error == ev["reg"].std_error
    assert bits(op.evaluate(scored.drop(SCORE))) == bits(without)


KNOWN = "standard errors and intervals take them as known"


def note_of(log, **options):
    (note,) = (note for note in op.evaluate(log, **options).notes if "were estimated" in note)
    return note


def test_where_it_cannot_be_accounted_for_the_note_stays(scored):
    assert note_of(scored.drop(SCORE)).endswith(KNOWN)
    assert KNOWN in note_of(scored.with_columns(pl.lit(1).alias(SCORE)))
    half = scored.with_columns(pl.when(pl.col("step") > 0).then(SCORE).alias(SCORE))
    assert KNOWN in note_of(half)
    assert KNOWN in note_of(scored, passes=1)
    twice = pl.concat([scored, scored.with_columns(pl.col("episode") + "again")])
    assert "of fewer episodes than are evaluated" in note_of(twice)
    for log in (half, twice):
        assert bits(op.evaluate(log)) == bits(op.evaluate(log.drop(SCORE)))


def test_counts_need_the_action():
    log = counted(small_log())
    assert "no column of the action" in note_of(log.drop("action"))
    renamed = log.rename({"action": "dose"})
    assert bits(op.evaluate(renamed, columns=op.Columns(action="dose"))) == bits(op.evaluate(log))


def test_too_many_parameters_leave_the_wide_error():
    log = counted(small_log(episodes=39))
    assert "(counts in 2 cells: 4 parameters are too many for 39 episodes)" in note_of(log)
    assert bits(op.evaluate(log)) == bits(op.evaluate(log.drop(SCORE)))
    assert "account for" in note_of(counted(small_log(episodes=40)))


def test_magic_and_mixtures_take_them_as_known():
    log = counted(small_log())
    assert "standard errors but those of magic account for" in note_of(log)
    policies = {
        "new": op.PolicyColumns(target_prob="target_prob"),
        "mix": op.PolicyColumns(mixture_of="new", alpha=0.5),
    }
    ev, without = (op.evaluate(each, policies=policies, estimators=["step-is"]) for each in (log, log.drop(SCORE)))
    assert ev["mix", "step-is"] == without["mix", "step-is"]
    assert ev["new", "step-is"].std_error != without["new", "step-is"].std_error


def test_another_estimate_leaves_no_score_behind():
    log = op.estimate_behavior(counted(small_log()), DOMAIN, classifier=DecisionTreeClassifier(max_depth=2))
    assert SCORE not in log.columns
    weighted = LogisticRegression(class_weight="balanced")
    assert SCORE not in op.estimate_behavior(small_log(), DOMAIN, classifier=weighted).columns


def test_cross_fitting_and_improving_account_for_the_estimation():
    log = WALK.simulate(WALK.behavior, 600, seed=3).drop("behavior_prob")
    policy = op.policies.Mixture(WALK.policies["eager"], WALK.behavior, alpha=0.8)
    cf = op.cross_fit(log, WALK, policy=policy, behavior="counts", estimators=["step-is"])
    assert any("account for the estimation" in note for note in cf.notes)
    parts = [part.evaluation["step-is"] for part in cf.parts]
    pooled = np.sqrt(sum((part.std_error * part.episodes) ** 2 for part in parts)) / 600
    assert cf["step-is"].std_error < pooled  # a fold alone has the probabilities of others
    split = op.cross_fit(log, WALK, policy=policy, behavior="counts", estimators=["step-is"], train_fraction=0.5)
    assert any("account for the estimation" in note for note in split.notes)
    best = op.improve(log, WALK, generator={"new": policy}, behavior="counts", estimator="step-is")
    found = op.evaluate(
        op.annotate(op.estimate_behavior(log, WALK), policy=policy, columns=op.Columns.of(WALK)),
        discount=WALK.discount,
        horizon=WALK.horizon,
    )
    assert best.candidates["std_error"][0] == found["step-is"].std_error
