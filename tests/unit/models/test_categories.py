"""States of texts and categories, for a fitter that counts them."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.policies import FromCallable
from offpolicy.testing import Walk

WALK = Walk()
NAMES = [f"place {i}" for i in range(7)]
LOG = WALK.simulate(WALK.behavior, 300, seed=1)
WORDS = LOG.with_columns(
    pl.col("place").replace_strict(range(7), NAMES, return_dtype=pl.String),
    pl.col("next_place").replace_strict(range(7), NAMES, return_dtype=pl.String),
)
SETTING = op.LoggedDomain(("place",), 3, WALK.horizon, WALK.reward_range, WALK.discount)
KINDS = {"texts": pl.String, "categories": pl.Categorical, "an enum": pl.Enum(NAMES)}


def by_name(states, step):
    """The walk's other policy, which reads the names."""
    places = np.array([[NAMES.index(name)] for name in states[:, 0]], dtype=int).reshape(-1, 1)
    return WALK.policies["eager"].probabilities(places, step)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["frame", "file", "without next states"])
def test_estimates_are_those_of_the_numbers(kind, form, tmp_path):
    log = WORDS.with_columns(pl.col("place", "next_place").cast(KINDS[kind]))
    if form == "without next states":
        log = log.drop("next_place")
    cells = op.Categories.of(log, ("place",))
    if form == "file":
        log.write_parquet(tmp_path / "log.parquet")
        log = str(tmp_path / "log.parquet")
    fitter = op.fitter("tabular", aggregate=cells)
    ours = op.cross_fit(log, SETTING, policy=FromCallable(by_name), fitter=fitter, estimators=["dr", "reg"])
    numbers = LOG.drop("next_place") if form == "without next states" else LOG
    theirs = op.cross_fit(numbers, WALK, policy=WALK.policies["eager"], fitter="tabular", estimators=["dr", "reg"])
    for estimator in ("dr", "reg"):
        assert ours[estimator].value == pytest.approx(theirs[estimator].value, rel=1e-12)


def test_improve_works_on_texts():
    best = op.improve(
        WORDS,
        op.LoggedDomain(("place",), 3, WALK.horizon, WALK.reward_range, WALK.discount, behavior=op.policies.Uniform(3)),
        fitter=op.fitter("tabular", aggregate=op.Categories.of(WORDS, ("place",))),
    )
    assert best.candidates.height == 40


def test_texts_and_whole_numbers_side_by_side():
    log = WORDS.with_columns(age=pl.col("step") % 3, next_age=(pl.col("step") + 1) % 3)
    cells = op.Categories.of(log, ("place", "age"))
    assert ("place 3", "0") in cells.values
    domain = op.LoggedDomain(("place", "age"), 3, WALK.horizon, WALK.reward_range)
    model = op.fitter("tabular", aggregate=cells).fit(log, domain)
    annotated = op.annotate(log, op.policies.Uniform(3), model.values(op.policies.Uniform(3), WALK.horizon, 1.0))
    assert annotated["v_hat"].is_finite().all()


def test_what_the_log_does_not_have_is_in_the_last_cell_and_hoped_nothing_of():
    cells = op.Categories.of(WORDS, ("place",))
    assert cells.index(np.array([["attic"]], dtype=object)).tolist() == [cells.cells - 1]
    model = op.fitter("tabular", aggregate=cells).fit(WORDS, SETTING)
    values = model.values(op.policies.Uniform(3), 4, 1.0)
    assert values.v_hat(np.array([["attic"]], dtype=object), 0)[0] == pytest.approx(4 * WALK.reward_range[0])


def test_a_fitter_that_counts_names_categories_where_there_are_no_cells():
    with pytest.raises(op.UsageError, match=r"has no grid: .*op\.Categories\.of\(log, \.\.\.\) for texts"):
        op.fitter("tabular").fit(WORDS, SETTING)


def test_fitters_that_calculate_refuse_texts_and_say_who_counts_them():
    with pytest.raises(op.WrongTypeError, match=r"'place' must hold numbers, not String: .*op\.Categories\.of"):
        op.fitter("fqe").fit(WORDS, SETTING)
    with pytest.raises(op.WrongTypeError, match=r"op\.Categories\.of"):
        op.fitter("tabular", aggregate=op.Grid((7,))).fit(WORDS, SETTING)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: op.Categories(()), "tuples of one length"),
        (lambda: op.Categories((("a",), ("a", "b"))), "tuples of one length"),
        (lambda: op.Categories((("a",), ("a",))), "there twice"),
        (lambda: op.Categories.of(WORDS, ("room",)), "the log has no column 'room'"),
        (lambda: op.Categories((("a",),)).index(np.zeros((2, 2))), r"states must be an \(n, 1\) array"),
    ],
)
def test_what_makes_no_categories_is_refused(make, says):
    with pytest.raises(op.OffPolicyError, match=says):
        make()
