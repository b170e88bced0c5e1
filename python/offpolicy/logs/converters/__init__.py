"""Converters of other libraries' data to logs: minari's episodes, d3rlpy's and SCOPE-RL's datasets.

Each returns a frame with the columns `episode`, `step`, the state (`state`, or `state_0`, `state_1`, …), `action`,
`reward`, `terminal` and `truncated`, and, if they are known, `behavior_prob` and the next state as `next_…`. The last
row of an episode that did not end is `truncated`, however long the episode is: an evaluation with a longer horizon then
asks how to replace the rewards that were not observed.
"""

from offpolicy.logs.converters.d3rlpy import from_d3rlpy
from offpolicy.logs.converters.minari import from_episodes
from offpolicy.logs.converters.scope_rl import from_scope_rl

__all__ = ["from_d3rlpy", "from_episodes", "from_scope_rl"]
