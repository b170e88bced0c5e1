"""What the user sees of an error: a message in our words, a JSON document, an exit code."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from typing import Any

import click
from polars.exceptions import PolarsError

from offpolicy._util.visible import visible, visible_lines
from offpolicy.cli.output import one_document
from offpolicy.errors import BadLogError, OffPolicyError, UsageError

#: The exit code after Ctrl-C.
INTERRUPTED = 130
#: Python's words and ours; messages of the package name its parameters.
WORDS = (
    (r"\bColumns\((\w+)=\.\.\.\)", r"--column \1=NAME"),
    (r"\bPolicyColumns\(target_prob=\.\.\.\)", "--policy NAME=COLUMN"),
    (r"\bPolicyColumns\((\w+)=\.\.\.\)", r"--policy NAME=...,\1=COLUMN"),
    (r"\bColumns\((\w+)=None\)", r"--column \1="),
    (r"\bcontinuing=True\b", "--continuing"),
    (r"\bColumns\(\.\.\.\)", "--column ROLE=NAME"),
    (r"\bbounds=Bounds\(([^)]*)\)", r"\1"),
    (r"\breward=\.\.\.", "--reward-range"),
    (r"\bratio=\.\.\.", "--ratio-bound"),
    (r"\bq=\.\.\.", "--q-range"),
    (r"^bounds: give ratio=", "give --ratio-bound"),
    (r"^bounds: give q=\(lowest, highest\)", "give --q-range LOWEST,HIGHEST"),
    (r"\b(baseline|horizon)=(?!\w)", r"--\1"),
    (r'\b(order|dedupe|truncation|interval|behavior)="([\w-]+)"', r"--\1 \2"),
    (r"\b(caution|interval|generator)=(?!\w)", r"--\1"),
    (r"\bneeds passes=2\b", "needs a run without --one-pass"),
    (r"\bdensity=True\b", "--density"),
    (r"\bresume=True\b", "--resume"),
    (r"\bop\.check\(log\) lists", "offpolicy check lists"),
    (r"\bfolds or train_fraction\b", "--folds or --train-fraction"),
    (r"\btrain_fraction\b", "--train-fraction"),
)


def in_our_words(message: str) -> str:
    """A message of the package for a reader of the command line.

    >>> in_our_words("estimator 'dr' needs a column q_hat: name it with Columns(q_hat=...)")
    "estimator 'dr' needs a column q_hat: name it with --column q_hat=NAME"
    """
    for theirs, ours in WORDS:
        message = re.sub(theirs, ours, message)
    return message


def refuse(error: Exception, as_json: bool) -> int:
    """Tells the user and gives the exit code; what is not ours to explain is raised again."""
    if isinstance(error, BrokenPipeError) or not isinstance(
        error, click.ClickException | OffPolicyError | OSError | PolarsError
    ):
        raise error
    wrong_usage = isinstance(error, click.UsageError | UsageError)
    message = _message(error)
    if as_json:
        click.echo(one_document({"error": _details(error, message)}))
    click.echo(f"error: {visible_lines(message)}", err=True)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"       '{error.ctx.command_path} --help' shows what there is", err=True)
    return 2 if wrong_usage else 1


def _message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        text = error.format_message().removesuffix(".")
        return text[:1].lower() + text[1:]
    if isinstance(error, OSError):
        why = (error.strerror or str(error)).lower()
        return visible(f"{os.fsdecode(error.filename)}: {why}" if error.filename else why)
    return in_our_words(str(error))


def _details(error: Exception, message: str) -> dict[str, Any]:
    kind = "UsageError" if isinstance(error, click.UsageError) else type(error).__name__
    details: dict[str, Any] = {"type": kind, "message": message, "problems": []}
    if isinstance(error, BadLogError):
        details["problems"] = [asdict(problem) for problem in error.problems]
        details["found"] = error.found
        details["kinds"] = [asdict(kind) for kind in error.kinds]
    return details
