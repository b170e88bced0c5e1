"""Environments and domains that cannot be simulated."""

from __future__ import annotations

from offpolicy.errors import OffPolicyError, UsageError
from offpolicy.errors.kind import Kind

gym_cannot_make = Kind(
    "gym-cannot-make",
    UsageError,
    "gymnasium cannot make {env}: {error}",
    meaning="Gymnasium does not know the environment, or refuses its arguments.",
    remedy="Check the id with gymnasium.registry, and install the package that brings the environment.",
    example={"env": "'NoSuch-v0'", "error": "Environment `NoSuch` doesn't exist."},
)
no_time_limit = Kind(
    "no-time-limit",
    UsageError,
    "{env} has no time limit: give horizon=, a whole number of at least 1, not {found}",
    meaning="An environment does not say after how many steps an episode ends.",
    remedy="Give horizon=, the number of steps of an episode.",
    example={"env": "'Corridor-v0'", "found": "None"},
)
no_reward_range = Kind(
    "no-reward-range",
    UsageError,
    "{env} does not tell the range of its rewards: give reward_range=(lowest, highest) of a step, which models of "
    "unseen "
    "actions and bounds rely on",
    meaning="An environment does not say how large its rewards can be.",
    remedy="Give reward_range=(lowest, highest) of a step.",
    example={"env": "'Corridor-v0'"},
)
cannot_be_copied = Kind(
    "cannot-be-copied",
    UsageError,
    "this {found} cannot be copied ({error}): give a function that makes it instead",
    meaning="Several copies of an environment are needed, and it cannot be copied.",
    remedy="Give a function that makes the environment.",
    example={"found": "Corridor", "error": "cannot pickle"},
)
state_kept_to_itself = Kind(
    "state-kept-to-itself",
    OffPolicyError,
    "{env} keeps its state to itself, so that no step can be made from a given one: use simulate(policy, n, seed), or "
    "write a domain of its dynamics (plugins/README.md)",
    meaning="A step from a given state was asked for, but the environment can only step from its own current state.",
    remedy="Use simulate(policy, n, seed), or write a domain of its dynamics.",
    example={"env": "'CartPole-v1'"},
)
cut_off_early = Kind(
    "cut-off-early",
    OffPolicyError,
    "{env} cut an episode off after {step} steps, before the horizon of {horizon}: give horizon={step}, or the "
    "environment without its time limit",
    meaning="An environment has a time limit that is shorter than the horizon.",
    remedy="Give horizon={step}, or the environment without its time limit.",
    example={"env": "'CartPole-v1'", "step": 200, "horizon": 500},
)
reward_outside_range = Kind(
    "reward-outside-range",
    OffPolicyError,
    "{env} gave a reward of {reward}, outside its reward_range of {range}",
    meaning="A reward lies outside the range that was promised for it.",
    remedy="Give a reward_range that holds all rewards.",
    example={"env": "'Corridor-v0'", "reward": "3", "range": "(0, 1)"},
)
no_columns_of_numbers = Kind(
    "no-columns-of-numbers",
    UsageError,
    "{env} has observations in {space}, which are no columns of numbers: wrap it to flatten them",
    meaning="Observations are texts, graphs or sequences, which cannot be columns of numbers in a log.",
    remedy="Wrap the environment so that its observations are numbers or flat arrays.",
    example={"env": "'Words-v0'", "space": "Text(1, 9)"},
)
no_transition_table = Kind(
    "no-transition-table",
    UsageError,
    "{env} has no transition table P with an initial_state_distrib: use table=False",
    meaning="The exact table of an environment was asked for, which it does not have.",
    remedy="Use table=False.",
    example={"env": "'CartPole-v1'"},
)
table_does_not_add = Kind(
    "table-does-not-add",
    UsageError,
    "the probabilities in P[{state}][{action}] of {env} do not add to 1",
    meaning="The probabilities in the transition table of an environment do not add to 1.",
    remedy="Mend the table of the environment, or use table=False.",
    example={"state": 0, "action": 1, "env": "'Lake-v0'"},
)
not_simulated = Kind(
    "not-simulated",
    UsageError,
    "{what}: give {instead}",
    meaning="An MDP has something that a simulated domain cannot have: fractions, or a law that depends on the step.",
    remedy="Give {instead}.",
    example={
        "what": "rewards that depend on the step cannot be simulated",
        "instead": "them as (S, A) or (S, A, S)",
    },
)
terminal_first_state = Kind(
    "terminal-first-state",
    UsageError,
    "initial: the terminal state {state} cannot be a first state",
    meaning="Episodes would begin in a state that ends them.",
    remedy="Give the terminal state no probability in initial.",
    example={"state": 3},
)
nothing_legal = Kind(
    "nothing-legal",
    UsageError,
    "legal: nothing may be done in state {state}, where an episode goes on",
    meaning="No action is legal in a state that does not end an episode.",
    remedy="Allow at least one action in every state that does not end an episode.",
    example={"state": 2},
)
no_legal_action = Kind(
    "no-legal-action",
    OffPolicyError,
    "no action is legal in row {row}, the state {state}",
    meaning="A policy was asked for its probabilities in a state in which nothing may be done.",
    remedy="Mend legal(), or leave such states out.",
    example={"row": 0, "state": "[1 2]"},
)
wrong_array = Kind(
    "wrong-array",
    OffPolicyError,
    "{who} must give {expected}, not {found}",
    meaning="A function or method of a policy, model or domain gave an array of the wrong shape or type.",
    remedy="Let it give {expected}.",
    example={"who": "q", "expected": "an array of (n, actions) for 5 states", "found": "(5,)"},
)
values_not_finite = Kind(
    "values-not-finite",
    OffPolicyError,
    "{what} must be finite",
    meaning="A value that must be finite is NaN or infinite.",
    remedy="Mend what gives the value, so that every value is finite.",
    example={"what": "values to smooth"},
)
wrong_probability = Kind(
    "wrong-probability",
    OffPolicyError,
    "{fault}",
    meaning="Probabilities that a policy, classifier or model gave are negative, not finite, or do not add to 1.",
    remedy="Let it give rows of probabilities that add to 1; divide each row by its sum where rounding is the cause.",
    example={"fault": "the policy's probabilities of row 0 add to 1.4, not 1: they differ by 0.4"},
)
steps_outside_table = Kind(
    "steps-outside-table",
    OffPolicyError,
    "{what} steps 0 to {last}, {but} {lowest} to {highest}",
    meaning="A policy or a model is made for fewer steps than it was asked for.",
    remedy="Ask for steps 0 to {last}, or make it with a larger horizon.",
    example={"what": "the table has", "last": 9, "but": "and not", "lowest": 0, "highest": 12},
)
not_to_be_mixed = Kind(
    "not-to-be-mixed",
    OffPolicyError,
    "policies of {ours} and {theirs} actions cannot be mixed",
    meaning="Two policies that are mixed do not have the same actions.",
    remedy="Mix policies of the same domain.",
    example={"ours": 3, "theirs": 4},
)
