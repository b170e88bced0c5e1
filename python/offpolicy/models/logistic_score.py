"""The score of a logistic model of π0, divided by the root of its information:

    s_t = M^{−1/2} ((1{a_t = k} − π̂0(k|x_t)) x_t)_{k = 1, …, K−1},    x_t: the state, and 1 for the intercept
    M = (Σ_t (diag π̂0 − π̂0 π̂0ᵀ) ⊗ x_t x_tᵀ + Λ) / episodes

There are K actions, the first of which has no coefficients, and Λ is the second derivative of scikit-learn's penalty,
(1/C)‖β‖²/2 without the intercept. An episode's score then has the variance 1 in every coordinate, and to first order it
moves the coefficients by M^{−1/2} Σ_t s_t / episodes. Regularised fits are also pulled towards equal probabilities, and
standard errors do not include this bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from offpolicy.protocols import Actions, Floats, States

#: The largest number of coefficients, and so of entries per step.
MOST_PARAMETERS = 100
#: Directions with less information than this fraction of the largest are treated as having none.
TOLERANCE = 1e-10

Probabilities = Callable[[States, NDArray[np.int64]], Floats]


@dataclass(frozen=True, eq=False)
class LogisticScore:
    """The classes of the model, its probabilities by fold, and M^{−1/2}, (parameters, coefficients)."""

    classes: NDArray[np.int64]
    intercept: bool
    probabilities: Probabilities
    root: Floats

    @classmethod
    def of_fit(
        cls,
        classifiers: Sequence[Any],
        probabilities: Probabilities,
        states: States,
        fold: NDArray[np.int64],
        episodes: int,
    ) -> LogisticScore | None:
        """Return the score of fitted classifiers, or None if they are not maximum likelihood logistic models."""
        first = classifiers[0]
        if not all(map(_is_logistic, classifiers)):
            return None
        classes = np.asarray(first.classes_, dtype=np.int64)
        if any(not np.array_equal(each.classes_, classes) for each in classifiers):
            return None
        x = _features(states, first.fit_intercept)
        k, d = len(classes) - 1, x.shape[1]
        if k * d > MOST_PARAMETERS:
            return None
        pi = probabilities(states, fold)[:, classes[1:]]
        information = np.empty((k, d, k, d))
        for i in range(k):
            for j in range(k):
                weight = pi[:, i] * ((i == j) - pi[:, j])
                information[i, :, j] = x.T @ (x * weight[:, None])
        whole = information.reshape(k * d, k * d) + _penalty(first, k, d)
        return cls(classes, first.fit_intercept, probabilities, _inverse_root(whole / episodes))

    @property
    def field(self) -> tuple[str, Any]:
        """The name and the type of the column's entry for a step."""
        return "score", pl.Array(pl.Float64, len(self.root))

    def of(self, states: States, chosen: Actions, fold: NDArray[np.int64]) -> Floats:
        """Return s_t of these steps, (n, parameters)."""
        rest = (chosen[:, None] == self.classes[1:]) - self.probabilities(states, fold)[:, self.classes[1:]]
        x = _features(states, self.intercept)
        raw = (rest[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return np.stack([(raw * row).sum(axis=1) for row in self.root], axis=1)


def _is_logistic(classifier: Any) -> bool:
    """Return whether it is scikit-learn's, fitted with equal weights of steps and a quadratic penalty or none."""
    if "LogisticRegression" not in [kind.__name__ for kind in type(classifier).__mro__]:
        return False
    several = len(classifier.classes_) > 2
    apart = getattr(classifier, "multi_class", None) == "ovr" or classifier.solver == "liblinear"
    quadratic = getattr(classifier, "penalty", None) not in ("l1", "elasticnet") and not classifier.l1_ratio
    return quadratic and classifier.class_weight is None and not (several and apart) and not hasattr(classifier, "C_")


def _features(states: States, intercept: bool) -> Floats:
    x = states.astype(np.float64)
    return np.hstack([np.ones((len(x), 1)), x]) if intercept else x


def _penalty(classifier: Any, k: int, d: int) -> Floats:
    """Return Λ. With several classes the penalty acts on the distances of their coefficients from their mean."""
    strength = 0.0 if getattr(classifier, "penalty", "l2") is None else 1 / classifier.C
    each = np.eye(k) if k == 1 else np.eye(k) - 1 / (k + 1)
    drawn = np.eye(d)
    if classifier.fit_intercept:
        drawn[0, 0] = 0.0
    return np.asarray(strength * np.kron(each, drawn), dtype=np.float64)


def _inverse_root(matrix: Floats) -> Floats:
    """Return A with A M Aᵀ = 1 for the directions in which M has information, independent of the state's units."""
    known = np.diag(matrix) > 0
    scale = np.sqrt(np.where(known, np.diag(matrix), 1.0))
    value, vector = np.linalg.eigh(matrix / np.outer(scale, scale))
    kept = value > TOLERANCE * max(value[-1], 0.0)
    found: Floats = (vector[:, kept] / np.sqrt(value[kept])).T / scale
    return found
