"""What the core is told to compute: columns as numbered slots, policies, estimators, for each pass over the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from offpolicy._util import scalars
from offpolicy.errors import MissingColumnError, words
from offpolicy.errors.hints import suggestion
from offpolicy.errors.kinds.arguments import mixture_before_its_policy, name_of_behavior, needs_argument, nothing_given
from offpolicy.errors.kinds.columns import estimator_lacks_column
from offpolicy.errors.phrase import Word, phrase
from offpolicy.evaluation.estimators import BLENDED, ESTIMATORS, NEEDS
from offpolicy.logs.columns import ESTIMATED, Columns, PolicyColumns, instead_of
from offpolicy.logs.crossing import Crossing

BEHAVIOR = "behavior"
TARGET = "target"
#: The baseline of `dr-bsl` is a table over the horizon.
LONGEST = 10_000_000
#: What to do about truncated episodes.
TRUNCATIONS = ("as-terminal", "bootstrap", "reduce-horizon")


@dataclass(frozen=True)
class Policy:
    """A target policy with the columns that the log really has."""

    name: str
    ratio: dict[str, Any] | None  # {"probabilities": {role: column}} | {"column": …} | {"mixture": …}
    models: dict[str, str]  # q_hat, v_hat, r_hat, transition_ratio -> column
    estimators: tuple[str, ...] = ()
    lacks: str = ""  # what has to be there for a ratio, where there is none

    def allows(self, estimator: str) -> bool:
        """True where every column that the estimator needs is there."""
        return all(self.ratio is not None if need == "ratio" else need in self.models for need in NEEDS[estimator])


@dataclass(frozen=True)
class Settings:
    """The numbers of an evaluation."""

    discount: float = 1.0
    horizon: int | None = None
    baseline: float | None = None
    density: bool = False
    truncation: str | None = None
    problem_limit: int = 100

    def __post_init__(self) -> None:
        """Take numbers of any library; refuse values outside their range."""
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
    """All that a scan computes."""

    columns: Columns
    settings: Settings
    terminal: str | None
    truncated: str | None
    policies: tuple[Policy, ...]
    mc: bool  # the behaviour policy's own value
    check_only: bool = False
    diagnostics: bool = False  # keep what tells whether weights can be trusted
    paired: bool = False  # compare each policy with the behaviour policy, trajectory by trajectory
    memory: int | None = None  # bytes that may be taken
    extra: tuple[tuple[str, str], ...] = field(default=())  # columns to check beyond those used
    crossing: Crossing = field(default_factory=Crossing)  # what is known of episodes that cross files

    @property
    def estimated(self) -> bool:
        """True where weights are made of estimated behaviour probabilities."""
        from_probabilities: dict[str, bool] = {}
        for policy in self.policies:  # a mixture comes after what it mixes
            form = policy.ratio or {}
            mixed = from_probabilities[form["mixture"]["of"]] if "mixture" in form else "probabilities" in form
            from_probabilities[policy.name] = mixed
        return self.columns.behavior_prob == ESTIMATED and any(
            from_probabilities[policy.name] and any("ratio" in NEEDS[e] for e in policy.estimators)
            for policy in self.policies
        )

    def second(self) -> Plan:
        """The plan of the second pass: fewer estimators, hence fewer columns."""
        late = {"step-wis", "wdr", *BLENDED} | ({"dr-bsl"} if self.settings.horizon is None else set())
        late |= {"wis"} if self.diagnostics or self.paired else set()
        return self.keeping(late)

    def keeping(self, estimators: Collection[str], policy: str | None = None) -> Plan:
        """The same policies with only these estimators, of one policy or of all; indices do not change."""

        def keep(target: Policy) -> Policy:
            wanted = policy in (None, target.name)
            return replace(target, estimators=tuple(e for e in target.estimators if wanted and e in estimators))

        return replace(self, policies=tuple(keep(target) for target in self.policies), mc="mc" in estimators)

    def without(self, policy: str, estimators: Collection[str]) -> Plan:
        """The same plan less some estimators of one policy."""

        def drop(target: Policy) -> Policy:
            kept = tuple(e for e in target.estimators if target.name != policy or e not in estimators)
            return replace(target, estimators=kept)

        return replace(self, policies=tuple(drop(target) for target in self.policies))

    def spec(self) -> str:
        """The JSON that the core reads."""
        slots: dict[tuple[str, str], int] = {}

        def slot(name: str, check: str) -> int:
            return slots.setdefault((name, check), len(slots))

        reward = slot(self.columns.reward, "finite")
        used = {e for policy in self.policies for e in policy.estimators}
        returns = ["mc"] if self.mc or self.paired or used & {"is", "wis"} else []
        policies = [_core_policy(BEHAVIOR, "one", {}, returns)]
        numbers = {policy.name: index for index, policy in enumerate(self.policies, start=1)}
        bases = {p.ratio["mixture"]["of"] for p in self.policies if p.ratio and "mixture" in p.ratio and p.estimators}
        for policy in self.policies:
            needs = {need for estimator in policy.estimators for need in NEEDS[estimator]}
            if "dr-v2" in policy.estimators:
                needs.add("transition_ratio")
            ratio: Any = "one"
            if policy.ratio is not None and ("ratio" in needs or policy.name in bases):
                ratio = self._ratio(policy.ratio, slot, numbers)
            models = {
                role: slot(name, "non-negative" if role == "transition_ratio" else "finite")
                for role, name in policy.models.items()
                if role in needs
            }
            policies.append(_core_policy(policy.name, ratio, models, policy.estimators))
        for name, check in self.extra:
            slot(name, check)
        return json.dumps(
            {
                "episode": self.columns.episode,
                "step": self.columns.step,
                "plan": {
                    "discount": self.settings.discount,
                    "horizon": self.settings.horizon,
                    "baseline": self.settings.baseline,
                    "slots": [{"name": name, "check": check} for name, check in slots],
                    "reward": reward,
                    "policies": policies,
                    "terminal": self.terminal,
                    "truncated": self.truncated,
                    "truncated_as_terminal": self.settings.truncation is not None,
                    "problem_limit": self.settings.problem_limit,
                    "check_only": self.check_only,
                    "diagnostics": self.diagnostics,
                    "paired": self.paired,
                    **asdict(self.crossing),
                    "memory": self.memory,
                },
            }
        )

    def names(self) -> list[str]:
        """All columns that a scan of this plan reads."""
        spec = json.loads(self.spec())
        first = [spec["episode"], spec["step"], *(name for name in (self.terminal, self.truncated) if name)]
        return list(dict.fromkeys(first + [slot["name"] for slot in spec["plan"]["slots"]]))

    def _ratio(self, ratio: dict[str, Any], slot: Any, numbers: Mapping[str, int]) -> dict[str, Any]:
        checks = self.checks()
        if "column" in ratio:
            return {"column": {"ratio": slot(ratio["column"]["ratio"], checks["ratio"])}}
        if "mixture" in ratio:
            return {"mixture": {"of": numbers[ratio["mixture"]["of"]], "alpha": ratio["mixture"]["alpha"]}}
        pair = ratio["probabilities"]
        return {
            "probabilities": {
                "behavior": slot(pair["behavior"], checks["behavior_prob"]),
                "target": slot(pair["target"], checks["target_prob"]),
            }
        }

    def checks(self) -> dict[str, str]:
        """What the columns of ratios must hold."""
        return ratio_checks(self.settings.density)


def ratio_checks(density: bool) -> dict[str, str]:
    """What the columns of ratios must hold."""
    if density:
        return {"behavior_prob": "positive-density", "target_prob": "non-negative", "ratio": "non-negative"}
    return {"behavior_prob": "positive-probability", "target_prob": "probability", "ratio": "non-negative"}


def _core_policy(name: str, ratio: Any, models: Mapping[str, int], estimators: Sequence[str]) -> dict[str, Any]:
    roles = ("q_hat", "v_hat", "r_hat", "transition_ratio")
    return {
        "name": name,
        "ratio": ratio,
        **{role: models.get(role) for role in roles},
        "estimators": list(estimators),
    }


def find_policies(
    available: Collection[str], columns: Columns, policies: Mapping[str, PolicyColumns] | None
) -> tuple[Policy, ...]:
    """The target policies with the columns that are there; without `policies` the one of the default columns."""
    behavior = columns.find("behavior_prob", available)
    roles = ("q_hat", "v_hat", "r_hat", "transition_ratio")
    if policies is None:
        models = {role: name for role in roles if (name := columns.find(role, available))}
        target, ratio = columns.find("target_prob", available), columns.find("ratio", available)
        if ratio and (columns.renamed("ratio") or not (behavior and target)):
            target = None
        form = _ratio_form(behavior, target, ratio)
        return (Policy(TARGET, form, models, lacks=lacking(columns, available, behavior, target, words.column)),)
    if not policies:
        raise nothing_given(what=words.argument("policies"), thing="policy")
    found: list[Policy] = []
    for name, chosen in policies.items():
        if scalars.text("the name of a policy", name) == BEHAVIOR:
            raise name_of_behavior(name=repr(BEHAVIOR))
        chosen.check(name, available)
        if chosen.mixture_of is not None:
            if chosen.mixture_of not in [policy.name for policy in found]:
                known = ", ".join(repr(policy.name) for policy in found) or "none"
                raise mixture_before_its_policy(name=repr(name), mixed=repr(chosen.mixture_of), known=known)
            base = next(policy for policy in found if policy.name == chosen.mixture_of)
            mixture = {"mixture": {"of": chosen.mixture_of, "alpha": chosen.alpha}}
            form = mixture if base.ratio is not None else None
        else:
            form = _ratio_form(behavior, chosen.target_prob, chosen.ratio)
        models = {role: column for role in roles if (column := getattr(chosen, role))}
        lacks = lacking(columns, available, behavior, chosen.target_prob, words.policy_column)
        if chosen.mixture_of is not None:
            lacks = base.lacks
        found.append(Policy(name, form, models, lacks=lacks))
    return tuple(found)


def _ratio_form(behavior: str | None, target: str | None, ratio: str | None) -> dict[str, Any] | None:
    if target and behavior:
        return {"probabilities": {"behavior": behavior, "target": target}}
    return {"column": {"ratio": ratio}} if ratio and not target else None


def lacking(
    columns: Columns,
    available: Collection[str],
    behavior: str | None,
    target: str | None,
    naming: Callable[[str], Word],
) -> str:
    """Return which of the two columns of a ratio are missing, what is there instead, and how to name them.

    `naming` spells how the policy's own columns are named.
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
    policies: Sequence[Policy], asked: Sequence[str] | None, baseline: float | None
) -> tuple[Policy, ...]:
    """Gives each policy its estimators: those asked for, or all that its columns allow."""
    if asked is not None and "dr-bsl" in asked and baseline is None:
        raise needs_argument(
            who="estimator 'dr-bsl'", argument=words.argument("baseline"), why=", the constant c of its guess"
        )

    def choose(policy: Policy) -> Policy:
        if asked is None:
            possible = (e for e in ESTIMATORS if e != "mc" and (e != "dr-bsl" or baseline is not None))
            return replace(policy, estimators=tuple(e for e in possible if policy.allows(e)))
        for estimator in asked:
            if not policy.allows(estimator):
                raise _missing(policy, estimator)
        return replace(policy, estimators=tuple(e for e in asked if e != "mc"))

    return tuple(choose(policy) for policy in policies)


def left_out(plan: Plan) -> list[str]:
    """Says so where a log lacks the columns for any importance weight: that is seldom meant."""
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


def _missing(policy: Policy, estimator: str) -> MissingColumnError:
    here = {"estimator": repr(estimator), "policy": repr(policy.name)}
    for need in NEEDS[estimator]:
        if need == "ratio" and policy.ratio is None:
            return estimator_lacks_column(**here, needed=policy.lacks)
        if need != "ratio" and need not in policy.models:
            column = (words.column if policy.name == TARGET else words.policy_column)(need)
            needed = phrase("a column {need}: name it with {column}", need=need, column=column)
            return estimator_lacks_column(**here, needed=needed)
    raise AssertionError(f"{estimator} of {policy.name!r} lacks nothing")
