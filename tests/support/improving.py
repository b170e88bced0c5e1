"""A walk, policies to choose from, and what is asked of a result; for the tests of safe improvement."""

from dataclasses import dataclass

import numpy as np
import offpolicy as op
import polars as pl
from offpolicy.drivers.improvement import at_least
from offpolicy.drivers.mixtures import Mixtures
from offpolicy.policies import FromCallable
from offpolicy.policies import Mixture as Mixed
from offpolicy.testing import Walk

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 120, seed=3)
MANY = WALK.simulate(WALK.behavior, 600, seed=3)
FEW = LOG.filter(pl.col("episode") < 30)
EAGER = WALK.policies["eager"]
SMALL = Mixtures(splits=(0.3, 0.6), alphas=(0.0, 0.4, 0.9))


def always(action):
    """A policy that takes one action."""
    return FromCallable(lambda states, step: np.tile(np.eye(3)[action], (len(states), 1)))


POLICIES = {
    "eager": EAGER,
    "half": Mixed(EAGER, WALK.behavior, 0.5),
    "left": Mixed(always(0), WALK.behavior, 0.5),
    "own": WALK.behavior,
}


def by_policies(log=LOG, generator=POLICIES, **options):
    """Improvement by the policies above and step-is."""
    return op.improve(log, WALK, generator=generator, estimator="step-is", **options)


def eligible(result):
    """The candidates with a score and a verdict that is good enough, best first."""
    enough = pl.col("score").is_not_null() & pl.col("verdict").is_in(at_least(result.require))
    return result.candidates.filter(enough).sort("rank")["candidate"].to_list()


def scores(result):
    """By candidate."""
    return dict(result.candidates.select("candidate", "score").rows())


@dataclass
class Proposing:
    """A generator of candidates as they are given."""

    found: list

    def candidates(self, log, domain):
        yield from self.found
