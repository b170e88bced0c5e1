"""A recurrent Q-function of whole histories, as in Li et al. (2015), "Recurrent Reinforcement Learning: A Hybrid
Approach", which Jiang & Li (2016) use for π_train of the KDD Cup 1998 donations:

    h_t = GRU(h_{t-1}, [s_t, a_{t-1}, r_{t-1}]),    Q(h_t, a) = v(h_t) + A(h_t, a)

Q is fitted to the return that followed each logged action, Σ_{u≥t} γ^{u-t} r_u. It is the Q of the behaviour policy, so
that the greedy policy is one step of policy improvement. Li et al. bootstrap by Q-learning instead. A logged return
needs no maximum over actions that the log never took, which is where Q-learning from logs fails. v and A are separate,
as in a duelling network (Wang et al. 2016), because returns differ far more between histories than between actions.

A policy of this package sees (state, step), not a history. So a small network of (state, step) is fitted to the centred
A(h_t, ·) along all histories of the log: least squares makes it the mean over the histories that lead to a state
(policy distillation, Rusu et al. 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from offpolicy._util import scalars
from offpolicy.errors.kinds.of_logs import empty_log, history_not_whole
from offpolicy.errors.kinds.of_models import knows_no_other_policy, needs_jax
from offpolicy.logs.transitions import transitions
from offpolicy.policies import EpsilonGreedy
from offpolicy.protocols import Floats, Policy, Setting, States, Step, ValueModel


@dataclass(frozen=True)
class Recurrent:
    """A fitter of a GRU by Adam on the CPU, which needs the extra `recurrent` (JAX).

    All trajectories are held in memory. The same seed gives the same model on machines with the same number of
    processors, because sums of 32-bit floats are split among these.

    >>> from offpolicy.models.fitters.recurrent import Recurrent
    >>> Recurrent(hidden=16).epochs
    30
    """

    hidden: int = 32
    epochs: int = 30
    batch: int = 256
    learning_rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise an error for invalid parameters."""
        for name in ("hidden", "epochs", "batch"):
            object.__setattr__(self, name, scalars.whole(name, getattr(self, name), 1, limit=scalars.MOST_ROWS))
        object.__setattr__(self, "learning_rate", scalars.above_0("learning_rate", self.learning_rate))
        object.__setattr__(self, "seed", scalars.whole("seed", self.seed, 0, limit=2**64 - 1))

    def fit(self, log: Any, domain: Setting) -> RecurrentModel:
        """Fit the GRU, then the network of (state, step) that represents it in policies."""
        try:
            from offpolicy.models.fitters import gru
        except ImportError as error:
            raise needs_jax(error=error) from None

        histories = Histories.read(log, domain)
        returns = histories.returns(domain.discount)
        scale = Scale.of(histories, returns)
        inputs, steps = (
            scale.inputs(histories, domain.actions),
            scale.markov(histories.states, np.arange(histories.length)),
        )
        fit = gru.Fit(self.hidden, self.epochs, self.batch, self.learning_rate, self.seed)
        targets = (returns - scale.return_mean) / scale.return_spread
        network = fit.q_function(inputs, histories.actions, domain.actions, targets, histories.mask)
        advantages = gru.advantages(network, inputs)[histories.mask]
        advantages -= advantages.mean(axis=1, keepdims=True)
        size = float(advantages.std()) or 1.0
        markov = fit.regression(steps[histories.mask], advantages / size)
        return RecurrentModel(network, markov, scale, domain)


@dataclass(frozen=True, eq=False)
class RecurrentModel:
    """The fitted GRU (`network`), and the network of (state, step) for policies (`layers`, weights and biases)."""

    network: dict[str, NDArray[np.float32]] = field(repr=False)
    layers: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]] = field(repr=False)
    scale: Scale = field(repr=False)
    domain: Setting

    def q_along(self, log: Any) -> Floats:
        """Return Q(h_t, ·) along the histories of a log, (episodes, steps, actions), in the unit of returns."""
        from offpolicy.models.fitters import gru

        histories = Histories.read(log, self.domain)
        q = gru.q_values(self.network, self.scale.inputs(histories, self.domain.actions))
        return self.scale.return_mean + self.scale.return_spread * q.astype(float)

    def advantages(self, states: States, step: Step) -> Floats:
        """Return the approximation of A for (state, step), (n, actions), in units of its own spread."""
        x = self.scale.markov(np.asarray(states), np.broadcast_to(step, len(states)))
        for w, b in self.layers[:-1]:
            x = np.tanh(x @ w + b)
        w, b = self.layers[-1]
        return (x @ w + b).astype(float)

    def optimal_policy(self, maximize: bool = True) -> Policy:
        """Return the greedy policy by A of (state, step), which improves on the behaviour policy, or the worst."""
        return EpsilonGreedy(self.advantages if maximize else self._drawbacks, 0.0, self.domain.legal)

    def values(self, policy: Policy, horizon: int, discount: float) -> ValueModel:
        """Raise an error: this model has only the values of the behaviour policy."""
        raise knows_no_other_policy()

    def _drawbacks(self, states: States, step: Step) -> Floats:
        return -self.advantages(states, step)


@dataclass(frozen=True, eq=False)
class Histories:
    """Episodes padded to the longest: states are (n, length, k); actions, rewards and mask are (n, length)."""

    states: NDArray[np.float32]
    actions: NDArray[np.int32]
    rewards: NDArray[np.float32]
    mask: NDArray[np.bool_]

    @property
    def length(self) -> int:
        """The number of steps of the longest episode."""
        return int(self.mask.shape[1])

    @classmethod
    def read(cls, log: Any, domain: Setting) -> Histories:
        """Read all episodes of a log whose rows are sorted by episode and step."""
        batches = list(transitions(log, domain))
        if not sum(len(batch.steps) for batch in batches):
            raise empty_log(what="the log is empty")
        step = np.concatenate([batch.steps for batch in batches])
        row = np.cumsum(step == 0) - 1
        if row[0] < 0:
            raise history_not_whole(first=step[0])
        shape = (int(row[-1]) + 1, int(step.max()) + 1)
        k = len(domain.state_columns)
        found = cls(
            np.zeros((*shape, k), np.float32),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.float32),
            np.zeros(shape, bool),
        )
        found.states[row, step] = np.concatenate([batch.states for batch in batches])
        found.actions[row, step] = np.concatenate([batch.actions for batch in batches])
        found.rewards[row, step] = np.concatenate([batch.rewards for batch in batches])
        found.mask[row, step] = True
        return found

    def returns(self, discount: float) -> NDArray[np.float32]:
        """Return Σ_{u≥t} γ^{u-t} r_u of every step."""
        found, ahead = np.empty_like(self.rewards), np.zeros(len(self.rewards), dtype=np.float32)
        for t in reversed(range(self.length)):
            ahead = self.rewards[:, t] + discount * ahead
            found[:, t] = ahead
        return found


@dataclass(frozen=True, eq=False)
class Scale:
    """The scaling of states, rewards and returns for a network, so that each has a spread of 1 over the log."""

    state_mean: NDArray[np.float32]
    state_spread: NDArray[np.float32]
    reward_spread: float
    return_mean: float
    return_spread: float
    length: int

    @classmethod
    def of(cls, histories: Histories, returns: NDArray[np.float32]) -> Scale:
        """Return the scaling for a log."""
        states, rewards, returns = (part[histories.mask] for part in (histories.states, histories.rewards, returns))
        spread = states.std(axis=0)
        return cls(
            state_mean=states.mean(axis=0),
            state_spread=np.where(spread > 0, spread, 1),
            reward_spread=float(rewards.std()) or 1.0,
            return_mean=float(returns.mean()),
            return_spread=float(returns.std()) or 1.0,
            length=histories.length,
        )

    def inputs(self, histories: Histories, actions: int) -> NDArray[np.float32]:
        """Return [s_t, a_{t-1}, r_{t-1}] of every step, with zeros before the first."""
        n, length = histories.mask.shape
        before = np.zeros((n, length, actions + 1), dtype=np.float32)
        before[:, 1:, :-1] = np.eye(actions, dtype=np.float32)[histories.actions[:, :-1]]
        before[:, 1:, -1] = histories.rewards[:, :-1] / self.reward_spread
        states = (histories.states - self.state_mean) / self.state_spread
        return np.concatenate([states, before], axis=2)

    def markov(self, states: NDArray[Any], step: NDArray[Any]) -> NDArray[np.float32]:
        """Return scaled [s_t, t] for states (…, k) and steps that broadcast to them."""
        time = np.broadcast_to(2 * step / self.length - 1, states.shape[:-1])[..., None]
        scaled = (states - self.state_mean) / self.state_spread
        return np.concatenate([scaled, time], axis=-1).astype(np.float32)
