"""A model whose features move independently and whose reward is linear, after Jiang & Li (2016), section 6.1.3:

    P̂(s'|s, a) = Π_i P̂_i(s'_i | s_i, a)  by counts (`marginals`),    R̂(s, a) = θ_a · (1, chosen features)  (`linear`)

Values are computed with cached particles (`particles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util import scalars
from offpolicy.errors.kinds.of_models import episode_ends, no_such_feature
from offpolicy.logs.transitions import Transitions, transitions
from offpolicy.models.fitters.linear import LeastSquares, LinearReward
from offpolicy.models.fitters.marginals import Marginals, MoveCounts
from offpolicy.models.fitters.particles import Layer, Layers, Particles, ParticleValues, backward, sorted_layer
from offpolicy.policies import EpsilonGreedy, Uniform
from offpolicy.protocols import Actions, Floats, Policy, Setting, States


@dataclass(frozen=True)
class Factored:
    """A fitter of independent features with discrete values and of a linear reward, in one pass over the log.

    `reward_features` are the state columns that R̂ may use, by name or number; by default all of them. For each (s, a),
    `particles` next states are cached, or more if there are few states, and each step keeps at most `width` states.
    Larger numbers take more time and give more precision. A feature's value that was never seen with an action moves as
    under all actions together (`unseen="pool"`) or not at all (`unseen="stay"`).

    >>> import numpy as np, offpolicy as op, polars as pl
    >>> log = pl.DataFrame({"episode": [0, 0, 1, 1], "step": [0, 1, 0, 1], "age": [0, 1, 0, 1],
    ...                     "action": [0, 0, 1, 1], "reward": [0.0, 1.0, 0.0, 3.0]})
    >>> setting = op.LoggedDomain(state_columns=("age",), actions=2, horizon=2, reward_range=(0.0, 3.0))
    >>> model = op.fitter("factored").fit(log, setting)
    >>> model.values(op.policies.Uniform(actions=2), horizon=2, discount=1.0).v_hat(np.array([[0]]), 0).round(9)
    array([2.])
    """

    reward_features: Sequence[str | int] | None = None
    particles: int = 5
    width: int = 512
    unseen: str = "pool"
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise an error for invalid parameters."""
        for name in ("particles", "width"):
            object.__setattr__(self, name, scalars.whole(name, getattr(self, name), 1, limit=scalars.MOST_ROWS))
        scalars.choice("unseen", self.unseen, ("pool", "stay"))
        object.__setattr__(self, "seed", scalars.whole("seed", self.seed, 0, limit=2**64 - 1))

    def fit(self, log: Any, domain: Setting) -> FactoredModel:
        """Count the moves and solve for the rewards."""
        columns = list(domain.state_columns)
        moves, rewards = MoveCounts(len(columns)), LeastSquares(domain.actions, self._features(columns))
        first_states: list[States] = []
        counts: list[NDArray[np.int64]] = []
        for batch in transitions(log, domain):
            _refuse_an_end(batch)
            known = batch.known
            moves.add(batch.states[known], batch.actions[known], batch.next_states[known])
            rewards.add(batch.states, batch.actions, batch.rewards)
            found, times = np.unique(batch.states[batch.steps == 0], axis=0, return_counts=True)
            first_states.append(found)
            counts.append(times)
        marginals = moves.marginals(domain.actions, self.unseen)
        numbers, same = np.unique(marginals.numbers(np.concatenate(first_states)), axis=0, return_inverse=True)
        mass = np.bincount(same, np.concatenate(counts))
        return FactoredModel(
            marginals=marginals,
            reward=rewards.reward(len(columns)),
            first=sorted_layer(marginals, numbers, mass / mass.sum()),
            domain=domain,
            fitter=self,
        )

    def _features(self, columns: list[str]) -> list[int]:
        chosen = columns if self.reward_features is None else self.reward_features
        for feature in chosen:
            if feature not in columns and feature not in range(len(columns)):
                raise no_such_feature(name="reward_features", feature=repr(feature), columns=columns)
        return [columns.index(f) if isinstance(f, str) else int(f) for f in chosen]


@dataclass(frozen=True, eq=False)
class FactoredModel:
    """The fitted model: `marginals` are its P̂ and `reward` is its R̂."""

    marginals: Marginals
    reward: LinearReward
    first: Layer = field(repr=False)
    domain: Setting = field(repr=False)
    fitter: Factored

    @property
    def particles(self) -> Particles:
        """The cached next states."""
        return Particles(self.marginals, self.domain.actions, self.fitter.particles, self.fitter.seed)

    def values(self, policy: Policy, horizon: int, discount: float) -> ParticleValues:
        """Return the finite-horizon values of a policy."""
        return self.values_of([policy], horizon, discount)[0]

    def values_of(self, policies: Sequence[Policy], horizon: int, discount: float) -> list[ParticleValues]:
        """Return the values of several policies on common layers, which costs little more than one policy."""
        layers = self._layers(policies, horizon)
        return [
            ParticleValues(layers, self.reward, policy, discount, *backward(layers, i, self.reward, discount))
            for i, policy in enumerate(policies)
        ]

    def optimal_policy(self, maximize: bool = True) -> Policy:
        """Return the best policy in the model, or the worst, for the domain's horizon; it depends on the step."""
        uniform, sign = Uniform(self.domain.actions, self.domain.legal), 1.0 if maximize else -1.0
        layers, discount = self._layers([uniform], self.domain.horizon), self.domain.discount

        def best(t: int, q: Floats) -> Floats:
            legal = self.domain.legal(layers.layers[t].states)
            found: Floats = sign * np.where(legal, sign * q, -np.inf).max(axis=1)
            return found

        values = ParticleValues(
            layers, self.reward, uniform, discount, *backward(layers, 0, self.reward, discount, best)
        )
        return EpsilonGreedy(lambda states, step: sign * values.every_action(states, step), 0.0, self.domain.legal)

    def sample(self, states: States, actions: Actions, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return next states drawn from P̂, and rewards R̂, so that the model serves as a simulator."""
        return self.marginals.sample(states, actions, rng), self.reward(states, actions)

    def _layers(self, policies: Sequence[Policy], horizon: int) -> Layers:
        return Layers.build(self.particles, self.first, policies, scalars.horizon(horizon), self.fitter.width)


def _refuse_an_end(batch: Transitions) -> None:
    if batch.terminal.any():
        row = int(np.argmax(batch.terminal))
        raise episode_ends(episode=repr(batch.episodes[row]), step=batch.steps[row])
