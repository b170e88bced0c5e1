"""Logs in the layouts of minari, d3rlpy and SCOPE-RL."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.logs.transitions import transitions


@dataclass(frozen=True)
class EpisodeData:
    """As minari.EpisodeData."""

    id: int
    observations: Any
    actions: Any
    rewards: np.ndarray
    terminations: np.ndarray
    truncations: np.ndarray
    infos: dict = field(default_factory=dict)


def episode(steps, id=0, terminated=True, **others):
    """An episode of so many steps, whose observations count from 10·id."""
    last = np.arange(steps) == steps - 1
    fields = {
        "observations": np.stack([10.0 * id + np.arange(steps + 1), np.zeros(steps + 1)], axis=1),
        "actions": np.arange(steps) % 2,
        "rewards": np.arange(steps, dtype=np.float32),
        "terminations": last & terminated,
        "truncations": last & (not terminated),
    }
    return EpisodeData(id, **{**fields, **others})


def test_episodes_become_rows_in_order():
    log = op.from_episodes([episode(2, id=3), episode(3, id=1)])
    assert log.columns == [
        *("episode", "step", "state_0", "state_1", "action", "reward", "terminal", "truncated"),
        *("next_state_0", "next_state_1"),
    ]
    assert log["episode"].to_list() == [3, 3, 1, 1, 1]
    assert log["step"].to_list() == [0, 1, 0, 1, 2]
    assert log["state_0"].to_list() == [30, 31, 10, 11, 12]
    assert log["next_state_0"].to_list() == [31, 32, 11, 12, 13]
    assert log["action"].to_list() == [0, 1, 0, 1, 0]
    assert log["reward"].to_list() == [0, 1, 0, 1, 2]
    assert log["terminal"].to_list() == [False, True, False, False, True]
    assert not log["truncated"].any()


def test_the_log_can_be_evaluated_and_fitted_to():
    log = op.from_episodes([episode(3, id=1), episode(3, id=0, terminated=False)])
    assert op.evaluate(log, estimators=["mc"])["mc"].value == 3
    domain = op.LoggedDomain(("state_0", "state_1"), actions=2, horizon=3, reward_range=(0.0, 2.0))
    (batch,) = transitions(log, domain)
    assert batch.known.all()
    assert batch.terminal.tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("horizon", [None, 4, 9])
def test_an_episode_that_was_cut_off_is_truncated_whatever_the_horizon(horizon):
    episodes = [episode(2, id=0, terminated=False), episode(4, id=1, terminated=False), episode(2, id=2)]
    log = op.from_episodes(episodes, horizon=horizon)
    assert log.filter("truncated").select("episode", "step").rows() == [(0, 1), (1, 3)]
    with pytest.raises(op.BadLogError, match="truncated"):
        op.evaluate(log, estimators=["mc"])
    complete = op.from_episodes(episodes[1:], horizon=horizon)
    assert op.evaluate(complete, estimators=["mc"]).episodes == 2  # an episode of H steps lacks nothing
    for source in (complete, complete.drop("terminal")):
        with pytest.raises(op.BadLogError, match=r"truncated|terminal"):
            op.evaluate(source, estimators=["mc"], horizon=50)


def test_an_episode_too_long_for_the_horizon_is_refused():
    episodes = [episode(4)]
    with pytest.raises(op.UsageError, match="an episode has 4 steps, more than the horizon of 3"):
        op.from_episodes(episodes, horizon=3)


def test_an_end_at_the_time_limit_keeps_both_flags():
    log = op.from_episodes([episode(2, truncations=[False, True])])
    assert log.select("terminal", "truncated").rows() == [(False, False), (True, True)]


def test_a_buffer_without_an_end_was_cut_off():
    """minari's EpisodeBuffer holds lists, and may be asked before its episode ends."""
    buffer = SimpleNamespace(
        id=None,
        observations=[np.array([0.0]), np.array([1.0]), np.array([2.0])],
        actions=[1, 0],
        rewards=[0.5, 1.5],
        terminations=[False, False],
        truncations=[False, False],
        infos=None,
    )
    log = op.from_episodes([buffer, buffer], horizon=5)
    assert log["episode"].to_list() == [0, 0, 1, 1]
    assert log["truncated"].to_list() == [False, True] * 2
    assert log["state"].to_list() == [0, 1] * 2


@pytest.mark.parametrize("extra", [0, 1])
def test_propensities_from_infos_with_or_without_the_one_of_the_reset(extra):
    infos = {"prob": np.array([0.9] * extra + [0.25, 0.5])}
    log = op.from_episodes([episode(2, infos=infos)], behavior_prob="prob")
    assert log["behavior_prob"].to_list() == [0.25, 0.5]


def test_observations_in_dictionaries_and_tuples():
    observed = {"speed": np.arange(3.0), "place": (np.arange(3), np.arange(6).reshape(3, 2))}
    log = op.from_episodes([episode(2, observations=observed)])
    assert log.columns[2:6] == ["state_place_0", "state_place_1_0", "state_place_1_1", "state_speed"]
    assert log["next_state_place_1_1"].to_list() == [3, 5]


def test_discrete_observations_stay_whole_and_names_can_be_given():
    log = op.from_episodes([episode(2, observations=np.arange(3))], state_columns=["place"])
    assert log.schema["place"] == pl.Int64
    assert log["next_place"].to_list() == [1, 2]
    with pytest.raises(op.UsageError, match="the state has 2 columns, and state_columns has 1 names"):
        op.from_episodes([episode(2)], state_columns=["place"])


BAD_EPISODES = {
    "observations of another length": (
        {"observations": np.zeros((2, 2))},
        "episode 0: observations: there must be 3 of them, not 2",
    ),
    "too many actions": ({"actions": np.zeros(3)}, r"episode 0: actions: there must be 2 numbers.*shape \(3,\)"),
    "continuous actions": ({"actions": np.array([0.5, 1.0])}, "only discrete actions 0, 1, 2, … can be converted"),
    "two actions a step": ({"actions": np.zeros((2, 2))}, "there must be 2 numbers, one a step"),
    "an end inside": ({"terminations": [True, True]}, "episode 0 ends at step 0 and goes on to step 1"),
    "flags that are none": ({"terminations": [0, 2]}, "there must be true and false, or 1 and 0"),
    "no step": ({"rewards": []}, "episode 0 has no step"),
    "nothing observed": ({"observations": None}, "episode 0 has no 'observations'"),
    "texts": ({"observations": np.array(["a", "b", "c"])}, "there must be numbers, not <U1"),
    "ragged": ({"observations": [[1.0], [1.0, 2.0], [3.0]]}, "observations: these are no array"),
}


@pytest.mark.parametrize("case", BAD_EPISODES)
def test_bad_episodes_are_refused(case):
    fields, says = BAD_EPISODES[case]
    with pytest.raises(op.OffPolicyError, match=says):
        op.from_episodes([episode(2, **fields)])


def test_other_bad_episodes_are_refused():
    with pytest.raises(op.OffPolicyError, match="there is no episode"):
        op.from_episodes([])
    with pytest.raises(op.UsageError, match="the id 0 belongs to several episodes"):
        op.from_episodes([episode(2), episode(3)])
    with pytest.raises(op.UsageError, match="episodes have different columns"):
        op.from_episodes([episode(2), episode(2, id=1, observations=np.arange(3))])
    with pytest.raises(op.MissingColumnError, match="episode 0: there is no 'prob', in infos or beside them"):
        op.from_episodes([episode(2)], behavior_prob="prob")


def d3rlpy(**others):
    """Three episodes of 2, 3 and 1 steps: ended, timed out, and cut by the end of the data."""
    return {
        "observations": np.arange(12.0).reshape(6, 2),
        "actions": np.array([[0], [1], [1], [0], [1], [0]]),
        "rewards": np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]),
        "terminals": np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
        "timeouts": np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
        **others,
    }


def test_d3rlpy_arrays_become_episodes():
    log = op.from_d3rlpy(d3rlpy())
    assert log.columns == ["episode", "step", "state_0", "state_1", "action", "reward", "terminal", "truncated"]
    assert log["episode"].to_list() == [0, 0, 1, 1, 1, 2]
    assert log["step"].to_list() == [0, 1, 0, 1, 2, 0]
    assert log["state_1"].to_list() == [1, 3, 5, 7, 9, 11]
    assert log["action"].to_list() == [0, 1, 1, 0, 1, 0]
    assert log["reward"].to_list() == [1, 2, 3, 4, 5, 6]
    assert log["terminal"].to_list() == [False, True, False, False, False, False]
    assert log["truncated"].to_list() == [False, False, False, False, True, True]
    for source in (log.filter(episode=1), log.filter(episode=1).drop("terminal")):
        with pytest.raises(op.BadLogError, match=r"truncated|terminal"):
            op.evaluate(source, estimators=["mc"], horizon=50)


def test_the_state_after_a_time_out_is_not_known():
    log = op.from_d3rlpy(d3rlpy())
    domain = op.LoggedDomain(("state_0", "state_1"), actions=2, horizon=3, reward_range=(0.0, 6.0))
    known = np.concatenate([batch.known for batch in transitions(log, domain)])
    assert known.tolist() == [True, True, True, True, False, False]


def test_d3rlpy_without_time_outs():
    dataset = d3rlpy(terminals=np.array([0, 1, 0, 0, 0, 1]))
    del dataset["timeouts"]
    log = op.from_d3rlpy({**dataset, "p": np.full(6, 0.5)}, behavior_prob="p")
    assert log["episode"].to_list() == [0, 0, 1, 1, 1, 1]
    assert log["behavior_prob"].to_list() == [0.5] * 6
    assert not log["truncated"].any()


@dataclass(frozen=True)
class Episode:
    """As d3rlpy.dataset.Episode: as many observations as actions, and one flag."""

    observations: Any
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool


class ReplayBuffer:
    """As d3rlpy.dataset.ReplayBuffer, and MDPDataset, which is one."""

    def __init__(self, episodes):
        self._episodes = episodes

    @property
    def episodes(self):
        return self._episodes


def replay_buffer(**others):
    """The first two episodes of `d3rlpy()`."""
    arrays, parts = d3rlpy(), ((slice(0, 2), True), (slice(2, 5), False))
    return ReplayBuffer(
        [
            Episode(
                **{
                    **{key: arrays[key][rows] for key in ("observations", "actions")},
                    "rewards": arrays["rewards"][rows].astype(np.float32),
                    "terminated": terminated,
                    **others,
                }
            )
            for rows, terminated in parts
        ]
    )


def test_a_replay_buffer_of_d3rlpy_2_is_what_its_arrays_are():
    expected = op.from_d3rlpy(d3rlpy()).filter(pl.col("episode") < 2)
    assert op.from_d3rlpy(replay_buffer()).equals(expected)
    assert op.from_d3rlpy(replay_buffer().episodes, state_columns=["a", "b"])["b"].to_list() == [1, 3, 5, 7, 9]


def test_observations_of_several_arrays_are_columns_side_by_side():
    observed = [np.arange(3.0)[:, None], np.arange(6).reshape(3, 2)]
    log = op.from_d3rlpy([Episode(observed, np.zeros((3, 1), dtype=int), np.ones((3, 1)), terminated=False)])
    assert log.columns[2:5] == ["state_0", "state_1_0", "state_1_1"]
    assert log["truncated"].to_list() == [False, False, True]


BAD_BUFFERS = {
    "no buffer": (17, "a ReplayBuffer, a sequence of Episodes or a mapping of arrays, not int"),
    "a text": ("data.h5", "not str"),
    "empty": (ReplayBuffer([]), "there is no episode"),
    "no episodes": ([1, 2], "episode 0 has no 'rewards'"),
    "a flag that is none": (replay_buffer(terminated=2), "episode 0: terminated: there must be true and false"),
    "continuous actions": (replay_buffer(actions=np.full((2, 1), 0.5)), "episode 0: actions: only discrete actions"),
    "fewer observations": (replay_buffer(observations=np.zeros((1, 2))), "episode 0: observations: there must be 2"),
}


@pytest.mark.parametrize("case", BAD_BUFFERS)
def test_bad_replay_buffers_are_refused(case):
    buffer, says = BAD_BUFFERS[case]
    with pytest.raises(op.OffPolicyError, match=says):
        op.from_d3rlpy(buffer)


BAD_D3RLPY = {
    "no rewards": ({"rewards": None}, "the dataset has no 'rewards'"),
    "fewer rewards": ({"rewards": np.zeros(5)}, "rewards: there must be 6 numbers, one a step"),
    "fewer terminals": ({"terminals": np.zeros(5)}, "terminals: there must be 6 numbers"),
    "continuous actions": ({"actions": np.full((6, 1), 0.5)}, "only discrete actions"),
    "negative actions": ({"actions": np.full(6, -1)}, "only discrete actions"),
}


@pytest.mark.parametrize("case", BAD_D3RLPY)
def test_bad_d3rlpy_arrays_are_refused(case):
    others, says = BAD_D3RLPY[case]
    with pytest.raises(op.OffPolicyError, match=says):
        op.from_d3rlpy(d3rlpy(**others))


def scope_rl(**others):
    """Three trajectories of four rows: all of them; ended in the second, with filling; ended in the last."""
    return {
        "size": 12,
        "n_trajectories": 3,
        "step_per_trajectory": 4,
        "action_type": "discrete",
        "n_actions": 2,
        "action_dim": None,
        "action_meaning": None,
        "action_keys": None,
        "state_dim": 2,
        "state_keys": ["a", "b"],
        "state": np.arange(24.0).reshape(12, 2),
        "action": np.arange(12) % 2,
        "reward": np.arange(12.0),
        "done": np.array([0.0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1]),
        "terminal": np.array([0.0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]),
        "info": {},
        "pscore": np.linspace(0.1, 0.9, 12),
        "behavior_policy": "uniform",
        "dataset_id": 0,
        **others,
    }


def test_scope_rl_trajectories_end_where_they_are_done():
    dataset = scope_rl()
    log = op.from_scope_rl(dataset)
    kept = [0, 1, 2, 3, 4, 5, 8, 9, 10, 11]
    assert log["episode"].to_list() == [0] * 4 + [1] * 2 + [2] * 4
    assert log["step"].to_list() == [0, 1, 2, 3, 0, 1, 0, 1, 2, 3]
    assert log["state_0"].to_list() == [2.0 * row for row in kept]
    assert log["reward"].to_list() == [float(row) for row in kept]
    assert log["behavior_prob"].to_list() == dataset["pscore"][kept].tolist()
    assert log.filter("terminal").select("episode", "step").rows() == [(1, 1), (2, 3)]
    assert log.filter("truncated").select("episode", "step").rows() == [(0, 3)]
    with pytest.raises(op.BadLogError, match="truncated"):
        op.evaluate(log, estimators=["mc"], horizon=50)
    assert op.evaluate(log, estimators=["mc"])["mc"].value == (0 + 1 + 2 + 3 + 4 + 5 + 8 + 9 + 10 + 11) / 3


def test_scope_rl_without_propensities_and_with_names():
    log = op.from_scope_rl(scope_rl(pscore=None), state_columns=["a", "b"])
    assert "behavior_prob" not in log.columns
    assert log["b"].to_list()[:2] == [1, 3]


BAD_SCOPE_RL = {
    "continuous actions": ({"action_type": "continuous"}, "continuous actions"),
    "a missing key": ({"step_per_trajectory": None}, "the dataset has no 'step_per_trajectory'"),
    "another size": ({"n_trajectories": 4}, "state: there must be 16 of them, not 12"),
    "a propensity for each dimension": ({"pscore": np.ones((12, 2))}, "pscore: there must be 12 numbers, one a step"),
    "nothing": ({"n_trajectories": 0}, "0 trajectories of 4 steps are no log"),
}


@pytest.mark.parametrize("case", BAD_SCOPE_RL)
def test_bad_scope_rl_dictionaries_are_refused(case):
    others, says = BAD_SCOPE_RL[case]
    with pytest.raises(op.OffPolicyError, match=says):
        op.from_scope_rl(scope_rl(**others))


class MultipleLoggedDataset:
    """As scope_rl.utils.MultipleLoggedDataset: datasets by the name of the behaviour policy and a number."""

    def __init__(self, datasets):
        self.datasets = datasets

    @property
    def behavior_policy_names(self):
        return list(self.datasets)

    @property
    def n_datasets(self):
        return {name: len(several) for name, several in self.datasets.items()}

    def get(self, behavior_policy_name, dataset_id):
        return self.datasets[behavior_policy_name][dataset_id]


def test_several_scope_rl_datasets_are_pooled_under_their_names():
    several = MultipleLoggedDataset({"random": [scope_rl(), scope_rl()], "expert": [scope_rl()]})
    log = op.from_scope_rl(several)
    one = op.from_scope_rl(scope_rl())
    assert log["logger"].to_list() == ["random-0"] * 10 + ["random-1"] * 10 + ["expert-0"] * 10
    assert log["episode"].unique(maintain_order=True).to_list()[2:5] == ["random-0/2", "random-1/0", "random-1/1"]
    assert log.drop("episode", "logger").equals(pl.concat([one.drop("episode")] * 3))
    with pytest.raises(op.OffPolicyError, match="there is no dataset"):
        op.from_scope_rl(MultipleLoggedDataset({}))


def test_a_scope_rl_dataset_may_be_an_object():
    assert op.from_scope_rl(SimpleNamespace(**scope_rl())).equals(op.from_scope_rl(scope_rl()))
