"""An example plugin for `offpolicy`: a machine that wears out, a model of it, and policies that repair it in time."""

from offpolicy_template.by_wear import ByWear
from offpolicy_template.machine import Machine
from offpolicy_template.thresholds import Thresholds

__all__ = ["ByWear", "Machine", "Thresholds"]
