"""The report of an error to the user: a message in the words of the command line, a JSON document, an exit code."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import click
from polars.exceptions import PolarsError

from offpolicy._util.phrase import in_words
from offpolicy._util.visible import visible, visible_lines
from offpolicy.cli.output import one_document
from offpolicy.errors import BadLogError, OffPolicyError, UsageError

#: The exit code after Ctrl-C.
INTERRUPTED = 130


def refuse(error: Exception, as_json: bool) -> int:
    """Report an error and return the exit code; an error of unknown origin is raised again."""
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
    return error.in_words("cli") if isinstance(error, OffPolicyError) else str(error)


def _details(error: Exception, message: str) -> dict[str, Any]:
    kind = "UsageError" if isinstance(error, click.UsageError) else type(error).__name__
    details: dict[str, Any] = {"type": kind, "message": message, "problems": []}
    if isinstance(error, OffPolicyError):
        details["kind"], details["remedy"] = error.kind, in_words(error.remedy, "cli")
    if isinstance(error, BadLogError):
        details["problems"] = [asdict(problem) for problem in error.problems]
        details["found"] = error.found
        details["kinds"] = [asdict(kind) for kind in error.kinds]
    return details
