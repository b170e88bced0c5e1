"""An example plugin for `offpolicy`: a machine that wears out, a model of it, and policies that repair it in time.

An estimator and a confidence interval for any log are here too.
"""

from offpolicy_template.by_wear import ByWear
from offpolicy_template.capped import CappedStepIs
from offpolicy_template.chebyshev import chebyshev
from offpolicy_template.machine import Machine
from offpolicy_template.thresholds import Thresholds

__all__ = ["ByWear", "CappedStepIs", "Machine", "Thresholds", "chebyshev"]
