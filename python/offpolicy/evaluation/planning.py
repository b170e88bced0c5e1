"""From what a log has, and what was asked for, to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offpolicy.errors import MemoryLimitError, UsageError
from offpolicy.evaluation.estimators import BLENDED, check_ids
from offpolicy.evaluation.plan import Plan, Settings, choose_estimators, find_policies
from offpolicy.logs.columns import Columns, PolicyColumns


def make_plan(
    available: Sequence[str],
    columns: Columns,
    policies: Mapping[str, PolicyColumns] | None,
    settings: Settings,
    estimators: Sequence[str] | None,
) -> Plan:
    """What to compute, given what the log has."""
    if repeated := [name for name in available if available.count(name) > 1]:
        raise UsageError(f"the log has more than one column {repeated[0]!r}")
    for role in ("episode", "step", "reward"):
        columns.need(role, available)
    asked = None if estimators is None else check_ids(estimators)
    chosen = choose_estimators(find_policies(available, columns, policies), asked, settings.baseline)
    return Plan(
        columns=columns,
        settings=settings,
        terminal=columns.find("terminal", available),
        truncated=columns.find("truncated", available),
        policies=chosen,
        mc=asked is None or "mc" in asked,
    )


def check_baseline(plan: Plan) -> None:
    """Refuse a table over the horizon that memory does not hold: `dr-bsl` makes it before the log is read."""
    horizon, asked = plan.settings.horizon, plan.settings.baseline is not None
    if asked and horizon is not None and plan.memory is not None and 8 * horizon > plan.memory:
        raise MemoryLimitError(8 * horizon, plan.memory, horizon, 1)


def for_one_pass(plan: Plan, explicit: bool, remarks: list[str]) -> Plan:
    """Without what cannot be had of a single reading; what was asked for by name is refused."""
    asked = {estimator for policy in plan.policies for estimator in policy.estimators}
    if plan.settings.horizon is None and "dr-bsl" in asked:
        raise UsageError("estimator 'dr-bsl' needs horizon= where the log is read once only")
    if not asked & BLENDED:
        return plan
    reason = "the covariances that its blend is made of are known after a second reading: it needs passes=2"
    if explicit:
        raise UsageError(f"estimator 'magic' has no value after one reading: {reason}")
    remarks.append(f"magic was left out: {reason}")
    for policy in plan.policies:
        plan = plan.without(policy.name, BLENDED)
    return plan
