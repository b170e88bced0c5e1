"""Data of other libraries that cannot be turned into a log."""

from __future__ import annotations

from offpolicy.errors import UsageError
from offpolicy.errors.kind import Kind

wrong_data = Kind(
    "wrong-data",
    UsageError,
    "{library}'s data are {expected}, not {found}",
    meaning="An object was given to a converter that is made for another one.",
    remedy="Give {expected}, or choose the converter of the library that made the data.",
    example={"library": "d3rlpy", "expected": "a ReplayBuffer", "found": "dict"},
)
episode_without_steps = Kind(
    "episode-without-steps",
    UsageError,
    "{who} has no step",
    meaning="An episode of the data is empty.",
    remedy="Leave the empty episode out before the data are converted.",
    example={"who": "episode 3"},
)
id_of_several = Kind(
    "id-of-several",
    UsageError,
    "the id {episode} belongs to several episodes",
    meaning="Episodes of the data share an id, so that a log could not tell them apart.",
    remedy="Give each episode an id of its own.",
    example={"episode": 7},
)
goes_on_after_its_end = Kind(
    "goes-on-after-its-end",
    UsageError,
    "{who} ends at step {step} and goes on to step {last}: make it two episodes",
    meaning="An episode of the data has further steps after the one that ends it.",
    remedy="Cut it into two episodes where it ends.",
    example={"who": "episode 3", "step": 4, "last": 9},
)
continuous_actions = Kind(
    "continuous-actions",
    UsageError,
    "{what}: only discrete {actions} can be {done}",
    meaning="Actions are real numbers. Importance weights are ratios of probabilities, which only discrete actions "
    "have.",
    remedy="Put the actions into classes 0, 1, 2, … and log the probabilities of the classes.",
    example={"what": "the dataset has continuous actions", "actions": "ones", "done": "converted"},
)
no_trajectories = Kind(
    "no-trajectories",
    UsageError,
    "{count} trajectories of {horizon} steps are no log",
    meaning="According to the data, there is no trajectory, or trajectories have no steps.",
    remedy="Check how the data were made.",
    example={"count": 0, "horizon": 5},
)
longer_than_horizon = Kind(
    "longer-than-horizon",
    UsageError,
    "an episode has {longest} steps, more than the horizon of {horizon}",
    meaning="An episode of the data is longer than the horizon that was given for it.",
    remedy="Give a larger horizon, or cut the episodes.",
    example={"longest": 12, "horizon": 10},
)
different_columns = Kind(
    "different-columns",
    UsageError,
    "episodes have different columns: {columns}",
    meaning="Episodes of the data do not have the same entries.",
    remedy="Give every episode the same entries.",
    example={"columns": "['action', 'reward'] and ['reward']"},
)
names_of_the_state = Kind(
    "names-of-the-state",
    UsageError,
    "the state has {count} columns, and state_columns has {names} names",
    meaning="The number of names for the columns of the state is not the number of these columns.",
    remedy="Give one name for each column of the state.",
    example={"count": 4, "names": 2},
)
wrong_entries = Kind(
    "wrong-entries",
    UsageError,
    "{who}: {fault}",
    meaning="An entry of the data has another type, length or shape than one value per step.",
    remedy="Give one number per step, as the message says.",
    example={"who": "episode 3, 'rewards'", "fault": "there must be numbers, not object"},
)
