"""The behaviour policy, estimated from a log that has no propensities.

    π̂0(a|s) = (N(s, a) + α) / Σ_b (N(s, b) + α)    b: the legal actions

N(s, a) is the count in the cell of s, or n times the probability given by a classifier that was fitted to n steps. For
the steps of an episode, N counts only the other folds of episodes (`offpolicy.folds`), so that no estimate depends on
the row to which it applies. An action of the episode may be absent from the other folds; α > 0 keeps its probability
above 0, and pulls all probabilities towards equal ones, the more so the fewer steps there are.

A second column has what `evaluate` needs for standard errors that account for the estimation
(`offpolicy.evaluation.propensity_score`): the cell of the step for counts, and the score
(`offpolicy.models.logistic_score`) for scikit-learn's `LogisticRegression`.

Estimated propensities make weights less noisy, and biased: Hanna, Niekum & Stone, "Importance sampling policy
evaluation with an estimated behavior policy" (ICML 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy._util import words
from offpolicy._util.polars_calls import naming_the_log
from offpolicy._util.scalars import at_least_0, instance, shown, whole
from offpolicy._util.visible import visible
from offpolicy.errors.kinds.of_arguments import wrong_object
from offpolicy.errors.kinds.of_models import classifier_failed, illegal_action, no_grid, one_fold_has_all
from offpolicy.folds import MOST_FOLDS, fold_of
from offpolicy.grid import Grid, check_table
from offpolicy.logs.columns import ESTIMATED, SCORE, Columns
from offpolicy.logs.sources import open_log
from offpolicy.logs.transitions import Transitions, transitions
from offpolicy.models.logistic_score import LogisticScore
from offpolicy.policies import FromClassifier
from offpolicy.protocols import Actions, Floats, Setting, States

Folds: TypeAlias = NDArray[np.int64]
FoldOf: TypeAlias = Callable[[pl.Series], Folds]


@overload
def estimate_behavior(
    log: pl.DataFrame,
    domain: Setting,
    *,
    classifier: Any = ...,
    aggregate: Grid | None = ...,
    folds: int = ...,
    smoothing: float = ...,
    seed: int = ...,
    columns: Columns | None = ...,
) -> pl.DataFrame: ...
@overload
def estimate_behavior(
    log: Any,
    domain: Setting,
    *,
    classifier: Any = ...,
    aggregate: Grid | None = ...,
    folds: int = ...,
    smoothing: float = ...,
    seed: int = ...,
    columns: Columns | None = ...,
) -> Any: ...
@naming_the_log
def estimate_behavior(
    log: Any,
    domain: Setting,
    *,
    classifier: Any = None,
    aggregate: Grid | None = None,
    folds: int = 2,
    smoothing: float = 1.0,
    seed: int = 0,
    columns: Columns | None = None,
) -> Any:
    """Add a column `behavior_prob_hat`, which `evaluate` uses, with a note, if the log has no `behavior_prob`.

    For counts and for scikit-learn's `LogisticRegression` a column `behavior_score` is added too. With it the standard
    errors of `evaluate` account for the estimation; without it they take the probabilities as known.

    Parameters
    ----------
    log
        Any log that `evaluate` reads. A frame in memory gives a frame; any other log is counted in batches, in bounded
        memory, and gives a lazy frame.
    domain
        The domain of the log; `op.LoggedDomain` if there is no simulator.
    classifier
        Any classifier with scikit-learn's `fit` and `predict_proba`, fitted to the columns of the state; it is copied
        for each fold, and the states of the log are kept in memory. By default steps are counted in cells.
    aggregate
        The cells in which to count; by default the domain's `grid`.
    folds
        The number of parts into which the episodes are divided. With 1, each estimate uses the whole log.
    smoothing
        The number α that is added to the count of each legal action. With 0 an action may get the probability 0, for
        which `evaluate` raises an error.
    seed
        The seed by which episodes are assigned to folds.
    columns
        The names of the log's columns.

    Examples
    --------
    >>> import offpolicy as op
    >>> from offpolicy.testing import Walk
    >>> walk = Walk()
    >>> log = walk.simulate(walk.behavior, n=1000, seed=0)
    >>> found = op.estimate_behavior(log.drop("behavior_prob"), walk)
    >>> bool((found["behavior_prob_hat"] - log["behavior_prob"]).abs().max() < 0.05)
    True
    >>> op.evaluate(found.with_columns(target_prob=0.5)).notes
    ["...(column 'behavior_prob_hat'): standard errors account for the estimation (counts in 5 cells), ..."]
    """
    folds, seed = whole("folds", folds, 1, limit=MOST_FOLDS), whole("seed", seed)
    if columns is not None:
        instance("columns", columns, Columns, "Columns(reward=..., ...)")
    if aggregate is not None:
        instance("aggregate", aggregate, Grid, "op.Grid(...)")
    if classifier is not None and not callable(getattr(classifier, "fit", None)):
        raise wrong_object(
            argument=words.argument("classifier"),
            expected="an object with fit and predict_proba",
            found=shown(classifier),
        )
    smoothing = at_least_0("smoothing", smoothing)
    source = open_log(log)
    query = source.as_polars()
    made = behavior_columns(
        query,
        domain,
        partial(fold_of, folds=folds, seed=seed),
        folds,
        classifier=classifier,
        aggregate=aggregate,
        smoothing=smoothing,
        columns=columns,
        keep=source,
    )
    return query.drop(SCORE, strict=False).with_columns(made)


def behavior_columns(
    log: pl.DataFrame | pl.LazyFrame,
    domain: Setting,
    part_of: FoldOf,
    folds: int,
    *,
    classifier: Any = None,
    aggregate: Grid | None = None,
    smoothing: float = 1.0,
    columns: Columns | None = None,
    keep: object = None,
) -> list[pl.Expr]:
    """Return expressions for `behavior_prob_hat` and, if known, `behavior_score`, for the log or any part of it.

    `part_of` gives the fold of every id. The expressions keep `keep` alive, such as the owner of a temporary file.
    """
    columns, available = columns or Columns(), open_log(log).columns
    states = list(columns.states(available, domain.state_columns))
    episode, action = (columns.need(role, available) for role in ("episode", "action"))
    estimate, episodes = estimate_of(
        log, domain, part_of, folds, classifier=classifier, aggregate=aggregate, columns=columns
    )
    inputs = pl.struct(list(dict.fromkeys([episode, action, *states])))

    def read(rows: pl.Series) -> tuple[States, Actions, Folds]:
        frame = rows.struct.unnest()
        matrix = np.stack([frame[name].to_numpy() for name in states], axis=1)
        return matrix, frame[action].to_numpy().astype(np.int64), part_of(frame[episode])

    def probabilities(rows: pl.Series, kept: object = keep) -> pl.Series:
        matrix, chosen, fold = read(rows)
        found = _smoothed(estimate.seen(matrix, fold), domain.legal(matrix), chosen, smoothing)
        return pl.Series(ESTIMATED, found, dtype=pl.Float64)

    def expression(of: Callable[[pl.Series], pl.Series], dtype: Any, name: str) -> pl.Expr:
        return inputs.map_batches(of, return_dtype=dtype, is_elementwise=True).alias(name)

    made = [expression(probabilities, pl.Float64, ESTIMATED)]
    score = estimate.score
    if score is not None:
        (name, dtype), total = score.field, int(episodes.sum())
        others = episodes if folds == 1 else total - episodes
        schema = {"fold": pl.Int64, "others": pl.Int64, "total": pl.Int64, name: dtype}

        def scores(rows: pl.Series, kept: object = keep) -> pl.Series:
            matrix, chosen, fold = read(rows)
            fit = {"fold": fold, "others": others[fold], "total": np.full(len(fold), total)}
            return pl.DataFrame(fit | {name: score.of(matrix, chosen, fold)}, schema).to_struct(SCORE)

        made.append(expression(scores, pl.Struct(schema), SCORE))
    return made


def estimate_of(
    log: Any,
    domain: Setting,
    part_of: FoldOf,
    folds: int,
    *,
    classifier: Any = None,
    aggregate: Grid | None = None,
    columns: Columns | None = None,
) -> tuple[BehaviorEstimate, Folds]:
    """Return the estimate of each fold from the others, and the number of episodes of each fold."""
    episodes = np.zeros(folds, dtype=np.int64)
    batches = _folded(transitions(log, domain, columns), domain, part_of, episodes)
    if classifier is None:
        return _CellCounts.count(batches, _cells(aggregate, domain), domain.actions, folds), episodes
    return _Classifiers.fit(batches, classifier, domain.actions, episodes), episodes


def _smoothed(seen: Floats, legal: NDArray[np.bool_], chosen: Actions, smoothing: float) -> Floats:
    """Return π̂0 of the chosen actions, or 0 where there are no counts and no smoothing."""
    weights = np.where(legal, seen + smoothing, 0.0)
    total = weights.sum(axis=1)
    found: Floats = np.divide(weights[np.arange(len(chosen)), chosen], total, out=np.zeros(len(total)), where=total > 0)
    return found


def _cells(aggregate: Grid | None, domain: Setting) -> Grid:
    cells: Grid | None = getattr(domain, "grid", None) if aggregate is None else aggregate
    if cells is None:
        raise no_grid(name=repr(domain.name), why=" to count in", how="aggregate=, an offpolicy.Grid, or a classifier=")
    return cells


def _folded(
    batches: Iterator[Transitions], domain: Setting, part_of: FoldOf, episodes: Folds
) -> Iterator[tuple[Transitions, Folds]]:
    """Yield batches with the fold of each row; raise an error for illegal actions and for folds without others.

    The episodes of each fold are counted in `episodes`.
    """
    folds = len(episodes)
    rows = np.zeros(folds, dtype=np.int64)
    for batch in batches:
        legal = domain.legal(batch.states)[np.arange(len(batch.actions)), batch.actions]
        if not legal.all():
            row = int(np.argmin(legal))
            where = f"episode {visible(str(batch.episodes[row]))}, step {batch.steps[row]}"
            raise illegal_action(where=where, action=batch.actions[row], state=batch.states[row])
        fold = part_of(batch.episodes)
        rows += np.bincount(fold, minlength=folds)
        episodes += np.bincount(fold[batch.steps == 0], minlength=folds)
        yield batch, fold
    if folds > 1 and (rows == rows.sum()).any():
        raise one_fold_has_all(
            what=f"{rows.sum()} steps are in",
            folds=folds,
            do="estimate from",
            how="a log of so few episodes needs folds=1",
        )


class _Score(Protocol):
    @property
    def field(self) -> tuple[str, Any]:
        """The name and the type of the column's entry for a step."""
        ...

    def of(self, states: States, chosen: Actions, fold: Folds) -> NDArray[Any]:
        """Return the column's entries for these steps."""
        ...


class BehaviorEstimate(Protocol):
    """Counts or fitted probabilities from which π̂0 is made."""

    def seen(self, states: States, fold: Folds) -> Floats:
        """Return the actual or expected count of each action in other folds, (n, actions)."""
        ...

    @property
    def score(self) -> _Score | None:
        """The score that standard errors need to account for the estimation, or None if it is unknown."""
        ...


@dataclass(frozen=True, eq=False)
class _CellCounts:
    """Counts of other folds, (folds, cells, actions)."""

    cells: Grid
    others: NDArray[np.int64]
    field = ("cell", pl.Int64)

    @classmethod
    def count(cls, batches: Iterator[tuple[Transitions, Folds]], cells: Grid, actions: int, folds: int) -> _CellCounts:
        """Count in one pass over the log."""
        check_table(cells, actions, tables=2 * folds)
        shape = (folds, cells.cells, actions)
        counts = np.zeros(int(np.prod(shape)), dtype=np.int64)
        for batch, fold in batches:
            index = np.ravel_multi_index((fold, cells.index(batch.states), batch.actions), shape)
            counts += np.bincount(index, minlength=len(counts))
        each = counts.reshape(shape)
        return cls(cells, each if folds == 1 else each.sum(axis=0) - each)

    def seen(self, states: States, fold: Folds) -> Floats:
        found: Floats = self.others[fold, self.cells.index(states)].astype(float)
        return found

    @property
    def score(self) -> _Score:
        return self

    def of(self, states: States, chosen: Actions, fold: Folds) -> NDArray[Any]:
        return np.asarray(self.cells.index(states), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Classifiers:
    """One classifier per fold, fitted to the other folds; `rows` has the number of steps it was fitted to."""

    policies: list[FromClassifier]
    rows: list[int]
    score: LogisticScore | None = None

    @classmethod
    def fit(
        cls, batches: Iterator[tuple[Transitions, Folds]], classifier: Any, actions: int, episodes: Folds
    ) -> _Classifiers:
        """Read all states, then fit; after reading, `episodes` holds the number of episodes of each fold."""
        folds = len(episodes)
        read = [(batch.states, batch.actions, fold) for batch, fold in batches]
        states, chosen, fold = (np.concatenate(part) for part in zip(*read, strict=True))
        policies, rows = [], []
        for f in range(folds):
            others = fold != f if folds > 1 else np.ones(len(fold), dtype=bool)
            copy = deepcopy(classifier)
            try:
                copy.fit(states[others], chosen[others])
            except ValueError as error:
                raise classifier_failed(steps=others.sum(), error=error) from error
            policies.append(FromClassifier(copy, actions))
            rows.append(int(others.sum()))
        fitted = cls(policies, rows)
        classifiers = [policy.classifier for policy in policies]
        score = LogisticScore.of_fit(classifiers, fitted.probabilities, states, fold, int(episodes.sum()))
        return replace(fitted, score=score)

    def seen(self, states: States, fold: Folds) -> Floats:
        found: Floats = self.probabilities(states, fold) * np.array(self.rows, dtype=float)[fold, None]
        return found

    def probabilities(self, states: States, fold: Folds) -> Floats:
        """Return the probabilities from the classifier of each row's fold."""
        found = np.zeros((len(states), self.policies[0].actions))
        for f, policy in enumerate(self.policies):
            mine = fold == f
            found[mine] = policy.probabilities(states[mine], 0)
        return found
