"""The conformance suite for model fitters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from offpolicy.protocols import Model, Policy, States, values_of
from offpolicy.testing.faults import Faults
from offpolicy.testing.lookups import check_lookups
from offpolicy.testing.policies import check_policy
from offpolicy.testing.transition_laws import check_model_law
from offpolicy.testing.values import SAME, check_values
from offpolicy.testing.walk import START, Walk

ROWS = 64


def check_fitter(
    fitter: Any, domain: Any = None, episodes: int = 2000, seed: int = 0, accuracy: float | None = 0.1
) -> None:
    """Raise a `ConformanceError` that lists everything that breaks the protocol of a model fitter, or return None.

    The fitter is applied to logs of `Walk`, or of a domain of your own, and its models are used as `annotate` and
    generators would use them. If values have `lookup_many`, it must give the same numbers as their other methods. On
    `Walk` the true value of a policy is known, and the model's value must be within `accuracy` of it, unless that is
    None.

    >>> from offpolicy.testing import check_fitter
    >>> check_fitter("tabular")
    Traceback (most recent call last):
        ...
    offpolicy.testing.faults.ConformanceError: fitter str breaks the protocol in 1 way
      [fit] a str has no method fit(log, domain)
          the protocol: a fitter has fit(log, domain), which gives a model
          to mend it: give an object, such as op.fitter(name)
    """
    faults = Faults(f"fitter {type(fitter).__name__}")
    walk = Walk()
    domain = walk if domain is None else domain
    if faults.expect(
        callable(getattr(fitter, "fit", None)),
        "fit",
        f"a {type(fitter).__name__} has no method fit(log, domain)",
        "a fitter has fit(log, domain), which gives a model",
        "give an object, such as op.fitter(name)",
    ):
        log = domain.simulate(domain.behavior, episodes, seed)
        with faults.calling("fit", "fit(frame, domain)"):
            given = log.clone()
            model = fitter.fit(given, domain)
            faults.expect(
                given.equals(log),
                "fit-mutates",
                "fit changed the frame that it was given",
                "a log is never changed",
                "work on frames of your own, such as log.with_columns(…)",
            )
            if _is_model(faults, model):
                _policies_are_sound(faults, model, domain, log)
                _any_kind_of_log(faults, fitter, domain, log, model)
                _values(faults, model, domain, log)
                if domain == walk and accuracy is not None:
                    _near_the_truth(faults, model, walk, accuracy)
    faults.raise_any()


def _is_model(faults: Faults, model: Any) -> bool:
    return faults.expect(
        all(callable(getattr(model, name, None)) for name in ("values", "optimal_policy")),
        "model",
        f"fit gave a {type(model).__name__}",
        "a model has values(policy, horizon, discount) and optimal_policy(maximize=True)",
        "return such an object from fit; offpolicy.protocols.Model documents it",
    )


def sample(log: pl.DataFrame, domain: Any) -> tuple[States, Any, Any]:
    """Return states, actions and steps of evenly spaced rows of a log."""
    rows = log.gather_every(max(1, log.height // ROWS))
    states = rows.select(domain.state_columns).to_numpy()
    return states, rows["action"].to_numpy().astype(np.int64), rows["step"].to_numpy().astype(np.int64)


def targets(domain: Any) -> dict[str, Policy]:
    """Return the policies for which a model is checked."""
    more = dict(list(getattr(domain, "policies", {}).items())[:1])
    made = {name: item if hasattr(item, "probabilities") else item() for name, item in more.items()}
    return {"behavior": domain.behavior, **made}


def _policies_are_sound(faults: Faults, model: Model, domain: Any, log: pl.DataFrame) -> None:
    states, _, _ = sample(log, domain)
    legal = domain.legal(states)
    for maximize in (True, False):
        who = f"optimal_policy(maximize={maximize})"
        with faults.calling("optimal-policy", who):
            check_policy(
                faults, model.optimal_policy(maximize=maximize), who, states, domain.actions, legal, domain.horizon
            )


def _any_kind_of_log(faults: Faults, fitter: Any, domain: Any, log: pl.DataFrame, model: Model) -> None:
    rows = sample(log, domain)
    with TemporaryDirectory(prefix="offpolicy-") as folder:
        path = Path(folder) / "log.parquet"
        log.write_parquet(path, row_group_size=max(1, log.height // 3))
        for kind, same_log in {"the same frame": log, "a lazy frame": log.lazy(), "Parquet": path}.items():
            rule = "fit-repeat" if same_log is log else "fit-logs"
            with faults.calling(rule, f"fit({kind}, domain)"):
                other = fitter.fit(same_log, domain)
                faults.expect(
                    all(
                        np.allclose(a, b, **SAME)
                        for a, b in zip(_answers(model, domain, rows), _answers(other, domain, rows), strict=True)
                    ),
                    rule,
                    f"fit to {kind} gives other values than fit to the frame before",
                    "the same rows give the same model, whatever holds them",
                    "read the log through offpolicy.logs.transitions.transitions, and fix the seed of what is random",
                )


def _answers(model: Model, domain: Any, rows: tuple[States, Any, Any]) -> Iterator[Any]:
    states, actions, steps = rows
    for policy in targets(domain).values():
        values = model.values(policy, domain.horizon, domain.discount)
        yield from (
            values.q_hat(states, actions, steps),
            values.v_hat(states, steps),
            values.r_hat(states, actions),
        )


def _values(faults: Faults, model: Any, domain: Any, log: pl.DataFrame) -> None:
    states, actions, steps = sample(log, domain)
    named = targets(domain)
    apart = []
    for name, policy in named.items():
        who = f"values of policy {name!r}"
        with faults.calling("values", who):
            values = model.values(policy, domain.horizon, domain.discount)
            check_values(faults, values, who, policy, states, actions, steps, domain)
            check_model_law(faults, values, who, domain, log)
            apart.append(values.v_hat(states, steps))
    if isinstance(domain, Walk) and len(apart) == len(named):
        faults.expect(
            not np.allclose(apart[0], apart[1], **SAME),
            "values-policy",
            f"the values of {' and '.join(named)} are the same",
            "values(policy, …) are those of the policy that is given",
            "evaluate that policy, not the one that made the log",
        )
    if len(apart) == len(named):
        with faults.calling("lookup", "the values of several policies"):
            together = values_of(model, list(named.values()), domain.horizon, domain.discount)
            if len(together) == len(named):
                check_lookups(faults, together, named, states, actions, steps)
    if hasattr(model, "values_of") and len(apart) == len(named):
        with faults.calling("values-of", "values_of(policies, horizon, discount)"):
            together = model.values_of(list(named.values()), domain.horizon, domain.discount)
            faults.expect(
                len(together) == len(apart)
                and all(
                    np.allclose(each.v_hat(states, steps), v, **SAME) for each, v in zip(together, apart, strict=True)
                ),
                "values-of",
                "values_of gives other values than values, policy by policy",
                "values_of(policies, …) is the list of values(policy, …)",
                "let values(policy, …) return values_of([policy], …)[0]",
            )


def _near_the_truth(faults: Faults, model: Model, walk: Walk, accuracy: float) -> None:
    start = np.full((1, 1), START)
    for name, policy in targets(walk).items():
        with faults.calling("values", f"values of policy {name!r}"):
            found = float(model.values(policy, walk.horizon, walk.discount).v_hat(start, 0)[0])
            truth = float(walk.exact_values(policy)[1][0, START])
            faults.expect(
                abs(found - truth) <= accuracy,
                "accuracy",
                f"V̂ of policy {name!r} at the start of the walk is {found:.4f}, and V is {truth:.4f}",
                f"a model of so small a domain is right to {accuracy}",
                "compare with Walk().exact_values(policy), step by step; accuracy=None if the model cannot know better",
            )
