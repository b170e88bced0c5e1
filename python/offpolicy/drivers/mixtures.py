"""Mixtures of a model's optimal policy and the behaviour policy, Jiang & Li (2016), section 6.2:

    π = (1-α) π_train + α π0,   π_train optimal in the model of D_train

for every |D_train|/|D| and every α. A candidate is scored on D ∖ D_train, with Q̂ from D_train.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from offpolicy._util.phrase import joined
from offpolicy._util.scalars import is_number
from offpolicy.drivers.arguments import missing_of, read_fitter
from offpolicy.errors.kinds.of_arguments import bad_value
from offpolicy.errors.kinds.of_drivers import things_missing
from offpolicy.folds import split
from offpolicy.models.behavior_policy import behavior_policy
from offpolicy.policies import Mixture
from offpolicy.protocols import Candidate, ModelFitter, Setting

SPLITS = (0.2, 0.4, 0.6, 0.8)
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Mixtures:
    """The generator of the paper's 40 candidates, or of other splits and α; one model is fitted for each split.

    `behavior` is the policy π0 to mix in; by default it is the domain's own. If it is to be estimated, as
    `LoggedDomain` allows, it is estimated from D_train too. Without a `fitter`, that of `improve` is taken.
    `maximize=False` makes bad policies, with which the paper tests safety.

    >>> from offpolicy.drivers.mixtures import Mixtures
    >>> generator = Mixtures(fitter="tabular", splits=(0.5,), alphas=(0.0, 0.5))
    >>> generator.splits
    (0.5,)
    """

    fitter: str | ModelFitter | None = None
    splits: Sequence[float] = SPLITS
    alphas: Sequence[float] = ALPHAS
    maximize: bool = True
    behavior: Any = None

    def __post_init__(self) -> None:
        """Refuse splits that leave nothing to train or to evaluate on, and α outside [0, 1]."""
        splits, alphas = (tuple(given) if isinstance(given, Iterable) else () for given in (self.splits, self.alphas))
        if not splits or any(not (is_number(fraction) and 0 < fraction < 1) for fraction in splits):
            raise bad_value(name="splits", expected="shares between 0 and 1", found=splits or self.splits)
        if not alphas or any(not (is_number(alpha) and 0 <= alpha <= 1) for alpha in alphas):
            raise bad_value(name="alphas", expected="from 0 to 1", found=alphas or self.alphas)
        object.__setattr__(self, "splits", splits)  # an iterator could be read only once
        object.__setattr__(self, "alphas", alphas)

    def candidates(self, log: Any, domain: Setting) -> Iterator[Candidate]:
        """Fit a model for each split, and yield its optimal policy mixed with the behaviour policy at each α."""
        if lacking := self.missing(domain):
            raise things_missing(things=joined("; ", lacking))
        fitter = self._fitter()
        for fraction in self.splits:
            train = split(log, fraction)[0]
            model = fitter.fit(train, domain)
            best = model.optimal_policy(maximize=self.maximize)
            behavior = behavior_policy(self._named(domain), train, domain)
            for alpha in self.alphas:
                name = f"train {fraction:g}, alpha {alpha:g}"
                yield Candidate(name, Mixture(best, behavior, alpha), fraction, model)

    def missing(self, domain: Setting) -> list[str]:
        """Return one sentence for each thing that is missing to make candidates for this domain."""
        lacking = []
        if self._named(domain) is None:
            lacking.append(
                f"domain {domain.name!r} has no behavior policy to mix with: name it in LoggedDomain(behavior=...) or "
                "op.generator('mixture', behavior=...), the policy that made the log or how to estimate it ('counts', "
                "an op.Grid or a classifier)"
            )
        return lacking + missing_of(self._fitter(), domain)

    def _named(self, domain: Setting) -> Any:
        return getattr(domain, "behavior", None) if self.behavior is None else self.behavior

    def _fitter(self) -> ModelFitter:
        return read_fitter("tabular" if self.fitter is None else self.fitter)
