"""The namespace `ope` of Polars frames and lazy frames, such as `frame.ope.evaluate(...)`."""

from __future__ import annotations

from typing import Any

import polars as pl

from offpolicy.annotation.annotate import annotate
from offpolicy.drivers.cross_fit import cross_fit
from offpolicy.drivers.cross_fit_result import CrossFit
from offpolicy.drivers.improve import improve
from offpolicy.drivers.improvement import Improvement
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.evaluation.result import Evaluation
from offpolicy.logs.check import Report, check
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
        """Keep the frame."""
        self._frame = frame

    def evaluate(self, **options: Any) -> Evaluation:
        """Call `offpolicy.evaluation.evaluate` on this frame."""
        return evaluate(self._frame, **options)

    def check(self, **options: Any) -> Report:
        """Call `offpolicy.logs.check` on this frame."""
        return check(self._frame, **options)

    def annotate(self, **options: Any) -> Any:
        """Call `offpolicy.annotation.annotate` on this frame, which returns a frame of the same kind."""
        return annotate(self._frame, **options)

    def cross_fit(self, domain: Setting | str, **options: Any) -> CrossFit:
        """Call `offpolicy.drivers.cross_fit` on this frame."""
        return cross_fit(self._frame, domain, **options)

    def improve(self, domain: Setting | str, **options: Any) -> Improvement:
        """Call `offpolicy.drivers.improve` on this frame."""
        return improve(self._frame, domain, **options)
