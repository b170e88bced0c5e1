"""The conformance suite for authors of plugins: one line in a test finds everything that breaks a protocol.

>>> from offpolicy.testing import Walk, check_domain
>>> check_domain(Walk())
"""

from offpolicy.testing.domains import check_domain
from offpolicy.testing.estimators import check_estimator
from offpolicy.testing.faults import ConformanceError, Fault
from offpolicy.testing.fitters import check_fitter
from offpolicy.testing.generators import check_generator
from offpolicy.testing.interval_methods import check_interval
from offpolicy.testing.walk import Walk

__all__ = [
    "ConformanceError",
    "Fault",
    "Walk",
    "check_domain",
    "check_estimator",
    "check_fitter",
    "check_generator",
    "check_interval",
]
