"""The candidate policies: those that a generator proposes, or a mapping of named policies."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from offpolicy._util import words
from offpolicy._util.scalars import is_number
from offpolicy.errors.kind import Kind
from offpolicy.errors.kinds.of_arguments import wrong_object
from offpolicy.errors.kinds.of_drivers import generated_candidates, given_candidates
from offpolicy.errors.kinds.of_plugins import wrong_candidates
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.extensions import plugins
from offpolicy.protocols import Candidate, Generator, ModelFitter, Policy, Setting


def find_candidates(
    generator: str | Generator | Mapping[str, Policy], fitter: str | ModelFitter, log: Any, domain: Setting
) -> list[Candidate]:
    """Return the candidates, each with a name of its own; a generator given by name gets the fitter if it takes one.

    >>> import offpolicy as op
    >>> from offpolicy.drivers.candidates import find_candidates
    >>> find_candidates({"even": op.policies.Uniform(2)}, "tabular", None, None)[0].name
    'even'
    """
    if isinstance(generator, Mapping):
        return _checked([Candidate(name, policy) for name, policy in generator.items()], "generator=", given_candidates)
    who = f"generator {generator!r}" if isinstance(generator, str) else f"generator {type(generator).__name__}"
    made = make_generator(generator, fitter)
    if not callable(getattr(made, "candidates", None)):
        raise wrong_object(
            argument=words.argument("generator"),
            expected="a name, an object with candidates(log, domain) or a mapping of names to policies",
            found=type(generator).__name__,
        )
    found = made.candidates(log, domain)
    if not isinstance(found, Iterable):
        raise wrong_candidates(who=who, found=type(found).__name__)
    return _checked(list(found), who, generated_candidates)


def make_generator(generator: str | Generator, fitter: str | ModelFitter) -> Any:
    """Return the generator of that name, or the given one, with this fitter if it takes one and has none."""
    if isinstance(generator, str):
        maker = plugins.registry().find("offpolicy_candidate_policies", generator)
        options = {"fitter": fitter} if "fitter" in inspect.signature(maker).parameters else {}
        return plugins.generator(generator, **options)
    given: Any = generator
    takes = dataclasses.is_dataclass(given) and getattr(given, "fitter", fitter) is None
    return dataclasses.replace(given, fitter=fitter) if takes else given


def _checked(found: list[Candidate], who: str, refused: Kind[Any]) -> list[Candidate]:
    if not found:
        raise refused(who=who, fault=" has no candidate")
    names: set[str] = set()
    for candidate in found:
        fault = _fault(candidate, names)
        if fault is not None:
            raise refused(who=who, fault=fault)
        names.add(candidate.name)
    return found


def _fault(candidate: Any, names: set[str]) -> str | None:
    """Return what is wrong with a candidate as the end of a sentence, or None; `names` are those already taken."""
    if not isinstance(candidate, Candidate):
        return f" gives a {type(candidate).__name__} where an offpolicy.Candidate is due"
    name, policy, fraction, model = candidate.name, candidate.policy, candidate.train_fraction, candidate.model
    if not isinstance(name, str):
        return f" gives the name {name!r}, which is no text"
    if not name:
        return " gives an empty name"
    if name in names:
        return f" gives the name {name!r} twice"
    if name == BEHAVIOR:
        return f": {BEHAVIOR!r} is the name of the behaviour policy; choose another for a candidate"
    if not callable(getattr(policy, "probabilities", None)):
        return f": policy {name!r} is a {type(policy).__name__} without probabilities(states, step)"
    if not (is_number(fraction) and 0 <= fraction < 1):
        return f": train_fraction of {name!r} must be from 0 up to, not including, 1, not {fraction!r}"
    if model is not None and not callable(getattr(model, "values", None)):
        return f": the model of {name!r} is a {type(model).__name__} without values(policy, horizon, discount)"
    return None
