"""One trajectory per donor. All features are 0 before the first campaign; with action a and gift g of a campaign,

    recency r' = (r + 1)[g = 0]                      frequency f' = f + [g > 0]
    mean gift m' = round((m f + g) / max(f', 1))
    contact recency ir' = (ir + 1)[a = 0]            contact frequency if' = if + [a ≠ 0]

A state is therefore what was known before the campaign. The reward is the gift, or the gift less the mailing's cost.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy_kdd98.campaigns import FEATURES, MAILING, Campaigns

#: The cost of a mailing in dollars.
MAILING_COST = 0.68


def trajectories(campaigns: Campaigns, net: bool = False) -> pl.DataFrame:
    """Return the log of all donors, without the probabilities of the behaviour policy, which are unknown.

    >>> import numpy as np
    >>> mailed, gifts = np.zeros((1, 22), dtype=bool), np.zeros((1, 22))
    >>> mailed[0, 1], gifts[0, 1] = True, 10.0
    >>> log = trajectories(Campaigns(mailed, gifts, synthetic=True))
    >>> log.select("step", *FEATURES[:3], "action", "reward").row(2)
    (2, 0, 1, 10, 0, 0.0)
    """
    n, horizon = campaigns.mailed.shape
    actions = np.where(campaigns.mailed, MAILING, 0)
    states = np.zeros((n, horizon + 1, len(FEATURES)), dtype=np.int64)
    for t in range(horizon):
        states[:, t + 1] = _after(states[:, t], actions[:, t], campaigns.gifts[:, t])
    rewards = campaigns.gifts - MAILING_COST * (actions != 0) * net
    was, then = states[:, :-1].reshape(-1, len(FEATURES)), states[:, 1:].reshape(-1, len(FEATURES))
    return pl.DataFrame(
        {
            "episode": np.repeat(np.arange(n), horizon),
            "step": np.tile(np.arange(horizon, dtype=np.int32), n),
            **{name: was[:, i] for i, name in enumerate(FEATURES)},
            "action": actions.ravel().astype(np.int32),
            "reward": rewards.ravel(),
            "terminal": np.zeros(n * horizon, dtype=bool),
            **{f"next_{name}": then[:, i] for i, name in enumerate(FEATURES)},
        }
    )


def _after(states: NDArray[np.int64], actions: NDArray[np.int64], gifts: NDArray[np.float64]) -> NDArray[np.int64]:
    r, f, m, ir, contacts = states.T
    gave, mailed = gifts > 0, actions != 0
    f_next = f + gave
    mean = np.floor((m * f + gifts) / np.maximum(f_next, 1) + 0.5).astype(np.int64)  # rounds halves up
    return np.stack([(r + 1) * ~gave, f_next, mean, (ir + 1) * ~mailed, contacts + mailed], axis=1)
