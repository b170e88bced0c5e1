"""What is told of the errors of runs, also where a few of them make up nearly all."""

from types import SimpleNamespace

import numpy as np
import pytest
from offpolicy.experiments import kdd98
from offpolicy.experiments.errors import Errors, summary

#: Ten runs are off by 3, eleven by 1.
ERRORS = np.array([-3.0, 3.0] * 5 + [1.0] * 11)


def test_the_median_is_that_of_absolute_errors_and_ten_runs_have_their_share():
    found = summary(ERRORS, np.zeros(21))
    assert (found["median"], found["top_ten"]) == (1.0, 90 / 101)
    assert summary(ERRORS[:10], np.ones(10))["top_ten"] == 1.0
    none = summary(np.zeros(20), np.zeros(20))
    assert (none["median"], none["top_ten"]) == (0.0, None)


def test_results_have_both_for_each_estimator_size_and_alpha():
    runs = [
        {
            "estimates": {"dr": [[10 + error, 10.0, 10.0, 10.0]]},
            "on_all": {},
            "two_fold_dr": [10 + 2 * error] * 4,
            "truth": [10.0] * 4,
            "truth_error": [0.0] * 4,
        }
        for error in ERRORS
    ]
    rows = Errors(SimpleNamespace(sizes=[5], total=9), runs).numbers().to_dicts()
    shown = {(row["estimator"], row["size"], row["alpha"]): (row["relative_median"], row["top_ten"]) for row in rows}
    assert shown["dr", 5, 0.0] == pytest.approx((0.1, 90 / 101))
    assert shown["dr 2-fold", 9, 0.75] == pytest.approx((0.2, 90 / 101))
    assert shown["dr", 5, 0.25] == (0.0, None)


def test_so_have_those_of_the_donations():
    runs = [
        {"estimates": {name: [10 + error] for name in kdd98.ESTIMATORS}, "truth": [10.0], "truth_error": [0.5]}
        for error in ERRORS
    ]
    for row in kdd98.numbers(SimpleNamespace(alphas=[0.5], notice="nobody's gifts"), runs).to_dicts():
        assert (row["relative_median"], row["top_ten"]) == pytest.approx((0.1, 90 / 101))
