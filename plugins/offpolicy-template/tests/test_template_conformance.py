"""One line each: everything here keeps the protocols."""

from offpolicy.testing import check_domain, check_estimator, check_fitter, check_generator, check_interval
from offpolicy_template import ByWear, CappedStepIs, Machine, Thresholds, chebyshev


def test_the_machine_is_a_domain():
    check_domain(Machine())


def test_counting_by_wear_is_a_fitter():
    check_fitter(ByWear(), Machine())


def test_thresholds_are_a_generator():
    check_generator(Thresholds(), Machine())


def test_capped_step_is_is_an_estimator():
    check_estimator(CappedStepIs())


def test_chebyshev_is_an_interval():
    check_interval(chebyshev())
