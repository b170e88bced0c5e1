"""The picture shows the log's own numbers."""

from itertools import pairwise

import numpy as np
import offpolicy as op
import pytest
from offpolicy_sailing import Sailing

pytest.importorskip("altair", reason="pictures need the extra `plot`")
LAKE = Sailing(start="corner")


@pytest.fixture(scope="module")
def log():
    return LAKE.simulate(LAKE.policies["optimal"](), n=3, seed=4)


def test_the_title_has_cost_and_steps(log):
    one = log.filter(episode=2)
    title = LAKE.plot(log, 2).to_dict()["title"]["text"]
    assert title == f"Sailing, episode 2: cost {-one['reward'].sum():.2f} in {one.height} steps"


def test_arrows_point_where_the_wind_blows(log):
    chart = LAKE.plot(log, 1).to_dict()
    rows = next(rows for rows in chart["datasets"].values() if "degrees" in rows[0])
    assert [row["degrees"] / 45 for row in rows] == log.filter(episode=1)["wind"].to_list()


def test_legs_follow_one_another_to_the_goal(log):
    chart = LAKE.plot(log, 0).to_dict()
    rows = next(rows for rows in chart["datasets"].values() if "degrees" in rows[0])
    assert all((a["x2"], a["y2"]) == (b["x"], b["y"]) for a, b in pairwise(rows))
    assert np.hypot(rows[-1]["x2"] - 9, rows[-1]["y2"] - 9) < 0.5


def test_an_episode_that_is_not_there(log):
    with pytest.raises(op.OffPolicyError, match="no episode 7"):
        LAKE.plot(log, 7)
