"""Plugins that are not installed, are broken or return something invalid, and parameters of what they provide."""

from __future__ import annotations

from offpolicy.errors import PluginError, UsageError
from offpolicy.errors.kind import Kind

unknown_plugin = Kind(
    "unknown-plugin",
    PluginError,
    "no {what} {name}{hint}",
    meaning="No installed plugin brings a domain, fitter or generator of this name.",
    remedy="Choose one of the names that `offpolicy plugins` lists, or install the package that brings it.",
    example={"what": "domain", "name": "'mountan-car'", "hint": "; did you mean 'mountain-car'?"},
)
no_experiment = Kind(
    "no-experiment",
    PluginError,
    "no experiment is installed{hint}",
    meaning="A published result was to be reproduced, and no plugin brings an experiment.",
    remedy="Install a plugin with experiments, such as offpolicy-paper.",
    example={"hint": ": those of the paper are in the plugin offpolicy-paper"},
)
no_hook = Kind(
    "no-hook",
    PluginError,
    "{why}",
    meaning="A package is registered as a plugin and has no hook that this version knows.",
    remedy="Mark the functions of the plugin with offpolicy.hookspecs.hookimpl, and name them after a hook.",
    example={"why": "it has no hook: mark its functions with offpolicy.hookspecs.hookimpl"},
)
wrong_answer_of_hook = Kind(
    "wrong-answer-of-hook",
    PluginError,
    "{hook} must {expected}, not {found}",
    meaning="A hook of a plugin returned something other than a mapping of names to functions or classes.",
    remedy="Let the hook return a mapping of names to functions or classes.",
    example={
        "hook": "offpolicy_domains",
        "expected": "return a mapping of names to makers",
        "found": "list",
    },
)
incomplete_plugin = Kind(
    "incomplete-plugin",
    PluginError,
    "{what} {name} is a {found} without {missing}",
    meaning="An object that a plugin made lacks methods or attributes of its protocol.",
    remedy="Add {missing}; offpolicy.testing checks a plugin as a whole.",
    example={"what": "domain", "name": "'walk'", "found": "Walk", "missing": "reset and step"},
)
maker_failed = Kind(
    "maker-failed",
    PluginError,
    "{what}: {type}: {error}",
    meaning="A plugin raised an error of its own.",
    remedy="Mend the plugin, or report it to those who wrote it.",
    example={"what": "domain 'walk' cannot be made", "type": "KeyError", "error": "'size'"},
)
refused_by_maker = Kind(
    "refused-by-maker",
    UsageError,
    "{what} {name}: {error}",
    meaning="A domain, fitter or generator refused the parameters that it was given.",
    remedy="Give parameters as the message expects them.",
    example={"what": "domain", "name": "'mountain-car'", "error": "substeps must be at least 1"},
)
number_expected = Kind(
    "number-expected",
    UsageError,
    "{option} of {what} must be a number, such as its default {default}, not {found}",
    meaning="The default of a parameter is a number, and the text that was given on the command line is not.",
    remedy="Give a number.",
    example={"option": "substeps", "what": "domain 'mountain-car'", "default": "4", "found": "'many'"},
)
wrong_candidates = Kind(
    "wrong-candidates",
    PluginError,
    "{who} gives a {found} where candidates are due",
    meaning="A generator of candidate policies returned something other than a sequence of candidates.",
    remedy="Let candidates(log, domain) return offpolicy.Candidate objects.",
    example={"who": "generator 'mixtures'", "found": "dict"},
)
wrong_probabilities = Kind(
    "wrong-probabilities",
    PluginError,
    "the policy must give {expected} probabilities, not {found}",
    meaning="A policy that is simulated gave an array of the wrong shape.",
    remedy="Return one row per state and one column per action.",
    example={"expected": "(8, 3)", "found": "(8,)"},
)
wrong_domain = Kind(
    "wrong-domain",
    PluginError,
    "domain {name} {fault}",
    meaning="A domain gave rewards, states or ends of episodes of the wrong shape or type while it was simulated.",
    remedy="Mend the domain; offpolicy.testing.check_domain finds such faults.",
    example={"name": "'walk'", "fault": "gives rewards of shape (8, 1)"},
)
simulation_failed = Kind(
    "simulation-failed",
    PluginError,
    "a simulation of domain {name} failed: {type}: {error}",
    meaning="A domain raised an error of its own while it was simulated.",
    remedy="Mend the domain, or report the error to those who wrote it.",
    example={"name": "'walk'", "type": "IndexError", "error": "list index out of range"},
)
undeclared_column = Kind(
    "undeclared-column",
    PluginError,
    "{who} reads {name}, which is not among its needs: it may read {known}",
    meaning="An estimator of a plugin reads a column that it does not declare.",
    remedy="Add {name} to the needs of the estimator.",
    example={"who": "estimator 'capped' of plugin 'machine'", "name": "'q_hat'", "known": "'reward', 'ratio'"},
)
wrong_description = Kind(
    "wrong-description",
    PluginError,
    "{who}: {member} must be {expected}, not {found}",
    meaning="An estimator or interval of a plugin describes itself by something that makes no sense.",
    remedy="Mend {member} of the plugin; check_estimator and check_interval of offpolicy.testing find such faults.",
    example={
        "who": "estimator 'capped' of plugin 'machine'",
        "member": "needs",
        "expected": "a sequence of texts",
        "found": "'ratio'",
    },
)
wrong_numbers = Kind(
    "wrong-numbers",
    PluginError,
    "{who} must give {expected}, not {found}",
    meaning="An estimator of a plugin gave something else than one finite number for each trajectory, or its interval "
    "has ends that are none.",
    remedy="Mend the plugin; check_estimator and check_interval of offpolicy.testing find such faults.",
    example={
        "who": "estimator 'capped' of plugin 'machine'",
        "expected": "one finite number for each trajectory",
        "found": "nan for episode 7",
    },
)
