"""`frame.ope.evaluate(...)`, for Polars frames and lazy frames."""

from __future__ import annotations

from typing import Any

import polars as pl

from offpolicy.annotate import annotate
from offpolicy.check import Report, check
from offpolicy.cross_fit import cross_fit
from offpolicy.cross_fitted import CrossFit
from offpolicy.evaluate import evaluate
from offpolicy.evaluation import Evaluation
from offpolicy.improve import improve
from offpolicy.improvement import Improvement
from offpolicy.protocols import Setting


@pl.api.register_dataframe_namespace("ope")
@pl.api.register_lazyframe_namespace("ope")
class OpeNamespace:
    """Off-policy evaluation of a frame: the functions of the package with the frame as their log.

    >>> import offpolicy as op
    >>> log = op.demo_log(episodes=50)
    >>> log.lazy().ope.evaluate(discount=0.9)["dr"].value == op.evaluate(log, discount=0.9)["dr"].value
    True
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        """Keeps the frame."""
        self._frame = frame

    def evaluate(self, **options: Any) -> Evaluation:
        """`offpolicy.evaluate` of this frame."""
        return evaluate(self._frame, **options)

    def check(self, **options: Any) -> Report:
        """`offpolicy.check` of this frame."""
        return check(self._frame, **options)

    def annotate(self, **options: Any) -> Any:
        """`offpolicy.annotate` of this frame: a frame of the same kind."""
        return annotate(self._frame, **options)

    def cross_fit(self, domain: Setting | str, **options: Any) -> CrossFit:
        """`offpolicy.cross_fit` of this frame."""
        return cross_fit(self._frame, domain, **options)

    def improve(self, domain: Setting | str, **options: Any) -> Improvement:
        """`offpolicy.improve` on this frame."""
        return improve(self._frame, domain, **options)
