"""A reproduction as text: the paper's claims and their verdicts."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from offpolicy._util.visible import visible
from offpolicy.cli.show import LOOK, line, note, stdout
from offpolicy.experiments.reproduction import Result

COLOURS = {"held": "bold green", "undecided": "bold yellow", "not held": "bold red"}


def reproduction(result: Result, evidence: bool = False) -> None:
    """Show what a quick run simplified, one row per claim with its verdict, and where the files are.

    The evidence of each claim is in the result file, and is shown if `evidence` is set.
    """
    out = stdout()
    line(out, Text(f"{result.name}: {result.runs} runs, seed {result.seed}"))
    if "quick" in result.settings:
        note(out, "quick", result.settings["quick"])
    table = Table(**LOOK)
    table.add_column("claim", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for claim in result.claims:
        said = Text(visible(claim.text))
        if evidence:
            said.append(visible(f"\n{claim.evidence}"), "dim")
        table.add_row(said, Text(claim.verdict, COLOURS[claim.verdict]))
    out.print("", table, "", sep="\n")
    line(out, Text(visible(f"figure.svg, figure.png, result.json and runs.jsonl are in {result.folder}")))
    if not evidence:
        line(out, Text("--evidence shows what each verdict rests on; result.json has it too", "dim"))
