"""The package's examples run."""

import doctest

import pytest
from offpolicy_mountain_car import domain, policies


@pytest.mark.parametrize("module", [domain, policies])
def test_examples_run(module):
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
