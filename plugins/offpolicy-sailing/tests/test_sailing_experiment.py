"""Fig. 2 of the paper at a small size."""

from dataclasses import replace

import numpy as np
import pytest
from offpolicy.experiments import sailing
from offpolicy.experiments.errors import Errors
from offpolicy.experiments.splits import ALPHAS
from offpolicy.policies import Mixture


def small_experiment(**options):
    return replace(sailing.experiment(**options), train=60, total=50, sizes=(5, 30, 45))


def test_a_run_is_reproducible_and_its_truth_is_that_of_simulation():
    small = small_experiment(horizon=40)
    run = small.run(np.random.SeedSequence(3))
    assert run == small.run(np.random.SeedSequence(3))
    trained = np.random.SeedSequence(3).spawn(3)[0]
    best = small.fitter.fit(small._log(60, trained), small.domain).optimal_policy()
    for alpha, truth, error in zip(ALPHAS, run["truth"], run["truth_error"], strict=True):
        policy = Mixture(best, small.domain.behavior, alpha)
        log = small.domain.simulate(policy, 2000, seed=9)
        weighted = log["reward"].to_numpy() * 0.99 ** log["step"].to_numpy()
        returns = np.bincount(log["episode"].to_numpy(), weights=weighted)
        assert abs(returns.mean() - truth) < 4 * returns.std() / np.sqrt(len(returns))
        assert error == 0.0


def made_up_runs(scales: dict[str, float], count: int = 300) -> list[dict]:
    """Runs whose truth is -50, with errors of a given size at every split."""
    rng = np.random.default_rng(4)

    def noisy(name: str) -> list[float]:
        return (-50 + scales[name] * rng.normal(size=4)).tolist()

    names = ("step-is", "step-wis", "dr", "dr-bsl", "reg")
    return [
        {
            "estimates": {name: [noisy(name) for _ in range(3)] for name in names},
            "on_all": {name: noisy(name) for name in ("step-is", "step-wis", "dr-bsl")},
            "two_fold_dr": noisy("two-fold"),
            "truth": [-50.0] * 4,
            "truth_error": [0.0] * 4,
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ["held", "held", "held"]),
        ({"step-wis": 9.0}, ["not held", "held", "held"]),
        ({"reg": 0.5}, ["held", "not held", "held"]),
        ({"two-fold": 3.0}, ["held", "held", "not held"]),
    ],
)
def test_claims_follow_the_runs(changed, expected):
    scales = {"step-is": 9.0, "step-wis": 1.5, "dr": 2.0, "dr-bsl": 9.0, "reg": 9.0, "two-fold": 1.0} | changed
    runs = made_up_runs(scales)
    for run in runs:  # WIS loses at α = 0.75 alone
        run["on_all"]["step-wis"][3] = -50 + 4 * (run["on_all"]["step-wis"][3] + 50)
    assert [claim.verdict for claim in sailing.claims(Errors(small_experiment(), runs))] == expected
