"""What would a new policy have earned? Off-policy value evaluation of logs of any size, with honest error bars."""

from offpolicy._util import starting as _starting  # isort: split

from offpolicy import policies, theory
from offpolicy._core import __version__
from offpolicy.annotation.annotate import annotate
from offpolicy.demo import demo_log, demo_value
from offpolicy.drivers.compare import compare
from offpolicy.drivers.cross_fit import cross_fit
from offpolicy.drivers.cross_fit_result import CrossFit
from offpolicy.drivers.improve import improve
from offpolicy.drivers.improvement import Improvement
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
from offpolicy.evaluation.bounds import Bounds
from offpolicy.evaluation.difference import Difference
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.evaluate import evaluate
from offpolicy.evaluation.result import Evaluation
from offpolicy.evaluation.verdict import Verdict
from offpolicy.extensions import namespace as _namespace
from offpolicy.extensions.plugins import domain, fitter, generator
from offpolicy.grid import Grid
from offpolicy.intervals import Interval
from offpolicy.logs.check import Report, check
from offpolicy.logs.columns import Columns, PolicyColumns
from offpolicy.logs.converters import from_d3rlpy, from_episodes, from_scope_rl
from offpolicy.logs.pool import pool
from offpolicy.logs.problem import Problem, ProblemKind
from offpolicy.models.behavior import estimate_behavior
from offpolicy.models.categories import Categories
from offpolicy.protocols import Candidate, LoggedDomain
from offpolicy.simulation.gym import from_gymnasium
from offpolicy.simulation.mdp_domain import from_mdp

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
