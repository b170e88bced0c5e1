"""Environments without a transition table: copies run side by side, each with its own seed, and are reused.

An environment hides its state, so that no step can be made from a given state. `reset` and `step` therefore raise an
error, and a simulation uses `begin` instead, which steps the copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from offpolicy.errors.kinds.of_simulation import cut_off_early, reward_outside_range, state_kept_to_itself
from offpolicy.policies import Legal, Uniform
from offpolicy.protocols import Actions, Domain, Floats, Policy, States
from offpolicy.simulation.gym.footprint import Pool, fitting
from offpolicy.simulation.gym.spaces import Observations
from offpolicy.simulation.rollouts import StepFunction


class PoolDomain(Domain):
    """A domain that can simulate whole episodes, but cannot make a step from a given state.

    >>> import offpolicy as op
    >>> pole = op.from_gymnasium("CartPole-v1", horizon=50, reward_range=(0.0, 1.0))
    >>> pole.state_columns
    ('state_0', 'state_1', 'state_2', 'state_3')
    >>> log = pole.simulate(pole.behavior, n=3, seed=0)
    >>> log["episode"].n_unique(), log["reward"].unique().to_list()
    (3, [1.0])
    """

    def __init__(
        self,
        name: str,
        observations: Observations,
        actions: int,
        first_action: int,
        horizon: int,
        discount: float,
        reward_range: tuple[float, float],
        make: Callable[[], Any],
        copies: int | None = None,
        behavior: Policy | None = None,
        legal: Legal | None = None,
    ) -> None:
        """Keep the function that makes an environment; π0 is uniform over legal actions unless given."""
        self.name, self.horizon, self.discount, self.reward_range = name, horizon, discount, reward_range
        self.state_columns, self.grid, self.observations = observations.names, observations.grid, observations
        self.actions, self.first_action, self.make = actions, first_action, make
        self._copies, self._legal, self._made = copies, legal, Pool()
        self._behavior = Uniform(actions, legal) if behavior is None else behavior

    @property
    def behavior(self) -> Policy:
        """The behaviour policy π0."""
        return self._behavior

    @property
    def copies(self) -> int:
        """How many environments run side by side: the number given, or as many as fit into memory."""
        if self._copies is None:
            self._copies = fitting(self._made, self.make)
        return self._copies

    def legal(self, states: States) -> NDArray[np.bool_]:
        """Return which actions are legal; all are unless `legal` was given."""
        if self._legal is None:
            return np.ones((len(states), self.actions), dtype=bool)
        return np.asarray(self._legal(states), dtype=bool)

    def _environments(self, n: int) -> list[Any]:
        """Return n environments, reusing those of earlier episodes, since a reset starts them afresh."""
        while len(self._made.envs) < n:
            self._made.envs.append(self.make())
        return self._made.envs[:n]

    def begin(self, n: int, rng: np.random.Generator) -> tuple[States, StepFunction]:
        """Reset n environments; return their first states and a function that steps those that still run."""
        envs = self._environments(n)
        seeds = rng.integers(2**31, size=n)
        first = [env.reset(seed=int(seed))[0] for env, seed in zip(envs, seeds, strict=True)]
        made = 0

        def step(running: NDArray[np.int64], states: States, actions: Actions) -> tuple[States, Floats, Any]:
            nonlocal made
            made += 1
            seen, rewards = [], np.empty(len(running))
            ended = np.zeros(len(running), dtype=bool)
            for row, (episode, action) in enumerate(zip(running, actions, strict=True)):
                env = envs[episode]
                observation, rewards[row], ended[row], cut, _ = env.step(int(action) + self.first_action)
                seen.append(observation)
                if cut and not ended[row] and made < self.horizon:
                    self._refuse_cut(made)
            self._check(rewards)
            return self.observations.rows(seen), rewards, ended

        return self.observations.rows(first), step

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Raise an error: only whole episodes can be simulated."""
        self._refuse()

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Raise an error: the environment's state cannot be set."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise state_kept_to_itself(env=self.name)

    def _refuse_cut(self, step: int) -> NoReturn:
        raise cut_off_early(env=self.name, step=step, horizon=self.horizon)

    def _check(self, rewards: Floats) -> None:
        low, high = self.reward_range
        outside = ~((rewards >= low) & (rewards <= high))
        if outside.any():
            raise reward_outside_range(
                env=self.name, reward=f"{rewards[np.argmax(outside)]:g}", range=f"({low:g}, {high:g})"
            )
