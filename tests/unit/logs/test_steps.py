"""All who read a log agree on whether its steps count from 0 or from 1, wherever its first row lies."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.logs.steps import counted_from, smallest_step, steps_of
from offpolicy.logs.transitions import transitions
from offpolicy.testing import Walk

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 40, seed=2)
EAGER = WALK.policies["eager"]
COLUMNS = op.Columns.of(WALK)
KINDS = {"frame": lambda log: log, "query": pl.DataFrame.lazy}


def begun_inside(log):
    """A log whose first row is the second one of its episode, which the log has further down."""
    return pl.concat([log[1:], log[:1]])


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_log_that_begins_inside_an_episode_counts_alike_for_models_and_annotations(first, kind):
    log = KINDS[kind](begun_inside(LOG.with_columns(pl.col("step") + first)))
    values = op.fitter("tabular").fit(LOG, WALK).values(EAGER, WALK.horizon, WALK.discount)
    found = op.annotate(log, EAGER, values, COLUMNS).lazy().collect()
    right = op.annotate(begun_inside(LOG), EAGER, values, COLUMNS, first_step=0)
    assert found.drop("step").equals(right.drop("step"))
    steps = np.concatenate([batch.steps for batch in transitions(log, WALK)])
    assert steps.tolist() == begun_inside(LOG)["step"].to_list()


@pytest.mark.parametrize("first", [0, 1])
def test_drivers_give_the_same_for_both(first):
    log = LOG.with_columns(pl.col("step") + first)
    found, right = (
        op.cross_fit(each, WALK, policy=EAGER, estimators=["dr", "reg"]).table.to_dicts() for each in (log, LOG)
    )
    assert found == right
    bests = [op.improve(each, WALK, generator={"eager": EAGER}).candidates.to_dicts() for each in (log, LOG)]
    assert bests[0] == bests[1]


def test_a_piece_without_a_first_step_is_refused_unless_one_is_told():
    piece = LOG.filter(pl.col("step") > 1)
    with pytest.raises(op.UsageError, match="steps count from 0 or from 1, but column 'step' begins with 2"):
        op.annotate(piece, EAGER, columns=COLUMNS)
    told = op.annotate(piece, EAGER, columns=COLUMNS, first_step=0)
    assert told.equals(op.annotate(LOG, EAGER, columns=COLUMNS).filter(pl.col("step") > 1))


def test_steps_are_read_up_to_the_first_zero():
    def steps():
        yield pl.Series([2, None, 1])
        yield pl.Series([0, 5])
        raise AssertionError("read on")

    assert smallest_step(steps()) == 0
    assert smallest_step([pl.Series([None, None], dtype=pl.Int64), pl.Series(["0"])]) is None
    assert [counted_from(smallest) for smallest in (None, 0, 1, 7)] == [0, 0, 1, 1]


def test_a_query_is_asked_for_its_first_row_alone_where_that_tells():
    rows = []

    def seen(step):
        rows.append(len(step))
        return step

    query = LOG.lazy().select(pl.col("step").map_batches(seen, return_dtype=LOG["step"].dtype, is_elementwise=True))
    assert smallest_step(steps_of(query, "step")) == 0
    assert sum(rows) == 1
