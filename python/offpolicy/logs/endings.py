"""The rule for how an episode ends, which every reader of a log follows.

    ended     the last row says terminal = true; in a log without that column, the episode has fewer than H steps and
              its last row does not say truncated = true
    cut off   the episode has fewer than H steps and has not ended

An episode whose last row has both marks has ended: Gymnasium sets both if a time limit strikes at a terminal state,
after which no reward is missing. An episode of H steps lacks nothing, whatever its last row says.
`rust/core/src/log/ending.rs` has the same rule for the scan.

The functions take NumPy arrays or Polars expressions. `terminal` and `truncated` are None if the log lacks the column.
"""

from __future__ import annotations

from typing import Any


def ended(last: Any, early: Any, terminal: Any, truncated: Any) -> Any:
    """Return which rows end an episode; `last` marks the last row of each episode, and `early` the rows before step H.

    >>> import numpy as np
    >>> last, early, truncated = np.array([False, True]), np.array([True, True]), np.array([False, True])
    >>> ended(last, early, None, None).tolist(), ended(last, early, None, truncated).tolist()
    ([False, True], [False, False])
    """
    if terminal is not None:
        return terminal
    return last & early if truncated is None else last & early & ~truncated


def cut_off(last: Any, early: Any, terminal: Any, truncated: Any) -> Any:
    """Return at which rows an episode was cut off; the arguments are those of `ended`.

    >>> import numpy as np
    >>> both = np.array([True]), np.array([True])
    >>> cut_off(*both, terminal=np.array([True]), truncated=np.array([True])).tolist()
    [False]
    >>> cut_off(*both, terminal=np.array([False]), truncated=np.array([False])).tolist()
    [True]
    """
    return last & early & ~ended(last, early, terminal, truncated)
