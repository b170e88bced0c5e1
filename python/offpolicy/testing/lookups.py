"""Checks that `lookup_many` gives the same numbers as the other methods of values and policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from offpolicy.logs.columns import ANNOTATED
from offpolicy.protocols import Floats, LoggedRows, Policy, Question, States
from offpolicy.testing.faults import Faults
from offpolicy.testing.values import SAME, Whole

#: The roles asked for: all of them, as for one policy, and those that models answer for several policies together.
ROLES = (frozenset(ANNOTATED), frozenset({"q_hat", "v_hat"}))


def check_lookups(
    faults: Faults, values: Sequence[Any], policies: Mapping[str, Policy], states: States, actions: Whole, steps: Whole
) -> None:
    """Note faults of `lookup_many`, where it exists, for values that a model made together."""
    pairs = list(zip(values, policies.values(), strict=True))
    asked = [_asked(one, policy, states, actions, steps) for one, policy in pairs]
    for roles in ROLES:
        questions = [Question(policy, one, roles) for one, policy in pairs]
        for first_step in (0, 1):
            columns = [states[:, i].copy() for i in range(states.shape[1])]
            rows = LoggedRows(columns, actions.copy(), steps + first_step, first_step)
            answers = _answers(faults, questions, rows)
            for answer, right, name in zip(answers, asked, policies, strict=False):
                _agrees(faults, answer, right, name)
            _unchanged(faults, rows, states, actions, steps + first_step)


def _answers(faults: Faults, questions: Sequence[Question], rows: LoggedRows) -> list[dict[str, Floats]]:
    """Ask the questions in the order of `annotate`; return the answers up to the first question without one."""
    found: list[dict[str, Floats]] = []
    while len(found) < len(questions):
        waiting, answers, called = questions[len(found) :], None, False
        look_up = getattr(waiting[0].values, "lookup_many", None)
        if not callable(look_up):
            return found
        with faults.calling("lookup", "lookup_many(questions, rows)"):
            answers, called = look_up(waiting, rows), True
        if not called or not _is_answer(faults, answers, len(waiting), len(rows.step_column)):
            return found
        found += answers
    return found


def _asked(values: Any, policy: Policy, states: States, actions: Whole, steps: Whole) -> dict[str, Floats]:
    return {
        "target_prob": policy.probabilities(states, steps)[np.arange(len(actions)), actions],
        "q_hat": values.q_hat(states, actions, steps),
        "v_hat": values.v_hat(states, steps),
        "r_hat": values.r_hat(states, actions),
    }


def _is_answer(faults: Faults, answers: Any, questions: int, n: int) -> bool:
    answered = isinstance(answers, list) and 1 <= len(answers) <= questions
    right = answered and all(
        isinstance(answer, dict)
        and all(role in ANNOTATED and np.shape(column) == (n,) for role, column in answer.items())
        for answer in answers
    )
    return faults.expect(
        right,
        "lookup",
        f"lookup_many gave {f'{len(answers)} answers' if isinstance(answers, list) else type(answers).__name__} to "
        f"{questions} questions, or columns of another length than {n}",
        f"lookup_many gives a list with an answer for each question that it serves, one at least: a dictionary of {n} "
        f"numbers for some of the roles {', '.join(ANNOTATED)}",
        "leave out what cannot be looked up; [{}] is an answer too",
    )


def _agrees(faults: Faults, answer: Mapping[str, Any], right: Mapping[str, Floats], policy: str) -> None:
    for role, column in answer.items():
        off = ~np.isclose(column, right[role], **SAME)
        row = int(np.argmax(off))
        faults.expect(
            not off.any(),
            "lookup-values",
            f"lookup_many gives {role} = {column[row]} for policy {policy!r} in row {row}, and asked one by one the "
            f"model and the policy say {right[role][row]}",
            "a look-up gives the numbers of q_hat, v_hat, r_hat and probabilities; rows.steps count from 0",
            "answer for questions[i].values, not for self; take rows.steps, not rows.step_column",
        )


def _unchanged(faults: Faults, rows: LoggedRows, states: States, actions: Whole, steps: Whole) -> None:
    kept = np.array_equal(np.stack(rows.state_columns).T, states)
    faults.expect(
        kept and np.array_equal(rows.action_column, actions) and np.array_equal(rows.step_column, steps),
        "lookup-mutates",
        "lookup_many changed the columns that it was given",
        "arguments are never changed",
        "work on copies",
    )
