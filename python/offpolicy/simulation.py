"""Logs of a simulated domain.

Columns: `episode`, `step` from 0, the state, `action`, `reward`, `behavior_prob` (of the policy that acted), `terminal`
(the domain ended with this step; False where only the horizon did) and the next state as `next_…`.

Episodes are simulated `BLOCK` at a time, each block with a random stream of its own: the same seed gives the same log,
and a log of any size can be written block by block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.errors import PluginError, UsageError
from offpolicy.policies import checked
from offpolicy.protocols import Actions, Domain, Floats, Policy

BLOCK = 8192


def simulate(domain: Domain, policy: Policy, episodes: int, seed: int) -> pl.DataFrame:
    """The log of a policy in a domain."""
    return pl.concat(blocks(domain, policy, episodes, seed))


def blocks(domain: Domain, policy: Policy, episodes: int, seed: int) -> Iterator[pl.DataFrame]:
    """The same log in parts of whole episodes."""
    if episodes < 1:
        raise UsageError(f"episodes must be at least 1, not {episodes}")
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}")
    starts = range(0, episodes, BLOCK)
    for start, stream in zip(starts, np.random.SeedSequence(seed).spawn(len(starts)), strict=True):
        yield _block(domain, policy, start, min(BLOCK, episodes - start), np.random.default_rng(stream))


def draw(probabilities: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """An action a row: the first whose cumulative probability exceeds a uniform number."""
    cumulative = np.cumsum(probabilities, axis=1)
    total = cumulative[:, -1:]
    point = np.minimum(rng.random(total.shape) * total, np.nextafter(total, 0))  # the product may round up to the total
    chosen: NDArray[np.int64] = (cumulative <= point).sum(axis=1)
    return chosen


def _block(domain: Domain, policy: Policy, first: int, n: int, rng: np.random.Generator) -> pl.DataFrame:
    names, horizon = list(domain.state_columns), domain.horizon
    states = domain.reset(n, rng)
    lengths, running = np.full(n, horizon), np.arange(n)
    before = np.empty((n, horizon, len(names)), dtype=states.dtype)
    after = np.empty_like(before)
    actions = np.empty((n, horizon), dtype=np.int32)
    rewards, probabilities = np.empty((n, horizon)), np.empty((n, horizon))
    terminal = np.zeros((n, horizon), dtype=bool)
    for t in range(horizon):
        pi = checked(policy.probabilities(states, t), "the policy", len(states))
        a: Actions = draw(pi, rng)
        next_states, r, done = domain.step(states, a, rng)
        if not np.can_cast(next_states.dtype, before.dtype, "same_kind"):
            raise PluginError(
                f"domain {domain.name!r} begins with states of {before.dtype} and goes on with {next_states.dtype}"
            )
        before[running, t], after[running, t] = states, next_states
        actions[running, t], rewards[running, t], terminal[running, t] = a, r, done
        probabilities[running, t] = pi[np.arange(len(running)), a]
        lengths[running[done]] = t + 1
        running, states = running[~done], next_states[~done]
        if not len(running):
            break
    kept = np.arange(horizon) < lengths[:, None]
    episode, step = np.nonzero(kept)
    was, then = before[kept], after[kept]
    return pl.DataFrame(
        {
            "episode": episode + first,
            "step": step.astype(np.int32),
            **{name: was[:, i] for i, name in enumerate(names)},
            "action": actions[kept],
            "reward": rewards[kept],
            "behavior_prob": probabilities[kept],
            "terminal": terminal[kept],
            **{f"next_{name}": then[:, i] for i, name in enumerate(names)},
        }
    )
