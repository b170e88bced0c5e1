"""The theory of Jiang & Li (2016) as code: exact values, variances, biases and bounds of tabular MDPs given as arrays.

Nothing is sampled. All variances are for a single trajectory; an estimate from n trajectories has 1/n of this variance.
Arrays of floats give floats; with an MDP given in `fractions.Fraction` all results are Fractions, without rounding.
"""

from offpolicy.theory.cramer_rao import cramer_rao_dag, cramer_rao_tree
from offpolicy.theory.dr import dr_bsl_variance, dr_variance, step_is_variance
from offpolicy.theory.dr_v2 import dr_v2_bias, dr_v2_bias_bound
from offpolicy.theory.efficiency_table import efficiency
from offpolicy.theory.mdp import MDP
from offpolicy.theory.rewards import Rewards
from offpolicy.theory.step_wis import step_wis_variance
from offpolicy.theory.structure import structure_of
from offpolicy.theory.support import missing_support, step_is_bias, step_is_bias_bound
from offpolicy.theory.trajectory_is import is_variance, wis_variance
from offpolicy.theory.unroll import Unrolled, unroll_dag, unroll_tree
from offpolicy.theory.values import q_values, value
from offpolicy.theory.wdr import wdr_variance

__all__ = [
    "MDP",
    "Rewards",
    "Unrolled",
    "cramer_rao_dag",
    "cramer_rao_tree",
    "dr_bsl_variance",
    "dr_v2_bias",
    "dr_v2_bias_bound",
    "dr_variance",
    "efficiency",
    "is_variance",
    "missing_support",
    "q_values",
    "step_is_bias",
    "step_is_bias_bound",
    "step_is_variance",
    "step_wis_variance",
    "structure_of",
    "unroll_dag",
    "unroll_tree",
    "value",
    "wdr_variance",
    "wis_variance",
]
