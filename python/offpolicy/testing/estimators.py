"""The conformance suite for estimators of plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_plugins import undeclared_column
from offpolicy.evaluation.bounds import Bounds, Ranged, Terms
from offpolicy.evaluation.from_plugins import FromPlugin
from offpolicy.logs.block import Block
from offpolicy.protocols import Floats
from offpolicy.testing.enumeration import DISCOUNT, HIGHEST, HORIZON, LOWEST, PI0, PI1, Enumeration, enumeration
from offpolicy.testing.faults import Faults

#: How far a mean over all trajectories may be from the value.
ROUNDING = 1e-9
#: Columns that the bound q of `Bounds` is about.
MODELLED = ("q_hat", "v_hat")


def check_estimator(estimator: Any) -> None:
    """Raise a `ConformanceError` with everything that breaks the protocol of an estimator; return None if nothing does.

    Asks for the values of all trajectories of a tiny MDP, in one block, one by one and in another order. An estimator
    that says that it is unbiased must have the true value as its mean over all of them; with columns of its own, whose
    meaning nobody knows here, that is not asked.

    >>> from offpolicy.testing import check_estimator
    >>> class StepIs:
    ...     name, needs, unbiased = "step-wise importance sampling", ("ratio",), True
    ...     def values(self, block):
    ...         return block.by_trajectory_sum(block.discounts * block.cumulative_ratio() * block["reward"])
    >>> check_estimator(StepIs())
    """
    faults = Faults(f"estimator {type(estimator).__name__}")
    if faults.expect(
        callable(getattr(estimator, "values", None)),
        "values",
        f"a {type(estimator).__name__} has no method values(block)",
        "an estimator has values(block), which gives one float for each trajectory",
        "give an object, such as what the hook's maker returns",
    ):
        with faults.calling("description", "reading name, needs, unbiased, shrinks, equation and reference"):
            about = FromPlugin(type(estimator).__name__, "under test", estimator)
            _check_values(faults, about)
    faults.raise_any()


class Watched(Mapping[str, Floats]):
    """Columns that know which of them were read."""

    def __init__(self, columns: Mapping[str, Floats]) -> None:
        """Begin with no column read."""
        self.columns, self.read = columns, set[str]()

    def __getitem__(self, name: str) -> Floats:
        """Return a column, and remember that it was read."""
        found = self.columns[name]
        self.read.add(name)
        return found

    def __contains__(self, name: object) -> bool:
        """Return whether a column is there; this does not count as reading it."""
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the columns."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)


def _check_values(faults: Faults, about: FromPlugin) -> None:
    every = enumeration(beside=tuple(about.own_columns))
    whole = every.block(about.needs)
    watched = Watched(whole.columns)
    block = Block(whole.episodes, whole.lengths, watched, whole.discount, whole.horizon)
    values = _asked(faults, about, block, "values(block)")
    if values is None:
        return
    unread = [need for need in about.needs if need not in watched.read]
    faults.expect(
        not unread,
        "needs-unread",
        f"values(block) does not read {', '.join(map(repr, unread))}",
        "needs has the columns that are read, and no others: a log without them is refused",
        "take it out of needs",
    )
    _same_whatever_the_block(faults, about, every, values)
    if about.own_columns:
        return
    mean = float(every.probabilities @ values)
    if about.unbiased in ("always", "with-right-model") and about.model != "value":
        faults.expect(
            abs(mean - every.value) <= ROUNDING,
            "unbiased",
            f"its mean over all trajectories of a tiny MDP is {mean:.6g}, and the value is {every.value:.6g}",
            "an estimator with unbiased = True has the value of the target policy as its expectation",
            "say unbiased = False, or mend the formula",
        )
    if about.shrinks:
        lifted = enumeration(lift=-LOWEST)
        found = _asked(faults, about, lifted.block(about.needs), "values(block) of rewards that are not negative")
        faults.expect(
            found is None or float(lifted.probabilities @ found) <= lifted.value + ROUNDING,
            "shrinks",
            "its mean is above the value where no reward is negative",
            "an estimator with shrinks = True never overestimates then",
            "say shrinks = False",
        )
    if isinstance(about.estimator, Ranged):
        _within_range(faults, about, about.estimator, every, values)


def _asked(faults: Faults, about: FromPlugin, block: Block, call: str) -> Floats | None:
    """Return the values, or note what was wrong with them."""
    try:
        return about.values(block)
    except OffPolicyError as error:
        undeclared = error.kind == undeclared_column.id
        faults.expect(
            False,
            "needs" if undeclared else "values",
            f"{call}: {error}",
            "an estimator reads reward and what is in its needs" if undeclared else "one finite float per trajectory",
            "add the column to needs" if undeclared else "call it in the same way and look at what it returns",
        )
    return None


def _same_whatever_the_block(faults: Faults, about: FromPlugin, every: Enumeration, values: Floats) -> None:
    """Ask again for all, for all in another order, and for a few in blocks of one."""
    n = len(values)
    shuffled = np.random.default_rng(0).permutation(n)
    orders = [("repeat", np.arange(n), "asked again"), ("block", shuffled, "in another order")]
    orders += [("block", np.array([at]), "in a block of its own") for at in shuffled[:20].tolist()]
    for rule, chosen, how in orders:
        found = _asked(faults, about, every.block(about.needs, chosen), f"values(block) {how}")
        if found is None:
            return
        different = np.flatnonzero(found != values[chosen])
        faults.expect(
            not different.size,
            rule,
            f"a trajectory has another value {how}",
            "the value of a trajectory depends on that trajectory alone, to the last bit: blocks are cut anywhere",
            "use by_trajectory_sum and operations that work on each row alone; no mean or largest value of a block",
        )


def _within_range(faults: Faults, about: FromPlugin, estimator: Ranged, every: Enumeration, values: Floats) -> None:
    ratio = max(PI1[s][a] / PI0[s][a] for s in (0, 1) for a in (0, 1))
    models = [every.columns[name] for name in MODELLED]
    q = min(float(x.min()) for x in models), max(float(x.max()) for x in models)
    bounds = Bounds(reward=(LOWEST, HIGHEST), ratio=ratio, q=q)
    with faults.calling("range", "range(bounds, terms)"):
        low, high = estimator.range(bounds, Terms(DISCOUNT, HORIZON))
        faults.expect(
            low <= values.min() and values.max() <= high,
            "range",
            f"range says {low:.6g} to {high:.6g}, and values are from {values.min():.6g} to {values.max():.6g}",
            "no trajectory that keeps the bounds has a value outside of the range",
            "derive the range from the formula, or leave range out",
        )
