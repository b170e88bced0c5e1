"""The code blocks of the documentation, and how they run.

Blocks of one page share a namespace and a folder, in the order of the page. `python` blocks are executed, `sh` blocks
are `offpolicy` commands, and a `text` block right after one of them is what it must print; a line of `…` alone stands
for any lines. A comment before a block says what is special about it:

    <!-- not run: the reason -->     it cannot run in a test
    <!-- exits with 1 -->            the command is refused, and what it says on stderr is shown
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cli import offpolicy
from places import ROOT

#: Every page whose blocks run.
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "plugins/README.md") if (ROOT / name).is_file()),
    *sorted((ROOT / "docs").rglob("*.md")),
]
RUN = ("python", "sh")
LANGUAGES = (*RUN, "text", "toml", "json")
COMMENT = re.compile(r"<!-- (not run|exits with)\b:? ?(.*?) -->", re.DOTALL)
ANY = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block, with the text that it must print, if the page shows it."""

    page: str
    line: int
    language: str
    code: str
    output: str | None
    reason: str | None
    exit_code: int

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a page in their order; a `text` block that shows an output belongs to the one before."""
    page = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    found: list[Block] = []
    for line, language, code, before in _fences(path.read_text()):
        if language not in LANGUAGES:
            raise ValueError(f"{page}:{line}: a block of {language!r}; there are {', '.join(LANGUAGES)}")
        if language == "text":
            if before.strip() or not found or found[-1].output is not None:
                raise ValueError(f"{page}:{line}: a text block is the output of the block right before it")
            found[-1] = Block(**{**vars(found[-1]), "output": code})
            continue
        marks = dict(COMMENT.findall(before.rstrip().rsplit("\n\n", 1)[-1]))
        found.append(Block(page, line, language, code, None, marks.get("not run"), int(marks.get("exits with", 0))))
    return found


def _fences(text: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, language and code of each fenced block, and the text since the block before."""
    end = 0
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 2, match[1].strip(), match[2], text[end : match.start()]
        end = match.end()


@dataclass
class Session:
    """A page that is being read: what its blocks have defined and written so far."""

    blocks: list[Block]
    folder: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: list[str] = field(default_factory=list)

    def upto(self, number: int) -> str:
        """Run the blocks that have not run yet, up to this one, and return what this one prints."""
        while len(self.printed) <= number:
            block = self.blocks[len(self.printed)]
            with contextlib.chdir(self.folder):
                runs = block.language in RUN and block.reason is None
                self.printed.append(self._run(block) if runs else "")
        return self.printed[number]

    def _run(self, block: Block) -> str:
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.code, block.page, "exec", dont_inherit=True)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, self.names)  # our own text, not data
            return out.getvalue()
        return "".join(_command(block, line) for line in block.code.replace("\\\n", " ").splitlines() if line.strip())


def _command(block: Block, line: str) -> str:
    """Run one line of a shell block, and return what it prints."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    if words[0] != "offpolicy":
        raise ValueError(f"{block}: only offpolicy commands run; mark {words[0]!r} with <!-- not run: reason -->")
    run = offpolicy(*words[1:])
    assert run.code == block.exit_code, run.err
    return run.out + (run.err if block.exit_code else "")


def agrees(shown: str, printed: str) -> bool:
    """Tell whether a page shows what was printed; blanks at the ends of lines do not count."""
    want, got = ([line.rstrip() for line in text.strip("\n").splitlines()] for text in (shown, printed))
    pattern = "".join(r"(?:.*\n)*?" if line == ANY else re.escape(line) + r"\n" for line in want)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in got)) is not None
