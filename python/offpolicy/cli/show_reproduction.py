"""A reproduction for a person: the paper's claims and their verdicts."""

from __future__ import annotations

from rich.text import Text

from offpolicy.cli.show import line, note, stdout
from offpolicy.experiments.reproduction import Result

COLOURS = {"held": "bold green", "undecided": "bold yellow", "not held": "bold red"}


def reproduction(result: Result) -> None:
    """What was done less well than in full, the claims, each with its verdict and evidence, and where everything is."""
    out = stdout()
    line(out, Text(f"{result.name}: {result.runs} runs, seed {result.seed}"))
    if "quick" in result.settings:
        note(out, "quick", result.settings["quick"])
    for claim in result.claims:
        line(out, Text.assemble((f"  {claim.verdict}", COLOURS[claim.verdict]), f"  {claim.text}"))
        line(out, Text(f"    {claim.evidence}", style="dim"))
    line(out, Text(f"figure.svg, figure.png, result.json and runs.jsonl are in {result.folder}"))
