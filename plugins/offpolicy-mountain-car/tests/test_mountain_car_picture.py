"""The picture of an episode: what it shows of which episode."""

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy._util import plotting
from offpolicy_mountain_car import MountainCar

CAR = MountainCar()


@pytest.fixture(scope="module")
def log():
    return CAR.simulate(CAR.policies["along-velocity"], 5, seed=6)


def shown(chart):
    """Every row that a chart holds."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_the_picture_has_every_step_of_its_episode_and_no_other(log):
    rows = [row for row in shown(CAR.plot(log, 3)) if "push" in row]
    episode = log.filter(pl.col("episode") == 3)
    assert {row["episode"] for row in rows} == {3}
    assert [row["step"] for row in rows] == episode["step"].to_list()
    assert [row["push"] for row in rows] == [CAR.action_names[a] for a in episode["action"]]
    assert [row["height"] for row in rows] == pytest.approx(np.sin(3 * episode["x"].to_numpy()))


def test_it_says_how_the_episode_ends(log):
    assert "reaches the goal" in CAR.plot(log, 0).to_dict()["title"]["text"]
    short = MountainCar(horizon=1, start="valley")
    cut = short.simulate(short.behavior, 1, seed=0)
    assert "has not reached the goal" in short.plot(cut, 0).to_dict()["title"]["text"]


def test_it_can_be_drawn_even_of_one_step(log, tmp_path):
    plotting.save(CAR.plot(log.filter(pl.col("step") == 0), 0), tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<svg")


def test_an_episode_that_is_not_there_is_named(log):
    with pytest.raises(op.OffPolicyError, match="the log has no episode 17"):
        CAR.plot(log, 17)
