"""The command line as a user has it: arguments in; exit code, output and errors out."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from offpolicy.cli import main

COMMAND = (sys.executable, "-m", "offpolicy")


@dataclass(frozen=True)
class Run:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document of the output; a NaN would be none."""

        def refuse(constant: str) -> None:
            raise ValueError(constant)

        return json.loads(self.out, parse_constant=refuse)


def offpolicy(*arguments: object) -> Run:
    """Runs a command in this process, as if piped."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Run(code, out.getvalue(), err.getvalue())


def process(*arguments: object, **options: Any) -> Run:
    """Runs a command in a process of its own, piped."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", **options)
    assert "Traceback" not in done.stderr
    return Run(done.returncode, done.stdout, done.stderr)
