"""The generator of mixtures: the paper's candidates, one model a split, and no look at the rest."""

from itertools import product

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from faulty import Recording, Table
from offpolicy.drivers.mixtures import Mixtures
from offpolicy.extensions import plugins
from offpolicy.folds import split
from offpolicy.policies import FromCallable, Uniform
from offpolicy.testing import Walk, check_generator

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 300, seed=1)
RIGHT = FromCallable(lambda states, step: np.tile([0.0, 0.0, 1.0], (len(states), 1)))
LEFT = FromCallable(lambda states, step: np.tile([1.0, 0.0, 0.0], (len(states), 1)))


class Opposed(Recording):
    """Right is best and left is worst."""

    def model(self, moves, rewards, domain):
        model = Table(moves, rewards, domain)
        model.optimal_policy = lambda maximize=True: RIGHT if maximize else LEFT
        return model


def test_the_papers_candidates():
    fitter = Opposed()
    found = list(Mixtures(fitter).candidates(LOG, WALK))
    expected = list(product((0.2, 0.4, 0.6, 0.8), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)))
    assert [(candidate.train_fraction, candidate.policy.alpha) for candidate in found] == expected
    assert len({candidate.name for candidate in found}) == 40
    assert len({id(candidate.model) for candidate in found}) == len(fitter.fits) == 4


def test_a_model_sees_its_share_of_the_episodes_alone():
    fitter = Opposed()
    list(Mixtures(fitter, splits=(0.2, 0.7)).candidates(LOG, WALK))
    assert fitter.fits == [set(split(LOG, fraction)[0]["episode"]) for fraction in (0.2, 0.7)]


def test_the_policy_is_between_the_best_and_the_behaviour_policy():
    states = np.array([[3], [1]])
    for maximize, best in ((True, [0, 0, 1]), (False, [1, 0, 0])):
        (found,) = Mixtures(Opposed(), (0.5,), (0.3,), maximize).candidates(LOG, WALK)
        expected = 0.7 * np.array(best) + 0.3 * WALK.behavior.probabilities(states, 0)
        assert np.allclose(found.policy.probabilities(states, 0), expected, rtol=0, atol=1e-15)


def test_it_keeps_the_protocol():
    check_generator(Mixtures(Opposed(), alphas=(0.0, 0.5)))


def test_every_kind_of_log_gives_the_same_candidates(tmp_path):
    path = tmp_path / "log.parquet"
    LOG.write_parquet(path)
    fitters = [Opposed() for _ in range(3)]
    for fitter, log in zip(fitters, (LOG, LOG.lazy(), path), strict=True):
        list(Mixtures(fitter, splits=(0.4,)).candidates(log, WALK))
    assert fitters[0].fits == fitters[1].fits == fitters[2].fits


def test_a_log_without_a_simulator_needs_the_behaviour_policy():
    setting = op.LoggedDomain(("place",), 3, WALK.horizon, WALK.reward_range)
    with pytest.raises(
        op.UsageError, match=r"domain 'log' has no behavior policy.*op\.generator\('mixture', behavior=\.\.\.\)"
    ):
        list(Mixtures(Opposed()).candidates(LOG, setting))
    given = Uniform(3, WALK.legal)
    (found,) = Mixtures(Opposed(), (0.5,), (1.0,), behavior=given).candidates(LOG, setting)
    assert found.policy.behavior is given


def test_a_fitter_may_be_named(monkeypatch):
    monkeypatch.setattr(plugins, "fitter", lambda name: Opposed() if name == "mine" else None)
    assert len(list(op.generator("mixture", fitter="mine", splits=(0.5,)).candidates(LOG, WALK))) == 10


def test_splits_and_rates_may_come_once():
    mixture = Mixtures(Opposed(), splits=iter([0.5]), alphas=(n / 2 for n in range(2)))
    assert [candidate.policy.alpha for candidate in mixture.candidates(LOG, WALK)] == [0.0, 0.5]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"splits": (0.0,)}, "splits must be shares between 0 and 1"),
        ({"splits": (1.0,)}, "splits must be shares between 0 and 1"),
        ({"splits": ()}, "splits must be shares between 0 and 1"),
        ({"alphas": (1.1,)}, "alphas must be from 0 to 1"),
        ({"alphas": ()}, "alphas must be from 0 to 1"),
        ({"splits": 0.5}, "splits must be shares between 0 and 1, not 0.5"),
        ({"alphas": ("x",)}, "alphas must be from 0 to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, says):
    with pytest.raises(op.UsageError, match=says):
        op.generator("mixture", **options)


def test_the_log_is_a_frame_with_a_column_of_ids():
    with pytest.raises(op.MissingColumnError, match="no column 'episode'"):
        list(Mixtures(Opposed()).candidates(LOG.select(pl.exclude("episode")), WALK))
