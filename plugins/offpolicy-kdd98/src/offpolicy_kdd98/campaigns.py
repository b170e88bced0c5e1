"""The 22 campaigns of the KDD Cup 1998 learning file, from suffix 24 (June 1994) down to 3 (June 1996).

Each campaign has one mail type. The action is that type for a donor who was mailed, and 0 otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Column suffixes in chronological order.
SUFFIXES = tuple(range(24, 2, -1))
#: The mail type of each campaign, in the same order.
MAIL_TYPES = (
    *("NK", "FS", "XK", "X1", "WL", "CC", "GK", "G1", "LL", "TK"),
    *("NK", "FS", "XK", "X1", "WL", "CC", "GK", "G1", "LL", "SK", "TK"),
    "NK",
)
#: Names of the actions 0, 1, …
ACTIONS = ("none", "LL", "WL", "CC", "FS", "NK", "SK", "TK", "GK", "XK", "X1", "G1")
#: The action of each campaign if it is mailed.
MAILING = np.array([ACTIONS.index(kind) for kind in MAIL_TYPES])
#: The state, in the order of the paper's features; R̂ of the evaluation model sees the first three.
FEATURES = ("recency", "frequency", "mean_gift", "contact_recency", "contact_frequency")


@dataclass(frozen=True, eq=False)
class Campaigns:
    """The mailings and gifts of donors, as (donors, 22) arrays; 0 means no gift."""

    mailed: NDArray[np.bool_]
    gifts: NDArray[np.float64]
    synthetic: bool

    def sample(self, donors: int, rng: np.random.Generator) -> Campaigns:
        """Return a random sample of so many donors, or all if there are no more."""
        if donors >= len(self.mailed):
            return self
        chosen = np.sort(rng.choice(len(self.mailed), size=donors, replace=False))
        return Campaigns(self.mailed[chosen], self.gifts[chosen], self.synthetic)
