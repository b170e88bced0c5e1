"""What is told of the errors of runs, also where a few of them make up nearly all."""

import numpy as np
from offpolicy.experiments.errors import summary

#: Ten runs are off by 3, eleven by 1.
ERRORS = np.array([-3.0, 3.0] * 5 + [1.0] * 11)


def test_the_median_is_that_of_absolute_errors_and_ten_runs_have_their_share():
    found = summary(ERRORS, np.zeros(21))
    assert (found["median"], found["top_ten"]) == (1.0, 90 / 101)
    assert summary(ERRORS[:10], np.ones(10))["top_ten"] == 1.0
    none = summary(np.zeros(20), np.zeros(20))
    assert (none["median"], none["top_ten"]) == (0.0, None)
