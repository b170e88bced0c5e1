"""The command line, in the words of the Python package.

Exit codes: 0 done, 1 the log or the result was refused, 2 wrong usage, 130 interrupted, 143 ended by SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from offpolicy import __version__
from offpolicy._util import starting
from offpolicy._util.scratch import sweep
from offpolicy.cli import check, cross_fit, demo, evaluate, improve, plugins, reproduce, simulate
from offpolicy.cli.refusal import INTERRUPTED, refuse

#: The exit code after SIGTERM, 128 + 15, as shells report it.
TERMINATED = 143


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="offpolicy", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """What would a new policy have earned? Off-policy value evaluation from logs alone."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


for command in (
    evaluate.evaluate,
    check.check,
    cross_fit.cross_fit,
    improve.improve,
    simulate.simulate,
    reproduce.reproduce,
    plugins.plugins,
    demo.demo,
):
    command.short_help = str(command.help).partition("\n")[0]  # the whole first line, which click would shorten
    commands.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; errors of this package end in a message, never in a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    starting.done()
    sweep()
    try:
        try:
            with ending_on_sigterm():
                code = commands.main(given, prog_name="offpolicy", standalone_mode=False)
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted: nothing was written", err=True)
            code = INTERRUPTED
        except Exception as error:
            code = refuse(error, "--json" in given)
        sys.stdout.flush()
    except OSError as error:
        code = _lost_output(error)
    return int(code or 0)


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that its temporary files are removed.

    If the application has a handler of its own, that is kept.
    """
    ours = threading.current_thread() is threading.main_thread()
    ours = ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _lost_output(error: OSError) -> int:
    """Redirect stdout, which is closed or full, to nowhere, so that Python does not try to flush it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if error.errno != errno.EPIPE:
        click.echo(f"error: the output cannot be written: {error.strerror}", err=True)
    return 1
