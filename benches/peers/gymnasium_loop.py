"""A plain loop over Gymnasium's vector environment, with the dynamics of Mountain Car in a typical `Env`.

It runs 256 environments at a time, the fastest of 16, 64, 256 and 1024. Each starts again as soon as its episode has
ended, and the loop stops when n episodes have ended. That counts short episodes first, so the peer makes slightly fewer
steps than ours. It keeps states, actions and rewards, and no more.
"""

import math

import gymnasium
import numpy as np
from offpolicy_mountain_car import MountainCar

NAME = "Gymnasium vector-env loop"
_ENVIRONMENTS = 256
_SUBSTEPS, _HORIZON = 4, 100
_LOW, _HIGH = np.array([-1.2, -0.07]), np.array([0.6, 0.07])


class Car(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(_LOW, _HIGH, dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.x, self.v = self.np_random.uniform(_LOW, _HIGH).tolist()
        return np.array((self.x, self.v)), {}

    def step(self, action):
        x, v = self.x, self.v
        for _ in range(_SUBSTEPS):
            v += 0.001 * (action - 1) - 0.0025 * math.cos(3 * x)
            v = min(max(v, -0.07), 0.07)
            x = min(max(x + v, -1.2), 0.6)
            if x == -1.2 and v < 0:
                v = 0.0
            if x >= 0.6:
                break
        self.x, self.v = x, v
        self.steps += 1
        return np.array((x, v)), -1.0, x >= 0.6, self.steps >= _HORIZON, {}


def run(episodes: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return states, actions and rewards of the environments, step by step, until enough episodes have ended."""
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    environments = gymnasium.vector.SyncVectorEnv([Car] * _ENVIRONMENTS, autoreset_mode=mode)
    rng = np.random.default_rng(seed)
    now, _ = environments.reset(seed=seed)
    states, actions, rewards, ended = [], [], [], 0
    while ended < episodes:
        chosen = rng.integers(0, 3, _ENVIRONMENTS)
        states.append(now)
        now, reward, terminated, truncated, _ = environments.step(chosen)
        actions.append(chosen)
        rewards.append(reward)
        ended += int((terminated | truncated).sum())
    return states, actions, rewards


def check() -> None:
    """Check that its steps are those of the domain, on states from everywhere."""
    rng = np.random.default_rng(0)
    domain, car = MountainCar(), Car()
    states, actions = rng.uniform(_LOW, _HIGH, (2000, 2)), rng.integers(0, 3, 2000)
    after, rewards, done = domain.step(states, actions, rng)
    car.reset(seed=0)
    for i in range(len(states)):
        car.x, car.v = states[i].tolist()
        found, reward, ended, _, _ = car.step(int(actions[i]))
        assert np.abs(found - after[i]).max() < 1e-15
        assert (reward, ended) == (rewards[i], done[i])
