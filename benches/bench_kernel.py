"""A kernel model of a Sailing log and the finite-horizon values of 4 policies: the heaviest part of a run."""

import importlib

import pytest


@pytest.fixture(scope="module")
def sailing():
    pytest.importorskip("offpolicy_sailing", reason="offpolicy-sailing is not installed")
    return importlib.import_module("sailing")


@pytest.fixture(scope="module")
def task(sailing, size):
    return sailing.task(250, horizon=10) if size.small else sailing.task(2500)


@pytest.mark.bar("kernel")
def test_kernel(contest, size, sailing, task, peer):
    numpy_kernel = peer("numpy_kernel")
    contest.race(
        lambda: sailing.ours(task), lambda: numpy_kernel.run(task), rows=task.log.height, rounds=size.slow_rounds
    )


@pytest.mark.bar("kernel_core")
def test_kernel_core(contest, size, sailing, task):
    contest.one_core(lambda: sailing.ours(task), rows=task.log.height, rounds=size.rounds)
