from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Diagnosis",
    "DifferenceOutcome",
    "EstimateOutcome",
    "EstimatorInfo",
    "FoundKind",
    "FoundProblem",
    "FoundProblems",
    "Job",
    "KernelModel",
    "Leader",
    "Marginals",
    "Merger",
    "Normalisers",
    "Number",
    "Outcome",
    "Partial",
    "Pass",
    "PolicySpec",
    "Rows",
    "Spec",
    "TabularModel",
    "Transitions",
    "WeightsOutcome",
    "Whole",
    "__version__",
    "check_parquet",
    "check_unchanged",
    "estimators",
    "grid_cells",
    "kernel_smooth",
    "nearest",
    "parquet_info",
    "parquet_rows",
    "parquet_units",
    "scan_parquet",
    "scan_stream",
    "scan_table",
    "spool",
    "student_t_quantile",
    "tabular_lookup",
    "travelled_job",
]

__version__: str

@final
class EstimatorInfo:
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def equation(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def needs(self) -> list[str]: ...
    @property
    def reads(self) -> list[str]: ...
    @property
    def uses_weights(self) -> bool: ...
    @property
    def passes(self) -> int: ...
    @property
    def value_pass(self) -> int: ...
    @property
    def unbiased(self) -> str: ...
    @property
    def weighted(self) -> bool: ...
    @property
    def blended(self) -> bool: ...
    @property
    def shrinks(self) -> bool: ...
    @property
    def weights_returns(self) -> bool: ...
    @property
    def of_behavior(self) -> bool: ...
    @property
    def needs_baseline(self) -> bool: ...
    @property
    def corrects_first_value(self) -> bool: ...
    @property
    def model(self) -> str: ...
    @property
    def without_control(self) -> str | None: ...
    @property
    def with_baseline(self) -> str | None: ...
    @property
    def range(self) -> str: ...
    @property
    def step_sums(self) -> list[str]: ...
    @property
    def only_when_asked(self) -> bool: ...

def estimators() -> list[EstimatorInfo]: ...

@final
class Pass:
    """How often the log has been read before, and what is kept of this reading."""

    FIRST: ClassVar[Pass]
    SECOND: ClassVar[Pass]
    VALUES: ClassVar[Pass]
    INFLUENCE: ClassVar[Pass]
    @property
    def name(self) -> str: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class PolicySpec:
    """A policy: what to estimate of it, and the names of its columns.

    Its ratio is `(π0, π1)` of `probabilities`, a column `ratio`, `(policy, α)` of a `mixture`, or 1.
    """

    def __new__(
        cls,
        name: str,
        estimators: Sequence[str],
        *,
        probabilities: tuple[str, str] | None = None,
        ratio: str | None = None,
        mixture: tuple[str, float] | None = None,
        q_hat: str | None = None,
        v_hat: str | None = None,
        r_hat: str | None = None,
        transition_ratio: str | None = None,
    ) -> Self: ...

@final
class Spec:
    """All that a scan reads and computes, checked when it is made.

    The first policy is the behaviour policy. `extra` names columns that are checked beyond those used, and their roles.
    """

    def __new__(
        cls,
        *,
        episode: str,
        step: str,
        reward: str,
        policies: Sequence[PolicySpec],
        discount: float = 1.0,
        horizon: int | None = None,
        baseline: float | None = None,
        density: bool = False,
        terminal: str | None = None,
        truncated: str | None = None,
        truncated_as_terminal: bool = False,
        problem_limit: int = 100,
        check_only: bool = False,
        diagnostics: bool = False,
        paired: bool = False,
        extra: Sequence[tuple[str, str]] = ...,
        crossing: Sequence[int | str] = ...,
        first_step: int | None = None,
        memory: int | None = None,
    ) -> Self: ...
    @property
    def names(self) -> list[str]: ...

@final
class Normalisers:
    """What the first pass found that later ones read."""

@final
class Job:
    """One pass of a plan, shared by all that read the log for it; it can be sent to another process."""

    def __new__(cls, spec: Spec, pass_: Pass, normalisers: Normalisers | None = None) -> Self: ...
    def __reduce__(self) -> tuple[Callable[..., Job], tuple[str, str, bytes | None]]: ...

def travelled_job(plan: str, pass_: str, normalisers: bytes | None) -> Job: ...

@final
class Partial:
    def encode(self) -> bytes: ...

@final
class Merger:
    def __new__(cls, job: Job) -> Self: ...
    def add(self, partial: Partial) -> list[tuple[int, int, int, int]]: ...
    def add_state(self, state: bytes) -> list[tuple[int, int, int, int]]: ...
    def finish(self) -> Whole: ...

@final
class Whole:
    """What all parts of a log add up to."""

    @property
    def episodes(self) -> int: ...
    @property
    def content(self) -> tuple[int, int, list[tuple[str, int]]]: ...
    @property
    def truncated(self) -> int: ...
    @property
    def shortest_truncated(self) -> int | None: ...
    @property
    def needs_second_pass(self) -> bool: ...
    @property
    def without_weight(self) -> tuple[str, int] | None: ...
    @property
    def normalisers(self) -> Normalisers: ...
    def problems(self) -> FoundProblems: ...
    def crossing(self) -> tuple[list[int | str], int | None] | None: ...
    def too_large(self, threads: int) -> tuple[int, int] | None: ...
    def outcome(self, second: Whole | None = None) -> Outcome: ...
    def values(self, policy: int) -> tuple[list[Any], list[float | None]]: ...

@final
class FoundProblem:
    """One problem; `row` is None if the row is not known, `source` if the problem is that of the whole log."""

    @property
    def kind(self) -> str: ...
    @property
    def source(self) -> int | None: ...
    @property
    def row(self) -> int | None: ...
    @property
    def episode(self) -> int | str | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def column(self) -> str | None: ...
    @property
    def value(self) -> str | None: ...
    @property
    def message(self) -> str: ...

@final
class FoundKind:
    """The problems of one kind: how many, in how many rows and episodes, and the first of them."""

    @property
    def kind(self) -> str: ...
    @property
    def problems(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def episodes(self) -> int: ...
    @property
    def or_more(self) -> bool: ...
    @property
    def examples(self) -> list[FoundProblem]: ...

@final
class FoundProblems:
    """The first problems of a log, how many there are in all, and a summary of each kind."""

    @property
    def kept(self) -> list[FoundProblem]: ...
    @property
    def found(self) -> int: ...
    @property
    def kinds(self) -> list[FoundKind]: ...

@final
class Number:
    """A number that f64 may not hold: then `value` is None, and `log10` is that of its magnitude."""

    @property
    def value(self) -> float | None: ...
    @property
    def log10(self) -> float | None: ...

@final
class Outcome:
    """All that an evaluation found; `lengths` counts episodes by length, `weights` has a row for each policy."""

    @property
    def episodes(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def horizon(self) -> int: ...
    @property
    def lengths(self) -> list[tuple[int, int]]: ...
    @property
    def estimates(self) -> list[EstimateOutcome]: ...
    @property
    def weights(self) -> list[WeightsOutcome]: ...

@final
class EstimateOutcome:
    """The value of one estimator of one policy, which is an index.

    `extremes` are the least and the largest value of a trajectory, `concentration` is the largest share of one in the
    variance, and `blend` has numbers of steps and their shares in `magic`.
    """

    @property
    def policy(self) -> int: ...
    @property
    def estimator(self) -> str: ...
    @property
    def value(self) -> Number: ...
    @property
    def std_error(self) -> Number | None: ...
    @property
    def extremes(self) -> tuple[float, float] | None: ...
    @property
    def concentration(self) -> float | None: ...
    @property
    def skewness(self) -> float | None: ...
    @property
    def difference(self) -> DifferenceOutcome | None: ...
    @property
    def blend(self) -> list[tuple[int, float]] | None: ...

@final
class DifferenceOutcome:
    """An estimate less the mean return."""

    @property
    def value(self) -> Number: ...
    @property
    def std_error(self) -> Number | None: ...
    @property
    def extremes(self) -> tuple[float, float] | None: ...
    @property
    def concentration(self) -> float | None: ...

@final
class WeightsOutcome:
    """What is known of a policy's final weights; `dead_from` is the first step at which all are zero."""

    @property
    def ess(self) -> float: ...
    @property
    def largest_share(self) -> float: ...
    @property
    def mean(self) -> float | None: ...
    @property
    def dead_from(self) -> int | None: ...
    @property
    def diagnosis(self) -> Diagnosis | None: ...

@final
class Diagnosis:
    """Whether a policy's weights can be trusted.

    The first four are by step, with NaN where no f64 holds a number; `largest` has the largest final weights in units
    of the first; `excess` is Σ (ρ_t − 1), `control` the mean of the control variate and its standard error.
    """

    @property
    def ess(self) -> NDArray[np.float64]: ...
    @property
    def mean_weight(self) -> NDArray[np.float64]: ...
    @property
    def mean_ratio(self) -> NDArray[np.float64]: ...
    @property
    def mean_squared_ratio(self) -> NDArray[np.float64]: ...
    @property
    def largest(self) -> NDArray[np.float64]: ...
    @property
    def excess(self) -> float | None: ...
    @property
    def squared_excess(self) -> float | None: ...
    @property
    def leaders(self) -> list[Leader]: ...
    @property
    def control(self) -> tuple[Number, Number | None] | None: ...
    @property
    def variance_ratio(self) -> float | None: ...
    @property
    def cut_off_bias(self) -> float | None: ...

@final
class Leader:
    """A trajectory with a large weight, and its value of each estimator that is a mean of such values."""

    @property
    def episode(self) -> int | str: ...
    @property
    def weight(self) -> Number: ...
    @property
    def share(self) -> float | None: ...
    @property
    def returns(self) -> Number: ...
    @property
    def first_v_hat(self) -> Number: ...
    @property
    def values(self) -> dict[str, Number]: ...

@final
class KernelModel:
    def __new__(
        cls,
        axes: Sequence[tuple[int, str]],
        bandwidth: float,
        count: NDArray[np.float64],
        reward: NDArray[np.float64],
        known: NDArray[np.float64],
        pair: NDArray[np.uint32],
        next: NDArray[np.uint32],
        times: NDArray[np.float64],
        unseen_reward: float,
    ) -> Self: ...
    def reward(self) -> NDArray[np.float64]: ...
    def values(
        self,
        policies: Sequence[NDArray[np.float64]],
        horizon: int,
        discount: float,
        pairs: NDArray[np.uint32],
        remaining: NDArray[np.uint32],
    ) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]: ...
    def action_values(
        self,
        values: NDArray[np.float64],
        discount: float,
        pairs: NDArray[np.uint32],
        remaining: NDArray[np.uint32],
    ) -> NDArray[np.float64]: ...
    def optimal_actions(
        self, legal: NDArray[np.bool_], discount: float, maximize: bool, tolerance: float
    ) -> NDArray[np.uint32] | None: ...

def kernel_smooth(x: NDArray[np.float64], axes: Sequence[tuple[int, str]], bandwidth: float) -> NDArray[np.float64]: ...
def scan_table(
    job: Job,
    table: object,
    log: int,
    row: int,
    threads: int,
    progress: Callable[[int], None] | None,
) -> Partial: ...
def scan_stream(
    job: Job,
    stream: object,
    log: int,
    threads: int,
    progress: Callable[[int], None] | None,
) -> Partial: ...
def scan_parquet(
    job: Job,
    files: Sequence[tuple[str, int, Sequence[int] | None, tuple[int, int | None, int | None, int]]],
    batch_rows: int | None,
    threads: int,
    progress: Callable[[int], None] | None,
) -> Partial: ...

@final
class Rows:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def parquet_units(path: str) -> int: ...
def parquet_rows(path: str, names: Sequence[str], unit: int) -> Rows: ...
def check_parquet(paths: Sequence[str], names: Sequence[str], threads: int) -> None: ...
def parquet_info(path: str) -> tuple[list[str], list[int], tuple[int, int | None, int | None, int], int]: ...
def check_unchanged(path: str, before: tuple[int, int | None, int | None, int]) -> None: ...
def spool(stream: object, names: Sequence[str] | None, path: str) -> None: ...
def student_t_quantile(p: float, df: float) -> float: ...
def nearest(points: NDArray[np.float32], among: NDArray[np.float32]) -> NDArray[np.uint32]: ...

@final
class Marginals:
    def __new__(
        cls,
        actions: int,
        sizes: Sequence[int],
        moves: Sequence[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]],
    ) -> Self: ...
    def next(
        self, states: NDArray[np.uint32], actions: NDArray[np.uint32], quantiles: NDArray[np.float64]
    ) -> NDArray[np.uint32]: ...
    def expected(self, feature: int, f: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def particles(
        self, states: NDArray[np.uint32], actions: NDArray[np.uint32], count: int, seed: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...

@final
class Transitions:
    def __new__(cls, states: int, actions: int) -> Self: ...
    def add(
        self,
        states: NDArray[np.int64],
        actions: NDArray[np.int32] | NDArray[np.int64],
        rewards: NDArray[np.float64],
        next_states: NDArray[np.int64],
        terminal: NDArray[np.bool_],
        known: NDArray[np.bool_],
    ) -> None: ...
    def merge(self, other: Transitions) -> None: ...
    def visits(self) -> NDArray[np.uint64]: ...
    def model(self, unseen_reward: float) -> TabularModel: ...
    def encode(self) -> bytes: ...
    @staticmethod
    def decode(bytes: bytes) -> Transitions: ...

@final
class TabularModel:
    def __new__(
        cls,
        states: int,
        actions: int,
        rewards: NDArray[np.float64],
        start: NDArray[np.int64],
        next: NDArray[np.int64],
        probability: NDArray[np.float64],
    ) -> Self: ...
    @property
    def states(self) -> int: ...
    @property
    def actions(self) -> int: ...
    def rewards(self) -> NDArray[np.float64]: ...
    def successors(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
    def evaluate(
        self, policies: Sequence[NDArray[np.float64]], discount: float, values: NDArray[np.float64]
    ) -> None: ...
    def q_table(self, v: NDArray[np.float64], t: int, discount: float) -> NDArray[np.float64]: ...
    def optimum(
        self, discount: float, maximize: bool, legal: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64], int]: ...

def grid_cells(
    columns: Sequence[NDArray[np.float64]],
    size: Sequence[int],
    low: Sequence[int],
    scale: Sequence[float],
    threads: int,
    cells: NDArray[np.int64],
) -> None: ...
def tabular_lookup(
    cells: NDArray[np.int64],
    actions: NDArray[np.int32] | NDArray[np.int64],
    steps: NDArray[np.int32] | NDArray[np.int64],
    first_step: int,
    shape: tuple[int, int, int],
    policy: NDArray[np.float64] | None,
    values: tuple[TabularModel, NDArray[np.float64], int, float] | None,
    threads: int,
    columns: tuple[
        NDArray[np.float64] | None,
        Sequence[NDArray[np.float64]],
        Sequence[NDArray[np.float64]],
        NDArray[np.float64] | None,
    ],
) -> None: ...
