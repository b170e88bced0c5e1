from collections.abc import Callable, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EstimatorInfo",
    "KernelModel",
    "Marginals",
    "Merger",
    "Partial",
    "Rows",
    "TabularModel",
    "Transitions",
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
class Partial:
    def encode(self) -> bytes: ...

@final
class Merger:
    def __new__(cls, spec: str, pass_: str, normalisers: bytes | None) -> Self: ...
    def add(self, partial: Partial) -> list[tuple[int, int, int, int]]: ...
    def add_state(self, state: bytes) -> list[tuple[int, int, int, int]]: ...
    def finish(self) -> Whole: ...

@final
class Whole:
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
    def problems(self) -> str: ...
    def crossing(self) -> str | None: ...
    def too_large(self, threads: int) -> tuple[int, int] | None: ...
    def normalisers(self) -> bytes: ...
    def outcome(self, normalisers: bytes, second: Whole | None) -> str: ...
    def steps(self, policy: int) -> list[NDArray[np.float64]] | None: ...
    def values(self, policy: int) -> tuple[list[Any], list[float | None]]: ...

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
    spec: str,
    pass_: str,
    normalisers: bytes | None,
    table: object,
    log: int,
    row: int,
    threads: int,
    progress: Callable[[int], None] | None,
) -> Partial: ...
def scan_stream(
    spec: str,
    pass_: str,
    normalisers: bytes | None,
    stream: object,
    log: int,
    threads: int,
    progress: Callable[[int], None] | None,
) -> Partial: ...
def scan_parquet(
    spec: str,
    pass_: str,
    normalisers: bytes | None,
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
