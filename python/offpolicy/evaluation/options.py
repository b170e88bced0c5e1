"""The arguments of an evaluation, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from offpolicy import intervals
from offpolicy._util import scalars, words
from offpolicy._util.phrase import phrase
from offpolicy.errors.kinds.of_arguments import needs_two_passes, not_together, wrong_object
from offpolicy.errors.kinds.of_evaluation import continuing_bounds, continuing_discount
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.memory import limit
from offpolicy.evaluation.plan import Settings
from offpolicy.logs.columns import Columns, PolicyColumns

MapFunction: TypeAlias = Callable[[Callable[[Any], bytes], Iterable[Any]], Iterable[bytes]]
ProgressFunction: TypeAlias = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Options:
    """The arguments of `evaluate`, whose docstring describes them."""

    discount: float
    estimators: Sequence[str] | None
    columns: Columns | None
    policies: Mapping[str, PolicyColumns] | None
    horizon: int | None
    confidence: float
    interval: str
    baseline: float | None
    cluster: str | None
    map: MapFunction | None
    progress: ProgressFunction | None
    threads: int | None
    bounds: Bounds | None
    density: bool
    order: str
    dedupe: str | None
    truncation: str | None
    batch_rows: int | None
    passes: int
    diagnostics: bool
    paired: bool
    continuing: bool
    memory: int | str | None
    #: The number of threads that read the log.
    readers: int = field(init=False)
    #: The limit of memory in bytes.
    most_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        """Refuse arguments that are not valid, and convert numbers and flags of any library."""
        intervals.check(self.interval, self.confidence)
        scalars.choice("order", self.order, ("sorted", "any"))
        scalars.choice("dedupe", self.dedupe, (None, "identical"))
        self._keep(
            passes=scalars.whole("passes", self.passes, 1, limit=2),
            readers=scalars.threads(self.threads) or os.cpu_count() or 1,
            batch_rows=scalars.size("batch_rows", self.batch_rows),
        )
        check_types(self.columns, self.policies, self.bounds)
        settings = self.settings
        self._keep(
            discount=settings.discount,
            horizon=settings.horizon,
            baseline=settings.baseline,
            density=settings.density,
            diagnostics=scalars.flag("diagnostics", self.diagnostics),
            paired=scalars.flag("paired", self.paired),
            continuing=scalars.flag("continuing", self.continuing),
        )
        check_cluster(self.cluster, self.passes)
        check_paired(self.paired, self.cluster, self.truncation)
        self._keep(most_bytes=limit(self.memory))
        check_continuing(self.continuing, self.discount, self.bounds)

    def _keep(self, **checked: Any) -> None:
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @cached_property
    def settings(self) -> Settings:
        """Return the numbers of the evaluation."""
        return Settings(self.discount, self.horizon, self.baseline, self.density, self.truncation)

    @property
    def explicit(self) -> bool:
        """Return True if estimators were asked for by name, so that none of them may be left out silently."""
        return self.estimators is not None

    def record(self, estimators: Sequence[str], columns: Columns, estimated: bool) -> dict[str, Any]:
        """Return the arguments as a result records them, ready for JSON."""
        policies = None if self.policies is None else {name: asdict(own) for name, own in self.policies.items()}
        return {
            "discount": self.discount,
            "estimators": list(dict.fromkeys(estimators)),
            "horizon": self.horizon,
            "confidence": self.confidence,
            "interval": self.interval,
            "baseline": self.baseline,
            "cluster": self.cluster,
            "density": self.density,
            "order": self.order,
            "dedupe": self.dedupe,
            "truncation": self.truncation,
            "passes": self.passes,
            "diagnostics": self.diagnostics,
            "paired": self.paired,
            "continuing": self.continuing,
            "columns": asdict(columns),
            "behavior": "estimated" if estimated else "logged",
            "policies": policies,
            "bounds": None if self.bounds is None else asdict(self.bounds),
        }


def check_continuing(continuing: bool, discount: float, bounds: Bounds | None) -> None:
    """Refuse a task that goes on after the horizon if the discount is 1 or no range of rewards is given."""
    if continuing and discount >= 1:
        raise continuing_discount(discount=f"{discount:g}")
    if continuing and bounds is None:
        raise continuing_bounds()


def check_paired(paired: bool, cluster: str | None, truncation: str | None) -> None:
    """Refuse differences from the logged policy whose standard errors would not be known."""
    if paired and truncation == "bootstrap":
        raise not_together(
            what=words.switched_on("paired"),
            other=words.given("truncation", "bootstrap"),
            why="rewards that a model adds are not what the logged policy earned",
        )
    if paired and cluster is not None:
        raise not_together(
            what=words.switched_on("paired"),
            other=words.argument("cluster"),
            why="the errors of differences are those of single episodes",
        )


def check_types(columns: Any, policies: Any, bounds: Any = None) -> None:
    """Refuse arguments that are not of the types `Columns`, `PolicyColumns` and `Bounds`."""
    if columns is not None:
        scalars.instance("columns", columns, Columns, "Columns(reward=..., ...)")
    if policies is not None:
        scalars.instance("policies", policies, Mapping, "a mapping of names to PolicyColumns")  # type: ignore[type-abstract]
    if bounds is not None:
        scalars.instance("bounds", bounds, Bounds, "Bounds(reward=(lowest, highest), ...)")
    for name, chosen in (policies or {}).items():
        if not isinstance(chosen, PolicyColumns):
            hint = f"PolicyColumns(target_prob={chosen!r})" if isinstance(chosen, str) else "PolicyColumns(...)"
            raise wrong_object(argument=f"policy {name!r}", expected=hint, found=type(chosen).__name__)


def check_cluster(cluster: Any, passes: int = 2) -> None:
    """Refuse a cluster that is not the name of a column, or that comes with a single pass."""
    if cluster is not None and not isinstance(cluster, str):
        raise wrong_object(
            argument=words.argument("cluster"), expected="the name of a column", found=scalars.shown(cluster)
        )
    if cluster is not None and passes == 1:
        raise needs_two_passes(
            what=phrase(
                "{cluster} adds up influence values, which are known after a second reading",
                cluster=words.argument("cluster"),
            )
        )
