"""The policies to choose from: what a generator proposes, or a mapping of named policies."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from offpolicy import plugins
from offpolicy.errors import PluginError, UsageError
from offpolicy.plan import BEHAVIOR
from offpolicy.protocols import Candidate, Generator, ModelFitter, Policy, Setting


def find_candidates(
    generator: str | Generator | Mapping[str, Policy], fitter: str | ModelFitter, log: Any, domain: Setting
) -> list[Candidate]:
    """Every candidate, each with a name of its own; a generator that is named gets the fitter if it takes one.

    >>> import offpolicy as op
    >>> from offpolicy.candidates import find_candidates
    >>> find_candidates({"even": op.policies.Uniform(2)}, "tabular", None, None)[0].name
    'even'
    """
    if isinstance(generator, Mapping):
        return _checked([_candidate(name, policy) for name, policy in generator.items()], "generator=", UsageError)
    who = f"generator {generator!r}" if isinstance(generator, str) else f"generator {type(generator).__name__}"
    made = _make(generator, fitter) if isinstance(generator, str) else generator
    if not callable(getattr(made, "candidates", None)):
        raise UsageError(
            f"generator= takes a name, an object with candidates(log, domain) or a mapping of names to policies, not "
            f"{type(generator).__name__}"
        )
    return _checked(list(made.candidates(log, domain)), who, PluginError)


def _make(name: str, fitter: str | ModelFitter) -> Generator:
    maker = plugins.registry().find("offpolicy_candidate_policies", name)
    options = {"fitter": fitter} if "fitter" in inspect.signature(maker).parameters else {}
    return plugins.generator(name, **options)


def _candidate(name: str, policy: Any) -> Candidate:
    if not callable(getattr(policy, "probabilities", None)):
        raise UsageError(f"policy {name!r} is a {type(policy).__name__} without probabilities(states, step)")
    return Candidate(name, policy)


def _checked(found: list[Candidate], who: str, error: type[UsageError | PluginError]) -> list[Candidate]:
    if not found:
        raise error(f"{who} has no candidate")
    names: set[str] = set()
    for candidate in found:
        if not isinstance(candidate, Candidate):
            raise error(f"{who} gives a {type(candidate).__name__} where an offpolicy.Candidate is due")
        if not isinstance(candidate.name, str) or not candidate.name or candidate.name in names:
            raise error(f"{who} gives the name {candidate.name!r} twice, or it is no text")
        if candidate.name == BEHAVIOR:
            raise error(f"{who}: {BEHAVIOR!r} is the name of the behaviour policy; choose another for a candidate")
        if not 0 <= candidate.train_fraction < 1:
            raise error(
                f"{who}: train_fraction of {candidate.name!r} must be from 0 up to, not including, 1, not "
                f"{candidate.train_fraction}"
            )
        names.add(candidate.name)
    return found
