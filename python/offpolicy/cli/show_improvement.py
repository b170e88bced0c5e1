"""A safe improvement as text: first the recommendation, then how far it can be trusted, then the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from offpolicy._util.visible import visible
from offpolicy.cli.show import COLOURS, LOOK, NONE, cell, decimals, line, name_width, note, put, said, size, stdout
from offpolicy.drivers.improvement import Improvement
from offpolicy.evaluation.plan import BEHAVIOR


def improvement(best: Improvement, written: Sequence[Path] = ()) -> None:
    """Show the conclusion, the promise, the winner's verdict, one row per candidate, notes, and the files written."""
    out = stdout()
    line(out, Text(visible(best.conclusion), "bold yellow" if best.winner == BEHAVIOR else "bold green"))
    line(out, Text(visible(best.promise), "dim"))
    if best.verdict is not None:
        line(out, said(best.verdict))
    put(out, candidates(best, name_width(out)), ("episodes", "ess", "error", "std error", "rank"))
    for text in best.notes:
        note(out, "note", text)
    reasons: dict[str, list[str]] = {}
    for row in best.candidates.filter(best.candidates["reason"].is_not_null()).iter_rows(named=True):
        reasons.setdefault(row["reason"], []).append(row["candidate"])
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        note(out, visible(names[0]) + more, reason)
    for file in written:
        line(out, Text(visible(f"written to {file}"), "dim"))


def candidates(best: Improvement, widest: int) -> Table:
    """Return the table of candidates, the best first, with the behaviour policy below them."""
    table = Table(**LOOK)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold", max_width=widest)
    columns = ("value", "gain", "gain_error") if best.against == "difference" else ("value", "std_error")
    heads = ("value", "gain", "error") if best.against == "difference" else ("value", "std error")
    for head in (*heads, str(best.bound), "episodes", "ess"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    errors = [*best.candidates[columns[-1]].drop_nulls(), best.behavior.std_error]
    number = decimals(min((error for error in errors if error), default=None))
    for row in best.candidates.sort("rank", nulls_last=True, maintain_order=True).iter_rows(named=True):
        table.add_row(
            cell(row["rank"]),
            Text(visible(row["candidate"]), "bold" if row["candidate"] == best.winner else ""),
            *(number(row[name]) for name in (*columns, "score")),
            f"{row['episodes']:,}",
            NONE if row["ess"] is None else size(row["ess"]),
            NONE if row["verdict"] is None else Text(row["verdict"], COLOURS[row["verdict"]]),
        )
    own = best.behavior
    table.add_section()
    mine = (own.value, None, None, None) if best.against == "difference" else (own.value, own.std_error, own.bound)
    numbers = ["" if value is None and best.against == "difference" else number(value) for value in mine]
    table.add_row("", Text(BEHAVIOR, "bold" if best.winner == BEHAVIOR else ""), *numbers, f"{own.episodes:,}", "", "")
    return table
