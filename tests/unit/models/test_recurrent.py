"""The recurrent Q-function: memory, policies of (state, step), seeds."""

import pickle
import sys

import numpy as np
import offpolicy as op
import polars as pl
import pytest
from offpolicy.models import fitters
from offpolicy.models.fitters.recurrent import Histories, Recurrent

SETTING = op.LoggedDomain(state_columns=("shown",), actions=2, horizon=2, reward_range=(0.0, 1.0))


@pytest.fixture(scope="module")
def memory():
    """A cue is shown at step 0 and hidden at step 1, where repeating it is rewarded."""
    rng = np.random.default_rng(0)
    n = 800
    cue, actions = rng.integers(2, size=n), rng.integers(2, size=(n, 2))
    columns = {
        "episode": np.repeat(np.arange(n), 2),
        "step": np.tile([0, 1], n),
        "shown": np.stack([2 * cue - 1, np.zeros(n, dtype=int)], axis=1).ravel(),
        "action": actions.ravel(),
        "reward": np.stack([np.zeros(n), actions[:, 1] == cue], axis=1).ravel(),
    }
    return pl.DataFrame(columns), cue


@pytest.fixture(scope="module")
def model(memory):
    return Recurrent(hidden=8, epochs=40, batch=100).fit(memory[0], SETTING)


def test_it_remembers(memory, model):
    log, cue = memory
    q = model.q_along(log)
    assert (q[:, 1].argmax(axis=1) == cue).mean() == 1.0
    right = q[np.arange(len(cue)), 1, cue]
    assert np.abs(right - 1).mean() < 0.1


def test_seeds_decide_and_nothing_else(memory, model):
    states = np.linspace(-1, 1, 7)[:, None]
    again, other = (Recurrent(hidden=8, epochs=40, batch=100, seed=seed).fit(memory[0], SETTING) for seed in (0, 1))
    assert (again.advantages(states, 0) == model.advantages(states, 0)).all()
    assert (other.advantages(states, 0) != model.advantages(states, 0)).any()


def test_its_policy_acts_on_state_and_step():
    rng = np.random.default_rng(1)
    n, horizon = 400, 3
    states, actions = rng.integers(0, 4, size=(n, horizon)), rng.integers(0, 3, size=(n, horizon))
    best = np.where(np.arange(horizon) == 2, 2, states // 2)
    rewards = (actions == best) + rng.normal(0, 0.2, size=(n, horizon))
    log = pl.DataFrame(
        {
            "episode": np.repeat(np.arange(n), horizon),
            "step": np.tile(np.arange(horizon), n),
            "x": states.ravel(),
            "action": actions.ravel(),
            "reward": rewards.ravel(),
        }
    )
    setting = op.LoggedDomain(state_columns=("x",), actions=3, horizon=horizon, reward_range=(-1.0, 2.0))
    model = Recurrent(hidden=16, epochs=60, batch=64).fit(log, setting)
    for policy, expected in ((model.optimal_policy(), True), (model.optimal_policy(maximize=False), False)):
        for t in range(horizon):
            chosen = policy.probabilities(np.arange(4)[:, None], t).argmax(axis=1)
            wanted = np.full(4, 2) if t == 2 else np.arange(4) // 2
            assert ((chosen == wanted) == expected).all()


@pytest.mark.parametrize("maximize", [True, False])
def test_its_policies_travel_to_other_processes(model, maximize):
    policy, states = model.optimal_policy(maximize), np.linspace(-1, 1, 7)[:, None]
    there = pickle.loads(pickle.dumps(policy))
    assert (there.probabilities(states, 1) == policy.probabilities(states, 1)).all()


def test_values_of_another_policy_are_refused(model):
    with pytest.raises(op.OffPolicyError, match="optimal_policy"):
        model.values(op.policies.Uniform(2), 2, 1.0)


def test_histories_of_different_lengths():
    log = pl.DataFrame(
        {"episode": [7, 7, 9], "step": [1, 2, 1], "shown": [5, 6, 4], "action": [1, 0, 1], "reward": [1.0, 2.0, 4.0]}
    )
    histories = Histories.read(log, SETTING)
    assert histories.mask.tolist() == [[True, True], [True, False]]
    assert histories.returns(0.5).tolist() == [[2.0, 2.0], [4.0, 0.0]]


def test_without_jax_the_error_says_what_to_install(memory, monkeypatch):
    monkeypatch.delattr(fitters, "gru", raising=False)
    monkeypatch.delitem(sys.modules, "offpolicy.models.fitters.gru", raising=False)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(op.OffPolicyError, match=r"offpolicy\[recurrent\]"):
        Recurrent().fit(memory[0], SETTING)
