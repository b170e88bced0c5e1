"""Columns of the log that are missing, named twice or of the wrong type."""

from __future__ import annotations

from offpolicy._util.words import any_column, column
from offpolicy.errors import MissingColumnError, UsageError, WrongTypeError
from offpolicy.errors.kind import Kind

missing_column = Kind(
    "missing-column",
    MissingColumnError,
    "the log has no column {name}{what}{there}",
    meaning="A column that was named is not in the log.",
    remedy="Name a column that the log has, or add this one to the log.",
    example={"name": "'gain'", "what": " (for reward)", "there": "; its columns are episode, step, reward"},
)
unnamed_column = Kind(
    "unnamed-column",
    MissingColumnError,
    "{owner} has no column {name}{there}: name {it} with {column}",
    meaning="The log has no column with the default name of a column that every log needs.",
    remedy="Say which column it is with {column}, or add it to the log.",
    example={
        "owner": "the log",
        "name": "'reward'",
        "there": "; its columns are episode, step, gain",
        "it": "it",
        "column": column("reward"),
    },
)
estimator_lacks_column = Kind(
    "estimator-lacks-column",
    MissingColumnError,
    "estimator {estimator} of policy {policy} needs {needed}",
    meaning="An estimator was asked for whose columns the log does not have.",
    remedy="Name the columns that it needs, write them with op.annotate, or ask for other estimators.",
    example={"estimator": "'dr'", "policy": "'target'", "needed": "a column q_hat"},
)
no_behavior_probability = Kind(
    "no-behavior-probability",
    MissingColumnError,
    "policy {policy} has target_logprob, and the log has neither behavior_logprob nor behavior_prob: name one with "
    "{column}",
    meaning="The log has the logarithms of a target policy's probabilities, but no probabilities of the behaviour "
    "policy.",
    remedy="Name the column of the behaviour policy's probabilities or of their logarithms with {column}.",
    example={"policy": "'target'"},
    words={"column": any_column()},
)
no_end_of_episodes = Kind(
    "no-end-of-episodes",
    MissingColumnError,
    "the log has the next states but no column 'terminal', which says whether an episode has ended there",
    meaning="A log with next states must say which of them end an episode; otherwise a model would continue from a "
    "state in which the episode has ended.",
    remedy="Add a column 'terminal' of true and false, or leave the next states out.",
)
column_of_some = Kind(
    "column-of-some",
    MissingColumnError,
    "{found}: add it, or drop it from {owner}",
    meaning="Logs that are pooled do not have the same columns.",
    remedy="Add the column to the logs that lack it, or drop it from {owner}.",
    example={"found": "log 'v2' has no column 'action', which 'v1' has", "owner": "'v1'"},
)
key_missing = Kind(
    "key-missing",
    MissingColumnError,
    "{who} no {key}{where}",
    meaning="Data of another library lack an entry that a log is made of.",
    remedy="Add {key} to the data, one value per step, or name the entry that holds it.",
    example={"who": "episode 0 has", "key": "'rewards'", "where": ""},
)
column_twice = Kind(
    "column-twice",
    UsageError,
    "the log has {what}",
    meaning="A log has several columns of one name, and nothing says which of them is meant.",
    remedy="Rename or drop all but one of the columns of this name.",
    example={"what": "more than one column 'reward'"},
)
column_there_already = Kind(
    "column-there-already",
    UsageError,
    "log {name} has a column {column} already: choose another name with {argument}",
    meaning="The log already has a column with the name of one that is to be written.",
    remedy="Choose another name with {argument}, or rename the column of the log.",
    example={"name": "'v1'", "column": "'logger'", "argument": "logger="},
)
no_common_type = Kind(
    "no-common-type",
    UsageError,
    "column {column} is {found} in log {name} and {before} before; no type holds both",
    meaning="A column has different types in two logs, and no single type holds the values of both without loss.",
    remedy="Cast the column to one type in all logs before they are pooled.",
    example={"column": "'action'", "found": "String", "name": "'v2'", "before": "Int64"},
)
no_id_of_episode = Kind(
    "no-id-of-episode",
    UsageError,
    "column {column} has no value in row {row}: every row needs the id of its episode",
    meaning="A row does not say to which episode it belongs.",
    remedy="Give every row the id of its episode, or drop the row.",
    example={"column": "'episode'", "row": 7},
)
wrong_type = Kind(
    "wrong-type",
    WrongTypeError,
    "column {column} must hold {expected}, not {found}",
    meaning="A column holds values of another type than is needed.",
    remedy="Cast the column to {expected}.",
    example={"column": "'action'", "expected": "whole numbers", "found": "String"},
)
