"""Single trajectories of a log, however it is cut: weights and columns of every step, and where intervals find them."""

import random
from fractions import Fraction

import offpolicy as op
import polars as pl
import pytest
import reference
from logs import episodes_of, file_pieces, random_log, with_ratio
from offpolicy.logs import trajectories

H = 8
ROLES = {"reward": "reward", "q_hat": "q_hat", "v_hat": "v_hat"}


def found(log, policy="target", **options):
    """Weights and columns by episode, whatever the blocks."""
    ev = op.evaluate(log, horizon=H, estimators=["wdr"], **options)
    rows = {}
    for block in ev.samples.steps(policy, *ROLES, horizon=H):
        for i, episode in enumerate(block.episodes):
            assert episode not in rows
            rows[episode] = (block.c[i], {role: block.columns[role][i] for role in ROLES})
    return rows


def check(rows, log, alpha=0.0):
    episodes = episodes_of(log)
    assert len(rows) == len(episodes)
    for episode in episodes:
        c, columns = rows[episode[0]["episode"]]
        steps = reference.absorbed([reference.exact_steps(episode, alpha)], H)[0]
        weights = reference.cumulative_ratios(steps)[1:]
        assert c == pytest.approx([float(w) for w in weights], rel=1e-13)
        for role, values in columns.items():
            assert values.tolist() == [float(getattr(step, role)) for step in steps]


def test_every_step_of_a_frame(log):
    check(found(log), log)
    check(found(log.lazy()), log)
    check(found(with_ratio(log)), with_ratio(log))


def test_without_a_horizon_a_block_is_as_long_as_its_longest(log):
    lengths = dict(log.group_by("episode").len().iter_rows())
    padded = found(log)
    for block in op.evaluate(log, horizon=H).samples.steps("target"):
        assert block.c.shape[1] == max(lengths[episode] for episode in block.episodes)
        for episode, c in zip(block.episodes, block.c, strict=True):
            assert c[-1] == padded[episode][0][-1]


def test_a_mixture(log):
    policies = {
        "new": op.PolicyColumns(target_prob="target_prob", q_hat="q_hat", v_hat="v_hat"),
        "mix": op.PolicyColumns(mixture_of="new", alpha=0.25, q_hat="q_hat", v_hat="v_hat"),
    }
    check(found(log, "mix", policies=policies), log, alpha=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_files_in_any_order_cut_anywhere(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    log = random_log(seed, 40, 7)
    paths = file_pieces(log, tmp_path, rng.sample(range(log.height), k=rng.choice([2, 10, 60])))
    rng.shuffle(paths)
    monkeypatch.setattr(trajectories, "ROWS", rng.choice([1, 5, 1000]))
    monkeypatch.setattr(trajectories, "NUMBERS", rng.choice([1, 50, 10_000]))
    check(found(paths), log)


def test_ids_are_texts_and_rows_unsorted(log):
    named = log.with_columns(episode=pl.format("e{}", "episode"))
    check(found(named), named)
    shuffled = named.sample(fraction=1.0, shuffle=True, seed=3)
    check(found(shuffled, order="any"), named)


def test_columns_have_other_types_and_names(log):
    other = log.with_columns(pl.col("reward").round().cast(pl.Int16), pl.col("episode").cast(pl.UInt16))
    check(found(other), other)
    renamed = log.rename({"episode": "id", "step": "t", "reward": "gain"})
    check(found(renamed, columns=op.Columns(episode="id", step="t", reward="gain")), log)


def test_a_log_is_read_once_more_for_all_levels_of_a_method(log, monkeypatch):
    ev = op.evaluate(log, horizon=H, bounds=op.Bounds(reward=(-9, 9)))
    read = []
    values = ev.samples.values
    monkeypatch.setattr(ev.samples, "values", lambda *what: read.append(what) or values(*what))
    estimate = ev["step-is"]
    for confidence in (0.5, 0.9):
        for method in ("betting", "sequence", "hcope", "anderson"):
            estimate.interval(confidence, method)
    assert read == [("target", "dr-bsl", -9), ("target", "dr-bsl", 9)]
    for confidence in (0.5, 0.9):
        for method in ("bootstrap", "bootstrap-bca"):
            estimate.interval(confidence, method)
    assert len(read) == 3


def test_values_of_another_baseline_than_the_evaluations(log):
    ev = op.evaluate(log, horizon=H, discount=0.9, baseline=5.0)
    exact = reference.evaluate(episodes_of(log), "dr-bsl", 0.9, horizon=H, baseline=-2.0)
    values = ev.samples.values("target", "dr-bsl", -2.0)["value"]
    assert values.to_list() == pytest.approx([float(x) for x in exact.values], rel=1e-12)
    assert ev.values("dr-bsl")["value"].mean() == pytest.approx(ev["dr-bsl"].value, rel=1e-12)


def test_values_beyond_f64_withhold_what_needs_them():
    log = pl.DataFrame({"episode": [0, 0, 1], "step": [0, 1, 0], "reward": 1.0, "ratio": [1e300, 1e300, 1.0]})
    ev = op.evaluate(log, horizon=2, bounds=op.Bounds(reward=(0, 1)))
    for method in ("betting", "bootstrap", "likelihood"):
        assert ev["step-is"].interval(method=method).low is None


@pytest.mark.parametrize("estimator", reference.UNIQUE)
def test_influence_values_are_those_of_the_reference(estimator, log):
    ev = op.evaluate(log, discount=0.9, horizon=H, baseline=0.5)
    policy = "behavior" if estimator == "mc" else "target"
    exact = [reference.exact_steps(episode) for episode in episodes_of(log)]
    if estimator in reference.SELF_NORMALISED:
        psi = reference.influence(reference.absorbed(exact, H), estimator, Fraction(0.9))
    else:
        psi = reference.evaluate(episodes_of(log), estimator, 0.9, horizon=H, baseline=0.5).values
    found = ev.samples.influence(policy, estimator)
    assert found["episode"].to_list() == [episode[0]["episode"] for episode in episodes_of(log)]
    scale = max(map(abs, psi))
    assert found["value"].to_list() == pytest.approx([float(x) for x in psi], rel=1e-12, abs=1e-13 * float(scale))


def test_influence_values_have_the_same_bits_however_the_log_is_cut(log, tmp_path):
    whole = op.evaluate(log, discount=0.9).samples.influence("target", "step-wis")
    pieces = op.evaluate(file_pieces(log, tmp_path, cuts=[3, 4, 11]), discount=0.9).samples.influence(
        "target", "step-wis"
    )
    assert dict(whole.iter_rows()) == dict(pieces.iter_rows())
