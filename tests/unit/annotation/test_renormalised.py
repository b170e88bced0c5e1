"""Probabilities that miss 1 by rounding are put right, and every result says how many rows that were."""

from functools import partial

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy._util.probabilities import Tally, counted
from offpolicy.policies import FromCallable, Mixture, TabularPolicy
from offpolicy.testing import Walk, check_domain

WALK = Walk()
annotate = partial(op.annotate, columns=op.Columns.of(WALK))
LOG = WALK.simulate(WALK.behavior, n=60, seed=1)
TABLE = np.array([[1 / 3, 0, 2 / 3]] * 7, dtype=np.float32)  # adds to 1 + 3e-8
SAYS = f"{LOG.height} rows of probabilities missed 1 by rounding (at most 1e-06) and were divided by their sum"


class Softmax32:
    """A plugin's own policy, which knows nothing of float64."""

    def probabilities(self, states, step):
        return TABLE[np.zeros(len(states), dtype=int)]


CALLED = FromCallable(lambda states, step: Softmax32().probabilities(states, step))
KINDS = {
    "function": CALLED,
    "own class": Softmax32(),
    "table": TabularPolicy(TABLE, WALK.grid),
    "table by step": TabularPolicy(np.stack([TABLE] * WALK.horizon), WALK.grid),
    "mixture": Mixture(CALLED, CALLED, 0.5),
    "mixture of tables": Mixture(TabularPolicy(TABLE, WALK.grid), WALK.behavior, 0.5),
}


@pytest.mark.parametrize("policy", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("form", ["frame", "query", "file"])
def test_evaluate_counts_the_rows_whatever_the_form_of_the_log(policy, form, tmp_path):
    log = LOG
    if form == "query":
        log = LOG.lazy()
    if form == "file":
        LOG.write_parquet(tmp_path / "log.parquet")
        log = str(tmp_path / "log.parquet")
    ev = op.evaluate(annotate(log, policy), estimators=["step-wis"])
    assert SAYS in ev.notes
    assert ev.repairs["renormalised"] == LOG.height


def test_later_annotations_keep_the_count():
    model = op.fitter("tabular").fit(LOG, WALK).values(CALLED, WALK.horizon, 1.0)
    assert SAYS in op.evaluate(annotate(annotate(LOG, CALLED), model=model)).notes


def test_nothing_is_said_of_float64():
    ev = op.evaluate(annotate(LOG, WALK.policies["eager"]))
    assert "renormalised" not in ev.repairs
    assert not any("divided by" in note for note in ev.notes)


def test_the_estimate_is_that_of_the_exact_probabilities():
    exact = FromCallable(
        lambda states, step: np.tile(TABLE[0].astype(float) / TABLE[0].sum(dtype=float), (len(states), 1))
    )
    ours, theirs = (op.evaluate(annotate(LOG, policy), estimators=["step-is"]) for policy in (Softmax32(), exact))
    assert ours["step-is"].value == theirs["step-is"].value


def test_cross_fit_and_improve_count_them_too(tmp_path):
    LOG.write_parquet(tmp_path / "log.parquet")
    for log in (LOG, str(tmp_path / "log.parquet")):
        assert SAYS in op.cross_fit(log, WALK, policy=CALLED, fitter="tabular").notes
        best = op.improve(log, WALK, generator={"new": CALLED}, estimator="step-is")
        assert SAYS in best.notes


def test_a_policy_of_a_plugin_is_checked_when_a_log_is_annotated():
    class Wrong:
        def probabilities(self, states, step):
            return np.full((len(states), 2), 0.7)

    with pytest.raises(op.OffPolicyError, match=r"add to 1\.4, not 1: they differ by 0\.4"):
        annotate(LOG, Wrong())


def test_simulated_logs_have_the_probabilities_that_were_put_right():
    log = WALK.simulate(Softmax32(), n=50, seed=2)
    assert log.schema["behavior_prob"] == pl.Float64
    exact = TABLE[0].astype(float)
    assert set(log["behavior_prob"]) == {exact[0] / exact.sum(), exact[2] / exact.sum()}


def test_the_conformance_suite_takes_float32():
    class Domain32(Walk):
        behavior = Softmax32()

    check_domain(Domain32())


def test_counting_ends_with_its_block():
    tally = Tally()
    with counted(tally):
        CALLED.probabilities(np.zeros((3, 1)), 0)
    CALLED.probabilities(np.zeros((5, 1)), 0)
    assert tally.rows == 3
