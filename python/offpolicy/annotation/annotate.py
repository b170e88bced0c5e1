"""Columns that a target policy and a fitted model imply for each logged step.

    target_prob = π(a|s),    q_hat = Q̂(s, a),    v_hat = V̂(s) = Σ_a π(a|s) Q̂(s, a),    r_hat = R̂(s, a)

Q̂ and V̂ count the steps from this one to the horizon. With a domain that knows P there is also
transition_ratio = P̂(s'|s, a) / P(s'|s, a) of the state s' that followed (`offpolicy.annotation.transition_ratio`).
Each row is annotated by itself, or together with the next row if the log has no columns for the next state, so a frame,
a query and a Parquet file of any size get the same numbers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, overload

import polars as pl

from offpolicy._util import polars_calls, scalars, words
from offpolicy._util.carried import Failures
from offpolicy._util.polars_calls import naming_the_log
from offpolicy.annotation.annotated_logs import remember, tallies_of
from offpolicy.annotation.annotator import MODELLED, Annotation, Annotator
from offpolicy.annotation.transition_ratio import TransitionRatio, unknown_ratio
from offpolicy.errors import OffPolicyError
from offpolicy.errors.kinds.of_arguments import wrong_object
from offpolicy.errors.kinds.of_logs import steps_begin_elsewhere, steps_counted_from
from offpolicy.errors.kinds.of_models import into_does_not_fit, nothing_to_annotate
from offpolicy.logs.columns import WRITTEN, Columns, PolicyColumns
from offpolicy.logs.sources import open_log
from offpolicy.logs.steps import counted_from, smallest_step, steps_of
from offpolicy.logs.successors import Successors
from offpolicy.protocols import Policy, Setting, ValueModel


@overload
def annotate(
    log: pl.DataFrame,
    policy: Policy | Sequence[Policy] | None = ...,
    model: ValueModel | Sequence[ValueModel] | None = ...,
    columns: Columns | None = ...,
    into: PolicyColumns | Sequence[PolicyColumns] | None = ...,
    first_step: int | None = ...,
    threads: int | None = ...,
    domain: Setting | None = ...,
) -> pl.DataFrame: ...
@overload
def annotate(
    log: Any,
    policy: Policy | Sequence[Policy] | None = ...,
    model: ValueModel | Sequence[ValueModel] | None = ...,
    columns: Columns | None = ...,
    into: PolicyColumns | Sequence[PolicyColumns] | None = ...,
    first_step: int | None = ...,
    threads: int | None = ...,
    domain: Setting | None = ...,
) -> Any: ...
@naming_the_log
def annotate(
    log: Any,
    policy: Policy | Sequence[Policy] | None = None,
    model: ValueModel | Sequence[ValueModel] | None = None,
    columns: Columns | None = None,
    into: PolicyColumns | Sequence[PolicyColumns] | None = None,
    first_step: int | None = None,
    threads: int | None = None,
    domain: Setting | None = None,
) -> Any:
    """Add to a log the columns that a policy and a model imply; columns of the same names are replaced.

    Parameters
    ----------
    log
        Any log that `evaluate` reads. A table in memory comes back as a frame; a lazy frame, Parquet files and other
        streams come back as a lazy frame, which annotates in batches as it is read.
    policy, model
        The policy π, which gives `target_prob`, and its values, which give `q_hat`, `v_hat` and `r_hat`. One of the two
        may be left out.
    columns
        The names of the log's columns, and of those to write. States are in `Columns(state=...)`, or in the
        `state_columns` that the model or policy knows, or in all columns named `state…`.
    into
        Names of the columns to write if a log is annotated for several policies; only those named are written.
        `evaluate(policies=...)` takes the same object. A list of these, with equally long lists of policies, models or
        both, annotates for all of them at once; values that a model made together are then looked up together.
    first_step
        The number of an episode's first step, 0 or 1. By default it is the log's smallest step: the log's first row is
        read at once, and the other steps only if the step of that row is not 0.
    threads
        The largest number of threads; by default one per processor.
    domain
        The domain whose P is used for `transition_ratio`, P̂/P of each transition, which `dr-v2` needs. The column is
        written if both the domain and the model have `transition_probability`. A row for which the model has no P̂ gets
        the ratio 0 and Q̂ as its `r_hat`, so that `dr-v2` treats it as `dr` does.

    Examples
    --------
    >>> import offpolicy as op, polars as pl
    >>> log = pl.DataFrame({"episode": [0, 0], "step": [0, 1], "state": [0, 1], "action": [1, 0], "reward": [1.0, 2.0]})
    >>> domain = op.LoggedDomain(state_columns=("state",), actions=2, horizon=2, reward_range=(0.0, 2.0))
    >>> pi = op.policies.Uniform(2)
    >>> model = op.fitter("tabular", aggregate=op.Grid((2,))).fit(log, domain)
    >>> op.annotate(log, pi, model.values(pi, horizon=2, discount=1.0)).select("target_prob", "q_hat", "v_hat", "r_hat")
    shape: (2, 4)
    ┌─────────────┬───────┬───────┬───────┐
    │ target_prob ┆ q_hat ┆ v_hat ┆ r_hat │
    │ ---         ┆ ---   ┆ ---   ┆ ---   │
    │ f64         ┆ f64   ┆ f64   ┆ f64   │
    ╞═════════════╪═══════╪═══════╪═══════╡
    │ 0.5         ┆ 2.0   ┆ 1.25  ┆ 1.0   │
    │ 0.5         ┆ 2.0   ┆ 1.0   ┆ 2.0   │
    └─────────────┴───────┴───────┴───────┘
    """
    if policy is None and model is None:
        raise nothing_to_annotate()
    if columns is not None:
        scalars.instance("columns", columns, Columns, "Columns(reward=..., ...)")
    first_step = None if first_step is None else scalars.whole("first_step", first_step, 0)
    threads = scalars.threads(threads)
    source, columns = open_log(log), columns or Columns()
    annotations = _annotations(policy, model, columns, into, domain)
    asked = [one for annotation in annotations for one in (annotation.model, annotation.policy)]
    known = next((names for one in asked if (names := getattr(one, "state_columns", None))), ())
    states = columns.states(source.columns, known)
    action, step = columns.need("action", source.columns), columns.need("step", source.columns)
    episode = columns.find("episode", source.columns)
    query = source.lazy()
    if first_step is None:
        first_step = _first_step(query, step)
    if first_step not in (0, 1):
        raise steps_counted_from(found=first_step)
    inputs: list[str] = list(dict.fromkeys([*states, action, step, *([episode] if episode else [])]))
    ratio, added = None, []
    if any("transition_ratio" in annotation.outputs for annotation in annotations):
        successors = Successors.of(states, columns, query.collect_schema(), first_step)
        ratio, added = TransitionRatio(domain, successors, episode, step), successors.names
        query = query.with_columns(successors.expressions)
    threads = threads or os.cpu_count() or 1
    annotator = Annotator(annotations, states, action, step, episode, first_step, threads, ratio)
    inputs += added
    if (whole := source.in_memory) is not None:
        rows = query.select(polars_calls.exactly(inputs)).collect()
        made = whole.with_columns(annotator(rows).get_columns())
        return remember(made, *tallies_of(log), annotator.tally)

    outputs = [name for annotation in annotations for name in annotation.outputs.values()]

    failures = Failures()

    def batch(frame: pl.DataFrame, keep: object = source) -> pl.DataFrame:
        try:
            return annotator(frame)
        except OffPolicyError as error:
            raise failures.carried(error) from None

    lazy = polars_calls.add_columns(query, inputs, outputs, batch, failures.name).drop(added)
    return remember(lazy, *tallies_of(log), annotator.tally)


def _first_step(query: pl.LazyFrame, step: str) -> int:
    smallest = smallest_step(steps_of(query, step))
    if smallest is not None and smallest > 1:
        raise steps_begin_elsewhere(column=repr(step), first=f"{smallest}: give first_step=")
    return counted_from(smallest)


def _annotations(policy: Any, model: Any, columns: Columns, into: Any, domain: Setting | None) -> list[Annotation]:
    """Return one annotation per policy."""
    if into is None or isinstance(into, PolicyColumns):
        return [Annotation(policy, model, _outputs(policy, model, columns, into, domain))]
    if not isinstance(into, Sequence) or not all(isinstance(each, PolicyColumns) for each in into):
        raise wrong_object(
            argument=words.argument("into"),
            expected="PolicyColumns(...), or one for each policy",
            found=scalars.shown(into),
        )
    for name, many in (("policy", policy), ("model", model)):
        if many is not None and not isinstance(many, Sequence):
            raise into_does_not_fit(fault=f"has {len(into)} entries, so that {name}= must have as many")
    policies, models = (list(many) if many is not None else [None] * len(into) for many in (policy, model))
    if not len(into) == len(policies) == len(models):
        raise into_does_not_fit(fault=f"has {len(into)} entries, policy= {len(policies)} and model= {len(models)}")
    annotations = [
        Annotation(policy, model, _outputs(policy, model, columns, names, domain))
        for policy, model, names in zip(policies, models, into, strict=True)
    ]
    _refuse_twice([name for annotation in annotations for name in annotation.outputs.values()])
    return annotations


def _outputs(
    policy: Policy | None,
    model: ValueModel | None,
    columns: Columns,
    into: PolicyColumns | None,
    domain: Setting | None,
) -> dict[str, str]:
    """Return the names of the columns to write, by role."""
    possible = [*(["target_prob"] if policy is not None else []), *(MODELLED if model is not None else [])]
    unknown = unknown_ratio(domain, model) if model is not None else "there is no model"
    if into is None:
        possible += ["transition_ratio"] if unknown is None else []
        return {role: getattr(columns, role) for role in possible}
    wanted = {role: name for role in WRITTEN if (name := getattr(into, role)) is not None}
    if "transition_ratio" in wanted:
        if unknown is not None:
            raise into_does_not_fit(fault=f"names transition_ratio, which cannot be had: {unknown}")
        if "r_hat" not in wanted:
            raise into_does_not_fit(fault="names transition_ratio without r_hat, which belongs to it")
        possible.append("transition_ratio")
    missing = [role for role in wanted if role not in possible]
    if missing or not wanted:
        needs = "a policy=" if "target_prob" in missing else "a model="
        raise into_does_not_fit(fault=f"names {(missing[0] if missing else 'no column to write')}, which needs {needs}")
    _refuse_twice(list(wanted.values()))
    return wanted


def _refuse_twice(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise into_does_not_fit(fault=f"names a column twice: {', '.join(names)}")
