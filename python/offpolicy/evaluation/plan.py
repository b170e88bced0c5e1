"""The plan of an evaluation: the columns, the policies and their estimators, from which the core's `Spec` is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from offpolicy import _core
from offpolicy._util import scalars, words
from offpolicy._util.phrase import Word, phrase
from offpolicy.errors import MissingColumnError
from offpolicy.errors.hints import suggestion
from offpolicy.errors.kinds.of_arguments import (
    mixture_before_its_policy,
    name_of_behavior,
    needs_argument,
    nothing_given,
)
from offpolicy.errors.kinds.of_columns import estimator_lacks_column
from offpolicy.evaluation.estimators import RETURNS, describe, from_plugin, named, usual
from offpolicy.evaluation.from_plugins import MODELS, ROLES, FromPlugin
from offpolicy.logs.columns import ESTIMATED, Columns, PolicyColumns, instead_of
from offpolicy.logs.crossing import Crossing

BEHAVIOR = "behavior"
TARGET = "target"
#: The estimator that the core computes if all others are of plugins, so that the weights are diagnosed.
WATCHED = named(lambda about: tuple(about.needs) == ("ratio",) and not about.weighted)[0]
#: The longest horizon that may be given; `dr-bsl` makes a table over it.
LONGEST = 10_000_000
#: The ways to treat truncated episodes.
TRUNCATIONS = ("as-terminal", "bootstrap", "reduce-horizon")


@dataclass(frozen=True)
class Probabilities:
    """Columns of π0 and π1, whose quotient is the ratio."""

    behavior: str
    target: str


@dataclass(frozen=True)
class RatioColumn:
    """A column of logged ratios."""

    name: str


@dataclass(frozen=True)
class MixedRatio:
    """The ratio of a mixture: the policy `of`, into which the behaviour policy is mixed with the share α."""

    of: str
    alpha: float


#: Where the ratios of a policy come from.
RatioForm: TypeAlias = Probabilities | RatioColumn | MixedRatio


@dataclass(frozen=True)
class PlannedPolicy:
    """A target policy with the columns that the log really has."""

    name: str
    ratio: RatioForm | None
    models: dict[str, str]  # q_hat, v_hat, r_hat, transition_ratio, and columns that plugins read -> column
    estimators: tuple[str, ...] = ()
    lacks: str = ""  # words for the columns that are missing for a ratio

    def allows(self, estimator: str) -> bool:
        """Return True if the policy has every column that the estimator needs."""
        return all(
            self.ratio is not None if need == "ratio" else need in self.models for need in describe(estimator).needs
        )


@dataclass(frozen=True)
class Settings:
    """The numbers of an evaluation, and how truncated episodes are treated."""

    discount: float = 1.0
    horizon: int | None = None
    baseline: float | None = None
    density: bool = False
    truncation: str | None = None
    problem_limit: int = 100

    def __post_init__(self) -> None:
        """Convert numbers of any library, and refuse values outside their range."""
        checked = {
            "discount": scalars.number("discount", self.discount, 0, 1, "between 0 and 1"),
            "horizon": scalars.size("horizon", self.horizon, LONGEST),
            "baseline": None if self.baseline is None else scalars.number("baseline", self.baseline),
            "density": scalars.flag("density", self.density),
        }
        scalars.choice("truncation", self.truncation, (*TRUNCATIONS, None))
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Plan:
    """The columns, settings, policies and estimators of an evaluation."""

    columns: Columns
    settings: Settings
    terminal: str | None
    truncated: str | None
    policies: tuple[PlannedPolicy, ...]
    mc: bool  # whether the value of the behaviour policy is estimated too
    check_only: bool = False
    diagnostics: bool = False  # whether the sums for the diagnostics of the weights are kept
    paired: bool = False  # whether each policy is compared with the behaviour policy, trajectory by trajectory
    memory: int | None = None  # the limit of memory in bytes
    extra: tuple[tuple[str, str], ...] = ()  # columns that are checked and not otherwise used, with their roles
    crossing: Crossing = field(default_factory=Crossing)  # the episodes that are known to cross files

    @property
    def estimated(self) -> bool:
        """Return True if the weights of some estimate use estimated behaviour probabilities."""
        from_probabilities: dict[str, bool] = {}
        for policy in self.policies:  # a mixture comes after the policy that it mixes
            form = policy.ratio
            mixed = from_probabilities[form.of] if isinstance(form, MixedRatio) else isinstance(form, Probabilities)
            from_probabilities[policy.name] = mixed
        return self.columns.behavior_prob == ESTIMATED and any(
            from_probabilities[policy.name] and any(describe(e).uses_weights for e in policy.estimators)
            for policy in self.policies
        )

    @property
    def policy_names(self) -> list[str]:
        """Return the names of all policies in the order of the core, with the behaviour policy first."""
        return [BEHAVIOR, *(policy.name for policy in self.policies)]

    def second(self) -> Plan:
        """Return the plan of the second pass, which has fewer estimators and hence reads fewer columns."""
        return self.keeping({e for policy in self.policies for e in policy.estimators if self._works_again(e)})

    def _works_again(self, estimator: str) -> bool:
        """Return True if an estimator needs the second pass for its values, its error or its influence values."""
        about = describe(estimator)
        if isinstance(about, FromPlugin):
            return False
        unknown_horizon = about.needs_baseline and self.settings.horizon is None
        return about.passes > 1 or unknown_horizon or (about.weighted and (self.diagnostics or self.paired))

    def keeping(self, estimators: Collection[str], policy: str | None = None) -> Plan:
        """Return the plan with only these estimators, of one policy or of all; all policies keep their indices."""

        def keep(target: PlannedPolicy) -> PlannedPolicy:
            wanted = policy in (None, target.name)
            return replace(target, estimators=tuple(e for e in target.estimators if wanted and e in estimators))

        return replace(self, policies=tuple(keep(target) for target in self.policies), mc=RETURNS in estimators)

    def without(self, policy: str, estimators: Collection[str]) -> Plan:
        """Return the plan without some estimators of one policy."""

        def drop(target: PlannedPolicy) -> PlannedPolicy:
            kept = tuple(e for e in target.estimators if target.name != policy or e not in estimators)
            return replace(target, estimators=kept)

        return replace(self, policies=tuple(drop(target) for target in self.policies))

    def spec(self) -> _core.Spec:
        """Return the plan as the core takes it, with the columns that the chosen estimators read and no others."""
        weights_returns = any(describe(e).weights_returns for policy in self.policies for e in policy.estimators)
        returns = [RETURNS] if self.mc or self.paired or weights_returns else []
        mixtures = (policy.ratio for policy in self.policies if policy.estimators)
        bases = {form.of for form in mixtures if isinstance(form, MixedRatio)}
        return _core.Spec(
            episode=self.columns.episode,
            step=self.columns.step,
            reward=self.columns.reward,
            policies=[
                _core.PolicySpec(BEHAVIOR, returns),
                *(_policy_spec(policy, policy.name in bases) for policy in self.policies),
            ],
            discount=self.settings.discount,
            horizon=self.settings.horizon,
            baseline=self.settings.baseline,
            density=self.settings.density,
            terminal=self.terminal,
            truncated=self.truncated,
            truncated_as_terminal=self.settings.truncation is not None,
            problem_limit=self.settings.problem_limit,
            check_only=self.check_only,
            diagnostics=self.diagnostics,
            paired=self.paired,
            extra=[*self.extra, *_read_by_plugins(self.policies)],
            crossing=self.crossing.ids,
            first_step=self.crossing.first_step,
            memory=self.memory,
        )

    def names(self) -> list[str]:
        """Return the names of all columns that a scan of this plan reads."""
        return self.spec().names


def _policy_spec(policy: PlannedPolicy, is_base: bool) -> _core.PolicySpec:
    """Return a policy as the core takes it, with the columns that its estimators or its mixtures read.

    The core does not compute the estimators of plugins, but it diagnoses the weights that they use.
    """
    computed = [e for e in policy.estimators if from_plugin(e) is None]
    weighted = any(describe(e).uses_weights for e in policy.estimators)
    if weighted and not any(describe(e).uses_weights for e in computed):
        computed.append(WATCHED)
    needs = {need for e in computed for need in (*describe(e).needs, *describe(e).reads)}
    form = policy.ratio if is_base or "ratio" in needs else None
    models = {role: name for role, name in policy.models.items() if role in needs}
    return _core.PolicySpec(
        policy.name,
        computed,
        probabilities=(form.behavior, form.target) if isinstance(form, Probabilities) else None,
        ratio=form.name if isinstance(form, RatioColumn) else None,
        mixture=(form.of, form.alpha) if isinstance(form, MixedRatio) else None,
        **models,
    )


def _read_by_plugins(policies: Sequence[PlannedPolicy]) -> list[tuple[str, str]]:
    """Return the columns that estimators of plugins read, each with the role by which the core checks it."""
    wanted = [
        (policy.models[need], need if need in ROLES else "reward")
        for policy in policies
        for about in map(from_plugin, policy.estimators)
        if about is not None
        for need in about.needs
        if need != "ratio"
    ]
    return list(dict.fromkeys(wanted))


def find_policies(
    available: Collection[str],
    columns: Columns,
    policies: Mapping[str, PolicyColumns] | None,
    own: Collection[str] = (),
) -> tuple[PlannedPolicy, ...]:
    """Return the target policies with the columns that the log has; None stands for one policy in default columns.

    `own` names the columns that estimators of plugins read by their names.
    """
    behavior = columns.find("behavior_prob", available)
    beside = {name: name for name in own if name in available}
    if policies is None:
        models = {role: name for role in MODELS if (name := columns.find(role, available))} | beside
        target, ratio = columns.find("target_prob", available), columns.find("ratio", available)
        if ratio and (columns.renamed("ratio") or not (behavior and target)):
            target = None
        form = _ratio_form(behavior, target, ratio)
        return (PlannedPolicy(TARGET, form, models, lacks=lacking(columns, available, behavior, target, words.column)),)
    if not policies:
        raise nothing_given(what=words.argument("policies"), thing="policy")
    found: list[PlannedPolicy] = []
    for name, chosen in policies.items():
        if scalars.text("the name of a policy", name) == BEHAVIOR:
            raise name_of_behavior(name=repr(BEHAVIOR))
        chosen.check(name, available)
        if chosen.mixture_of is not None:
            if chosen.mixture_of not in [policy.name for policy in found]:
                known = ", ".join(repr(policy.name) for policy in found) or "none"
                raise mixture_before_its_policy(name=repr(name), mixed=repr(chosen.mixture_of), known=known)
            base = next(policy for policy in found if policy.name == chosen.mixture_of)
            alpha = chosen.alpha
            form = None if base.ratio is None or alpha is None else MixedRatio(chosen.mixture_of, alpha)
        else:
            form = _ratio_form(behavior, chosen.target_prob, chosen.ratio)
        models = {role: column for role in MODELS if (column := getattr(chosen, role))} | beside
        lacks = lacking(columns, available, behavior, chosen.target_prob, words.policy_column)
        if chosen.mixture_of is not None:
            lacks = base.lacks
        found.append(PlannedPolicy(name, form, models, lacks=lacks))
    return tuple(found)


def _ratio_form(behavior: str | None, target: str | None, ratio: str | None) -> RatioForm | None:
    if target and behavior:
        return Probabilities(behavior, target)
    return RatioColumn(ratio) if ratio and not target else None


def lacking(
    columns: Columns,
    available: Collection[str],
    behavior: str | None,
    target: str | None,
    naming: Callable[[str], Word],
) -> str:
    """Return words that say which columns of a ratio are missing, what the log has instead, and how to name them.

    `naming` gives the spelling of the argument that names a column of the policy.
    """
    if behavior and target:
        return ""
    owners = {"behavior_prob": (behavior, words.column), "target_prob": (target, naming)}
    missing = {role: how(role) for role, (found, how) in owners.items() if not found}
    close = "".join(suggestion(getattr(columns, role), available) for role in missing)
    there = instead_of("", available)
    what = f"{' and '.join(missing)}, which the log does not have{close}{there}"
    named = words.both(missing.values())
    if len(missing) == 1:
        return phrase("{what}: name it with {named}", what=what, named=named)
    template = "{what}: name them with {named}, or ratios with {ratio}"
    return phrase(template, what=what, named=named, ratio=naming("ratio"))


def choose_estimators(
    policies: Sequence[PlannedPolicy], asked: Sequence[str] | None, baseline: float | None
) -> tuple[PlannedPolicy, ...]:
    """Give each policy its estimators: those that were asked for, or all that its columns allow."""
    for estimator in asked or ():
        need_baseline(estimator, baseline)

    def choose(policy: PlannedPolicy) -> PlannedPolicy:
        if asked is None:
            possible = (e for e in usual() if e != RETURNS and not (describe(e).needs_baseline and baseline is None))
            return replace(policy, estimators=tuple(e for e in possible if policy.allows(e)))
        for estimator in asked:
            if not policy.allows(estimator):
                raise _missing(policy, estimator)
        return replace(policy, estimators=tuple(e for e in asked if e != RETURNS))

    return tuple(choose(policy) for policy in policies)


def need_baseline(estimator: str, baseline: float | None) -> None:
    """Refuse an estimator that needs a baseline where none is given."""
    if baseline is None and describe(estimator).needs_baseline:
        raise needs_argument(
            who=f"estimator {estimator!r}", argument=words.argument("baseline"), why=", the constant c of its guess"
        )


def left_out(plan: Plan) -> list[str]:
    """Return a note for each policy without the columns of an importance ratio, since that is seldom intended."""
    found: list[str] = []
    for policy in plan.policies:
        if policy.ratio is None and (policy.models or plan.mc):
            found.append(
                phrase(
                    "only estimators without weights were computed of policy {policy}: weights need {lacks}",
                    policy=repr(policy.name),
                    lacks=policy.lacks,
                )
            )
    return found


def _missing(policy: PlannedPolicy, estimator: str) -> MissingColumnError:
    here = {"estimator": repr(estimator), "policy": repr(policy.name)}
    for need in describe(estimator).needs:
        if need == "ratio" and policy.ratio is None:
            return estimator_lacks_column(**here, needed=policy.lacks)
        if need not in ROLES and need not in policy.models:
            return estimator_lacks_column(**here, needed=f"a column {need!r}, which the log does not have")
        if need != "ratio" and need not in policy.models:
            column = (words.column if policy.name == TARGET else words.policy_column)(need)
            needed = phrase("a column {need}: name it with {column}", need=need, column=column)
            return estimator_lacks_column(**here, needed=needed)
    raise AssertionError(f"{estimator} of {policy.name!r} lacks nothing")
