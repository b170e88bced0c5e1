"""The table of a run, with our result, the peer's, their ratio and the bar:

python benches/table.py RUN.json [--markdown]
"""

import argparse
import json
from pathlib import Path

from bars import BARS, Bar, Kind
from rich import box
from rich.console import Console
from rich.table import Table

HEADINGS = ("what", "ours", "peer", "ratio", "bar", "met?")


def read(path: Path) -> dict:
    """Read a run as pytest-benchmark wrote it."""
    return json.loads(path.read_text())


def outcomes(run: dict) -> dict[str, dict]:
    """Return the measured outcomes by bar."""
    found = (benchmark["extra_info"] for benchmark in run["benchmarks"])
    return {info["bar"]: info for info in found if "bar" in info}


def lines(found: dict[str, dict], not_run: dict[str, str]) -> list[tuple[str, ...]]:
    """Return the cells of the table, in the order of the bars."""
    return [
        _line(bar, found[bar_id]) if bar_id in found else (bar.what, *_absent(bar), f"not run: {not_run[bar_id]}")
        for bar_id, bar in BARS.items()
        if bar_id in found or bar_id in not_run
    ]


def rich_table(found: dict[str, dict], not_run: dict[str, str]) -> Table:
    """Return the table for a terminal, where bars that are not met stand out."""
    table = Table(box=box.SIMPLE)
    for heading in HEADINGS:
        numeric = heading in ("ours", "peer", "ratio", "bar")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=heading != "met?")
    for line in lines(found, not_run):
        table.add_row(*line, style="red" if line[-1] == "no" else None)
    return table


def markdown(found: dict[str, dict], not_run: dict[str, str]) -> str:
    """Return the table for a README."""
    rows = [HEADINGS, ("---", *["---:"] * 4, "---"), *lines(found, not_run)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def console() -> Console:
    """Return a console that is wide enough for the table where the output is no terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=140)


def number(bar: Bar, ratio: float) -> str:
    """Format a ratio or a limit in the unit of its bar."""
    if bar.kind is Kind.MEMORY:
        return f"{ratio:.0f} MB"
    if bar.kind is Kind.CORE:
        return f"{ratio:.3g} s"
    if bar.kind is Kind.EXTRA:
        return f"{ratio:.0%}"
    return f"{ratio:.2f} ×" if ratio < 10 else f"{ratio:.0f} ×"


def _line(bar: Bar, info: dict) -> tuple[str, ...]:
    met = {True: "yes", False: "no", None: "–"}[info["met"]]
    ratio = "–" if info["peer"] is None else number(bar, info["ratio"])
    return (
        bar.what,
        _amount(bar, info["ours"], info),
        _amount(bar, info["peer"], info),
        ratio,
        _limit(bar, info["limit"]),
        met,
    )


def _absent(bar: Bar) -> tuple[str, ...]:
    return "–", "–", "–", _limit(bar, bar.limit)


def _amount(bar: Bar, amount: float | None, info: dict) -> str:
    if amount is None:
        return "–"
    if bar.kind in (Kind.MEMORY, Kind.GROWTH):
        return f"{amount:.0f} MB"
    if bar.kind is Kind.CORE:
        return f"{amount:.3g} s"
    if bar.kind is Kind.EXTRA:
        return f"{amount * 1e3:.1f} ms"
    return f"{info['rows'] / amount / 1e6:.3g} M rows/s"


def _limit(bar: Bar, limit: float | None) -> str:
    if limit is None:
        return "–"
    return ("≥ " if bar.kind is Kind.SPEED else "≤ ") + number(bar, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    run = read(options.run)
    found, not_run = outcomes(run), run.get("not_run", {})
    if options.markdown:
        print(markdown(found, not_run), f"\nMeasured on {run['machine_info']['node']}.", sep="\n")
    else:
        console().print(rich_table(found, not_run), run["machine_info"]["node"])


if __name__ == "__main__":
    main()
