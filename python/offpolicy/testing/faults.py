"""Faults of a plugin, which are collected and then raised as one error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from offpolicy.errors import PluginError


@dataclass(frozen=True)
class Fault:
    """A fault: its rule, what was found, what the protocol says, and how to mend it."""

    rule: str
    found: str
    protocol: str
    mend: str

    def __str__(self) -> str:
        """Return the fault in three lines."""
        return f"[{self.rule}] {self.found}\n      the protocol: {self.protocol}\n      to mend it: {self.mend}"


class ConformanceError(PluginError):
    """The error for a plugin that breaks its protocol; `faults` lists how.

    >>> from offpolicy.testing import ConformanceError, Fault
    >>> print(ConformanceError("domain 'walk'", [Fault("horizon", "horizon is 0", "at least 1", "count the steps")]))
    domain 'walk' breaks the protocol in 1 way
      [horizon] horizon is 0
          the protocol: at least 1
          to mend it: count the steps
    """

    def __init__(self, subject: str, faults: Sequence[Fault]) -> None:
        """List the faults in the order in which they were found."""
        self.subject, self.faults = subject, list(faults)
        ways = "1 way" if len(self.faults) == 1 else f"{len(self.faults)} ways"
        super().__init__("\n".join([f"{subject} breaks the protocol in {ways}", *(f"  {f}" for f in self.faults)]))

    @property
    def rules(self) -> set[str]:
        """The rules that are broken."""
        return {fault.rule for fault in self.faults}


class Faults:
    """A collection of faults without duplicates."""

    def __init__(self, subject: str) -> None:
        """Begin without faults; `subject` names the domain, fitter or generator."""
        self.subject = subject
        self.found: list[Fault] = []

    def expect(self, holds: bool | np.bool_, rule: str, found: str, protocol: str, mend: str) -> bool:
        """Note a fault unless the condition holds; return whether it does."""
        fault = Fault(rule, found, protocol, mend)
        if not holds and fault not in self.found:
            self.found.append(fault)
        return bool(holds)

    @contextmanager
    def calling(self, rule: str, what: str) -> Iterator[None]:
        """Note an exception of the plugin in this context as a fault."""
        try:
            yield
        except Exception as error:
            self.expect(
                False,
                rule,
                f"{what} raised {type(error).__name__}: {error}",
                "a call with valid arguments returns",
                "call it in the same way and follow the traceback",
            )

    def raise_any(self) -> None:
        """Raise one error with all faults, if there are any."""
        if self.found:
            raise ConformanceError(self.subject, self.found)
