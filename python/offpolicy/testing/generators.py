"""The conformance suite for generators of candidate policies."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from offpolicy.folds import share
from offpolicy.protocols import Candidate
from offpolicy.testing.faults import Faults
from offpolicy.testing.fitters import sample
from offpolicy.testing.policies import check_policy
from offpolicy.testing.values import SAME
from offpolicy.testing.walk import Walk


def check_generator(generator: Any, domain: Any = None, episodes: int = 300, seed: int = 0) -> None:
    """Raise a `ConformanceError` that lists everything that breaks the protocol of a generator, or return None.

    The generator makes candidates from logs of `Walk`, or of a domain of your own, and then again from logs whose
    held-out rewards were changed: a candidate that differs has used episodes on which it is to be evaluated.

    >>> import offpolicy as op
    >>> from offpolicy.testing import check_generator
    >>> class Coin:
    ...     def candidates(self, log, domain):
    ...         yield op.Candidate("coin", op.policies.Uniform(domain.actions, domain.legal))
    >>> check_generator(Coin())
    """
    faults = Faults(f"generator {type(generator).__name__}")
    domain = Walk() if domain is None else domain
    if faults.expect(
        callable(getattr(generator, "candidates", None)),
        "candidates",
        f"a {type(generator).__name__} has no method candidates(log, domain)",
        "a generator has candidates(log, domain)",
        "give an object, such as op.generator(name)",
    ):
        log = domain.simulate(domain.behavior, episodes, seed)
        with faults.calling("candidates", "candidates(frame, domain)"):
            given = log.clone()
            found = list(generator.candidates(given, domain))
            faults.expect(
                given.equals(log),
                "candidates-mutates",
                "candidates changed the frame that it was given",
                "a log is never changed",
                "work on frames of your own, such as log.with_columns(…)",
            )
            if _are_candidates(faults, found, domain, log):
                _any_kind_of_log(faults, generator, domain, log, found)
                _nothing_leaks(faults, generator, domain, log, found)
    faults.raise_any()


def _are_candidates(faults: Faults, found: list[Any], domain: Any, log: pl.DataFrame) -> bool:
    faults.expect(
        bool(found), "candidates", "there is no candidate", "at least one candidate", "yield Candidate(name, policy)"
    )
    strange = [item for item in found if not isinstance(item, Candidate)]
    if not faults.expect(
        not strange,
        "candidates",
        f"there is a {type(strange[0]).__name__ if strange else ''} among the candidates",
        "every candidate is an offpolicy.Candidate",
        "yield Candidate(name, policy, train_fraction, model)",
    ):
        return False
    names = [candidate.name for candidate in found]
    twice = [name for name in names if not isinstance(name, str) or not name or names.count(name) > 1]
    faults.expect(
        not twice,
        "candidate-names",
        f"the name {twice[0] if twice else ''!r} is no text or is there twice",
        "every candidate has a name of its own: results are told apart by it",
        "put the candidate's parameters into its name",
    )
    states, _, _ = sample(log, domain)
    sound = True
    for candidate in found:
        who = f"candidate {candidate.name!r}"
        sound &= check_policy(
            faults, candidate.policy, who, states, domain.actions, domain.legal(states), domain.horizon
        )
        fraction = candidate.train_fraction
        sound &= faults.expect(
            isinstance(fraction, float | int) and 0 <= fraction < 1,
            "train-fraction",
            f"{who} has train_fraction {fraction!r}",
            "train_fraction is a number from 0 up to, not including, 1: some episodes are left to evaluate on",
            "train on offpolicy.folds.split(log, train_fraction)[0]",
        )
        sound &= faults.expect(
            candidate.model is None or callable(getattr(candidate.model, "values", None)),
            "candidate-model",
            f"{who} has a {type(candidate.model).__name__} as model",
            "model is a model with values(policy, horizon, discount), or None",
            "give what a fitter returned",
        )
    return sound


def _any_kind_of_log(faults: Faults, generator: Any, domain: Any, log: pl.DataFrame, found: list[Candidate]) -> None:
    with TemporaryDirectory(prefix="offpolicy-") as folder:
        path = Path(folder) / "log.parquet"
        log.write_parquet(path)
        for kind, same_log in {"the same frame": log, "a lazy frame": log.lazy(), "Parquet": path}.items():
            rule = "candidates-repeat" if same_log is log else "candidates-logs"
            with faults.calling(rule, f"candidates({kind}, domain)"):
                other = list(generator.candidates(same_log, domain))
                faults.expect(
                    not _changed(found, other, domain, log) and len(found) == len(other),
                    rule,
                    f"{kind} gives other candidates than the frame before",
                    "the same rows give the same candidates, whatever holds them",
                    "read the log through offpolicy.logs.transitions or a fitter, and fix the seed of what is random",
                )


def _nothing_leaks(faults: Faults, generator: Any, domain: Any, log: pl.DataFrame, found: list[Candidate]) -> None:
    for fraction in sorted({candidate.train_fraction for candidate in found}):
        low, high = domain.reward_range
        held_out = share() >= fraction
        spoiled = log.with_columns(reward=pl.when(held_out).then(low + high - pl.col("reward")).otherwise("reward"))
        mine = [candidate for candidate in found if candidate.train_fraction == fraction]
        with faults.calling("leak", "candidates of a log with other rewards"):
            changed = _changed(mine, list(generator.candidates(spoiled, domain)), domain, log)
            faults.expect(
                not changed,
                "leak",
                f"candidate {changed!r} changes with episodes beyond its train_fraction of {fraction}",
                "a candidate is made of the first train_fraction of the episodes, and evaluated on the others",
                "train on offpolicy.folds.split(log, train_fraction)[0], and on nothing else",
            )


def _changed(before: list[Candidate], after: list[Candidate], domain: Any, log: pl.DataFrame) -> str | None:
    """Return the name of a candidate that is missing or acts differently, or None."""
    states, _, _ = sample(log, domain)
    now = {candidate.name: candidate for candidate in after}
    for candidate in before:
        other = now.get(candidate.name)
        if other is None or other.train_fraction != candidate.train_fraction:
            return candidate.name
        before_pi, after_pi = (each.policy.probabilities(states, 0) for each in (candidate, other))
        if not np.allclose(before_pi, after_pi, **SAME):
            return candidate.name
    return None
