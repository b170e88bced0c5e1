"""Logs that cannot be evaluated, pooled or rewritten as they are."""

from __future__ import annotations

from offpolicy._util.words import given
from offpolicy.errors import BadLogError, OffPolicyError, TooLargeError, UsageError
from offpolicy.errors.kind import Kind

bad_log = Kind(
    "bad-log",
    BadLogError,
    "the log has {problems}",
    meaning="Rows of the log cannot be trusted. The error lists the first problems with file, row, episode and step; "
    "`error.problems` and `error.kinds` have them as data. The section on problems of a log explains each kind.",
    remedy=BadLogError.remedy,
    example={"problems": "1 problem"},
)
bad_input = Kind(
    "bad-input",
    OffPolicyError,
    "{why}",
    meaning="A column or an array that the compiled core was given has another type or form than it can read.",
    remedy="Cast the column that the message names to the type that it expects.",
    example={"why": "column 'reward' must hold numbers, not String"},
)
empty_log = Kind(
    "empty-log",
    OffPolicyError,
    "{what}",
    meaning="There is nothing to convert or to fit a model to: no dataset, no episode, no step, or no step with a next "
    "state.",
    remedy="Check what made the log; a filter may have left nothing over.",
    example={"what": "the log is empty"},
)
steps_begin_elsewhere = Kind(
    "steps-begin-elsewhere",
    UsageError,
    "steps count from 0 or from 1, but column {column} begins with {first}",
    meaning="The first step of the log is neither 0 nor 1, so that it is not known how many steps came before it.",
    remedy="Number the steps of each episode from 0, or from 1.",
    example={"column": "'step'", "first": 5},
)
steps_counted_from = Kind(
    "steps-counted-from",
    UsageError,
    "steps count from 0 or from 1, not from {found}",
    meaning="The number that was given as the first step is neither 0 nor 1.",
    remedy="Give first_step=0 or first_step=1.",
    example={"found": 5},
)
history_not_whole = Kind(
    "history-not-whole",
    OffPolicyError,
    "the log begins at step {first}; histories must be whole, from their first step",
    meaning="A recurrent model reads whole histories, and the first steps of them are missing.",
    remedy="Give the log with the first steps of its episodes.",
    example={"first": 3},
)
names_of_logs = Kind(
    "names-of-logs",
    UsageError,
    "pool takes logs by name, as in {example}",
    meaning="Logs that are pooled need names, which become part of the ids of their episodes.",
    remedy="Give a mapping of names to logs, as in {example}.",
    example={"example": 'op.pool({"v1": log1, "v2": log2})'},
)
name_of_a_log = Kind(
    "name-of-a-log",
    UsageError,
    "the name of a log is a text without {between}, which ends it in ids; not {found}",
    meaning="The name of a pooled log is not a text, or has the character that separates it from the ids of episodes.",
    remedy="Choose a name without {between}.",
    example={"between": "'/'", "found": "'a/b'"},
)
one_policy_at_a_time = Kind(
    "one-policy-at-a-time",
    UsageError,
    "{truncation} takes one policy at a time: the last rewards are those of its model",
    meaning="The end of an episode that was cut off is filled in by the model of one policy, and several were asked "
    "for.",
    remedy="Evaluate one policy at a time, or choose another way to treat episodes that were cut off.",
    words={"truncation": given("truncation", "bootstrap")},
)
truncation_needs_column = Kind(
    "truncation-needs-column",
    UsageError,
    "{truncation} needs a column {role} of policy {policy}",
    meaning="The end of an episode that was cut off is filled in by a model, whose columns the log does not have.",
    remedy="Write the model's columns with op.annotate, or choose another way to treat episodes that were cut off.",
    example={"role": "q_hat", "policy": "'target'"},
    words={"truncation": given("truncation", "bootstrap")},
)
truncation_needs_rewards = Kind(
    "truncation-needs-rewards",
    UsageError,
    "{truncation} needs R̂, and r_hat is Q̂ with transition_ratio = 0 on {rows} last rows (episode {episode}, step "
    "{step}), where the model knows no transitions: annotate the log without domain=",
    meaning="The column r_hat holds values of Q̂ where the model knows no transitions, and these cannot be added up.",
    remedy="Annotate the log again without domain=, so that r_hat is the model's reward everywhere.",
    example={"rows": 3, "episode": 7, "step": 4},
    words={"truncation": given("truncation", "bootstrap")},
)
no_values_of_trajectories = Kind(
    "no-values-of-trajectories",
    UsageError,
    "{estimator} has no values of single trajectories, of whose sums it is a blend: ask for wdr",
    meaning="The values of single trajectories were asked for, and this estimator has none.",
    remedy="Ask for an estimator that is an average over trajectories, or for wdr.",
    example={"estimator": "magic"},
)
beyond_floats = Kind(
    "beyond-floats",
    TooLargeError,
    "the value of episode {episode} is beyond the range of f64",
    meaning="A weight or a return is so large that no 64-bit float can hold it.",
    remedy="Scale the rewards, shorten the horizon, or ask for an estimator whose weights are those of fewer steps.",
    example={"episode": 7},
)
no_f64_holds_it = Kind(
    "no-f64-holds-it",
    OffPolicyError,
    "{what}; ask for other estimators",
    meaning="The value of an estimator that was asked for by name, or its error, is beyond the range of 64-bit floats.",
    remedy="Ask for other estimators, scale the rewards, or shorten the horizon.",
    example={"what": "the value of is for policy 'target' has log10 512.0: no f64 can hold it"},
)
