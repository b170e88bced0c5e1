"""A tabular MDP with a finite horizon, as arrays.

    s_1 ~ μ,    s_{t+1} ~ P_t(.|s_t, a_t),    r_t with a mean and a variance given (s_t, a_t, s_{t+1}),    t = 1, …, H

The paper counts steps from 1; in arrays and messages step t has index t - 1. Nothing follows s_{H+1}.

A terminal state ends the episode, which is absorbed there with r = 0 and ρ = 1. In the arrays of this class the state
leads to itself without a reward, and every policy takes the same action in it, so that no formula needs a special case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from offpolicy._util import scalars
from offpolicy.errors import UsageError
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_theory import bad_model, no_such_state, states_by_number, two_forms
from offpolicy.theory.arrays import AXES, Array, Number, as_array, as_probabilities, in_fractions, number
from offpolicy.theory.rewards import Rewards


class MDP:
    """An MDP with states 0 to S-1, actions 0 to A-1 and H steps.

    Parameters
    ----------
    transitions
        P(s'|s, a): (S, A, S), or (H, S, A, S) where it depends on the step.
    rewards
        A table of shape (S, A), (H, S, A), (S, A, S) if the reward depends on the next state, or (H, S, A, S). Random
        rewards are given as `Rewards`.
    initial
        μ(s), (S,).
    horizon
        H.
    discount
        γ.
    terminal
        The numbers of the states in which the episode has ended; their entries in the arrays are ignored.

    Examples
    --------
    >>> from offpolicy import theory
    >>> mdp = theory.MDP(
    ...     transitions=[[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
    ...     rewards=[[1.0, 2.0], [0.0, 0.0]],
    ...     initial=[1.0, 0.0],
    ...     horizon=3,
    ...     terminal=[1],
    ... )
    >>> mdp.states, mdp.actions, mdp.transitions.shape
    (2, 2, (3, 2, 2, 2))
    >>> theory.MDP([[[0.5, 0.4], [0.0, 1.0]]] * 2, [[1.0, 2.0]] * 2, initial=[1.0, 0.0], horizon=3)
    Traceback (most recent call last):
        ...
    offpolicy.errors.UsageError: transitions: the probabilities of state 0, action 0 add to 0.9, not 1
    """

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike | Rewards,
        initial: ArrayLike,
        horizon: int,
        discount: Number = 1.0,
        terminal: ArrayLike = (),
    ) -> None:
        """Check that shapes fit and that probabilities add to 1."""
        horizon = scalars.horizon(horizon)
        scalars.discount(discount)  # which may be a Fraction, and stays one
        rewards = rewards if isinstance(rewards, Rewards) else Rewards(rewards)
        self.exact = in_fractions(transitions=transitions, rewards=rewards.mean, initial=initial, discount=discount)
        self.horizon = horizon
        self.discount: Any = number(discount, self.exact)
        p = as_array(transitions, self.exact, "transitions")
        self.states, self.actions = self._sizes(p)
        self.terminal = self._mask(terminal)
        p[..., self.terminal, :, :] = self._unit(self.states)[self.terminal, None]
        p = as_probabilities(p, "transitions", AXES[4 - p.ndim :])
        self.transitions = np.broadcast_to(p, (horizon, *p.shape[-3:]))
        self.reward_mean = self._rewards(rewards.mean)
        self.reward_variance = self._rewards(rewards.variance)
        self.initial = as_array(initial, self.exact, "initial")
        if self.initial.shape != (self.states,):
            raise bad_value(name="initial", expected=f"({self.states},), one for each state", found=self.initial.shape)
        self.initial = as_probabilities(self.initial, "initial")

    def policy(self, policy: ArrayLike, name: str) -> Array:
        """Return π_t(a|s) as (H, S, A), from (S, A) or (H, S, A)."""
        table = self._table(policy, name)
        table[..., self.terminal, :] = self._unit(self.actions)[0]
        return self._each_step(as_probabilities(table, name, AXES[3 - table.ndim : 2]))

    def q_hat(self, q_hat: ArrayLike) -> Array:
        """Return Q̂_t(s, a) as (H, S, A), from (S, A) or (H, S, A)."""
        table = self._table(q_hat, "q_hat")
        table[..., self.terminal, :] = 0
        return self._each_step(table)

    def model(self, p_hat: ArrayLike, r_hat: ArrayLike | Rewards) -> MDP:
        """Return this MDP with other transitions and rewards."""
        try:
            p = as_array(p_hat, self.exact, "transitions")
            if p.shape[-3:] != self.transitions.shape[1:]:
                raise bad_value(
                    name="transitions",
                    expected=f"{self.transitions.shape[1:]} or {self.transitions.shape}",
                    found=p.shape,
                )
            return MDP(p, r_hat, self.initial, self.horizon, self.discount, np.flatnonzero(self.terminal))
        except UsageError as error:
            raise bad_model(error=error) from None

    def _sizes(self, p: Array) -> tuple[int, int]:
        square = p.ndim in (3, 4) and p.shape[-1] == p.shape[-3] and p.size > 0
        if not square or (p.ndim == 4 and len(p) != self.horizon):
            raise bad_value(name="transitions", expected=f"(S, A, S), or ({self.horizon}, S, A, S)", found=p.shape)
        return p.shape[-3], p.shape[-2]

    def _unit(self, size: int) -> Array:
        return as_array(np.eye(size), self.exact, "the unit matrix")

    def _mask(self, terminal: ArrayLike) -> Array:
        mask, numbers = np.zeros(self.states, dtype=bool), np.atleast_1d(np.asarray(terminal))
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            raise states_by_number(found=numbers.dtype)
        for state in numbers.astype(int).ravel():
            if not 0 <= state < self.states:
                raise no_such_state(what=f"the terminal state {state}", states=f"0 to {self.states - 1}")
            mask[state] = True
        return mask

    def _rewards(self, rewards: Array) -> Array:
        """Return rewards as (H, S, A, S)."""
        h, s, a = self.horizon, self.states, self.actions
        shapes = {(s, a): (1, s, a, 1), (s, a, s): (1, s, a, s), (h, s, a): (h, s, a, 1), (h, s, a, s): (h, s, a, s)}
        if rewards.shape == (h, s, a) == (s, a, s):
            raise two_forms(shape=rewards.shape, forms="(H, S, A) or (S, A, S)")
        if rewards.shape not in shapes:
            expected = ", ".join(str(shape) for shape in shapes)
            raise bad_value(name="rewards", expected=f"one of {expected}", found=rewards.shape)
        full = as_array(rewards, self.exact, "rewards").reshape(shapes[rewards.shape])
        full[:, self.terminal] = 0
        return np.broadcast_to(full, (h, s, a, s))

    def _table(self, values: ArrayLike, name: str) -> Array:
        table = as_array(values, self.exact, name)
        shape = (self.states, self.actions)
        if table.shape not in (shape, (self.horizon, *shape)):
            raise bad_value(name=name, expected=f"{shape} or {(self.horizon, *shape)}", found=table.shape)
        return table

    def _each_step(self, table: Array) -> Array:
        return np.broadcast_to(table, (self.horizon, self.states, self.actions))
