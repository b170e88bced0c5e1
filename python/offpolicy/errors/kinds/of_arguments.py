"""Arguments that are not valid: of the wrong type, shape or size, with an unknown name, or in contradiction."""

from __future__ import annotations

from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy._util.words import TWO_PASSES, argument, given, switched_on
from offpolicy.errors import OffPolicyError, UsageError
from offpolicy.errors.kind import Kind

bad_value = Kind(
    "bad-value",
    UsageError,
    "{name} must be {expected}, not {found}",
    meaning="An argument has the wrong type or shape, or lies outside its range. Where a number is expected, numbers "
    "of any library are accepted; True, False and texts are not.",
    remedy="Give {name} as the message expects it: {expected}.",
    example={"name": "discount", "expected": "between 0 and 1", "found": "2"},
)
wrong_object = Kind(
    "wrong-object",
    UsageError,
    "{argument} takes {expected}, not {found}",
    meaning="An argument is an object of another kind than the one that is needed.",
    remedy="Give what {argument} takes: {expected}.",
    example={
        "argument": argument("cluster"),
        "expected": "the name of a column",
        "found": "7",
    },
)
not_utf8 = Kind(
    "not-utf8",
    UsageError,
    "{name} {found} has characters that no UTF-8 text has",
    meaning="A name holds half of a surrogate pair, which no file can store.",
    remedy="Choose a name that can be written as UTF-8.",
    example={"name": "the name of a policy", "found": r"'\ud800'"},
)
unknown_name = Kind(
    "unknown-name",
    UsageError,
    "{lack} {name}{hint}",
    meaning="Nothing has the name that was given. The message names the nearest one, or all that there are.",
    remedy="Choose one of the names that exist.",
    example={"lack": "no estimator", "name": "'drr'", "hint": "; did you mean 'dr'?"},
)
give_one = Kind(
    "give-one",
    UsageError,
    "give {choices}",
    meaning="Several arguments were given that say the same thing in different ways; only one of them can be used.",
    remedy="Leave all but one of these arguments out.",
    example={
        "choices": phrase("{one} or {other}, not both", one=words.FOLDS, other=words.TRAIN_FRACTION),
    },
)
given_twice = Kind(
    "given-twice",
    UsageError,
    "Columns names {who}_prob and {who}_logprob: give one of them",
    meaning="Both a column of probabilities and a column of their logarithms are named for the same policy.",
    remedy="Name the column of probabilities or the column of their logarithms, not both.",
    example={"who": "behavior"},
)
nothing_given = Kind(
    "nothing-given",
    UsageError,
    "{what} names no {thing}",
    meaning="An argument that must name at least one thing is empty.",
    remedy="Name at least one {thing}, or leave the argument out.",
    example={"what": "policies=", "thing": "policy"},
)
at_least_one = Kind(
    "at-least-one",
    UsageError,
    "{what} at least one {thing}",
    meaning="A list that must not be empty is empty.",
    remedy="Name at least one {thing}.",
    example={"what": "compare needs", "thing": "size"},
)
mixture_half_given = Kind(
    "mixture-half-given",
    UsageError,
    "a mixture needs both mixture_of= and alpha=",
    meaning="A mixture of a policy with the behaviour policy is named without its share, or the share without the "
    "policy.",
    remedy="Give the policy that is mixed and the share of the behaviour policy, both.",
)
mixture_before_its_policy = Kind(
    "mixture-before-its-policy",
    UsageError,
    "policy {name} mixes {mixed}, which must stand before it (there: {known})",
    meaning="A mixture refers to a policy that does not exist, or that comes after the mixture.",
    remedy="Name the policy {mixed} first, and then its mixtures.",
    example={"name": "'careful'", "mixed": "'new'", "known": "none"},
)
name_of_behavior = Kind(
    "name-of-behavior",
    UsageError,
    "{name} is the name of the behaviour policy; choose another for a target policy",
    meaning="A target policy has the name that results use for the policy that made the log.",
    remedy="Choose another name for the target policy.",
    example={"name": "'behavior'"},
)
policies_need_names = Kind(
    "policies-need-names",
    UsageError,
    "several policies are a mapping, with a name for each, and not a {found}, in which a name could be there twice",
    meaning="Several policies were given in a list, where they have no names.",
    remedy='Give a mapping of names to policies, such as {{"new": policy}}.',
    example={"found": "list"},
)
not_a_name = Kind(
    "not-a-name",
    UsageError,
    "policies have names, and {found} is none",
    meaning="The key of a policy in a mapping is not text.",
    remedy="Name every policy with a text that is not empty.",
    example={"found": "7"},
)
not_a_policy = Kind(
    "not-a-policy",
    UsageError,
    "policy {name} needs a method probabilities(states, step), which {found} has not",
    meaning="An object that is given as a policy has no method that returns probabilities.",
    remedy="Give an object with a method probabilities(states, step), which returns one row of probabilities per "
    "state.",
    example={"name": "'new'", "found": "function"},
)
lacks_member = Kind(
    "lacks-member",
    UsageError,
    "{needs}, and {found} has no {member}",
    meaning="An object that is given as a domain lacks a member that every domain has.",
    remedy="Give the object what it lacks, or name a domain that is installed; plugins/README.md lists what a domain "
    "has.",
    example={"needs": "domain= takes a name or a domain", "found": "dict", "member": "horizon"},
)
not_together = Kind(
    "not-together",
    UsageError,
    "{what} cannot be had with {other}: {why}",
    meaning="Two things were asked for that contradict each other.",
    remedy="Leave out {what} or {other}.",
    example={
        "what": switched_on("paired"),
        "other": argument("cluster"),
        "why": "the errors of differences are those of single episodes",
    },
)
more_arguments_than_taken = Kind(
    "more-arguments-than-taken",
    UsageError,
    "{names}: only an environment that is named by its id takes more arguments",
    meaning="Arguments for making an environment were given together with an environment that already exists.",
    remedy="Name the environment by its id, or leave these arguments out.",
    example={"names": "slippery"},
)
not_a_range = Kind(
    "not-a-range",
    UsageError,
    "{name} is LOWEST,HIGHEST, not {found}",
    meaning="A range that is given as text does not consist of two numbers with a comma between them.",
    remedy="Write the lowest and the highest value with a comma between them, such as -1,0.",
    example={"name": "reward_range", "found": "'high'"},
)
outside_range = Kind(
    "outside-range",
    OffPolicyError,
    "{name} must be from {low} to {high}, not {lowest} to {highest}",
    meaning="Numbers of states, actions or steps were given that the model or table does not have.",
    remedy="Give {name} from {low} to {high}.",
    example={"name": "actions", "low": 0, "high": 2, "lowest": 0, "highest": 7},
)
unknown_ending = Kind(
    "unknown-ending",
    UsageError,
    "{what} is {forms}, not {found}",
    meaning="The ending of a file's name is not that of a format that can be written.",
    remedy="Choose a file name with one of the endings that the message lists.",
    example={"what": "a picture", "forms": "a file .svg, .png, .html or .json", "found": "'forest.pdf'"},
)
forked = Kind(
    "forked",
    UsageError,
    "this process was forked after Polars had started its threads, which a fork does not copy, and would wait for them "
    'for ever: start it by multiprocessing.get_context("spawn") or "forkserver"; a log of Parquet files in order can '
    "be evaluated here too",
    meaning="The process is a copy (fork) of one in which Polars had already started threads. Locks that these threads "
    "held stay locked in the copy, so that it would wait for ever.",
    remedy='Start the process by multiprocessing.get_context("spawn") or "forkserver", or give Parquet files in order.',
)
missing_extra = Kind(
    "missing-extra",
    OffPolicyError,
    "{what}: pip install '{extra}'",
    meaning="Something was asked for that needs a library which is not installed.",
    remedy="Install the extra: pip install '{extra}'.",
    example={"what": "to convert a Minari dataset, install the extra 'minari'", "extra": "offpolicy[minari]"},
)
resume_or_choose = Kind(
    "resume-or-choose",
    UsageError,
    "{file} has runs already: go on with {resume}, or choose another folder",
    meaning="The folder of a reproduction holds the runs of an earlier one, which would be overwritten.",
    remedy="Go on with these runs by {resume}, or choose another folder.",
    example={"file": "runs/sailing.jsonl"},
    words={"resume": switched_on("resume")},
)
interval_not_named = Kind(
    "interval-not-named",
    UsageError,
    "{what} for the lower end of an interval: name it, as in {interval}",
    meaning="Bounds or a confidence were given for a lower bound V − Cσ, which takes neither.",
    remedy="Name the interval whose lower end is to be taken, as in {interval}, or leave these arguments out.",
    example={"what": "bounds are"},
    words={"interval": given("interval", "t")},
)
needs_argument = Kind(
    "needs-argument",
    UsageError,
    "{who} needs {argument}{why}",
    meaning="Something was asked for that depends on an argument which was not given.",
    remedy="Give {argument}, or do not ask for it.",
    example={
        "who": "estimator 'dr-bsl'",
        "argument": argument("baseline"),
        "why": ", the constant c of its guess",
    },
)
needs_two_passes = Kind(
    "needs-two-passes",
    UsageError,
    "{what}: it needs {passes}",
    meaning="Something was asked for that is known only after the log has been read a second time.",
    remedy="Let the log be read twice: {passes}.",
    example={"what": "estimator 'magic' has no value after one reading"},
    words={"passes": TWO_PASSES},
)
