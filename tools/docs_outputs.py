"""Write the outputs of code blocks into the pages of the documentation: python tools/docs_outputs.py [PAGE ...]

An output that still agrees stays unchanged, with its lines of `…`. Look at the difference before you commit it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import _support  # noqa: F401
from pages import PAGES, Session, agrees, blocks


def refresh(page: Path) -> bool:
    """Run the blocks of a page, replace outputs that no longer agree, and tell whether there were any."""
    text = before = page.read_text()
    found = blocks(page)
    with TemporaryDirectory() as folder:
        session = Session(found, Path(folder))
        for number, block in enumerate(found):
            printed = "".join(f"{line.rstrip()}\n" for line in session.upto(number).strip("\n").splitlines())
            if block.output is not None and not agrees(block.output, printed):
                shown = f"{block.code}```\n\n```text\n"
                text = text.replace(f"{shown}{block.output}```", f"{shown}{printed}```", 1)
    page.write_text(text)
    return text != before


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        if refresh(path):
            print(f"changed {path}")
