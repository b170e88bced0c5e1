"""Direct-mail donations as a domain of `offpolicy`, after Jiang & Li (2016), section 6.1.3."""

from offpolicy_kdd98.builder import trajectories
from offpolicy_kdd98.campaigns import ACTIONS, FEATURES, Campaigns
from offpolicy_kdd98.domain import Kdd98
from offpolicy_kdd98.reader import read
from offpolicy_kdd98.synthetic import synthetic_donors

__all__ = ["ACTIONS", "FEATURES", "Campaigns", "Kdd98", "read", "synthetic_donors", "trajectories"]
