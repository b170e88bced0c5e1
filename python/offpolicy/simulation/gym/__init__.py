"""Gymnasium environments with discrete actions as domains (extra `gymnasium`).

An environment with a transition table, such as those of Gymnasium's toy text, becomes a `TableDomain`: exact dynamics,
drawn for all rows at once. Any other becomes a `PoolDomain`, which steps copies of the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from offpolicy._util import scalars
from offpolicy._util.optional import imported
from offpolicy.errors.kinds.of_arguments import bad_value, more_arguments_than_taken, not_a_range, unknown_name
from offpolicy.errors.kinds.of_converters import continuous_actions
from offpolicy.errors.kinds.of_simulation import cannot_be_copied, gym_cannot_make, no_reward_range, no_time_limit
from offpolicy.policies import Legal
from offpolicy.protocols import Policy
from offpolicy.simulation.gym.pool import PoolDomain
from offpolicy.simulation.gym.spaces import observations_of
from offpolicy.simulation.gym.table import TableDomain, has_table, read_table

__all__ = ["PoolDomain", "TableDomain", "by_id", "from_gymnasium"]


def from_gymnasium(
    env: Any,
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    reward_range: tuple[float, float] | None = None,
    behavior: Policy | None = None,
    table: bool | None = None,
    copies: int | None = None,
    legal: Any = None,
    name: str | None = None,
    **options: Any,
) -> TableDomain | PoolDomain:
    """Make a domain from a Gymnasium environment.

    Parameters
    ----------
    env
        The id of an environment, a function that makes one, or an environment, of which deep copies are made. An
        environment made from its id has no time limit of its own; only the horizon ends its episodes.
    horizon
        H; by default the time limit with which the environment is registered.
    discount
        γ.
    reward_range
        Lowest and highest reward of a step. It is read from a transition table; without one it must be given.
    behavior
        π0; by default all actions are equally likely.
    table
        True to use the environment's transition table `P`, False to step copies; by default the table is used where the
        environment is one of Gymnasium's own and no wrapper changes what it does.
    copies
        How many environments are stepped together where there is no table; another number gives another log. The
        default is 256, or a smaller power of two if 256 new copies would need more than 1 GiB. The domain's attribute
        `copies` holds the number.
    legal
        Which actions are legal: a function from an (n, k) array of states to an (n, actions) array of bool, or, if the
        state is one whole number from 0, an array of bool of shape (states, actions). By default all actions are legal.
    name
        The name of the domain; by default the environment's id.
    options
        Further arguments for `gymnasium.make`, such as `is_slippery=False`.

    Examples
    --------
    >>> import offpolicy as op
    >>> lake = op.from_gymnasium("FrozenLake-v1", horizon=100, discount=0.99)
    >>> lake.actions, lake.grid.cells, lake.reward_range
    (4, 16, (0.0, 1.0))
    >>> round(lake.value(lake.behavior), 5)
    0.01236
    >>> log = lake.simulate(lake.behavior, n=5, seed=0)
    >>> log.columns[:4]
    ['episode', 'step', 'state', 'action']
    """
    gymnasium = imported("gymnasium", extra="gymnasium", to="make a domain from an environment")
    make, limit = _maker(gymnasium, env, options)
    try:
        first = make()
    except (gymnasium.error.Error, TypeError) as error:
        raise gym_cannot_make(env=repr(env), error=error) from None
    if not isinstance(first, gymnasium.Env):
        raise bad_value(
            name="env", expected="an id, an environment or a function that makes one", found=type(env).__name__
        )
    name = name or (first.spec.id if first.spec is not None else type(first.unwrapped).__name__)
    actions = first.action_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise continuous_actions(what=f"{name} has actions in {actions}", actions="actions", done="evaluated")
    horizon = limit if horizon is None else horizon
    if horizon is None:
        raise no_time_limit(env=name, found=horizon)
    horizon, discount = scalars.horizon(horizon), scalars.discount(discount)
    reward_range = None if reward_range is None else scalars.span("reward_range", reward_range)
    copies = None if copies is None else scalars.whole("copies", copies, 1)
    may = _legal(legal, int(actions.n))
    if table or (table is None and has_table(first)):
        dynamics = read_table(first, name)
        return TableDomain(name, horizon, discount, reward_range or dynamics.reward_range, dynamics, behavior, may)
    if reward_range is None:
        raise no_reward_range(env=name)
    observations = observations_of(first.observation_space, name)
    count, lowest = int(actions.n), int(actions.start)
    return PoolDomain(name, observations, count, lowest, horizon, discount, reward_range, make, copies, behavior, may)


def _legal(legal: Any, actions: int) -> Legal | None:
    """Return the legal actions as a function of states."""
    if legal is None or callable(legal):
        found: Legal | None = legal
        return found
    table = np.asarray(legal)
    if table.dtype != bool or table.ndim != 2 or table.shape[1] != actions:
        raise bad_value(
            name="legal", expected=f"a function, or an array of bool of (states, {actions})", found=table.shape
        )
    return lambda states: table[states[:, 0].astype(np.int64)]


def by_id(
    id: str = "FrozenLake-v1",
    *,
    horizon: int | None = None,
    discount: float = 1.0,
    reward_range: str | tuple[float, float] | None = None,
    **options: Any,
) -> TableDomain | PoolDomain:
    """Make the domain `gymnasium` from options of the command line, where `reward_range` is the text "lowest,highest".

    >>> import offpolicy as op
    >>> op.domain("gymnasium", id="CliffWalking-v1", horizon=50).reward_range
    (-100.0, -1.0)
    """
    if "env" in options:
        raise unknown_name(lack="domain 'gymnasium' has no parameter", name="'env'", hint="; did you mean 'id'?")
    if isinstance(reward_range, str):
        try:
            low, high = (float(part) for part in reward_range.split(","))
        except ValueError:
            raise not_a_range(name="reward_range", found=repr(reward_range)) from None
        reward_range = (low, high)
    return from_gymnasium(id, horizon=horizon, discount=discount, reward_range=reward_range, **options)


def _maker(gymnasium: Any, env: Any, options: dict[str, Any]) -> tuple[Callable[[], Any], int | None]:
    """Return a function that makes one more environment, and the time limit that belongs to it."""
    if isinstance(env, str):
        try:
            limit: int | None = gymnasium.spec(env).max_episode_steps
        except gymnasium.error.Error as error:
            raise gym_cannot_make(env=repr(env), error=error) from None
        return partial(gymnasium.make, env, max_episode_steps=-1, disable_env_checker=True, **options), limit
    if options:
        raise more_arguments_than_taken(names=", ".join(options))
    limit = env.spec.max_episode_steps if getattr(env, "spec", None) is not None else None
    return (env if callable(env) else partial(_copy, env)), limit


def _copy(env: Any) -> Any:
    try:
        return deepcopy(env)
    except Exception as error:
        raise cannot_be_copied(found=type(env).__name__, error=error) from None
