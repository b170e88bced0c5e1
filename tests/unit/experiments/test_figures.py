"""A figure of errors where there is none to show: no error at all, or one run alone."""

import polars as pl
import pytest
from charts import Drawn
from offpolicy.experiments.figures import errors_over


def test_no_error_has_no_logarithm_and_one_run_no_bar():
    rows = [
        {"estimator": "dr", "relative_rmse": rmse, "relative_rmse_error": None, "size": size}
        for rmse, size in ((0.0, 10), (0.1, 20))
    ]
    none, one = Drawn(errors_over(pl.DataFrame(rows), "size", "n", "")).rows
    assert (none["y"], none["low"], none["high"]) == (None, None, None)
    assert (one["y"], one["low"], one["high"]) == (pytest.approx(-1.0), None, None)
