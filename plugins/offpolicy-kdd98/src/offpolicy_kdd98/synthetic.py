"""Synthetic donors in the shape of the file, for users who do not have it; they are not records of real people.

Each donor has a readiness to give and a usual gift, and donors who give more readily give less at a time. Each mail
type has its own appeal, and some campaigns go to fewer donors. Three numbers agree with published totals of the KDD Cup
1998 file: donors are not mailed in 25.7% of their campaigns, 17.8% of the mailings bring a gift (and nothing else
does), and the mean gift is $13.55. Everything else, and so every result, is made up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from offpolicy_kdd98.campaigns import MAIL_TYPES, Campaigns

UNMAILED, GIFTS_PER_MAILING, MEAN_GIFT = 0.257, 0.178, 13.55
#: The shift of the log-odds of a gift by mail type.
PULL = {
    "LL": 0.25,
    "WL": -0.15,
    "CC": 0.10,
    "FS": -0.05,
    "NK": 0.0,
    "SK": -0.35,
    "TK": -0.10,
    "GK": 0.20,
    "XK": 0.30,
    "X1": -0.20,
    "G1": -0.25,
}
#: The shift of the log-odds of being mailed by mail type.
REACH = {
    "LL": 0.1,
    "WL": 0.2,
    "CC": 0.1,
    "FS": 0.4,
    "NK": 0.6,
    "SK": -0.5,
    "TK": 0.2,
    "GK": 0.1,
    "XK": 0.3,
    "X1": -0.9,
    "G1": -0.9,
}


def synthetic_donors(donors: int = 3754, seed: int = 1998) -> Campaigns:
    """Make synthetic donors; the same seed gives the same donors.

    >>> round(float(synthetic_donors(donors=2000).mailed.mean()), 2)
    0.74
    """
    rng = np.random.default_rng(seed)
    readiness = rng.normal(0.0, 0.8, size=(donors, 1))
    contact = rng.normal(0.0, 0.6, size=(donors, 1))
    reach, pull = (np.array([table[kind] for kind in MAIL_TYPES]) for table in (REACH, PULL))

    mailed = rng.random((donors, len(MAIL_TYPES))) < _calibrated(contact + reach, 1 - UNMAILED)
    gives = _calibrated(readiness + pull, GIFTS_PER_MAILING, where=mailed)
    gave = mailed & (rng.random(mailed.shape) < gives)

    usual = np.exp(rng.normal(0.0, 0.5, size=(donors, 1)) - 0.3 * readiness)
    amounts = usual * np.exp(rng.normal(0.0, 0.35, size=mailed.shape))
    expected = usual * np.exp(0.35**2 / 2)
    amounts *= MEAN_GIFT / np.average(np.broadcast_to(expected, mailed.shape), weights=gives * mailed)
    return Campaigns(mailed, np.where(gave, np.maximum(np.rint(amounts), 1.0), 0.0), synthetic=True)


def _calibrated(
    log_odds: NDArray[np.float64], mean: float, where: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Return probabilities of these log-odds, shifted by a constant such that their mean is right."""
    weights = np.ones(log_odds.shape) if where is None else where.astype(float)
    low, high = -20.0, 20.0
    for _ in range(60):
        shift = (low + high) / 2
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-(log_odds + shift)))
        low, high = (low, shift) if np.average(probabilities, weights=weights) > mean else (shift, high)
    return probabilities
