"""Logs of a simulated domain.

The columns are `episode`, `step` from 0, the state, `action`, `reward`, `behavior_prob` (of the policy that acted),
`terminal` (True if the domain ended the episode with this step, False if only the horizon did) and the next state as
`next_…`.

Episodes are simulated in blocks of about `BLOCK_ROWS` rows, each with its own random stream, so that the same seed
gives the same log and a log of any size can be written block by block.

A domain that can only run whole episodes, such as one around an environment that hides its state, has `begin(n, rng)`
beside `reset` and `step`. It returns the first states and a function that steps the episodes that still run. The
attribute `copies` of such a domain is the largest number of episodes that run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from offpolicy._util import polars_calls
from offpolicy._util.arrays import Actions, Floats, States, Step
from offpolicy._util.files import whole_file
from offpolicy._util.probabilities import TOLERANCE, checked
from offpolicy._util.scalars import whole
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_plugins import simulation_failed, wrong_domain, wrong_probabilities

#: The largest number of episodes per block, and of rows per block if every episode reaches the horizon.
BLOCK, BLOCK_ROWS = 8192, 1 << 20
#: Episodes are numbered by 64-bit integers.
MOST_EPISODES = 2**63 - 1

#: Maps the numbers, states and actions of the running episodes to next states, rewards and which of them have ended.
StepFunction: TypeAlias = Callable[[NDArray[np.int64], States, Actions], tuple[States, Floats, NDArray[np.bool_]]]


class Simulator(Protocol):
    """The part of `offpolicy.protocols.Domain` that a simulation uses."""

    name: str
    state_columns: Sequence[str]
    actions: int
    horizon: int

    def reset(self, n: int, rng: np.random.Generator) -> States:
        """Return n first states."""
        ...

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator
    ) -> tuple[States, Floats, NDArray[np.bool_]]:
        """Return next states, rewards, and which rows have ended."""
        ...


class Acting(Protocol):
    """The part of `offpolicy.protocols.Policy` that a simulation uses."""

    def probabilities(self, states: States, step: Step) -> Floats:
        """Return π(a|s) as an (n, actions) array."""
        ...


def simulate(domain: Simulator, policy: Acting, episodes: int, seed: int) -> pl.DataFrame:
    """Simulate the log of a policy in a domain."""
    return pl.concat(blocks(domain, policy, episodes, seed))


def blocks(domain: Simulator, policy: Acting, episodes: int, seed: int) -> Iterator[pl.DataFrame]:
    """Yield the log of `simulate` in parts of whole episodes."""
    episodes, seed = whole("episodes", episodes, 1, limit=MOST_EPISODES), whole("seed", seed, 0)
    horizon = whole("the horizon of the domain", domain.horizon, 1)
    size = max(1, min(BLOCK, BLOCK_ROWS // horizon, getattr(domain, "copies", BLOCK)))
    seeds = np.random.SeedSequence(seed)
    for start in range(0, episodes, size):
        (stream,) = seeds.spawn(1)
        try:
            part = _block(domain, policy, start, min(size, episodes - start), np.random.default_rng(stream))
        except OffPolicyError:
            raise
        except Exception as error:
            raise simulation_failed(name=repr(domain.name), type=type(error).__name__, error=error) from error
        yield part


def write(
    domain: Simulator,
    policy: Acting,
    episodes: int,
    seed: int,
    path: Path,
    metadata: Mapping[str, str] | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> None:
    """Write the log of `simulate` to a Parquet file, block by block; `progress` gets the number of episodes done."""
    advance = progress or (lambda done, total: None)
    with whole_file(path) as beside:
        parts: list[Path] = []
        advance(0, episodes)
        for part in blocks(domain, policy, episodes, seed):
            parts.append(beside.with_name(f"{len(parts)}.part"))
            part.write_parquet(parts[-1], compression="lz4")
            advance(int(part["episode"][-1]) + 1, episodes)
        polars_calls.write_parquet(pl.scan_parquet(parts), beside, metadata or {})


def draw(probabilities: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one action per row: the first whose cumulative probability exceeds a uniform number."""
    rows, actions = probabilities.shape
    cumulative = np.array(probabilities.T, dtype=float, order="C")  # one row per action: few long sums
    for a in range(1, actions):
        cumulative[a] += cumulative[a - 1]
    total = cumulative[-1]
    if probabilities.min(initial=0.0) < 0 or not (np.abs(total - 1) <= TOLERANCE).all():
        return draw(checked(probabilities, "the policy"), rng)
    point = rng.random(rows)
    point *= total
    if (point >= total).any():  # the product may round up
        np.minimum(point, np.nextafter(total, 0), out=point)
    chosen = np.zeros(rows, dtype=np.int64)
    for a in range(actions - 1):
        chosen += cumulative[a] <= point
    return chosen


def _block(domain: Simulator, policy: Acting, first: int, n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Simulate n episodes side by side; rows are produced step by step and sorted by episode at the end."""
    states, step = _begin(domain, n, rng)
    running, lengths = np.arange(n), np.zeros(n, dtype=np.int64)
    last = np.empty((n, len(domain.state_columns)), dtype=states.dtype)  # the final state of each episode
    steps: list[_Step] = []
    for t in range(domain.horizon):
        pi = policy.probabilities(states, t)
        if pi.shape != (len(states), domain.actions):
            raise wrong_probabilities(expected=(len(states), domain.actions), found=pi.shape)
        pi = checked(pi, "the policy")
        actions: Actions = draw(pi, rng)
        next_states, rewards, done = step(running, states, actions)
        if not np.can_cast(next_states.dtype, last.dtype, "same_kind"):
            kinds = f"begins with states of {last.dtype} and goes on with {next_states.dtype}"
            raise wrong_domain(name=repr(domain.name), fault=kinds)
        chosen = pi[np.arange(len(running)), actions]
        steps.append(_Step(running, states, actions, rewards, chosen, done))
        lengths[running] += 1
        if t + 1 == domain.horizon:
            last[running] = next_states
        elif done.any():
            last[running[done]] = next_states[done]
            go_on = np.flatnonzero(~done)
            running, next_states = running[go_on], next_states.take(go_on, axis=0)
        states = next_states
        if not len(running):
            break
    return _log(domain, steps, first, lengths, last)


def _begin(domain: Simulator, n: int, rng: np.random.Generator) -> tuple[States, StepFunction]:
    """Return first states and a function that makes the next step."""
    begin: Callable[[int, np.random.Generator], tuple[States, StepFunction]] | None = getattr(domain, "begin", None)
    if begin is not None:
        return begin(n, rng)
    return domain.reset(n, rng), lambda _, states, actions: domain.step(states, actions, rng)


class _Step(NamedTuple):
    """One step of the running episodes."""

    episodes: NDArray[np.int64]
    states: States
    actions: Actions
    rewards: Floats
    probabilities: Floats
    done: NDArray[np.bool_]


def _log(
    domain: Simulator, steps: Sequence[_Step], first: int, lengths: NDArray[np.int64], last: States
) -> pl.DataFrame:
    """Sort the rows by episode; a row's next state is the state of the following row or the episode's final state."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    episodes, states, actions, rewards, probabilities, done = (
        np.concatenate(part) for part in zip(*steps, strict=True)
    )
    step = np.repeat(np.arange(len(steps), dtype=np.int32), [len(part.episodes) for part in steps])
    row = starts[episodes] + step

    def in_order(values: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
        ordered = np.empty(len(row), dtype or values.dtype)
        ordered[row] = values
        return ordered

    state = {name: in_order(states[:, i], last.dtype) for i, name in enumerate(domain.state_columns)}
    next_state = {}
    for i, (name, values) in enumerate(state.items()):
        following = np.roll(values, -1)
        following[ends - 1] = last[:, i]
        next_state[f"next_{name}"] = following
    return pl.DataFrame(
        {
            "episode": np.repeat(np.arange(first, first + len(lengths)), lengths),
            "step": in_order(step),
            **state,
            "action": in_order(actions, np.int32),
            "reward": in_order(rewards, np.float64),
            "behavior_prob": in_order(probabilities),
            "terminal": in_order(done, np.bool_),
            **next_state,
        }
    )
