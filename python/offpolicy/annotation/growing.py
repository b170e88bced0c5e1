"""A log to which columns are added on demand, for candidates that share policies and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from offpolicy._util.mixing import mixed
from offpolicy.annotation.annotate import annotate
from offpolicy.annotation.annotated_logs import remember, tallies_of
from offpolicy.annotation.transition_ratio import unknown_ratio
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.policies import Mixture, parts_first
from offpolicy.protocols import Policy, Setting, ValueModel


@dataclass
class GrowingLog:
    """A log that adds columns on demand; each policy is asked only once, even if it is part of many mixtures."""

    log: Any
    columns: Columns
    first_step: int | None
    threads: int | None
    domain: Setting | None  # gives P of the ratio P̂/P
    probabilities: dict[int, str] = field(default_factory=dict)
    added: int = 0

    def probability(self, policy: Policy) -> str:
        """Return the name of the column of π(a|s), which is added if necessary."""
        return parts_first([policy], self._asked, self._mixed, self.probabilities)[0]

    def values(self, models: Sequence[ValueModel], roles: Sequence[str]) -> list[dict[str, Any]]:
        """Add the columns of several models at once; return their names by role, with P̂/P beside R̂ if it is known."""
        known = {True: [*roles, "transition_ratio"], False: list(roles)}
        ratio = ["r_hat" in roles and unknown_ratio(self.domain, model) is None for model in models]
        new: list[dict[str, Any]] = [{role: self._new(role) for role in known[has]} for has in ratio]
        domain = self.domain if any(ratio) else None
        self._annotate(model=models, into=[PolicyColumns(**names) for names in new], domain=domain)
        return new

    def _asked(self, policy: Policy) -> str:
        column = self._new("target_prob")
        self._annotate(policy=policy, into=PolicyColumns(target_prob=column))
        return column

    def _mixed(self, mixture: Mixture, ours: str, theirs: str) -> str:
        column = self._new("target_prob")
        made = self.log.with_columns(mixed(mixture.alpha, pl.col(ours), pl.col(theirs)).alias(column))
        self.log = remember(made, *tallies_of(self.log))
        return column

    def _annotate(self, **what: Any) -> None:
        shared: dict[str, Any] = {"columns": self.columns, "first_step": self.first_step, "threads": self.threads}
        self.log = annotate(self.log, **what, **shared)

    def _new(self, role: str) -> str:
        self.added += 1
        return f"__{role}_{self.added}__"
