"""Arguments and results that cross_fit, improve and compare refuse."""

from __future__ import annotations

from offpolicy.errors import OffPolicyError, PluginError, UsageError
from offpolicy.errors.kind import Kind

given_candidates = Kind(
    "given-candidates",
    UsageError,
    "{who}{fault}",
    meaning="The mapping of candidate policies is empty, or one of them is not a policy or has a name that is not "
    "allowed.",
    remedy="Give a mapping of names to objects with a method probabilities(states, step).",
    example={"who": "generator=", "fault": " has no candidate"},
)
generated_candidates = Kind(
    "generated-candidates",
    PluginError,
    "{who}{fault}",
    meaning="A generator returned no candidate, or one that is incomplete or has a name that is not allowed.",
    remedy="Mend the generator; offpolicy.testing.check_generator finds such faults.",
    example={"who": "generator Mixture", "fault": " gives the name 'a' twice"},
)
other_policies_in_truth = Kind(
    "other-policies-in-truth",
    UsageError,
    "truth= must have the policies {policies}, not {found}",
    meaning="True values are given for other policies than those that are compared.",
    remedy="Give one true value for each policy.",
    example={"policies": "new, careful", "found": "new"},
)
value_of_behavior = Kind(
    "value-of-behavior",
    UsageError,
    "estimator {estimator} is the value of the behaviour policy, whatever the {target}; {others}",
    meaning="The mean return of the log is the value of the behaviour policy and says nothing about another policy.",
    remedy="Choose another estimator.",
    example={"estimator": "'mc'", "target": "target", "others": "choose of is, dr"},
)
not_an_estimator = Kind(
    "not-an-estimator",
    UsageError,
    "an estimator is an id or a function of a frame, not {found}",
    meaning="Something was given as an estimator that is neither an id nor a function.",
    remedy="Give an id, or a function that takes a frame and returns a number.",
    example={"found": "7"},
)
names_of_estimators = Kind(
    "names-of-estimators",
    UsageError,
    "every estimator needs a name of its own, and a function none that is an id",
    meaning="Two estimators that are compared have the same name.",
    remedy="Name each estimator once, and functions by names that are no ids.",
)
not_a_simulator = Kind(
    "not-a-simulator",
    UsageError,
    "compare makes its logs with a simulator, and {found} has no {member}: give a domain that can be simulated",
    meaning="A comparison simulates its logs, and this domain has no simulator.",
    remedy="Give a domain that can be simulated.",
    example={"found": "Setting", "member": "reset"},
)
made_of_ratios = Kind(
    "made-of-ratios",
    UsageError,
    "estimator {estimator} is made of ratios of sums, biased in small samples and no average of the values of "
    "trajectories, which V − Cσ is made for; {others}",
    meaning="A lower bound on a candidate's value needs an estimator that is an average over trajectories.",
    remedy="Choose another estimator; {others}.",
    example={"estimator": "'wis'", "others": "choose of is, dr"},
)
bounds_nothing = Kind(
    "bounds-nothing",
    UsageError,
    "the standard error of {estimator} knows nothing of {bias}: it bounds nothing; {others}",
    meaning="The standard error of a model's own estimate, or of a biased one, leaves out the bias, so that it gives "
    "no lower bound.",
    remedy="Choose another estimator; {others}.",
    example={"estimator": "'reg'", "bias": "its model's bias", "others": "choose of is, dr"},
)
things_missing = Kind(
    "things-missing",
    UsageError,
    "{things}",
    meaning="Several things are missing for an improvement; the message lists all of them.",
    remedy="Give each of the things that the message lists.",
    example={"things": "2 things are missing"},
)
estimate_not_finite = Kind(
    "estimate-not-finite",
    OffPolicyError,
    "estimator {name} gave {found}, not a finite number",
    meaning="A function that was given as an estimator returned something other than a finite number.",
    remedy="Let the function return a finite number.",
    example={"name": "'mine'", "found": "nan"},
)
process_died = Kind(
    "process-died",
    OffPolicyError,
    "run {index}: its process died {tries} times; a script that uses several processes must do its work under "
    '`if __name__ == "__main__":`',
    meaning="A process that computed a run of an experiment ended without an answer, several times.",
    remedy='Put the work of the script under `if __name__ == "__main__":`, or use workers=1.',
    example={"index": 3, "tries": 3},
)
cannot_travel = Kind(
    "cannot-travel",
    UsageError,
    "{name} cannot travel to other processes ({error}): use workers=1, or define its functions and policies in a "
    "module",
    meaning="An experiment holds functions that other processes cannot import.",
    remedy="Use workers=1, or define the functions and policies in a module.",
    example={"name": "sailing", "error": "cannot pickle a lambda"},
)
