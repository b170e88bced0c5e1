"""Finite-horizon values in a factored model by cached particles (Jiang & Li 2016, appendix "KDD Cup 1998").

The paper samples a few next states of each (s, a) once, and keeps them as the distribution P̂(·|s, a). Two additions
bound the cost and remove much of the sampling error:

**Layers.** Layer t holds the states that particles reach at step t from the log's first states. A layer that would have
more than `width` states keeps a random sample of them, weighted by how often the policies reach them, and particles in
other states are moved to the nearest state that is kept. Layers of fewer states have more particles per pair, up to the
same total.

**A part that needs no particles.** Under an action distribution μ_t that ignores the state, features that move
independently and a linear reward give an additive value, exactly and at the cost of one small table per feature:

    L_t(s) = c_t + Σ_i ℓ_ti(s_i),    ℓ_ti(x) = Σ_a μ_t(a) (θ_ai x + γ Σ_y P̂_i(y|x, a) ℓ_{t+1,i}(y))

With μ_t the policy's own mean over layer t, particles are needed only for the rest, D = V̂ - L:

    Q̂_t(s, a) = R̂(s, a) + γ Σ_s' P̂(s'|s, a) L_{t+1}(s') + γ mean over particles of D_{t+1}
    D_t(s)    = Σ_a π(a|s) Q̂_t(s, a) - L_t(s)

A policy that ignores the state is therefore evaluated exactly, for every width and number of particles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from offpolicy import _core
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.models.fitters.linear import LinearReward
from offpolicy.models.fitters.marginals import Marginals, Numbers
from offpolicy.policies import probabilities_of
from offpolicy.protocols import Actions, Floats, Policy, States, Step

#: Maps t and the (n, actions) values Q̂ of layer t to its n values V̂.
Backup: TypeAlias = Callable[[int, Floats], Floats]
#: The share of the uniform policy in the mixture that decides which states a full layer keeps.
EXPLORE = 0.1
#: A full layer samples states by mass to this power. A power below 1 keeps more of the rare states, which have no near
#: neighbours.
BREADTH = 0.5


@dataclass(frozen=True, eq=False)
class Particles:
    """The cached particles of a model: `count` next states of each (s, a), which are the same on every call."""

    marginals: Marginals
    actions: int
    count: int
    seed: int

    def of(self, states: Numbers, actions: Actions) -> tuple[Numbers, NDArray[np.uint32]]:
        """Return the distinct next states, and the (n, count) index into them."""
        return self.marginals.table.particles(states, actions.astype(np.uint32), self.count, self.seed)

    def of_every_action(self, states: Numbers) -> tuple[Numbers, NDArray[np.uint32]]:
        """Return the distinct next states, and the (n, actions, count) index into them."""
        n = len(states)
        found, index = self.of(np.repeat(states, self.actions, axis=0), np.tile(np.arange(self.actions), n))
        return found, index.reshape(n, self.actions, self.count)

    def for_a_layer(self, states: int, width: int) -> Particles:
        """Return particles for a layer: `count` per pair in a full layer, and more in a layer of fewer states."""
        return replace(self, count=max(self.count, self.count * width // states))


@dataclass(frozen=True, eq=False)
class Layer:
    """The states kept for a step in the order of their codes, and the mass of each."""

    marginals: Marginals
    numbers: Numbers
    mass: Floats

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """One number per state, by which it is found."""
        return _codes(self.marginals, self.numbers)

    @cached_property
    def points(self) -> NDArray[np.float32]:
        """The states in units of the features' spread, for distances."""
        return _points(self.marginals, self.numbers)

    @property
    def states(self) -> Floats:
        """The states as values."""
        return self.marginals.states(self.numbers)

    def locate(self, numbers: Numbers) -> NDArray[np.intp]:
        """Return the places of states or their nearest neighbours in this layer, by the sum of |differences|/spread."""
        codes = _codes(self.marginals, numbers)
        place = np.searchsorted(self.codes, codes).clip(0, len(self.codes) - 1)
        absent = np.flatnonzero(self.codes[place] != codes)
        if len(absent):
            place[absent] = _core.nearest(_points(self.marginals, numbers[absent]), self.points)
        return place


@dataclass(frozen=True, eq=False)
class Layers:
    """The layers of some policies; `successors[t]`, (states, actions, particles), has places in layer t + 1."""

    particles: list[Particles]  # of each layer
    layers: list[Layer]
    successors: list[NDArray[np.intp]]
    probabilities: list[list[Floats]]  # by policy, then by layer

    @property
    def marginals(self) -> Marginals:
        """The model's P̂."""
        return self.layers[0].marginals

    @classmethod
    def build(cls, particles: Particles, first: Layer, policies: Sequence[Policy], horizon: int, width: int) -> Layers:
        """Build the layers forwards from the first states."""
        layers, successors, cached = [first], [], []
        probabilities: list[list[Floats]] = [[] for _ in policies]
        for t in range(horizon):
            states = layers[t].states
            for rows, pi in zip(probabilities, probabilities_of(policies, states, t), strict=True):
                rows.append(pi)
            if t + 1 == horizon:
                break
            mean = np.mean([rows[t] for rows in probabilities], axis=0)
            flow = layers[t].mass[:, None] * ((1 - EXPLORE) * mean + EXPLORE / particles.actions)
            cached.append(particles.for_a_layer(len(flow), width))
            found, index = cached[t].of_every_action(layers[t].numbers)
            mass: Floats = np.bincount(
                index.ravel(), np.repeat(flow.ravel(), cached[t].count), minlength=len(found)
            ).astype(float)
            whole = sorted_layer(particles.marginals, found, mass)
            layer = _sampled(whole, width, np.random.default_rng([particles.seed, t]))
            place = layer.locate(found)
            layers.append(replace(layer, mass=np.bincount(place, mass, minlength=len(layer.mass)) / mass.sum()))
            successors.append(place[index])
        return cls(cached, layers, successors, probabilities)


@dataclass(frozen=True, eq=False)
class ParticleValues:
    """Q̂, V̂ and R̂ of one policy; `additive` and `rest` have L and D of layers 0, 1, …, horizon."""

    layers: Layers
    reward: LinearReward
    policy: Policy
    discount: float
    additive: list[Additive]
    rest: list[Floats]
    #: V̂ = Σ π (R̂ + γ Σ P̂ V̂) holds up to the error of D from particles and neighbours.
    transition_remark: ClassVar[str] = "V̂ comes from particles, whose error is left as a bias of dr-v2"

    @property
    def horizon(self) -> int:
        """The number of steps."""
        return len(self.layers.layers)

    @property
    def start_value(self) -> float:
        """The mean of V̂ over the first states of the log, which the first layer already has."""
        first = self.layers.layers[0]
        return float(first.mass @ (self.additive[0].of(first.numbers) + self.rest[0]))

    def q_hat(self, states: States, actions: Actions, step: Step) -> Floats:
        """Return Q̂(s, a), n values."""
        actions = np.asarray(actions)
        numbers = self.layers.marginals.numbers(states)
        value = self.reward(states, actions)
        for t, rows in self._by_step(len(states), step):
            here, a = numbers[rows], actions[rows]
            ahead = self.additive[t + 1].expected_of(here, a)
            if t + 1 < self.horizon:
                pairs = _codes(self.layers.marginals, here) * len(self.reward.theta) + a
                _, first, back = np.unique(pairs, return_index=True, return_inverse=True)
                found, index = self.layers.particles[t].of(here[first], a[first])
                ahead += self.rest[t + 1][self.layers.layers[t + 1].locate(found)][index].mean(axis=1)[back]
            value[rows] += self.discount * ahead
        return value

    def v_hat(self, states: States, step: Step) -> Floats:
        """Return V̂(s) = Σ_a π(a|s) Q̂(s, a), n values."""
        value: Floats = (self.policy.probabilities(states, step) * self.every_action(states, step)).sum(axis=1)
        return value

    def r_hat(self, states: States, actions: Actions) -> Floats:
        """Return R̂(s, a), n values."""
        return self.reward(states, np.asarray(actions))

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return P̂(s'|s, a), n values; NaN where a feature's value was never seen with the action."""
        actions, marginals = np.asarray(actions), self.layers.marginals
        seen = marginals.is_seen(states, actions)
        return np.where(seen, marginals.move_probability(states, actions, next_states), np.nan)

    def every_action(self, states: States, step: Step) -> Floats:
        """Return Q̂(s, ·), (n, actions) values."""
        marginals = self.layers.marginals
        numbers, value = marginals.numbers(states), self.reward.every_action(states)
        for t, rows in self._by_step(len(states), step):
            here = numbers[rows]
            ahead = self.additive[t + 1].expected_of_every_action(here)
            if t + 1 < self.horizon:
                _, first, back = np.unique(_codes(marginals, here), return_index=True, return_inverse=True)
                found, index = self.layers.particles[t].of_every_action(here[first])
                ahead += self.rest[t + 1][self.layers.layers[t + 1].locate(found)][index].mean(axis=2)[back]
            value[rows] += self.discount * ahead
        return value

    def _by_step(self, n: int, step: Step) -> list[tuple[int, NDArray[np.intp]]]:
        steps = np.broadcast_to(step, n)
        if n and (steps.min() < 0 or steps.max() >= self.horizon):
            raise bad_value(
                name="step", expected=f"from 0 to {self.horizon - 1}", found=f"{steps.min()} to {steps.max()}"
            )
        return [(int(t), np.flatnonzero(steps == t)) for t in np.unique(steps)]


@dataclass(frozen=True, eq=False)
class Additive:
    """The function L_t of one step; `expected[i]` is Σ_y P̂_i(y|x, a) ℓ_ti(y), an (actions, values) array."""

    constant: float
    tables: list[Floats]
    expected: list[Floats]

    @classmethod
    def none(cls, marginals: Marginals, actions: int) -> Additive:
        """Return L = 0, which holds after the last step."""
        sizes = marginals.sizes
        return cls(0.0, [np.zeros(size) for size in sizes], [np.zeros((actions, size)) for size in sizes])

    def before(self, mu: Floats, marginals: Marginals, reward: LinearReward, discount: float) -> Additive:
        """Return L_{t-1}, computed from this L_t and μ_{t-1}."""
        theta = mu @ reward.theta
        tables = [
            theta[1 + i] * values + discount * (mu @ self.expected[i]) for i, values in enumerate(marginals.values)
        ]
        expected = [marginals.expected(i, table) for i, table in enumerate(tables)]
        return Additive(theta[0] + discount * self.constant, tables, expected)

    def of(self, numbers: Numbers) -> Floats:
        """Return L_t(s), n values."""
        total: Floats = self.constant + np.sum([table[numbers[:, i]] for i, table in enumerate(self.tables)], axis=0)
        return total

    def expected_of(self, numbers: Numbers, actions: Actions) -> Floats:
        """Return Σ_s' P̂(s'|s, a) L_t(s'), n values."""
        total: Floats = self.constant + np.sum(
            [table[actions, numbers[:, i]] for i, table in enumerate(self.expected)], axis=0
        )
        return total

    def expected_of_every_action(self, numbers: Numbers) -> Floats:
        """Return Σ_s' P̂(s'|s, a) L_t(s') for all actions, (n, actions) values."""
        total: Floats = self.constant + np.sum(
            [table[:, numbers[:, i]].T for i, table in enumerate(self.expected)], axis=0
        )
        return total


def backward(
    layers: Layers, which: int, reward: LinearReward, discount: float, backup: Backup | None = None
) -> tuple[list[Additive], list[Floats]]:
    """Compute L and D of one policy from the last step to the first; `backup` is Σ_a π(a|s) Q̂ unless given."""
    marginals, pi = layers.marginals, layers.probabilities[which]
    after, rest_after = Additive.none(marginals, len(reward.theta)), np.zeros(0)
    additive, rest = [after], [rest_after]
    for t in reversed(range(len(layers.layers))):
        layer = layers.layers[t]
        q = reward.every_action(layer.states) + discount * after.expected_of_every_action(layer.numbers)
        if t + 1 < len(layers.layers):
            places = layers.successors[t]
            q += discount * (rest_after.take(places) @ np.full(places.shape[2], 1 / places.shape[2]))
        after = after.before(layer.mass @ pi[t], marginals, reward, discount)
        value = (pi[t] * q).sum(axis=1) if backup is None else backup(t, q)
        rest_after = value - after.of(layer.numbers)
        additive.append(after)
        rest.append(rest_after)
    return additive[::-1], rest[::-1]


def sorted_layer(marginals: Marginals, numbers: Numbers, mass: Floats) -> Layer:
    """Return a layer of distinct states, sorted by their codes."""
    order = np.argsort(_codes(marginals, numbers))
    return Layer(marginals, numbers[order], mass[order])


def _sampled(layer: Layer, width: int, rng: np.random.Generator) -> Layer:
    """Sample at most `width` states without replacement, weighted by mass (Efraimidis & Spirakis 2006)."""
    if len(layer.mass) <= width:
        return layer
    waiting = rng.exponential(size=len(layer.mass)) / np.maximum(layer.mass, np.finfo(float).tiny) ** BREADTH
    kept = np.sort(np.argpartition(waiting, width)[:width])
    return Layer(layer.marginals, layer.numbers[kept], layer.mass[kept])


def _codes(marginals: Marginals, numbers: Numbers) -> NDArray[np.int64]:
    code = np.zeros(len(numbers), dtype=np.int64)
    for i, size in enumerate(marginals.sizes):
        code *= size
        code += numbers[:, i]
    return code


def _points(marginals: Marginals, numbers: Numbers) -> NDArray[np.float32]:
    points: NDArray[np.float32] = (marginals.states(numbers) / marginals.spread).astype(np.float32)
    return points
