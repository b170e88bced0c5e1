"""Advice on what to do next, for each finding of a verdict."""

from __future__ import annotations

import math

from offpolicy._util.phrase import Word, phrase
from offpolicy._util.words import argument, given

USE = "use the estimate with its interval"
CHECK_PROBABILITIES = "check the logged probabilities, and that π0 takes every action that the target policy takes"
COME_NEARER = "take a policy nearer to the log, such as a mixture with it; more episodes do not thin a heavy tail"
READ_TWICE = phrase("read the log twice ({passes}), with diagnostics", passes=Word("passes=2", "without --one-pass"))
BOUND = "log more episodes, or give bounds on the rewards and ask for a finite-sample interval such as betting"
WITHOUT_MODEL = "hold it against an estimate that weights correct, such as dr or wdr"
MEND_MODEL = "compute v_hat as the mean of q_hat under the target policy, as annotate does"
LOG_TO_THE_END = phrase(
    "log these episodes to their end, or evaluate fewer steps ({truncation})",
    truncation=given("truncation", "reduce-horizon"),
)
LOOK_FURTHER = phrase(
    "take the interval with the range of later rewards added to it, or a longer {horizon}", horizon=argument("horizon")
)
MORE_CLUSTERS = "log more clusters, such as users, rather than more episodes of each"
LOG_PROBABILITIES = "log the probabilities with which actions were taken, so that weights can check the model"
ASK = "give the policy's columns, or ask for an estimator that they allow"
#: More episodes than anybody logs.
TOO_MANY = 1e9


def more_episodes(needed: float, different: bool, alpha: float | None) -> str:
    """Return how many episodes to log, or which policy to take instead if this one differs from the logged policy.

    >>> more_episodes(11_628.0, True, 0.25)
    'log about 12,000 episodes, or take a policy nearer to the log, such as a mixture with alpha = 0.25'
    >>> more_episodes(1e14, True, None)
    'take a policy nearer to the log, such as a mixture with it: no log is large enough for this one'
    """
    nearer = "take a policy nearer to the log, such as a mixture with " + (f"alpha = {alpha:g}" if alpha else "it")
    if needed > TOO_MANY:
        return f"{nearer}: no log is large enough for this one"
    log = f"log about {rounded_up(needed)} episodes"
    return f"{log}, or {nearer}" if different else log


def spread(needed: float, whole: bool) -> str:
    """Return how to get an estimate that does not depend on one trajectory; `whole` if it weights whole episodes.

    >>> spread(2500.0, True)
    'log about 2,500 episodes, or take step-wis or dr, whose weights are those of fewer steps'
    """
    log = f"log about {rounded_up(needed)} episodes"
    return f"{log}, or take step-wis or dr, whose weights are those of fewer steps" if whole else log


def rounded_up(count: float) -> str:
    """Return a count rounded up to two digits.

    >>> rounded_up(1234.5), rounded_up(20.0)
    ('1,300', '20')
    """
    unit = 10.0 ** max(math.floor(math.log10(count)) - 1, 0)
    return f"{math.ceil(count / unit) * unit:,.0f}"
