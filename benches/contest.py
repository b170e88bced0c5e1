"""Ours against a peer: both are checked, warmed up and timed in turns, and the best round of each counts.

pytest-benchmark times ours. The peer runs in its `setup`, so that rounds alternate and noise affects both.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from bars import BARS, Bar

_REST = 0.05
"""Seconds between turns, because the threads of OpenMP and BLAS keep the cores busy for a while after their work."""

_MORE = 4
"""How many times the rounds are repeated while a guard is not met, since noise passes and a regression stays."""


@dataclass
class Contest:
    """The contest of one benchmark about one bar."""

    bar_id: str
    benchmark: object
    small: bool
    require_bars: bool

    @property
    def bar(self) -> Bar:
        return BARS[self.bar_id]

    def race(self, ours: Callable[[], object], peer: Callable[[], object], rows: int, rounds: int) -> None:
        """Time both in turns, `rounds` times, and compare the ratio of the best times with the bar."""
        peer_seconds = []

        def peers_turn() -> None:
            _rest()
            peer_seconds.append(_seconds(peer))
            _rest()

        ours()
        peer()
        self.benchmark.pedantic(ours, setup=peers_turn, rounds=rounds)
        our_seconds = [self.benchmark.stats.stats.min]
        for _ in range(_MORE * rounds if self.small else 0):
            if self.bar.met(self.bar.ratio(min(our_seconds), min(peer_seconds)), self.bar.guard) is not False:
                break
            peers_turn()
            our_seconds.append(_seconds(ours))
        self.record(min(our_seconds), min(peer_seconds), rows)

    def one_core(self, ours: Callable[[], object], rows: int, rounds: int) -> None:
        """Time ours alone by processor time, which counts all of its threads and no other process."""
        ours()
        spent = []

        def our_turn() -> None:
            start = time.process_time()
            ours()
            spent.append(time.process_time() - start)

        self.benchmark.pedantic(our_turn, rounds=rounds)
        self.record(min(spent), None, rows)

    def record(self, ours: float, peer: float | None, rows: int) -> None:
        """Keep the outcome in the JSON, and fail beyond the guard if small, or beyond the bar if required."""
        ratio = self.bar.ratio(ours, peer)
        limit = self.bar.guard if self.small else self.bar.limit
        met = self.bar.met(ratio, limit)
        self.benchmark.extra_info.update(
            bar=self.bar_id, rows=rows, ours=ours, peer=peer, ratio=ratio, limit=limit, met=met
        )
        if met is False and (self.small or self.require_bars):
            pytest.fail(f"{self.bar.what}: {ratio:.3g}, must be {self.bar.kind.value}: {limit:g}", pytrace=False)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _rest() -> None:
    gc.collect()
    time.sleep(_REST)
