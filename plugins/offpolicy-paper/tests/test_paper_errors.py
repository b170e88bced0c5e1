"""The results of the paper's experiments have the median and the share of the largest errors."""

from types import SimpleNamespace

import numpy as np
import pytest
from offpolicy_paper import kdd98
from offpolicy_paper.errors import Errors

#: Ten runs are off by 3, eleven by 1.
ERRORS = np.array([-3.0, 3.0] * 5 + [1.0] * 11)


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
