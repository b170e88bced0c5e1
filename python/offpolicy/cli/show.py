"""Results as text for a person: first the verdict, then a table, then the notes.

Nothing from a log is read as markup, and its control characters are written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Table
from rich.text import Text

from offpolicy._util.phrase import in_words
from offpolicy._util.visible import visible
from offpolicy.cli.fit import UNFOLDED, fit, width_of
from offpolicy.evaluation.estimate import Estimate
from offpolicy.evaluation.plan import BEHAVIOR
from offpolicy.evaluation.result import Evaluation
from offpolicy.evaluation.verdict import LEVELS, Verdict
from offpolicy.logs.check import Report

LOOK: dict[str, Any] = {
    "box": box.SIMPLE_HEAD,
    "show_edge": False,
    "pad_edge": False,
    "padding": (0, 1, 0, 0),
}
COLOURS = {"reliable": "bold green", "fragile": "bold yellow", "unusable": "bold red"}
NONE = "–"
#: The columns that a narrow table of estimates leaves out, in this order.
SPARE = ("ess", "std error", "verdict")
MOST_DECIMALS = 6
#: Names longer than this are folded at a terminal.
LONG_NAME = 30


def evaluation(ev: Evaluation, written: Path | None = None, folds: pl.DataFrame | None = None) -> None:
    """Show the verdict, the estimates, those of each fold, the notes, and the file that was written."""
    out = stdout()
    verdict(out, ev)
    put(out, estimates(ev, name_width(out)), SPARE)
    if folds is not None:
        put(out, by_fold(folds, name_width(out), rounding(ev)), ("steps", "episodes", "std error"))
    notes(out, ev)
    if written is not None:
        line(out, Text(visible(f"written to {written}"), "dim"))


def by_fold(folds: pl.DataFrame, widest: int, number: Callable[[float | None], str]) -> Table:
    """Return the table of the folds' estimates, with the reason for each missing number."""
    table = Table(**LOOK)
    folds = folds if folds["reason"].count() else folds.drop("reason")
    for head in folds.columns:
        table.add_column(head.replace("_", " "), justify="left" if folds[head].dtype == pl.String else "right")
    table.columns[1].overflow, table.columns[1].max_width = "fold", widest
    for row in folds.iter_rows(named=True):
        texts = {name: cell(row[name]) for name in row if folds[name].dtype == pl.String}
        numbers = {name: number(row[name]) for name in ("value", "std_error")}
        counts = {name: f"{row[name]:,}" for name in ("fold", "episodes", "steps", "train_episodes")}
        table.add_row(*((texts | numbers | counts)[name] for name in row))
    return table


def plugins(found: Sequence[dict[str, Any]]) -> None:
    """Show the installed plugins, and the error of a broken one."""
    out = stdout()
    table = Table(**LOOK)
    for name in ("plugin", "package", "version", "brings"):
        table.add_column(name, overflow="fold")
    for plugin in found:
        brings = "; ".join(f"{kind} {', '.join(names)}" for kind, names in plugin["brings"].items())
        about = Text(visible(plugin["error"]), "red") if plugin["error"] else Text(visible(brings or NONE))
        for warning in plugin["warnings"]:
            about.append(visible(f"; {warning}"), "yellow")
        table.add_row(*(cell(plugin[name]) for name in ("name", "package", "version")), about)
    out.print(table)


def simulation(made: dict[str, Any]) -> None:
    """Show what was simulated, what it earned, and where it was written."""
    out = stdout()
    steps = made["steps"] / made["episodes"]
    size = f"{made['episodes']:,} episodes, {made['steps']:,} steps ({steps:.1f} an episode), seed {made['seed']}"
    line(out, Text.assemble((visible(made["domain"]), "bold"), f" under {visible(made['policy'])}: {size}"))
    if made["notice"] is not None:
        note(out, "notice", str(made["notice"]))
    number = decimals(made["std_error"])
    earned = f"mean return {number(made['mean_return'])}, standard error {number(made['std_error'])}"
    line(out, Text(f"{earned}, discount {made['discount']:g}, horizon {made['horizon']:,}"))
    for file in (made["out"], made["plot"]):
        if file is not None:
            line(out, Text(visible(f"written to {file}"), "dim"))


def report(found: Report) -> None:
    """Show the kinds of problems of a log, what each means, and all problems, or that there is none."""
    out = stdout()
    first, *_ = str(found).splitlines()
    line(out, Text(first, "bold green" if found.ok else "bold red"))
    if found.ok:
        return
    out.print("", kinds(found), "", sep="\n")
    for kind in found.kinds:
        line(out, Text.assemble((kind.kind, "red"), ": ", visible(in_words(kind.message, "cli"))))
    table = Table(**LOOK)
    for name in ("file", "row", "episode", "step", "column", "value"):
        numeric = name in ("row", "step")
        table.add_column(
            name,
            justify="right" if numeric else "left",
            no_wrap=numeric,
            overflow="fold",
            max_width=name_width(out),
        )
    table.add_column("problem", no_wrap=True)
    for problem in found.problems:
        where = (problem.file, problem.row, problem.episode, problem.step, problem.column, problem.value)
        table.add_row(*(cell(item) for item in where), Text(problem.kind, "red"))
    out.print("", table, "", sep="\n")
    if (more := found.found - len(found.problems)) > 0:
        line(out, Text(f"… and {more:,} more; --limit shows them"))


def kinds(found: Report) -> Table:
    """Return the table of how many problems of each kind there are, and in how much of the log."""
    table = Table(**LOOK)
    table.add_column("problem", style="red", no_wrap=True)
    for head in ("count", "rows", "share", "episodes", "share"):
        table.add_column(head, justify="right", no_wrap=True)
    for kind in found.kinds:
        more = "+" if kind.or_more else ""
        sizes = ((kind.rows, "", kind.rows_share), (kind.episodes, more, kind.episodes_share))
        cells = [
            text
            for count, after, share in sizes
            for text in (
                NONE if count is None else f"{count:,}{after}",
                NONE if share is None else "<0.1%" if 0 < share < 0.001 else f"{share:.1%}",
            )
        ]
        table.add_row(kind.kind, f"{kind.problems:,}", *cells)
    return table


def demo(ev: Evaluation, truth: float) -> None:
    """Show the estimates beside the truth, and what to run next."""
    out = stdout()
    verdict(out, ev)
    put(out, estimates(ev, name_width(out), truth), SPARE)
    known = f"true value {truth:.4f}, distance in standard errors; mc is the logged policy's value"
    line(out, Text(known, "dim"))
    line(out, Text(""))
    columns = "episode, step, reward, behavior_prob, target_prob"
    line(out, Text(f"On your own Parquet ({columns}):"))
    line(out, Text("  offpolicy evaluate log.parquet --discount 0.99", "bold"))


def stdout() -> Console:
    """Return a console as wide as the terminal; in a pipe, which has no width, nothing is folded."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = UNFOLDED
    return console


def line(out: Console, text: Text) -> None:
    """Print one line, which only a terminal folds."""
    out.print(text, soft_wrap=not out.is_terminal)


def name_width(out: Console) -> int:
    """Return how wide a column of names may be."""
    return LONG_NAME if out.is_terminal else UNFOLDED


def put(out: Console, table: Table, spare: Sequence[str] = ()) -> None:
    """Print a table in the terminal's width, if necessary without some of the columns in `spare`.

    A number is never cut, because half of it would be another number; if nothing else helps, the table is wider.
    """
    left_out = fit(out, table, spare)
    before = out.width
    out.width = max(before, width_of(out, table))
    out.print("", table, "", sep="\n", crop=False)
    out.width = before
    if left_out:
        line(out, Text(f"no room for {', '.join(left_out)}: a wider terminal or --json has them", "dim"))


def cell(item: object) -> Text:
    """Return a cell with text from a log."""
    return Text(NONE, "dim") if item is None else Text(visible(str(item)))


def verdict(out: Console, ev: Evaluation) -> None:
    """Show the verdict on each policy, the worst first, and the size of the log."""
    for found in sorted(ev.verdicts, key=lambda verdict: -LEVELS.index(verdict.level)):
        line(out, said(found))
    discount = ev.settings["discount"]
    size = f"{ev.episodes:,} episodes, {ev.steps:,} steps, horizon {ev.horizon:,}, discount {discount:g}"
    line(out, Text(size, "dim"))


def said(found: Verdict) -> Text:
    """Return the text of a verdict with its level in colour."""
    return Text.assemble((found.level, COLOURS[found.level]), visible(str(found)).removeprefix(found.level))


def estimates(ev: Evaluation, widest: int, truth: float | None = None) -> Table:
    """Return the table of estimates, with their distance from the true value if it is known."""
    table = Table(**LOOK)
    table.add_column("policy", overflow="fold", max_width=widest)
    table.add_column("estimator", style="bold", no_wrap=True)
    settings = ev.settings
    heads = [
        "value",
        "std error",
        f"{100 * settings['confidence']:g}% {settings['interval']} interval",
        "ess",
        "verdict",
    ]
    for head in heads + ["distance"] * (truth is not None):
        table.add_column(head, justify="right", no_wrap=True)
    number = rounding(ev)
    before = None
    for estimate in ev.estimates:
        if before not in (None, estimate.policy):
            table.add_section()
        before = estimate.policy
        cells = [
            number(estimate.value),
            number(estimate.std_error),
            ends(estimate.low, estimate.high, number),
            size(estimate.ess),
            NONE if estimate.policy == BEHAVIOR else level(ev.verdict_on(estimate)),
        ]
        if truth is not None:
            cells.append(distance(estimate, truth))
        table.add_row(cell(estimate.policy), estimate.estimator, *cells)
    return table


def level(found: Verdict) -> Text:
    """Return the level of a verdict in colour."""
    return Text(found.level, COLOURS[found.level])


def ends(low: float | None, high: float | None, number: Callable[[float | None], str]) -> str:
    """Return the text of an interval, of a lower bound, or of none."""
    if low is None:
        return NONE
    return f"≥ {number(low)}" if high is None else f"{number(low)} … {number(high)}"


def distance(estimate: Estimate, truth: float) -> str:
    """Return how many standard errors an estimate is away from the truth."""
    if estimate.policy == BEHAVIOR or estimate.value is None or not estimate.std_error:
        return NONE
    return f"{(estimate.value - truth) / estimate.std_error:+.1f} se"


def size(ess: float) -> str:
    """Return an effective sample size as text, with a decimal only below 1000.

    >>> size(504.21), size(2000.0)
    ('504.2', '2,000')
    """
    return f"{ess:,.1f}" if ess < 1000 else f"{ess:,.0f}"


def rounding(ev: Evaluation) -> Callable[[float | None], str]:
    """Return a format of numbers in which the smallest standard error of all rows has two digits."""
    return decimals(min((e.std_error for e in ev.estimates if e.std_error), default=None))


def decimals(error: float | None) -> Callable[[float | None], str]:
    """Return a format of numbers in which this standard error has two digits."""
    places = 1 - math.floor(math.log10(error)) if error else 4
    places = min(max(places, 0), MOST_DECIMALS)

    def number(value: float | None) -> str:
        if value is None:
            return NONE
        small = 0 < abs(value) < 10.0**-places
        return f"{value:.3g}" if small or abs(value) >= 1e9 else f"{value:,.{places}f}"

    return number


def notes(out: Console, ev: Evaluation) -> None:
    """Show what was repaired, why numbers are missing, which interval was taken, and its cautions."""
    if ev.repairs.get("sorted"):
        note(out, "repair", "the rows were sorted by episode and step first")
    for text in ev.notes:
        note(out, "note", text)
    reasons: dict[str, list[str]] = {}
    for estimate in ev.estimates:
        found = estimate.own_interval
        for said in (found.reason, found.assumptions.get("chosen"), found.caution):
            if said and said not in ev.notes:
                reasons.setdefault(said, []).append(estimate.estimator)
    for reason, ids in reasons.items():
        note(out, ", ".join(dict.fromkeys(ids)), reason)


def note(out: Console, what: str, text: str) -> None:
    """Print one remark."""
    line(out, Text.assemble((f"{what}: ", "yellow"), visible(in_words(text, "cli"))))


def short(number: float) -> str:
    """Return a number in short form.

    >>> short(4_310_000.0), short(5300.0), short(12.0)
    ('4.3M', '5.3k', '12')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


class Amount(ProgressColumn):
    """The column of a progress bar that shows how much is done of how much, and how fast."""

    def __init__(self, unit: str) -> None:
        """Keep the name of what is counted."""
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """Return exact counts and a rounded speed, without numbers that are not known."""
        if not task.completed and not task.total:
            return Text("")
        speed = f", {short(task.speed)}/s" if task.speed else ""
        whole = f" of {task.total:,.0f}" if task.total else ""
        return Text(f"{task.completed:,.0f}{whole} {self.unit}{speed}")


@contextmanager
def progress_bar(doing: str, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar on stderr that disappears when the work is done, and yield the function to advance it."""
    columns = (TextColumn(doing), BarColumn(), TaskProgressColumn(), Amount(unit), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)

        def advance(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total)

        yield advance
