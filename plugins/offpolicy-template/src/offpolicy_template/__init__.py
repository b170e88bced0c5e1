"""A machine that wears out, as a domain for `offpolicy`, and policies that repair it in time."""

from offpolicy_template.machine import Machine
from offpolicy_template.thresholds import Thresholds

__all__ = ["Machine", "Thresholds"]
