"""What would a new policy have earned? Off-policy value evaluation of logs of any size, with honest error bars."""

from offpolicy import starting as _starting  # isort: split

from offpolicy import namespace as _namespace
from offpolicy import policies, theory
from offpolicy._core import __version__
from offpolicy.annotate import annotate
from offpolicy.behavior import estimate_behavior
from offpolicy.bounds import Bounds
from offpolicy.categories import Categories
from offpolicy.check import Report, check
from offpolicy.columns import Columns, PolicyColumns
from offpolicy.compare import compare
from offpolicy.converters import from_d3rlpy, from_episodes, from_scope_rl
from offpolicy.cross_fit import cross_fit
from offpolicy.cross_fitted import CrossFit
from offpolicy.demo import demo_log, demo_value
from offpolicy.difference import Difference
from offpolicy.errors import (
    BadFileError,
    BadLogError,
    MemoryLimitError,
    MissingColumnError,
    OffPolicyError,
    PluginError,
    UsageError,
    WrongTypeError,
)
from offpolicy.estimate import Estimate
from offpolicy.evaluate import evaluate
from offpolicy.evaluation import Evaluation
from offpolicy.grid import Grid
from offpolicy.gym import from_gymnasium
from offpolicy.improve import improve
from offpolicy.improvement import Improvement
from offpolicy.intervals import Interval
from offpolicy.mdp_domain import from_mdp
from offpolicy.plugins import domain, fitter, generator
from offpolicy.pool import pool
from offpolicy.problem import Problem, ProblemKind
from offpolicy.protocols import Candidate, LoggedDomain
from offpolicy.verdict import Verdict

__all__ = [
    "BadFileError",
    "BadLogError",
    "Bounds",
    "Candidate",
    "Categories",
    "Columns",
    "CrossFit",
    "Difference",
    "Estimate",
    "Evaluation",
    "Grid",
    "Improvement",
    "Interval",
    "LoggedDomain",
    "MemoryLimitError",
    "MissingColumnError",
    "OffPolicyError",
    "PluginError",
    "PolicyColumns",
    "Problem",
    "ProblemKind",
    "Report",
    "UsageError",
    "Verdict",
    "WrongTypeError",
    "__version__",
    "annotate",
    "check",
    "compare",
    "cross_fit",
    "demo_log",
    "demo_value",
    "domain",
    "estimate_behavior",
    "evaluate",
    "fitter",
    "from_d3rlpy",
    "from_episodes",
    "from_gymnasium",
    "from_mdp",
    "from_scope_rl",
    "generator",
    "improve",
    "policies",
    "pool",
    "theory",
]

del _namespace, _starting
