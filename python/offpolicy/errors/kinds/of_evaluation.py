"""Evaluations that cannot be done: contradictory bounds, results that do not exist, too little memory."""

from __future__ import annotations

from offpolicy._util import words
from offpolicy._util.words import argument, bounds, switched_on
from offpolicy.errors import MemoryLimitError, MissingBoundError, OffPolicyError, UsageError
from offpolicy.errors.kind import Kind

bad_bound = Kind(
    "bad-bound",
    UsageError,
    "bounds: {name} must be {expected}, not {found}",
    meaning="A bound on rewards, ratios or values of the model is not a range of finite numbers.",
    remedy="Give {name} as the message expects it: {expected}.",
    example={"name": "reward", "expected": "(lowest, highest), both finite", "found": "(1, 0)"},
)
ends_of_bounds = Kind(
    "ends-of-bounds",
    UsageError,
    "bounds: {name} has {low} steps in its lowest and {high} in its highest",
    meaning="The lower and the upper ends of a bound are given for different numbers of steps.",
    remedy="Give as many lower ends as upper ends, or one for all steps.",
    example={"name": "q", "low": 2, "high": 3},
)
bounds_too_short = Kind(
    "bounds-too-short",
    UsageError,
    "bounds: {name} has {steps} steps, but the horizon is {horizon}",
    meaning="A bound is given step by step, and for fewer steps than are evaluated.",
    remedy="Give the bound for every step up to the horizon, or one for all steps.",
    example={"name": "ratio", "steps": 3, "horizon": 5},
)
not_an_id = Kind(
    "not-an-id",
    UsageError,
    "estimators are ids such as 'dr', not {found}; there are {known}",
    meaning="Estimators were asked for by something that is not text.",
    remedy="Name estimators by their ids.",
    example={"found": "7", "known": "mc, is, dr"},
)
ids_in_one_text = Kind(
    "ids-in-one-text",
    UsageError,
    "no estimator {name}; several are a list: {ids}",
    meaning="Several estimators were named in one text.",
    remedy="Give a list of ids: {ids}.",
    example={"name": "'is,dr'", "ids": "['is', 'dr']"},
)
no_value_after_one_pass = Kind(
    "no-value-after-one-pass",
    UsageError,
    "estimator {estimator} has no value after one reading: {why}",
    meaning="An estimator was asked for whose value is known only after the log has been read a second time.",
    remedy="Let the log be read twice, or ask for other estimators.",
    example={
        "estimator": "'magic'",
        "why": "the covariances that its blend is made of are known after a second reading",
    },
)
missing_bound = Kind(
    "missing-bound",
    MissingBoundError,
    "{give}{what}",
    meaning="The range of an estimator depends on a bound that was not given.",
    remedy="Give the bound that the message names, or choose an interval that needs none, such as t.",
    example={"give": words.GIVE_RATIO, "what": ", the largest possible π1/π0"},
)
range_not_known = Kind(
    "range-not-known",
    MissingBoundError,
    "no range of {estimator} is known{where}",
    meaning="The given bounds do not limit the values of this estimator, for example because a transition_ratio "
    "weights them.",
    remedy="Ask for dr, or for an interval that needs no range, such as t.",
    example={"estimator": "dr-v2", "where": " where the log has a transition_ratio"},
)
no_weight = Kind(
    "no-weight",
    OffPolicyError,
    "every weight of policy {policy} is zero at t = {step} (counted from 1): {estimators} are undefined, "
    "for the target policy never takes the logged actions; ask for others, such as 'step-is'",
    meaning="Estimators that divide by the sum of the weights were asked for, and this sum is zero from some step on.",
    remedy="Ask for other estimators, or for a policy that takes actions which are in the log.",
    example={"policy": "'target'", "step": 3, "estimators": "wis, step-wis, wdr and magic"},
)
continuing_discount = Kind(
    "continuing-discount",
    UsageError,
    "{continuing} needs a discount below 1, not {discount}: later rewards have no bound",
    meaning="A task that goes on for ever has a finite value only if later rewards count less.",
    remedy="Give a discount below 1, or evaluate the horizon alone.",
    example={"discount": "1"},
    words={"continuing": switched_on("continuing")},
)
continuing_bounds = Kind(
    "continuing-bounds",
    UsageError,
    "{continuing} needs {bounds}, the range of a reward, to bound what follows",
    meaning="What follows after the horizon can be bounded only if the range of a reward is known.",
    remedy="Give {bounds}.",
    words={"continuing": switched_on("continuing"), "bounds": bounds("reward")},
)
ask_for_an_estimate = Kind(
    "ask-for-an-estimate",
    UsageError,
    "ask for ev[estimator] or ev[policy, estimator], not {found}",
    meaning="A result was indexed by something that is neither an estimator nor a pair of policy and estimator.",
    remedy="Ask for ev[estimator], or for ev[policy, estimator] where there are several policies.",
    example={"found": "3"},
)
several_policies = Kind(
    "several-policies",
    UsageError,
    "several policies have {estimator} ({names}): ask for one, as in {asked}",
    meaning="A result has this estimate for several policies, and none of them was named.",
    remedy="Name the policy too, as in {asked}.",
    example={"estimator": "'dr'", "names": "new, careful", "asked": "ev['new', 'dr']"},
)
no_estimate = Kind(
    "no-estimate",
    UsageError,
    "{what} in this evaluation, which has {known}{hint}",
    meaning="A result was asked for an estimate that it does not have.",
    remedy="Ask for an estimate that the result has, or evaluate again with this estimator.",
    example={"what": "no estimate 'dr'", "known": "target: is", "hint": ""},
)
compared_with_the_log = Kind(
    "compared-with-the-log",
    UsageError,
    "a policy can be compared with {behavior}, the logged policy, alone; not with {found}",
    meaning="The difference of two target policies was asked for, but values are paired only with the log's own "
    "returns.",
    remedy="Compare each policy with {behavior}.",
    example={"behavior": "'behavior'", "found": "'new'"},
)
logged_policy_itself = Kind(
    "logged-policy-itself",
    UsageError,
    "{behavior} is the logged policy itself; name the policy to compare with it first",
    meaning="The logged policy was to be compared with itself.",
    remedy="Name the target policy first.",
    example={"behavior": "'behavior'"},
)
not_paired = Kind(
    "not-paired",
    UsageError,
    "a difference needs paired values of trajectories: ask for evaluate(..., paired=True)",
    meaning="A difference was asked for, but the evaluation did not keep the paired values that it needs.",
    remedy="Evaluate again with paired=True.",
)
several_models = Kind(
    "several-models",
    UsageError,
    "the values of {estimator} come from several models: make a sketch of each fold",
    meaning="The trajectories of a cross-fitted result have values by different models, which one sketch cannot hold.",
    remedy="Make a sketch of each fold.",
    example={"estimator": "dr"},
)
other_resamples = Kind(
    "other-resamples",
    UsageError,
    "only sums of the same resamples, in the same units, can be merged",
    meaning="Sums of bootstrap resamples were made with different seeds, numbers or units.",
    remedy="Make the sums of all parts with the same settings.",
)
other_sketches = Kind(
    "other-sketches",
    UsageError,
    "sketches above {ours} and {theirs} cannot be merged",
    meaning="Two sketches were made for values above different floors.",
    remedy="Make the sketches of all parts with the same floor.",
    example={"ours": "0", "theirs": "1"},
)
below_floor = Kind(
    "below-floor",
    OffPolicyError,
    "a trajectory has the value {value}, below {floor}",
    meaning="A sketch holds values above a floor that follows from the given bounds, and a trajectory is below it.",
    remedy="Give bounds that hold for every trajectory.",
    example={"value": "-2", "floor": "-1"},
)
memory_for_steps = Kind(
    "memory-for-steps",
    MemoryLimitError,
    "about {needed} of memory are needed, and {memory} allows {limit}: sums are kept of each of the {steps} steps of "
    "the "
    "longest episode, for every policy; give a larger {memory}, ask for fewer estimators or policies, for {leaner}, "
    "or cut episodes short: filter the log to its first steps and give {horizon}",
    meaning="Some sums are kept for every step of the longest episode, and they need more memory than is allowed.",
    remedy="Allow more memory, ask for fewer estimators or policies, or cut the episodes short.",
    example={"needed": "40.1 MB", "limit": "5 MB", "steps": "40,000"},
    words={
        "memory": argument("memory"),
        "horizon": argument("horizon"),
        "leaner": words.LEANER,
    },
)
memory_for_episodes = Kind(
    "memory-for-episodes",
    MemoryLimitError,
    "about {needed} of memory are needed, and {memory} allows {limit}: the log has {episodes} episodes, and those "
    "whose "
    "ids do not follow each other are kept one by one; give a larger {memory}, a folder for temporary files that "
    "has room for them (TMPDIR), or number the episodes 0, 1, 2, … in the order of the log",
    meaning="Ids of episodes that are not consecutive numbers must be kept one by one, which needs more memory than is "
    "allowed.",
    remedy="Allow more memory, name a folder for temporary files that has room, or number the episodes 0, 1, 2, … in "
    "the order of the log.",
    example={"needed": "40.1 MB", "limit": "5 MB", "episodes": "1,000,000"},
    words={"memory": argument("memory")},
)
