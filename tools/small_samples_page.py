"""The page that shows the measurements of `measure_small_samples`."""

METHODS = ("t, influence", "t", "t-skew", "auto", "normal", "likelihood", "bootstrap", "bootstrap-bca")
SIDES = {"two": "two-sided", "lower": "lower bound", "upper": "upper bound"}
#: The shortfall from 95% beyond which a cell is put in parentheses.
ALLOWED = 0.02

PAGE = """# Intervals of small samples

Made by `python tools/measure_small_samples.py`: {logs} logs of each of {problems} problems from easy to hopeless
([small_sample_problems.py](../../../tools/small_sample_problems.py)) and of each size, with the estimators `is`,
`step-is` and `dr` (averages) and `wis`, `step-wis` and `wdr` (weighted). Percent of two-sided 95% intervals, and of 95%
bounds from one side, that hold the truth; in parentheses where that is more than two points below 95. `t, influence` is
`t` without its correction for small samples, as the weighted estimators had it before; `auto` is without bounds. The
bootstrap has 999 replicates, half of the logs, and sizes up to 1000. Logs in which all values are equal are not
counted. [small-samples.json](small-samples.json) has the numbers,
[small-samples-cells.jsonl](small-samples-cells.jsonl) those of each problem, size and estimator. The cautions of
intervals ([shortfalls.py](../../../python/offpolicy/intervals/shortfalls.py)) come from the tables by effective sample
size.

{findings}

{tables}
"""


def table(rows: list[dict], group: str, key: str, head: str, side: str) -> str:
    """Return one table, with one row per size and one column per method."""
    mine = [row for row in rows if row["group"] == group]
    methods = [
        m for m in METHODS if any(row["method"] == m for row in mine) and (m, group) != ("t, influence", "averages")
    ]
    lines = [[head, *(f"`{m}`" for m in methods)], ["---"] * (1 + len(methods))]
    for size in sorted({row[key] for row in mine}):
        found = {row["method"]: row[side] for row in mine if row[key] == size}
        lines.append([str(size), *(shown(found.get(m), side) for m in methods)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(number: float | None, side: str) -> str:
    """Format a cell."""
    if number is None:
        return "–"
    if side == "width":
        return f"{number:.2f}"
    return f"{100 * number:.1f}" if number >= 0.95 - ALLOWED else f"({100 * number:.1f})"


def findings(cells: list[dict]) -> str:
    """Return a comparison of the methods, cell by cell."""
    before, t, skew, auto = ([cell[m]["two"] for cell in cells if m in cell] for m in METHODS[:4])

    def far(covers: list[float | None]) -> str:
        known = [c for c in covers if c is not None]
        return f"{100 * sum(c < 0.9 for c in known) / len(known):.0f}%"

    noise = 3 * (0.95 * 0.05 / 400) ** 0.5
    worse = sum(c["auto"]["two"] < min(c["t"]["two"], 0.95) - noise for c in cells if c["auto"]["two"] is not None)
    return (
        f"Of {len(cells)} cells (problem, size, estimator), two-sided coverage is below 90% in {far(before)} with "
        f"`t, influence`, {far(t)} with `t`, {far(skew)} with `t-skew` and {far(auto)} with `auto`. In {worse} cells "
        f"`auto` covers less than `t` does, or than 95% where that covers more, by over three standard "
        f"errors of the measurement ({100 * noise:.1f} points)."
    )


def page(document: dict, cells: list[dict]) -> str:
    """Return the page with all tables."""
    tables = []
    for group, about in (("weighted", "Weighted estimators"), ("averages", "Averages")):
        for side, name in SIDES.items():
            for rows, key, head in (("by_size", "n", "n"), ("by_ess", "least_ess", "effective sample size from")):
                tables.append(f"## {about}, {name}, by {head.removesuffix(' from')}\n\n")
                tables[-1] += table(document[rows], group, key, head, side)
        tables.append(
            f"## {about}, width\n\nMedian widths of two-sided intervals, in standard errors by influence.\n\n"
        )
        tables[-1] += table(document["by_ess"], group, "least_ess", "effective sample size from", "width")
    about = {"logs": document["logs"], "problems": len({cell["problem"] for cell in cells})}
    return PAGE.format(**about, findings=findings(cells), tables="\n\n".join(tables))
