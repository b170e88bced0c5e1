"""The file of finished runs, `runs.jsonl`, with checksums that detect any change.

    {"check": "8a9cfe1d9e9b7a2c", "version": 2, "offpolicy": …, "experiment": …, "seed": …, "settings": …}
    {"check": "51d4d5b2d7a9e3f0", "run": 0, …}

The first line is the header: the versions of this format and of offpolicy, and everything that the runs depend on.
Every line begins with a checksum of the bytes that follow it. The checksums of runs cover the header too, so that a run
of another experiment is not accepted. Files of version 1 have no checksums and are no longer read.

A killed process may leave an incomplete last line. It is dropped, and its run is repeated. Any other damage raises an
error, because more may have been lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from offpolicy import _core
from offpolicy._util.files import whole_file
from offpolicy.errors import BadFileError
from offpolicy.errors.kinds.of_files import damaged_line, other_runs, run_twice, runs_of_another_version

#: The name of the file.
FILE = "runs.jsonl"
#: The version of the format.
VERSION = 2
#: The number of bytes of a checksum, which is written in hexadecimal digits.
DIGEST = 8

Run: TypeAlias = dict[str, Any]


class RunsFile:
    """The runs of one experiment, seed and settings."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Keep the path, and `about`, everything that the runs depend on, ready for JSON."""
        self.path = path
        self.head = {"version": VERSION, "offpolicy": _core.__version__, **about}
        self._first = _line(self.head)

    def read(self) -> dict[int, Run]:
        """Return the runs of an existing file by their number, and drop an incomplete last line."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        found: dict[int, Run] = {}
        if whole:
            first, *rest = whole.split(b"\n")[:-1]
            self._check_head(first)
            found = self._runs(rest)
        if whole != content:
            os.truncate(self.path, len(whole))
        return found

    def begin(self) -> None:
        """Write the header, unless the file has one."""
        if not self.path.exists() or not self.path.stat().st_size:
            self.path.write_bytes(self._first)

    def line(self, index: int, run: Run) -> bytes:
        """Return the line of one run, to be appended."""
        return _line({"run": index, **run}, self._first)

    def put_in_order(self, runs: Mapping[int, Run]) -> None:
        """Write the file again with these runs sorted by number."""
        lines = [self._first, *(self.line(index, runs[index]) for index in sorted(runs))]
        with whole_file(self.path) as beside:
            beside.write_bytes(b"".join(lines))

    def _check_head(self, line: bytes) -> None:
        try:
            version = json.loads(line).get("version", 1)
        except (ValueError, AttributeError, RecursionError) as error:
            raise self._damaged_head(error) from None
        if version != VERSION:
            raise runs_of_another_version(
                file=str(self.path), version=repr(version), offpolicy=_core.__version__, ours=VERSION
            )
        try:
            head = _document(line)
        except ValueError as error:
            raise self._damaged_head(error) from None
        if head != json.loads(json.dumps(self.head)):
            raise other_runs(file=self.path)

    def _damaged_head(self, error: Exception) -> BadFileError:
        return damaged_line(file=str(self.path), line="its head, line 1,", why=error, go_on="choose another folder")

    def _runs(self, lines: list[bytes]) -> dict[int, Run]:
        found: dict[int, Run] = {}
        seen: dict[int, int] = {}
        for number, line in enumerate(lines, start=2):
            try:
                run = _document(line, self._first)
                index = run.pop("run")
                if type(index) is not int or index < 0:
                    raise ValueError(f"{index!r} is no number of a run")
            except (ValueError, KeyError) as error:
                again = "delete it, and its run is done again"
                raise damaged_line(file=str(self.path), line=f"line {number}", why=error, go_on=again) from None
            if index in seen:
                raise run_twice(file=str(self.path), run=index, first=seen[index], second=number)
            seen[index], found[index] = number, run
        return found


def _line(document: Mapping[str, Any], head: bytes = b"") -> bytes:
    """Return a document as a line that begins with its checksum."""
    rest = json.dumps(document, allow_nan=False).encode()[1:]
    return _begin(rest, head) + rest + b"\n"


def _document(line: bytes, head: bytes = b"") -> Run:
    """Return the document of a line; raise a ValueError if it does not match its checksum."""
    start = len(_begin(b"", b""))
    if line[:start] != _begin(line[start:], head):
        raise ValueError("its checksum is not that of its text")
    try:
        found: Run = json.loads(b"{" + line[start:])
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _begin(rest: bytes, head: bytes) -> bytes:
    """Return the beginning of a line: a brace, and the checksum of the header and the rest of the line."""
    return b'{"check": "%s", ' % blake2b(head + rest, digest_size=DIGEST).hexdigest().encode()
