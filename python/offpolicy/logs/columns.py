"""The names of a log's columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from offpolicy._util import words
from offpolicy._util.scalars import number, shown, text
from offpolicy.errors.hints import hint, suggestion
from offpolicy.errors.kinds.of_arguments import bad_value, give_one, mixture_half_given, nothing_given, unknown_name
from offpolicy.errors.kinds.of_columns import missing_column, unnamed_column
from offpolicy.protocols import Setting

#: How many columns of a log a message lists.
LISTED = 20
#: The column to which `estimate_behavior` writes behaviour probabilities.
ESTIMATED = "behavior_prob_hat"
#: The column that `estimate_behavior` writes for standard errors that account for the estimation. It is a struct: the
#: episode's `fold`, the number of `others` from which its probabilities were estimated, the `total` of all episodes,
#: and the `cell` of the step or its `score`. `offpolicy.evaluation.propensity_score` reads it.
SCORE = "behavior_score"


@dataclass(frozen=True)
class Columns:
    """The names of the log's columns. A column that keeps its default name may be absent, unless it is needed.

    `terminal` and `truncated` tell how episodes end, by the rule of `offpolicy.logs.endings`. If the log has a column
    of that name that means something else, set the name to None, and the column is not read.

    `behavior_logprob` and `target_logprob` are natural logarithms of the probabilities. They are read if the log has no
    `behavior_prob` or `target_prob`, or if they are named here.

    >>> import offpolicy as op
    >>> log = op.demo_log(episodes=50).rename({"reward": "gain"})
    >>> round(op.evaluate(log, estimators=["mc"], columns=op.Columns(reward="gain"))["mc"].value, 3)
    4.12
    """

    episode: str = "episode"
    step: str = "step"
    reward: str = "reward"
    behavior_prob: str = "behavior_prob"
    target_prob: str = "target_prob"
    ratio: str = "ratio"
    q_hat: str = "q_hat"
    v_hat: str = "v_hat"
    r_hat: str = "r_hat"
    transition_ratio: str = "transition_ratio"
    truncated: str | None = "truncated"
    action: str = "action"
    terminal: str | None = "terminal"
    state: tuple[str, ...] = ()
    behavior_logprob: str = "behavior_logprob"
    target_logprob: str = "target_logprob"

    def __post_init__(self) -> None:
        """Refuse names that are not text."""
        for field in dataclasses.fields(self):
            name = getattr(self, field.name)
            if field.name != "state" and not (name is None and field.name in ("terminal", "truncated")):
                text(f"Columns: {field.name}", name)
        if isinstance(self.state, str) or not isinstance(self.state, Sequence):
            raise bad_value(
                name="Columns: state", expected="the names of columns, such as ('x', 'y')", found=shown(self.state)
            )
        object.__setattr__(self, "state", tuple(text("Columns: a name in state", name) for name in self.state))

    @classmethod
    def of(cls, domain: Setting) -> Columns:
        """Return the default names, with the domain's own names for the columns of the state.

        >>> import offpolicy as op
        >>> from offpolicy.testing import Walk
        >>> op.Columns.of(Walk()).state
        ('place',)
        """
        return cls(state=tuple(domain.state_columns))

    @property
    def unread(self) -> list[str]:
        """The default names of the columns that are not read, because they were set to None."""
        return [role for role in ("terminal", "truncated") if getattr(self, role) is None]

    def renamed(self, role: str) -> bool:
        """Return whether the user chose the name of this column."""
        return getattr(self, role) not in (None, getattr(DEFAULT, role))

    def with_estimates(self, available: Collection[str]) -> Columns:
        """Return these names, with estimated behaviour probabilities if the log has neither others nor ratios."""
        known = {self.behavior_prob, self.behavior_logprob, self.ratio}
        others = self.renamed("behavior_prob") or known & set(available)
        return self if others or ESTIMATED not in available else dataclasses.replace(self, behavior_prob=ESTIMATED)

    def has_behavior(self, available: Collection[str]) -> bool:
        """Return whether the log has logged or estimated probabilities of π0."""
        return self.with_estimates(available).behavior_prob in available

    def find(self, role: str, available: Collection[str]) -> str | None:
        """Return the name of a column, or None if the log lacks it; a name that the user chose must be in the log."""
        name: str | None = getattr(self, role)
        if name is None or name in available:
            return name
        if self.renamed(role):
            raise missing_column(name=repr(name), what=f" (for {role})", there=instead_of(name, available))
        return None

    def need(self, role: str, available: Collection[str]) -> str:
        """Return the name of a column, and refuse a log that lacks it."""
        name = self.find(role, available)
        if name is None:
            there = instead_of(role, available)
            raise unnamed_column(owner="the log", name=repr(role), there=there, it="it", column=words.column(role))
        return name

    def states(self, available: Collection[str], known: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the columns of the state: those the user chose, else those in `known`, else all named `state…`."""
        chosen = self.state or tuple(known) or tuple(name for name in available if name.startswith("state"))
        for name in chosen:
            if name not in available:
                raise missing_column(name=repr(name), what=" (of the state)", there=instead_of(name, available))
        if not chosen:
            there = instead_of("", available)
            raise unnamed_column(
                owner="the log", name="of the state", there=there, it="them", column=words.STATE_COLUMNS
            )
        return chosen


DEFAULT = Columns()
#: The columns that a policy and a model fill for each step.
ANNOTATED = ("target_prob", "q_hat", "v_hat", "r_hat")
#: All columns that `annotate` can write; the last one needs a domain and a model of its transitions.
WRITTEN = (*ANNOTATED, "transition_ratio")


@dataclass(frozen=True)
class PolicyColumns:
    """The columns of one target policy among several, or a mixture (1-alpha)·policy + alpha·behaviour of another one.

    >>> import offpolicy as op
    >>> policies = {
    ...     "new": op.PolicyColumns(target_prob="target_prob"),
    ...     "careful": op.PolicyColumns(mixture_of="new", alpha=0.5),
    ... }
    >>> ev = op.evaluate(op.demo_log(episodes=200), estimators=["step-is"], policies=policies)
    >>> ev["careful", "step-is"].std_error < ev["new", "step-is"].std_error
    True
    """

    target_prob: str | None = None
    ratio: str | None = None
    q_hat: str | None = None
    v_hat: str | None = None
    r_hat: str | None = None
    transition_ratio: str | None = None
    mixture_of: str | None = None
    alpha: float | None = None
    target_logprob: str | None = None

    def __post_init__(self) -> None:
        """Refuse combinations that have no meaning."""
        for field in dataclasses.fields(self):
            if field.name != "alpha" and getattr(self, field.name) is not None:
                text(f"PolicyColumns: {field.name}", getattr(self, field.name))
        if (self.mixture_of is None) != (self.alpha is None):
            raise mixture_half_given()
        if self.alpha is not None:
            object.__setattr__(self, "alpha", number("alpha", self.alpha, 0, 1, "between 0 and 1"))
        if sum(x is not None for x in (self.target_prob, self.target_logprob, self.ratio, self.mixture_of)) > 1:
            raise give_one(choices="one of target_prob=, target_logprob=, ratio= and mixture_of=")
        if all(getattr(self, field.name) is None for field in dataclasses.fields(self)):
            raise nothing_given(what="PolicyColumns()", thing="column of the policy")

    @classmethod
    def named(cls, policy: str, *roles: str) -> PolicyColumns:
        """Return columns named `target_prob_<policy>` and so on, for these roles or else for all of `ANNOTATED`.

        >>> import offpolicy as op
        >>> op.PolicyColumns.named("new", "target_prob", "q_hat").q_hat
        'q_hat_new'
        """
        for role in roles:
            if role not in WRITTEN:
                raise unknown_name(lack="a policy has no column", name=repr(role), hint=hint(role, WRITTEN))
        names: dict[str, Any] = {role: f"{role}_{policy}" for role in roles or ANNOTATED}
        return cls(**names)

    def check(self, policy: str, available: Collection[str]) -> None:
        """Refuse a column that is named here and that the log lacks."""
        for field in dataclasses.fields(self):
            name = getattr(self, field.name)
            if field.name in ("mixture_of", "alpha") or name is None or name in available:
                continue
            there = instead_of(name, available)
            raise missing_column(name=repr(name), what=f" ({field.name} of policy {policy!r})", there=there)


def coding(actions: pl.Series) -> str:
    """Return advice on how to code actions as the whole numbers that policies and models use.

    >>> print(coding(pl.Series("a", ["buy", "sell", "buy"])))
    code actions as 0, 1, …, in the order of the domain, such as pl.col("a").replace_strict({'buy': 0, 'sell': 1})
    """
    seen = actions.drop_nulls().unique().sort().head(3).to_list()
    codes = {str(action) if actions.dtype == pl.Categorical else action: code for code, action in enumerate(seen)}
    whole = str(codes) if actions.n_unique() <= len(codes) else f"{str(codes)[:-1]}, …}}"
    how = f'pl.col("{actions.name}").replace_strict({whole})' if codes else "0, 1 and 2"
    return f"code actions as 0, 1, …, in the order of the domain, such as {how}"


def instead_of(name: str, available: Collection[str]) -> str:
    """Return the end of a message about a missing column: a similar name, if there is one, and the log's columns.

    >>> instead_of("episode", ["episodes", "reward"])
    "; did you mean 'episodes'? its columns are episodes, reward"
    """
    names = list(available)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    close = suggestion(name, available)
    return f"{close or ';'} its columns are {', '.join(names[:LISTED]) or 'none'}{more}"
