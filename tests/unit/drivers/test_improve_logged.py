"""`improve` on a log without a simulator: the behaviour policy is named once, and what is missing is said at once."""

import numpy as np
import offpolicy as op
import pytest
from offpolicy.drivers.mixtures import Mixtures
from offpolicy.models.behavior_policy import behavior_policy
from offpolicy.models.fitters.tabular import Tabular
from offpolicy.testing import Walk

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 300, seed=1)
GRID = Walk.grid


def logged(**others):
    """The setting of the walk's log, but for its simulator and its grid."""
    same = {name: getattr(WALK, name) for name in ("state_columns", "actions", "horizon", "reward_range", "discount")}
    return op.LoggedDomain(**same, **others)


class Counting(Tabular):
    """A fitter with cells of its own, which counts how often it is asked."""

    fits = 0

    def fit(self, log, domain):
        Counting.fits += 1
        return super().fit(log, domain)


FITTER = Counting(aggregate=GRID)


def test_the_generator_takes_the_fitter_and_the_behavior_that_are_named_once():
    best = op.improve(LOG, logged(behavior=WALK.behavior), generator="mixture", fitter=FITTER)
    assert best.candidates.height == 40
    assert best.policy.behavior == WALK.behavior


def test_a_generator_without_a_fitter_of_its_own_takes_that_of_improve():
    Counting.fits = 0
    generator = Mixtures(splits=(0.5,), alphas=(0.0, 0.5))
    found = op.improve(LOG, logged(behavior=WALK.behavior), generator=generator, fitter=FITTER)
    assert found.candidates.height == 2
    assert Counting.fits == 1  # and the candidates' own model serves as Q̂
    own = Mixtures(fitter=Tabular(aggregate=GRID), splits=(0.5,), alphas=(0.0, 0.5))
    Counting.fits = 0
    op.improve(LOG, logged(behavior=WALK.behavior), generator=own, fitter=FITTER)
    assert Counting.fits == 0


def test_an_estimate_of_the_behavior_serves_for_mixtures_and_for_weights():
    generator = Mixtures(splits=(0.5,), alphas=(0.0, 0.5))
    domain = logged(behavior=GRID)
    best = op.improve(LOG.drop("behavior_prob"), domain, generator=generator, fitter=FITTER)
    known = op.improve(LOG, logged(behavior=WALK.behavior), generator=generator, fitter=FITTER)
    assert best.candidates["score"].null_count() == 0
    apart = (best.candidates["value"] - known.candidates["value"]).abs().max()
    assert 0 < apart < 0.1
    assert "Grid" in best.settings["behavior"]
    with_column = op.improve(LOG, domain, generator=generator, fitter=FITTER)
    assert with_column.settings["behavior"] is None  # the log's own probabilities go before an estimate


def test_cross_fit_takes_the_estimate_that_the_domain_names():
    cf = op.cross_fit(LOG.drop("behavior_prob"), logged(behavior=GRID), policy=WALK.policies["eager"], fitter=FITTER)
    assert cf.evaluation.settings["behavior"] == "estimated"


def test_an_estimated_behavior_is_near_the_true_one_and_legal():
    from sklearn.linear_model import LogisticRegression

    states = np.arange(1, 6)[:, None]
    truth = WALK.behavior.probabilities(states, 0)
    log = WALK.simulate(WALK.behavior, 3000, seed=2)
    for behavior in ("counts", GRID):
        assert np.abs(behavior_policy(behavior, log, WALK).probabilities(states, 0) - truth).max() < 0.05
    fitted = behavior_policy(LogisticRegression(), log, WALK).probabilities(states, 0)
    assert np.abs(fitted.sum(axis=1) - 1).max() < 1e-12
    assert (fitted[~WALK.legal(states)] == 0).all()


def test_all_that_is_missing_is_said_in_one_error():
    with pytest.raises(op.UsageError) as caught:
        op.improve(LOG.drop("behavior_prob"), logged())
    text = str(caught.value)
    assert text.startswith("3 things are missing\n")
    assert "domain 'log' has no behavior policy to mix with" in text
    assert "domain 'log' has no grid" in text
    assert "the log has no column 'behavior_prob'" in text
    with pytest.raises(op.UsageError, match="2 things are missing"):
        op.improve(LOG, logged(), generator=Mixtures())


def test_one_thing_that_is_missing_is_said_alone():
    with pytest.raises(op.UsageError, match=r"^domain 'log' has no behavior policy to mix with"):
        op.improve(LOG, logged(), fitter=FITTER)
    with pytest.raises(op.UsageError, match=r"^domain 'log' has no grid"):
        op.improve(LOG, logged(behavior=WALK.behavior))


def test_a_kept_behavior_that_is_only_estimated_is_no_policy():
    kept = op.improve(LOG, logged(behavior=GRID), generator={"same": WALK.behavior}, estimator="step-is")
    assert (kept.winner, kept.policy) == ("behavior", None)
