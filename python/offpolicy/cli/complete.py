"""Shell completion of estimators, log files, and the names that plugins provide."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from offpolicy.evaluation import from_plugins
from offpolicy.evaluation.estimators import averaged, named
from offpolicy.extensions.plugins import registry
from offpolicy.intervals import CHOICES, INSTALLED

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def estimators(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids, also those of plugins, that complete the last word of a list with commas.

    >>> context, option = click.Context(click.Command("x")), click.Option(["--x"])
    >>> [item.value for item in estimators(context, option, "dr,step-")]
    ['dr,step-is', 'dr,step-wis']
    """
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in starting(ids(), last)]


def ids() -> list[str]:
    """Return the ids of all estimators; every plugin is loaded."""
    return [*named(), *from_plugins.INSTALLED.names()]


def averages(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the estimators that are means of weighted values of trajectories, as far as that is known beforehand."""
    known = [*averaged(), *from_plugins.INSTALLED.names()]
    return [CompletionItem(name) for name in starting(known, incomplete)]


def intervals(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the confidence intervals, ours and those of plugins."""
    return [CompletionItem(name) for name in starting([*CHOICES, *INSTALLED.names()], incomplete)]


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave the completion of files to the shell."""
    return [CompletionItem(incomplete, type="file")]


def among(names: Iterable[str]) -> Completer:
    """Return a completer of these names."""
    known = tuple(names)
    return lambda _context, _parameter, incomplete: [CompletionItem(name) for name in starting(known, incomplete)]


def brought(hook: str) -> Completer:
    """Return a completer of the names that plugins provide through a hook; it loads the plugins when it is called."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in starting(sorted(registry().names(hook)), incomplete)]

    return complete


def experiments(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the experiments that plugins provide, and `all`."""
    known = (*registry().names("offpolicy_experiments"), "all")
    return [CompletionItem(name) for name in starting(known, incomplete)]


def starting(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin with the incomplete word."""
    return [name for name in names if name.startswith(incomplete)]


domains = brought("offpolicy_domains")
fitters = brought("offpolicy_model_fitters")
generators = brought("offpolicy_candidate_policies")
