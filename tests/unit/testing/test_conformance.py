"""The built-in fitters and generators pass the suite that a plugin's author runs."""

import offpolicy as op
import pytest
from offpolicy.testing import check_fitter, check_generator


@pytest.mark.parametrize("name", ["tabular", "kernel"])
def test_a_fitter_conforms(name):
    check_fitter(op.fitter(name))


@pytest.mark.parametrize("name", ["mixture"])
def test_a_generator_conforms(name):
    check_generator(op.generator(name))


def test_tabular_sailing_and_mountain_car_conform():
    for name in ("mountain-car", "sailing"):
        check_fitter(op.fitter("tabular"), domain=op.domain(name), accuracy=None)
