"""The catalogue of the kinds of problems: what each means, and its remedy.

Remedies that depend on what was already done with the log are in `remedies`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProblemText:
    """A kind of problem, its meaning, and its remedy if `remedies` has none."""

    id: str
    meaning: str
    remedy: str = ""


#: Every kind of problem by its id: first those that the core finds, then those found in Python.
PROBLEMS = {
    text.id: text
    for text in (
        ProblemText(
            "not-positive",
            "The probability of a logged action under the behaviour policy is 0 or negative. An action that the policy "
            "cannot take cannot be in its log.",
            "log the probability with which the action was taken, or mend the column where it is made",
        ),
        ProblemText("above-one", "A probability is above 1."),
        ProblemText("negative", "A probability or a ratio is negative."),
        ProblemText("nan", "A value is NaN, which is no value."),
        ProblemText("null", "A value is missing."),
        ProblemText("infinite", "A value is infinite."),
        ProblemText("inexact-integer", "A whole number beyond 2^53 has no exact 64-bit float."),
        ProblemText("unsorted", "The steps of an episode do not go up by 1."),
        ProblemText("mixed-ids", "Ids of episodes are numbers in one place and texts in another."),
        ProblemText("reappears", "An episode is in the log more than once, or in several places of one file."),
        ProblemText("duplicate", "A step of an episode is there twice."),
        ProblemText("gap", "Steps of an episode are missing before this one."),
        ProblemText("first-step", "Episodes do not all start at step 0, or all at step 1."),
        ProblemText("truncated", "An episode was cut off before the horizon, so that its later rewards are unknown."),
        ProblemText("too-long", "An episode is longer than the horizon."),
        ProblemText("after-terminal", "Rows of an episode follow after the row that ends it."),
        ProblemText("not-a-mark", "A mark such as `terminal` is neither true nor false, nor 1 or 0."),
        ProblemText("empty", "The log has no row.", "check what made the log; a filter may have left nothing over"),
        ProblemText(
            "not-finite",
            "A value that a policy, a model or a fitter reads is missing, NaN or infinite.",
            "mend the column where it is made, or leave these rows out",
        ),
        ProblemText(
            "no-such-step",
            "A step comes before the first step of the log.",
            "number the steps of each episode from 0 or from 1, or give first_step=",
        ),
        ProblemText(
            "no-such-action",
            "An action is not one of those that the domain, policy or model has.",
            "code actions as 0, 1, 2, … in the order of the domain",
        ),
        ProblemText(
            "beyond-horizon",
            "A step lies beyond the horizon that the policy or model was made for.",
            "make the policy or model with a larger horizon, or filter the log to its first steps",
        ),
        ProblemText(
            "impossible-transition",
            "The domain or the model gives a logged transition the probability 0.",
            "take the domain that made the log, or a model that was fitted to it",
        ),
        ProblemText(
            "out-of-order",
            "The log has no columns of the next state, and the rows of an episode do not come one after the other.",
            "log the next states, or sort the log by episode and step",
        ),
        ProblemText("not-constant", "A column that is one for each episode, such as a cluster, changes within one."),
        ProblemText(
            "outside-grid",
            "A state lies in no cell of the grid of a model.",
            "choose a grid that holds all states",
        ),
        ProblemText(
            "no-log-probability",
            "A probability or its logarithm lies outside its range, or two have a ratio that no float can hold.",
            "mend the column where it is made, or take densities as such",
        ),
    )
}
