"""Mixtures of a model's optimal policy and the behaviour policy, Jiang & Li (2016), section 6.2:

    π = (1-α) π_train + α π0,   π_train optimal in the model of D_train

for every |D_train|/|D| and every α. A candidate is scored on D ∖ D_train, with Q̂ from D_train.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from offpolicy import plugins
from offpolicy.errors import UsageError
from offpolicy.folds import split
from offpolicy.policies import Mixture as MixedPolicy
from offpolicy.protocols import Candidate, ModelFitter, Policy, Setting
from offpolicy.scalars import is_number

SPLITS = (0.2, 0.4, 0.6, 0.8)
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Mixture:
    """The paper's 40 candidates, or those of other splits and rates; one model is fitted for each split.

    `behavior` is mixed in: the domain's own, where none is given. `maximize=False` makes bad policies, with which the
    paper tries safety.

    >>> from offpolicy.generators.mixture import Mixture
    >>> generator = Mixture(fitter="tabular", splits=(0.5,), alphas=(0.0, 0.5))
    >>> generator.splits
    (0.5,)
    """

    fitter: str | ModelFitter = "tabular"
    splits: Sequence[float] = SPLITS
    alphas: Sequence[float] = ALPHAS
    maximize: bool = True
    behavior: Policy | None = None

    def __post_init__(self) -> None:
        """Refuses splits that leave nothing to train or to evaluate on."""
        splits, alphas = (tuple(given) if isinstance(given, Iterable) else () for given in (self.splits, self.alphas))
        if not splits or any(not (is_number(fraction) and 0 < fraction < 1) for fraction in splits):
            raise UsageError(f"splits must be shares between 0 and 1, not {splits or self.splits}")
        if not alphas or any(not (is_number(alpha) and 0 <= alpha <= 1) for alpha in alphas):
            raise UsageError(f"alphas must be from 0 to 1, not {alphas or self.alphas}")
        object.__setattr__(self, "splits", splits)  # an iterator gives its numbers once
        object.__setattr__(self, "alphas", alphas)

    def candidates(self, log: Any, domain: Setting) -> Iterator[Candidate]:
        """A model for each split, and its optimal policy mixed with the behaviour policy at each α."""
        behavior = self.behavior or getattr(domain, "behavior", None)
        if behavior is None:
            raise UsageError(
                f"domain {domain.name!r} has no behavior policy to mix with: give Mixture(behavior=policy), "
                "the policy that made the log or an estimate of it"
            )
        fitter = plugins.fitter(self.fitter) if isinstance(self.fitter, str) else self.fitter
        for fraction in self.splits:
            model = fitter.fit(split(log, fraction)[0], domain)
            best = model.optimal_policy(maximize=self.maximize)
            for alpha in self.alphas:
                name = f"train {fraction:g}, alpha {alpha:g}"
                yield Candidate(name, MixedPolicy(best, behavior, alpha), fraction, model)
