"""The extra cost of one more target policy in a scan, of a mixture, and of diagnostics, beside reading the log."""

import numpy as np
import polars as pl
import pytest

SEED = 1


@pytest.fixture(scope="module")
def two_policies(log):
    """Return the log with the columns of a second policy, close to those of the first."""
    rng = np.random.default_rng(SEED)
    target = np.clip(log["target_prob"].to_numpy() + rng.uniform(-0.02, 0.02, log.height), 0.01, 1.0)
    return log.with_columns(
        target_2=pl.Series(target),
        q_2=pl.col("q_hat") * 1.01,
        v_2=pl.col("v_hat") * 1.01,
    )


@pytest.mark.bar("policy")
def test_policy(contest, size, ours, two_policies):
    first = {"first": ours.policy("target_prob", q_hat="q_hat", v_hat="v_hat")}
    both = first | {"second": ours.policy("target_2", q_hat="q_2", v_hat="v_2")}
    contest.race(
        lambda: ours.evaluate(two_policies, policies=both),
        lambda: ours.evaluate(two_policies, policies=first),
        rows=size.memory_rows,
        rounds=size.rounds,
    )


@pytest.mark.bar("mixture")
def test_mixture(contest, size, ours, log):
    estimators = ("step-is", "step-wis")
    first = {"first": ours.policy("target_prob")}
    both = first | {"mixed": ours.mixture("first", alpha=0.25)}
    contest.race(
        lambda: ours.evaluate(log, estimators, policies=both),
        lambda: ours.evaluate(log, estimators, policies=first),
        rows=size.memory_rows,
        rounds=size.rounds,
    )


@pytest.mark.bar("diagnostics")
def test_diagnostics(contest, size, ours, log):
    contest.race(
        lambda: ours.evaluate(log, diagnostics=True),
        lambda: ours.evaluate(log),
        rows=size.memory_rows,
        rounds=size.rounds,
    )
