"""The making of a plan from the columns of a log and the arguments of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offpolicy._util import words
from offpolicy._util.phrase import phrase
from offpolicy.errors.kinds.of_arguments import needs_argument
from offpolicy.errors.kinds.of_columns import column_twice
from offpolicy.errors.kinds.of_evaluation import no_value_after_one_pass
from offpolicy.evaluation.estimators import RETURNS, check_ids, describe, own_columns
from offpolicy.evaluation.memory import memory_limit
from offpolicy.evaluation.plan import Plan, Settings, choose_estimators, find_policies
from offpolicy.logs.columns import Columns, PolicyColumns


def make_plan(
    available: Sequence[str],
    columns: Columns,
    policies: Mapping[str, PolicyColumns] | None,
    settings: Settings,
    estimators: Sequence[str] | None,
) -> Plan:
    """Return the plan of what to compute from the columns that the log has."""
    if repeated := [name for name in available if available.count(name) > 1]:
        raise column_twice(what=f"more than one column {repeated[0]!r}")
    for role in ("episode", "step", "reward"):
        columns.need(role, available)
    asked = None if estimators is None else check_ids(estimators)
    found = find_policies(available, columns, policies, own_columns(asked or ()))
    chosen = choose_estimators(found, asked, settings.baseline)
    return Plan(
        columns=columns,
        settings=settings,
        terminal=columns.find("terminal", available),
        truncated=columns.find("truncated", available),
        policies=chosen,
        mc=asked is None or RETURNS in asked,
    )


def check_baseline(plan: Plan) -> None:
    """Refuse a baseline whose table over the horizon exceeds the memory, since it is made before the log is read."""
    horizon, asked = plan.settings.horizon, plan.settings.baseline is not None
    if asked and horizon is not None and plan.memory is not None and 8 * horizon > plan.memory:
        raise memory_limit(8 * horizon, plan.memory, horizon, 1)


def for_one_pass(plan: Plan, explicit: bool, remarks: list[str]) -> Plan:
    """Return the plan without estimators whose value needs a second pass, and refuse those asked for by name."""
    for estimator in dict.fromkeys(estimator for policy in plan.policies for estimator in policy.estimators):
        about = describe(estimator)
        if about.needs_baseline and plan.settings.horizon is None:
            raise needs_argument(
                who=f"estimator {estimator!r}",
                argument=words.argument("horizon"),
                why=" where the log is read once only",
            )
        if about.value_pass == 1:
            continue
        what = "the covariances that its blend is made of" if about.blended else "the values that it is made of"
        reason = phrase(
            "{what} are known after a second reading: it needs {passes}", what=what, passes=words.TWO_PASSES
        )
        if explicit:
            raise no_value_after_one_pass(estimator=repr(estimator), why=reason)
        remarks.append(phrase("{estimator} was left out: {reason}", estimator=estimator, reason=reason))
        for policy in plan.policies:
            plan = plan.without(policy.name, [estimator])
    return plan
