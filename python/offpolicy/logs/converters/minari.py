"""The converter of minari's episodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from offpolicy._util.visible import visible
from offpolicy.errors.kinds.of_converters import episode_without_steps, goes_on_after_its_end, id_of_several
from offpolicy.errors.kinds.of_logs import empty_log
from offpolicy.logs.converters.tables import (
    Array,
    actions_of,
    entry,
    flags_of,
    make_log,
    propensities_of,
    stacked,
    states_of,
)


def from_episodes(
    episodes: Iterable[Any],
    *,
    horizon: int | None = None,
    behavior_prob: str | None = None,
    state_columns: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Return the log of minari's episodes: a `MinariDataset`, `EpisodeBuffer`s, or mappings with the same keys.

    An episode of T steps has T+1 `observations` (or a dictionary or tuple of such arrays), T discrete `actions`,
    `rewards`, `terminations` and `truncations`, and may have an `id` and `infos`.

    Parameters
    ----------
    episodes
        Any iterable of episodes.
    horizon
        H, if it is known. Longer episodes are refused.
    behavior_prob
        The key, in `infos` or in the episode itself, of the probabilities of the actions taken. There are T of them, or
        T+1 in `infos`, where the first belongs to the reset.
    state_columns
        Names for the columns of the state.

    Examples
    --------
    >>> import numpy as np, offpolicy as op
    >>> episode = {
    ...     "observations": np.array([[0.0, 1.0], [0.5, 1.0], [0.9, 1.0]]),
    ...     "actions": np.array([1, 0]),
    ...     "rewards": np.array([0.0, 1.0]),
    ...     "terminations": np.array([False, True]),
    ...     "truncations": np.array([False, False]),
    ...     "infos": {"prob": np.array([0.5, 0.25])},
    ... }
    >>> log = op.from_episodes([episode], behavior_prob="prob")
    >>> log.select("state_0", "action", "behavior_prob", "next_state_0").rows()
    [(0.0, 1, 0.5, 0.5), (0.5, 0, 0.25, 0.9)]
    """
    parts: list[dict[str, Array]] = []
    ids: list[Any] = []
    for number, episode in enumerate(episodes):
        found = entry(episode, "id", required=False)
        ids.append(number if found is None else found)
        parts.append(_episode(episode, f"episode {visible(str(ids[-1]))}", behavior_prob))
    if not parts:
        raise empty_log(what="there is no episode")
    if len(set(ids)) < len(ids):
        raise id_of_several(episode=next(i for i in ids if ids.count(i) > 1))
    return make_log(ids, [len(part["reward"]) for part in parts], stacked(parts), horizon, state_columns)


def _episode(episode: Any, who: str, behavior_prob: str | None) -> dict[str, Array]:
    rewards = np.asarray(entry(episode, "rewards", who), dtype=float).reshape(-1)
    steps = len(rewards)
    if not steps:
        raise episode_without_steps(who=who)
    observed = states_of(entry(episode, "observations", who), f"{who}: observations", steps + 1)
    terminal = flags_of(entry(episode, "terminations", who), f"{who}: terminations", steps)
    cut = flags_of(entry(episode, "truncations", who), f"{who}: truncations", steps)
    early = np.flatnonzero((terminal | cut)[:-1])
    if len(early):
        raise goes_on_after_its_end(who=who, step=early[0], last=steps - 1)
    return {
        **{name: values[:-1] for name, values in observed.items()},
        "action": actions_of(entry(episode, "actions", who), f"{who}: actions", steps),
        "reward": rewards,
        **propensities_of(episode, behavior_prob, steps, f"{who}: "),
        "terminal": terminal,
        "truncated": cut,
        **{f"next_{name}": values[1:] for name, values in observed.items()},
    }
