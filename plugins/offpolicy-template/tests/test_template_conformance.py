"""One line each: everything here keeps the protocols."""

from offpolicy.testing import check_domain, check_fitter, check_generator
from offpolicy_template import ByWear, Machine, Thresholds


def test_the_machine_is_a_domain():
    check_domain(Machine())


def test_counting_by_wear_is_a_fitter():
    check_fitter(ByWear(), Machine())


def test_thresholds_are_a_generator():
    check_generator(Thresholds(), Machine())
