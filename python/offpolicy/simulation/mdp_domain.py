"""A domain from arrays: P(s'|s, a), R and the probabilities of the first states, so that values are known exactly.

The arrays are those of `theory.MDP`, which also gives the values: equations (2) and (3), by backward induction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from offpolicy._util.probabilities import checked
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_simulation import not_simulated, nothing_legal, terminal_first_state
from offpolicy.grid import Grid
from offpolicy.policies import Legal, Uniform
from offpolicy.protocols import Actions, Domain, Floats, Policy, States
from offpolicy.simulation.rollouts import draw
from offpolicy.theory.mdp import MDP
from offpolicy.theory.values import bellman


def from_mdp(
    transitions: ArrayLike,
    rewards: ArrayLike,
    initial: ArrayLike,
    *,
    horizon: int,
    discount: float = 1.0,
    terminal: ArrayLike = (),
    legal: ArrayLike | None = None,
    behavior: Policy | None = None,
    name: str = "mdp",
) -> MDPDomain:
    """Make a domain with states 0 to S-1 and actions 0 to A-1 from arrays.

    Parameters
    ----------
    transitions
        P(s'|s, a), (S, A, S).
    rewards
        R(s, a), (S, A), or R(s, a, s'), (S, A, S).
    initial
        The probabilities of the first states, (S,).
    horizon, discount
        H and γ.
    terminal
        The numbers of the states in which an episode has ended; their entries in the arrays are ignored.
    legal
        Which actions are legal, (S, A) of bool; by default all.
    behavior
        π0; by default all legal actions are equally likely.
    name
        The name of the domain.

    Examples
    --------
    >>> import offpolicy as op
    >>> machine = op.from_mdp(
    ...     [[[0.9, 0.1], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[1.0, 0.5], [0.0, -1.0]], [1.0, 0.0], horizon=5
    ... )
    >>> log = machine.simulate(machine.behavior, n=1000, seed=0)
    >>> ev = op.evaluate(log, estimators=["mc"])
    >>> bool(abs(ev["mc"].value - machine.value(machine.behavior)) < 4 * ev["mc"].std_error)
    True
    """
    mdp = MDP(transitions, rewards, initial, horizon, discount, terminal)
    if mdp.exact:
        raise not_simulated(
            what="a domain is simulated in floats", instead="its arrays as floats, and fractions to theory.MDP"
        )
    if np.asarray(transitions).ndim != 3 or np.asarray(rewards).ndim == 4:
        raise not_simulated(
            what="a domain is the same at every step", instead="transitions (S, A, S), rewards (S, A) or (S, A, S)"
        )
    if np.asarray(rewards).shape == (mdp.horizon, mdp.states, mdp.actions) != (mdp.states, mdp.actions, mdp.states):
        raise not_simulated(
            what="rewards that depend on the step cannot be simulated", instead="them as (S, A) or (S, A, S)"
        )
    if mdp.initial[mdp.terminal].any():
        state = int(np.flatnonzero(mdp.initial * mdp.terminal)[0])
        raise terminal_first_state(state=state)
    return MDPDomain(mdp, mdp.states, name, _legal(legal, mdp), behavior)


def _legal(legal: ArrayLike | None, mdp: MDP) -> NDArray[np.bool_]:
    shape = (mdp.states, mdp.actions)
    found = np.ones(shape, dtype=bool) if legal is None else np.asarray(legal)
    if found.shape != shape or found.dtype != bool:
        raise bad_value(
            name="legal", expected=f"an array of bool of shape (S, A) = {shape}", found=f"{found.dtype} {found.shape}"
        )
    for state in np.flatnonzero(~found.any(axis=1) & ~mdp.terminal)[:1]:
        raise nothing_legal(state=state)
    return found


class MDPDomain(Domain):
    """A domain whose dynamics are arrays; `mdp` may have additional states at its end for episodes that have ended."""

    state_columns = ("state",)

    def __init__(
        self,
        mdp: MDP,
        states: int,
        name: str,
        legal: NDArray[np.bool_] | Legal | None = None,
        behavior: Policy | None = None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        """Keep the arrays; π0 is uniform over legal actions unless given."""
        self.mdp, self.name, self._legal = mdp, name, legal
        self.horizon, self.discount, self.actions = int(mdp.horizon), float(mdp.discount), mdp.actions
        self.grid = Grid((states,))
        self.reward_range = self._possible_rewards() if reward_range is None else reward_range
        chosen = None if legal is None or (isinstance(legal, np.ndarray) and legal.all()) else self.legal
        self._behavior = Uniform(self.actions, chosen) if behavior is None else behavior

    @property
    def behavior(self) -> Policy:
        """The behaviour policy π0."""
        return self._behavior

    def legal(self, states: States) -> NDArray[np.bool_]:
        """Return which actions are legal; in terminal states all are."""
        if self._legal is None:
            return np.ones((len(states), self.actions), dtype=bool)
        if callable(self._legal):
            return np.asarray(self._legal(states), dtype=bool)
        return self._legal[states[:, 0].astype(np.int64)] | self.mdp.terminal[states[:, 0].astype(np.int64), None]

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Draw first states."""
        start = self.mdp.initial[: self.grid.cells]
        return draw(np.broadcast_to(start, (n, self.grid.cells)), rng)[:, None]

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Draw next states."""
        state = states[:, 0].astype(np.int64)
        then = draw(self.mdp.transitions[0][state, actions], rng)
        return then[:, None], self.mdp.reward_mean[0][state, actions, then], self.mdp.terminal[then]

    def transition_probability(self, states: States, actions: Actions, next_states: States) -> Floats:
        """Return n values of P(s'|s, a), where the episode goes on in s'; 0 if s' is terminal."""
        state, then = states[:, 0].astype(np.int64), next_states[:, 0].astype(np.int64)
        found: Floats = np.where(self.mdp.terminal[then], 0.0, self.mdp.transitions[0][state, actions, then])
        return found

    def exact_values(self, policy: Policy) -> tuple[Floats, Floats]:
        """Return Q_t, (horizon, states, actions), and V_t, (horizon, states), of a policy by backward induction."""
        states = np.arange(self.grid.cells)[:, None]
        pi = np.full((self.horizon, self.mdp.states, self.actions), 1 / self.actions)
        for t in range(self.horizon):
            pi[t, : len(states)] = checked(policy.probabilities(states, t), "the policy", len(states))
        q, v = bellman(self.mdp, self.mdp.policy(pi, "policy"))
        return q[:, : len(states)], v[:-1, : len(states)]

    def value(self, policy: Policy) -> float:
        """Return V, the expected discounted return of a policy from the first states."""
        return float(self.mdp.initial[: self.grid.cells] @ self.exact_values(policy)[1][0])

    def _possible_rewards(self) -> tuple[float, float]:
        """Return the lowest and the highest reward of transitions with positive probability."""
        possible: Any = self.mdp.reward_mean[0][(self.mdp.transitions[0] > 0) & ~self.mdp.terminal[:, None, None]]
        return (float(possible.min()), float(possible.max())) if possible.size else (0.0, 0.0)
