"""What is missing for an improvement, said all at once and before a row is read.

A fitter or generator may have `missing(domain)`, which gives a sentence for each thing that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offpolicy.drivers.arguments import read_fitter
from offpolicy.drivers.candidates import make_generator
from offpolicy.errors import words
from offpolicy.errors.kinds.drivers import things_missing
from offpolicy.errors.phrase import joined, phrase
from offpolicy.evaluation.estimators import NEEDS
from offpolicy.logs.columns import Columns
from offpolicy.logs.sources import Source
from offpolicy.protocols import Generator, ModelFitter, Policy, Setting


def missing_of(part: Any, domain: Setting) -> list[str]:
    """Return what a fitter or generator lacks for this domain, where it can tell beforehand."""
    tells = getattr(part, "missing", None)
    return list(tells(domain)) if callable(tells) else []


def refuse_what_is_missing(
    source: Source,
    columns: Columns,
    domain: Setting,
    behavior: Any,
    generator: str | Generator | Mapping[str, Policy],
    fitter: str | ModelFitter,
    estimator: str,
) -> None:
    """Refuse with everything that is known to be missing; one thing alone is told by whoever needs it."""
    chosen = read_fitter(fitter)
    lacking = [] if isinstance(generator, Mapping) else missing_of(make_generator(generator, fitter), domain)
    if any(role != "ratio" for role in NEEDS[estimator]):
        lacking += [lack for lack in missing_of(chosen, domain) if lack not in lacking]
    if behavior is None and not columns.has_behavior(source.columns):
        lacking.append(
            phrase(
                "the log has no column {name}: name it with {column}, or have it estimated with {behavior} ('counts', "
                "an "
                "op.Grid or a classifier)",
                name=repr(columns.behavior_prob),
                column=words.column("behavior_prob"),
                behavior=words.argument("behavior"),
            )
        )
    if len(lacking) > 1:
        raise things_missing(things=joined("\n  ", [f"{len(lacking)} things are missing", *lacking]))
