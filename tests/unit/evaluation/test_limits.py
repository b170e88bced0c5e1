"""Arguments and structures of any size end in a number or in an error of ours, never in a crash."""

import subprocess
import sys
import textwrap

import numpy as np
import offpolicy as op
import pytest
from logs import random_log


@pytest.mark.parametrize("threads", [1025, 10**6, 2**70])
def test_more_threads_than_can_be_meant_are_refused(log, threads):
    with pytest.raises(op.UsageError, match=r"threads must be at most 1,024"):
        op.evaluate(log, threads=threads)


@pytest.mark.parametrize("rows", [2**31, 2**70])
def test_more_rows_a_batch_than_can_be_meant_are_refused(log, rows):
    with pytest.raises(op.UsageError, match=r"batch_rows must be at most 2,147,483,647"):
        op.evaluate(log.lazy(), batch_rows=rows)


def test_as_many_threads_as_are_allowed_give_the_same_numbers(log, log_file):
    expected = op.evaluate(log, threads=1).table
    for source in (log, log.lazy(), log_file):
        assert op.evaluate(source, threads=1024).table.equals(expected)


def run(code: str) -> None:
    """In a process of its own: an overflow of the stack would end this one."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_a_long_chain_of_mixtures_is_evaluated():
    run(
        """
        import sys
        sys.path.insert(0, "tests/support")
        import offpolicy as op
        import polars as pl
        from logs import random_log

        log = random_log(seed=2, episodes=12, horizon=4)
        wild = log.with_columns(target_prob=pl.when(pl.col("step") == 1).then(1e-300).otherwise("target_prob"))
        policies = {"0": op.PolicyColumns(target_prob="target_prob")}
        for number in range(1, 3000):
            policies[str(number)] = op.PolicyColumns(mixture_of=str(number - 1), alpha=1e-4)
        for each in (log, wild):
            ev = op.evaluate(each, policies=policies, estimators=["step-is"], diagnostics=False, passes=1)
            assert ev["2999", "step-is"].value is not None
        near = ev["2999", "step-is"].interval(method="likelihood", bounds=op.Bounds(reward=(-50, 50)))
        assert near.reason is None or near.low is None
        """
    )


def test_a_long_chain_of_mixed_policies_has_probabilities():
    always = op.policies.FromCallable(lambda states, step: np.tile([1.0, 0.0], (len(states), 1)))
    mixed = always
    for _ in range(3000):
        mixed = op.policies.Mixture(mixed, op.policies.Uniform(2), alpha=1e-4)
    found = mixed.probabilities(np.zeros((1, 1)), 0)
    share = (1 - 1e-4) ** 3000
    assert np.allclose(found, [[share + (1 - share) / 2, (1 - share) / 2]])


def test_estimated_behaviour_is_seen_through_mixtures():
    log = random_log(seed=2, episodes=12, horizon=4).rename({"behavior_prob": "behavior_prob_hat"})
    policies = {"a": op.PolicyColumns(target_prob="target_prob"), "b": op.PolicyColumns(mixture_of="a", alpha=0.5)}
    ev = op.evaluate(log, policies=policies, estimators=["step-is"])
    assert any("estimated" in note for note in ev.notes)
