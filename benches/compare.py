"""Compare two runs side by side, such as those of two commits:

    python benches/compare.py A.json B.json

Ratios to a peer come first, because each was measured in one run. Times are comparable only on the same machine;
`pytest-benchmark compare A.json B.json` shows those in full.
"""

import argparse
from pathlib import Path

from bars import BARS
from rich import box
from rich.table import Table
from table import console, number, outcomes, read


def comparison(before: dict, after: dict) -> Table:
    """Return a table of bars with equal sizes: the ratio and our own time in both runs, and the speed-up."""
    old, new = outcomes(before), outcomes(after)
    table = Table(box=box.SIMPLE)
    table.add_column("what")
    for heading in ("ratio before", "after", "ours before", "after", "speed-up"):
        table.add_column(heading, justify="right", no_wrap=True)
    for bar_id, bar in BARS.items():
        if bar_id in old and bar_id in new and old[bar_id]["rows"] == new[bar_id]["rows"]:
            a, b = old[bar_id], new[bar_id]
            ratios = (number(bar, a["ratio"]), number(bar, b["ratio"]))
            table.add_row(bar.what, *ratios, _amount(a), _amount(b), f"{a['ours'] / b['ours']:.2f} ×")
    return table


def _amount(info: dict) -> str:
    if BARS[info["bar"]].kind.name in ("MEMORY", "GROWTH"):
        return f"{info['ours']:.0f} MB"
    return f"{info['ours'] * 1e3:.1f} ms"


def _name(run: dict) -> str:
    commit = run["commit_info"]
    return commit["id"][:10] + (" with changes" if commit["dirty"] else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args()
    before, after = read(options.before), read(options.after)
    console().print(f"before: {_name(before)}; after: {_name(after)}", comparison(before, after))
    if before["machine_info"]["node"] != after["machine_info"]["node"]:
        console().print("Different machines: compare the ratios only.")


if __name__ == "__main__":
    main()
