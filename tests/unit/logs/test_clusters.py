"""Episodes in clusters: exact errors, the same bits for every log, refusals with their place, and a hint."""

from fractions import Fraction

import duckdb
import numpy as np
import offpolicy as op
import polars as pl
import pyarrow.dataset
import pytest
import reference
from cli import offpolicy
from hypothesis import given
from hypothesis import strategies as st
from logs import bits, episodes_of, file_pieces, random_log
from offpolicy.evaluation.estimators import WEIGHTED
from offpolicy.folds import hash_of
from offpolicy.intervals import poisson
from offpolicy.logs.sources import FrameSource
from offpolicy.testing import Walk

H, DISCOUNT, BASELINE = 5, 0.9, 0.5
WALK = Walk()


def with_users(log, users):
    """Every episode, in the order of the log, with its user."""
    ids = log["episode"].unique(maintain_order=True)
    table = pl.DataFrame({"episode": ids, "user": users})
    return log.join(table, on="episode", how="left", maintain_order="left")


def users_of(log):
    return dict(log.select("episode", "user").unique().iter_rows())


def evaluate(log, **more):
    return op.evaluate(log, **({"discount": DISCOUNT, "horizon": H, "baseline": BASELINE} | more))


def exact_error(log, estimator):
    """√(G/(G−1) Σ_g (Σ_{i in g} (ψ_i − ψ̄))² / n²) in rational numbers."""
    exact = [reference.exact_steps(episode) for episode in episodes_of(log)]
    if estimator in reference.SELF_NORMALISED:
        psi = reference.influence(reference.absorbed(exact, H), estimator, Fraction(DISCOUNT))
    else:
        psi = reference.evaluate(episodes_of(log), estimator, DISCOUNT, horizon=H, baseline=BASELINE).values
    mean, sums = reference.mean(psi), {}
    for episode, each in zip(episodes_of(log), psi, strict=True):
        user = episode[0]["user"]
        sums[user] = sums.get(user, Fraction(0)) + each - mean
    groups, n = len(sums), len(psi)
    return reference.square_root(Fraction(groups, groups - 1) * sum(x * x for x in sums.values()) / n**2)


@pytest.fixture
def clustered():
    """20 episodes of 6 users, ragged."""
    log = random_log(seed=5, episodes=20, horizon=H)
    return with_users(log, [f"u{i * i % 6}" for i in range(19)] + ["alone"])


@pytest.mark.parametrize("estimator", reference.UNIQUE)
def test_the_standard_error_is_that_of_the_formula(estimator, clustered):
    found = evaluate(clustered, cluster="user")[estimator]
    assert found.std_error == pytest.approx(exact_error(clustered, estimator), rel=1e-12)
    assert found.std_error == found.interval().assumptions["std_error"]


@given(st.lists(st.integers(0, 4), min_size=12, max_size=12).filter(lambda users: len(set(users)) > 1))
def test_the_standard_error_is_that_of_the_formula_for_any_clusters(users):
    log = with_users(random_log(seed=6, episodes=12, horizon=H), users)
    ev = evaluate(log, cluster="user", estimators=["step-is", "wis"])
    for estimator in ("step-is", "wis"):
        assert ev[estimator].std_error == pytest.approx(exact_error(log, estimator), rel=1e-11, abs=1e-15)


def test_clusters_of_one_episode_give_the_error_of_independent_ones(clustered):
    alone, iid = evaluate(clustered, cluster="episode"), evaluate(clustered)
    assert alone.clusters == alone.episodes == 20
    for estimate in iid.estimates:
        if estimate.estimator != "magic":
            found = alone[estimate.key]
            assert found.std_error == pytest.approx(estimate.std_error, rel=1e-12)
            assert found.value == estimate.value
            if estimate.estimator not in WEIGHTED:  # which leave out single episodes in small samples
                assert (found.low, found.high) == pytest.approx((estimate.low, estimate.high), rel=1e-12)


def test_an_episode_told_twice_in_its_cluster_changes_nothing(clustered):
    twice = pl.concat([clustered, clustered.with_columns(pl.col("episode") + 1000)])
    once, doubled = (evaluate(log, cluster="user", estimators=["mc", "dr", "step-wis"]) for log in (clustered, twice))
    for estimate in once.estimates:
        assert doubled[estimate.key].std_error == pytest.approx(estimate.std_error, rel=1e-12)
    assert evaluate(twice)["mc"].std_error < evaluate(clustered)["mc"].std_error / 1.3


def test_names_of_clusters_and_episodes_do_not_matter(clustered):
    numbers = clustered.with_columns(user=pl.col("user").rank("dense").cast(pl.Int16) * -7)
    renamed = numbers.with_columns(episode=pl.format("e{}", (pl.col("episode") * 7919) % 1009))
    expected = bits(evaluate(clustered, cluster="user"))
    assert bits(evaluate(numbers, cluster="user")) == expected
    assert bits(evaluate(renamed, cluster="user")) == expected
    assert bits(evaluate(clustered.with_columns(pl.col("user").cast(pl.Categorical)), cluster="user")) == expected


@pytest.fixture(scope="module")
def wide_clustered(wide):
    return with_users(wide, np.random.default_rng(0).integers(0, 17, wide["episode"].n_unique()))


def test_same_bits_for_every_kind_of_log(wide_clustered, tmp_path):
    log = wide_clustered
    expected = bits(op.evaluate(log, cluster="user"))
    paths = file_pieces(log, tmp_path, cuts=[3, 50, 51, 200, 401], row_group_size=7)
    dataset = pyarrow.dataset.dataset(paths)
    relation = duckdb.sql("SELECT * FROM log ORDER BY episode, step")
    for kind in (paths, paths[::-1], log.lazy(), dataset, relation, log.to_arrow().to_reader()):
        assert bits(op.evaluate(kind, cluster="user", batch_rows=31)) == expected
    shuffled = log.sample(fraction=1.0, shuffle=True, seed=1)
    for kind in (shuffled, shuffled.lazy()):
        assert bits(op.evaluate(kind, cluster="user", order="any")) == expected
    repeated = pl.concat([shuffled, shuffled])
    assert bits(op.evaluate(repeated, cluster="user", dedupe="identical")) == expected


def test_bootstrap_has_the_same_bits_and_resamples_clusters(wide_clustered, tmp_path):
    log = wide_clustered.with_columns(reward=pl.col("reward").sign())
    paths = file_pieces(log, tmp_path, cuts=[3, 50, 51, 200, 401])
    for estimator in ("step-is", "step-wis"):
        found = [
            op.evaluate(kind, cluster="user")[estimator].interval(method="bootstrap-bca") for kind in (log, paths[::-1])
        ]
        assert found[0] == found[1]
    ev = op.evaluate(log, cluster="user", estimators=["mc"])
    values = ev.values("mc")
    user = pl.Series([users_of(log)[episode] for episode in values["episode"]])
    drawn = poisson.weights(hash_of(user, 3), range(500))
    means = np.sort((values["value"].to_numpy() @ drawn) / drawn.sum(axis=0))
    interval = ev["mc"].interval(method="bootstrap", replicates=2000, seed=3)
    assert (interval.low, interval.high) == pytest.approx((means[49], means[-50]), rel=1e-7)
    assert interval.assumptions["clusters"] == 17


def test_bootstrap_of_clusters_of_one_episode_is_that_of_episodes(clustered):
    iid, alone = (evaluate(clustered, cluster=cluster) for cluster in (None, "episode"))
    for estimator in ("dr", "step-wis"):
        one, other = (ev[estimator].interval(method="bootstrap-bca") for ev in (iid, alone))
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)


def test_the_result_says_how_many_clusters_there_are(clustered):
    ev = evaluate(clustered, cluster="user")
    document = ev.to_dict()
    assert (ev.clusters, document["clusters"], document["settings"]["cluster"]) == (5, 5, "user")
    assert document["estimates"][0]["interval"]["assumptions"]["clusters"] == 5
    assert ev["dr"].clusters == 5
    assert any("5 clusters (column 'user')" in note for note in ev.notes)
    assert evaluate(clustered).to_dict()["clusters"] is None


def test_the_quantile_of_t_has_one_degree_less_than_clusters(clustered):
    interval = evaluate(clustered, cluster="user")["dr"].interval(0.95, "t")
    assert interval.assumptions["quantile"] == pytest.approx(2.7764451051977987)


def test_what_needs_independent_episodes_is_withheld(clustered):
    bounds = op.Bounds(reward=(-9, 9), ratio=20.0, q=(-9, 9))
    ev = evaluate(clustered, cluster="user", bounds=bounds)
    for method in op.intervals.METHODS:
        interval = ev["step-is"].interval(method=method)
        if method in ("t", "normal", "bootstrap", "bootstrap-bca"):
            assert interval.low is not None or interval.reason.startswith("vacuous") or "resamples" in interval.reason
        else:
            assert interval.low is None
            assert "episodes of one cluster are not independent" in interval.reason


def test_magic_has_no_error_by_cluster(clustered):
    magic = evaluate(clustered, cluster="user")["magic"]
    assert (magic.std_error, magic.low) == (None, None)
    assert "no influence values" in magic.reason


def test_one_cluster_has_no_error(clustered):
    ev = evaluate(clustered.with_columns(user=1), cluster="user")
    assert (ev.clusters, ev["dr"].std_error) == (1, None)
    assert ev["dr"].reason == "all episodes are of one cluster (column 'user')"
    assert ev.verdict_on(ev["dr"]).level != "reliable"


def spoiled(log, value):
    """The user of one step of one episode is another one, or none."""
    episode = log["episode"].unique(maintain_order=True)[7]
    here = (pl.col("episode") == episode) & (pl.col("step") == 1)
    assert log.filter(here).height == 1
    return episode, log.with_columns(user=pl.when(here).then(pl.lit(value)).otherwise("user"))


@pytest.mark.parametrize(("value", "kind", "shown"), [("other", "not-constant", "other"), (None, "null", "null")])
def test_a_cluster_that_changes_or_is_missing_is_refused_with_its_place(clustered, tmp_path, value, kind, shown):
    episode, log = spoiled(clustered, value)
    paths = file_pieces(log, tmp_path, cuts=[10, 20, 30])
    for source in (log, log.lazy(), paths, paths[::-1]):
        with pytest.raises(op.BadLogError) as error:
            evaluate(source, cluster="user")
        (problem,) = error.value.problems
        assert (problem.kind, problem.episode, problem.step) == (kind, episode, 1)
        assert (problem.column, problem.value) == ("user", shown)
    row = log.with_row_index().filter((pl.col("episode") == episode) & (pl.col("step") == 1))["index"][0]
    assert problem.file == str(paths[min(row // 10, 3)])


def test_every_problem_is_counted(clustered):
    with pytest.raises(op.BadLogError) as error:
        evaluate(clustered.with_columns(user=pl.col("step")), cluster="user")
    assert error.value.found == clustered.filter(pl.col("step") == 1).height


REFUSED = {
    "absent": ({"cluster": "usr"}, op.MissingColumnError, "no column 'usr' .for cluster=.; did you mean 'user'"),
    "no name": ({"cluster": 3}, op.UsageError, "cluster= takes the name of a column, not 3"),
    "numbers": ({"cluster": "reward"}, op.WrongTypeError, "must hold whole numbers or text, not Float64"),
    "one reading": ({"cluster": "user", "passes": 1}, op.UsageError, "it needs passes=2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(clustered, case):
    options, kind, says = REFUSED[case]
    with pytest.raises(kind, match=says):
        evaluate(clustered, **options)


def shop(seed, users=100, each=5, spread=1.0):
    """Bandit episodes of users whose tastes differ; the value of the target policy is 1.12."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(users), each)
    taken = rng.random(user.size) < 0.5
    taste = spread * rng.normal(size=users)[user]
    return pl.DataFrame(
        {
            "episode": np.arange(user.size),
            "step": 0,
            "user": user,
            "reward": 1 + taste + 0.3 * rng.normal(size=user.size) + 0.2 * taken,
            "behavior_prob": 0.5,
            "target_prob": np.where(taken, 0.6, 0.4),
        }
    )


def test_intervals_of_clusters_cover_where_those_of_episodes_do_not():
    hits = {None: 0, "user": 0}
    for seed in range(200):
        for cluster in hits:
            ev = op.evaluate(shop(seed), cluster=cluster, estimators=["step-wis"], threads=1)
            hits[cluster] += ev["step-wis"].low < 1.12 < ev["step-wis"].high
    assert hits[None] < 150
    assert hits["user"] >= 180


def test_few_clusters_are_fragile():
    many, few = (op.evaluate(shop(1, users=n, each=20), cluster="user", estimators=["step-is"]) for n in (60, 20))
    assert many.verdict.level == "reliable"
    assert (few.verdict.level, few.verdict.rule[:15]) == ("fragile", "20 clusters are")


def test_a_cluster_with_most_of_the_variance_is_fragile():
    rich = pl.when(pl.col("user") == 3).then(9.0).otherwise(0.0)
    log = shop(2, each=20).with_columns(reward=pl.col("reward") + rich)
    assert op.evaluate(log, estimators=["step-is"]).verdict.level == "reliable"
    ev = op.evaluate(log, cluster="user", estimators=["step-is"])
    assert ev["step-is"].cluster_share > 0.25
    assert ev.verdict.level == "fragile"
    assert ev.verdict.rule.startswith("one cluster has")


@pytest.mark.parametrize("name", ["user", "User_ID", "patient", "customer_id", "household", "deviceId"])
def test_a_column_that_looks_like_a_user_gets_a_hint(name, tmp_path):
    log = shop(0).rename({"user": name})
    hint = (
        f"the log has a column {name!r} with 100 values for 500 episodes: if episodes of one {name} depend on each "
        f"other, standard errors are too small: evaluate(..., cluster={name!r})"
    )
    log.write_parquet(tmp_path / "log.parquet")
    for source in (log, log.lazy(), tmp_path / "log.parquet"):
        assert op.evaluate(source).notes == [hint]
    assert hint not in op.evaluate(log, cluster=name).notes


def test_a_hint_counts_episodes_without_an_id():
    log = shop(0)
    log = log.with_columns(user=pl.when(pl.col("user") > 3).then("user"))
    nulls = log.group_by("episode").agg(pl.col("user").first())["user"].null_count()
    (hint,) = op.evaluate(log).notes
    assert f"({nulls} of them without one)" in hint


def test_no_hint_without_a_reason():
    log = shop(0)
    silent = {
        "every episode has its own": log.with_columns(user=pl.col("episode")),
        "one for all": log.with_columns(user=1),
        "another name": log.rename({"user": "users_online"}),
        "a measurement": log.with_columns(user=pl.col("user") * 1.5),
    }
    for log in silent.values():
        assert op.evaluate(log).notes == []
    changing = WALK.simulate(WALK.behavior, 50, seed=0).with_columns(target_prob=0.5, device=pl.col("step") % 2)
    assert op.evaluate(changing).notes == []
    assert op.evaluate(shop(0), columns=op.Columns(episode="episode"), passes=1).notes == []


def test_a_log_without_such_a_name_is_not_read_for_a_hint(monkeypatch):
    readings = []
    frames = FrameSource.frames
    monkeypatch.setattr(
        FrameSource, "frames", lambda self, names, rows=None: readings.append(names) or frames(self, names)
    )
    op.evaluate(shop(0).drop("user"))
    assert readings == []
    op.evaluate(shop(0))
    assert readings == [["episode", "user"]]


class Recorder:
    """A tabular fitter that remembers whom it has seen."""

    def __init__(self):
        self.seen = []

    def fit(self, log, domain):
        self.seen.append(set(log.lazy().collect()["user"]))
        return op.fitter("tabular").fit(log, domain)


def walked(episodes=300):
    log = WALK.simulate(WALK.behavior, episodes, seed=1)
    return log.with_columns(user=pl.format("u{}", pl.col("episode") // 3))


def test_cross_fitted_models_never_see_a_user_they_evaluate(tmp_path):
    log, fitter = walked(), Recorder()
    options = {"policy": WALK.policies["eager"], "fitter": fitter, "folds": 3, "estimators": ["dr"]}
    cf = op.cross_fit(log, WALK, cluster="user", **options)
    assert (cf.evaluation.clusters, len(fitter.seen)) == (100, 3)
    for part, seen in zip(cf.parts, fitter.seen, strict=True):
        evaluated = part.evaluation.values("dr")["episode"]
        assert not seen & set(log.filter(pl.col("episode").is_in(evaluated.implode()))["user"])
        assert part.evaluation.clusters == 100 - len(seen)
    paths = file_pieces(log, tmp_path, cuts=[100, 101, 500])
    assert bits(op.cross_fit(paths[::-1], WALK, cluster="user", **options)) == bits(cf)
    with pytest.raises(op.UsageError, match="folds must be from 2 to the number of clusters, 100, not 101"):
        op.cross_fit(log, WALK, cluster="user", **(options | {"folds": 101}))


def test_cross_fitting_without_clusters_gives_the_hint_too():
    cf = op.cross_fit(walked(), WALK, policy=WALK.policies["eager"], estimators=["dr"])
    assert any("100 values for 300 episodes" in note for note in cf.notes)


def test_the_command_line_takes_a_column(tmp_path):
    shop(0).write_parquet(tmp_path / "shop.parquet")
    document = offpolicy("evaluate", tmp_path / "shop.parquet", "--cluster", "user", "--json").document
    assert (document["clusters"], document["settings"]["cluster"]) == (100, "user")
    machine = op.domain("machine")
    log = machine.simulate(machine.behavior, 60, seed=2).with_columns(user=pl.col("episode") // 2)
    log.write_parquet(tmp_path / "machine.parquet")
    given = ("--domain", "machine", "--policy", "careful", "--cluster", "user", "--json")
    assert offpolicy("cross-fit", tmp_path / "machine.parquet", *given).document["clusters"] == 30
