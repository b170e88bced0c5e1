"""Candidate policies that repair the machine from some wear on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from offpolicy.protocols import Candidate, Setting

from offpolicy_template.machine import repair_from


@dataclass(frozen=True)
class Thresholds:
    """A generator of one candidate per threshold, without data, so that the whole log is left for their evaluation.

    >>> from offpolicy_template import Machine, Thresholds
    >>> [candidate.name for candidate in Thresholds((2, 4)).candidates(None, Machine())]
    ['repair from 2', 'repair from 4']
    """

    wear: Sequence[int] = (1, 2, 3, 4, 5)
    share: float = 0.7

    def candidates(self, log: Any, domain: Setting) -> Iterator[Candidate]:
        """Yield the candidates."""
        for wear in self.wear:
            yield Candidate(f"repair from {wear}", repair_from(wear, self.share))
