"""Logs of other libraries as ours: minari's episodes, d3rlpy's and SCOPE-RL's datasets.

All give a frame with `episode`, `step`, the state (`state`, or `state_0`, `state_1`, …), `action`, `reward`,
`terminal`, `truncated`, and where they are known `behavior_prob` and the next state as `next_…`. The last row of an
episode that did not end is `truncated`, however long the episode is: an evaluation with a longer horizon then asks what
is to stand for the rewards that nobody saw.
"""

from offpolicy.logs.converters.d3rlpy import from_d3rlpy
from offpolicy.logs.converters.minari import from_episodes
from offpolicy.logs.converters.scope_rl import from_scope_rl

__all__ = ["from_d3rlpy", "from_episodes", "from_scope_rl"]
