"""Evaluations into which a forged state is smuggled through `map=`, and what becomes of each."""

import random
from functools import cache

import offpolicy as op
import polars as pl
from forgery import forged
from logs import random_log
from offpolicy.errors import InternalError

#: Rows of a task in these evaluations, so that a small log has several.
TASK_ROWS = 30
ASKED = {"discount": 0.9, "baseline": 0.5}
LOG = random_log(seed=5, episodes=14, horizon=11)
LOGS = {
    "integers": LOG,
    "texts": LOG.with_columns(pl.format("é{}", "episode").alias("episode")),
    "wild": LOG.with_columns(reward=pl.col("reward") * 10.0 ** (pl.col("step") * 30 - 150)),
    "cut off": LOG.with_columns(truncated=pl.col("step") == pl.col("step").max().over("episode")),
    "bad": LOG.with_columns(reward=pl.when(pl.col("step") == 3).then(float("nan")).otherwise("reward")),
}
WAYS = [
    ("integers", {}),
    ("integers", {"paired": True, "diagnostics": False}),
    ("texts", {"horizon": 20}),
    ("wild", {}),
    ("cut off", {"truncation": "as-terminal"}),
    ("bad", {}),
]

RIGHT, OTHER = "the right numbers", "other numbers"


class Carrier:
    """A `map=` that keeps all states, and may exchange some of those of one pass."""

    def __init__(self, at=None, exchange=None):
        self.passes, self.at, self.exchange = [], at, exchange

    def __call__(self, function, tasks):
        states = [function(task) for task in tasks]
        if len(self.passes) == self.at:
            states = self.exchange(states)
        self.passes.append(states)
        return states


@cache
def honest(way):
    """The table, and the values of dr by trajectory, without any forgery; None where the log itself is refused."""
    name, asked = WAYS[way]
    try:
        ev = op.evaluate(LOGS[name], **ASKED, **asked)
        return ev.table, ev.values("dr")
    except op.OffPolicyError:
        return None


def attack(rng: random.Random, others: list[bytes]) -> str:
    """Return what came of one evaluation with one forged state: the name of an error, RIGHT or OTHER."""
    way = rng.randrange(len(WAYS))
    name, asked = WAYS[way]

    def exchange(states):
        position = rng.randrange(len(states))
        victim = states[position]
        others.append(victim)
        del others[:-50]
        return [*states[:position], forged(victim, rng.choice(others), rng), *states[position + 1 :]]

    try:
        ev = op.evaluate(LOGS[name], map=Carrier(rng.randrange(3), exchange), **ASKED, **asked)
        found = ev.table, ev.values("dr")
    except InternalError as error:
        raise AssertionError(f"a forged state is not our fault: {error}") from error
    except op.OffPolicyError as error:
        return type(error).__name__
    same = honest(way)
    return RIGHT if same is not None and all(map(pl.DataFrame.equals, found, same)) else OTHER
