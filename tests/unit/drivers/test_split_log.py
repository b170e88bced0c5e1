"""Every split has each episode on one side alone, fits to one side and annotates the other."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from improving import EAGER, LOG, WALK
from offpolicy.drivers.split_log import Parts, Sides, SplitLog
from offpolicy.logs.sources import open_log

COUNT = LOG["episode"].n_unique()
SPLITS = {
    "by fraction": lambda log: [Sides.by_fraction(log, 0.3, WALK)],
    "by fraction, lazily": lambda log: [Sides.by_fraction(log.lazy(), 0.3, WALK)],
    "by episodes": lambda log: [Sides.by_episodes(log, 10, 20, WALK)],
    "by folds": lambda log: [folds(log).sides(part) for part in range(3)],
    "by folds, lazily": lambda log: [folds(log.lazy()).sides(part) for part in range(3)],
}


def folds(log):
    return SplitLog(open_log(log), op.Columns(), WALK, Parts.folds(3, seed=4))


def episodes(log):
    return set(log.lazy().collect()["episode"])


class Recording:
    """A fitter that notes the episodes of each fit."""

    def __init__(self):
        self.fits = []

    def fit(self, log, domain):
        self.fits.append(episodes(log))
        return op.fitter("tabular").fit(log, domain)


@pytest.mark.parametrize("how", SPLITS)
def test_no_episode_is_on_both_sides_and_none_on_no_side(how):
    for sides in SPLITS[how](LOG):
        train, test = episodes(sides.train), episodes(sides.test)
        assert train
        assert test
        assert not train & test
        assert train | test == episodes(LOG)


@pytest.mark.parametrize("how", SPLITS)
def test_models_are_fitted_to_one_side_and_annotate_the_other(how):
    for sides in SPLITS[how](LOG):
        fitter = Recording()
        values = sides.values(sides.fit(fitter), [EAGER])
        assert fitter.fits == [episodes(sides.train)]
        made = sides.annotated([op.PolicyColumns(target_prob="p", q_hat="q")], [EAGER], values).lazy().collect()
        assert episodes(made) == episodes(sides.test)
        states, actions, steps = made.select("place").to_numpy(), made["action"].to_numpy(), made["step"].to_numpy()
        assert made["q"].to_list() == values[0].q_hat(states, actions, steps).tolist()
        assert made["p"].to_list() == EAGER.probabilities(states, steps)[np.arange(len(made)), actions].tolist()


def test_each_fold_is_evaluated_once():
    tests = [episodes(folds(LOG).sides(part).test) for part in range(3)]
    assert sum(map(len, tests)) == COUNT
    assert set.union(*tests) == episodes(LOG)


def test_a_bad_row_of_a_side_is_told_by_episode_and_step_alone():
    where = (pl.col("episode") == LOG["episode"][-1]) & (pl.col("step") == 1)
    log = LOG.with_columns(action=pl.when(where).then(99).otherwise("action"))
    sides = Sides.by_episodes(log, 0, 1, WALK)
    with pytest.raises(op.BadLogError) as caught:
        sides.fit(op.fitter("tabular"))
    (problem,) = caught.value.problems
    assert (problem.file, problem.row, problem.episode, problem.step) == (None, None, LOG["episode"][-1], 1)


@pytest.mark.parametrize(("fraction", "why"), [(1e-9, "in the first 1e-09 of the log, to train on"), (1.0, "beyond")])
def test_a_side_without_an_episode_is_told(fraction, why):
    assert why in Sides.by_fraction(LOG, fraction, WALK).lacking(fraction)


def test_a_split_with_both_sides_lacks_nothing():
    assert Sides.by_fraction(LOG, 0.5, WALK).lacking(0.5) is None
