"""Estimators of other packages: what each says of itself, in the terms of our own, and its values, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from offpolicy._util.installed import Installed
from offpolicy._util.scalars import shown
from offpolicy._util.visible import visible
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_plugins import maker_failed, wrong_description, wrong_numbers
from offpolicy.logs.block import Block
from offpolicy.protocols import Estimator, Floats

#: Columns of a policy that an estimator may need; any other need is a column of the log by that name.
MODELS = ("q_hat", "v_hat", "r_hat", "transition_ratio")
ROLES = ("reward", "ratio", *MODELS)


@dataclass(frozen=True, eq=False)
class FromPlugin:
    """What an estimator of a plugin says of itself, as `offpolicy.evaluation.estimators.Description` has it.

    It is a mean of values of single trajectories, which are read in a pass of their own after the core's.
    """

    id: str
    plugin: str
    estimator: Estimator

    passes = value_pass = 2
    weighted = blended = weights_returns = of_behavior = needs_baseline = corrects_first_value = False
    without_control = with_baseline = None
    reads: Sequence[str] = ()
    step_sums: Sequence[str] = ()
    only_when_asked = True

    def __post_init__(self) -> None:
        """Refuse a description that makes no sense."""
        needs = getattr(self.estimator, "needs", None)
        listed = isinstance(needs, Sequence) and not isinstance(needs, str)
        if not listed or not all(isinstance(need, str) and need for need in needs or ()):
            raise self._described("needs", 'a sequence of texts, such as ("ratio",)', needs)
        for member in ("unbiased", "shrinks"):
            if not isinstance(found := getattr(self.estimator, member, False), bool):
                raise self._described(member, "True or False", found)
        for member in ("name", "equation", "reference"):
            if not isinstance(found := getattr(self.estimator, member, ""), str):
                raise self._described(member, "a text", found)

    def _described(self, member: str, expected: str, found: Any) -> OffPolicyError:
        return wrong_description(who=self.who, member=member, expected=expected, found=shown(found))

    @property
    def who(self) -> str:
        """How messages call it."""
        return f"estimator {self.id!r} of plugin {self.plugin!r}"

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        return getattr(self.estimator, "name", "") or self.id

    @property
    def equation(self) -> str:
        """Its defining equation."""
        return getattr(self.estimator, "equation", "")

    @property
    def reference(self) -> str:
        """Where it is from."""
        return getattr(self.estimator, "reference", "")

    @property
    def needs(self) -> Sequence[str]:
        """Columns that it cannot do without, beside the reward."""
        return tuple(dict.fromkeys(need for need in self.estimator.needs if need != "reward"))

    @property
    def own_columns(self) -> Sequence[str]:
        """Columns of the log that it needs by their names."""
        return tuple(need for need in self.needs if need not in ROLES)

    @property
    def uses_weights(self) -> bool:
        """True where importance ratios weight the log."""
        return "ratio" in self.needs

    @property
    def model(self) -> str:
        """What it takes from a model: nothing, a control variate where weights correct it, or else the value."""
        if not set(MODELS) & set(self.needs):
            return "none"
        return "control-variate" if self.uses_weights else "value"

    @property
    def unbiased(self) -> str:
        """When its expectation is the value."""
        if not getattr(self.estimator, "unbiased", False):
            return "never"
        return "with-right-model" if self.model == "value" else "always"

    @property
    def shrinks(self) -> bool:
        """True where its values are unbiased ones pulled towards 0."""
        return getattr(self.estimator, "shrinks", False)

    @property
    def range(self) -> str:
        """How bounds limit the value of a trajectory: as the plugin says, or nobody knows."""
        return "own" if callable(getattr(self.estimator, "range", None)) else "unknown"

    def values(self, block: Block) -> Floats:
        """Return the value of each trajectory, n finite numbers; anything else is an error of the plugin."""
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.estimator.values(block))
        except OffPolicyError:
            raise
        except Exception as error:
            raise maker_failed(what=f"{self.who} failed", type=type(error).__name__, error=error) from error
        expected = "one finite number for each trajectory"
        if found.dtype.kind not in "fiu":
            raise wrong_numbers(who=self.who, expected=expected, found=f"an array of {found.dtype}")
        if found.shape != (len(block),):
            what = f"an array of shape {found.shape} for {len(block)} trajectories from episode "
            raise wrong_numbers(who=self.who, expected=expected, found=what + visible(str(block.episodes[0])))
        values: Floats = found.astype(np.float64)
        for at in np.flatnonzero(~np.isfinite(values))[:1].tolist():
            what = f"{values[at]} for episode {visible(str(block.episodes[at]))}"
            raise wrong_numbers(who=self.who, expected=expected, found=what)
        return values


#: The estimators that plugins bring, by id.
INSTALLED: Installed[FromPlugin] = Installed()
