"""The page that shows how often intervals cover the truth, and what the verdict says of them."""

PAGE = """# What the verdict rests on

Measured by `python benches/measure_verdict.py --runs {runs}`: {problems} problems whose true value is known
([hard_problems.py](../../benches/hard_problems.py)), five sizes, {runs} logs of each. Of every log each estimator's 95%
t interval is held against the truth, and its verdict noted. [table.json](table.json) has all numbers; the rules are in
[verdict.py](../../python/offpolicy/verdict.py).

- Of {rows} combinations of problem, size and estimator, {poor} have intervals that cover the truth in fewer than 90 of
  100 logs. The verdict *reliable* was given to them in {worst:.1%} of the logs at most ({worst_of}), and in
  {mean:.2%} on average: a sample that by chance lacks its tail cannot show that it does.
- Where *reliable* was the verdict on most logs ({trusted} combinations), the lowest coverage is {lowest:.1%}
  ({lowest_of}).

## Coverage by diagnostic

All estimators and problems together, of logs in which no other rule objects: what each rule adds to the others.

{ranges}

A large effective sample size alone does not save an estimate whose variance one trajectory carries (`survival 0.7`:
hundreds, and coverage of `is` far below 95%), which is why the share of one trajectory in the variance, the
concentration, is looked at too. From k̂ = ½ on weights have no variance; where no other rule objects, coverage does not
fall there: the limit is that of the theory, and a margin. So is an effective sample size of 100: between 30 and 100
it did no harm here where no other rule objects.

The last three tables are about problems whose log is not what it seems (`unlogged`, `wrong`, `shifted`), where no
number of trajectories helps and more of them make an interval narrower around the wrong value. Near the limits, and in
small samples, such a log cannot be told from a right one: below 5 standard errors it is among many that are right.

## Coverage by problem

ESS, k̂ and the largest share of a weight are medians. After each coverage, how often the verdict was *reliable*.

{settings}
"""


def percent(share: float | None) -> str:
    """A share for a table."""
    return "–" if share is None else f"{100 * share:.1f}%"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def between(row: dict) -> str:
    """A range in words."""
    low, high = row["from"], row["to"]
    return f"below {high:g}" if low is None else f"{low:g} or more" if high is None else f"{low:g} to {high:g}"


def page(document: dict) -> str:
    """What was measured, for people."""
    rows = document["settings"]
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    poor = [row for row in rows if row["coverage"] < 0.9]
    trusted = [row for row in rows if row["reliable"] > 0.5]
    worst, lowest = max(poor, key=lambda row: row["reliable"]), min(trusted, key=lambda row: row["coverage"])
    named = {
        "ess": "effective sample size",
        "k_hat": "k̂",
        "mean_errors": "standard errors of the mean weight from 1",
        "log10_e_value": "log10 of the e-value against the logged probabilities",
        "control_errors": "standard errors of the control variate from 0 (dr, wdr)",
    }
    ranges = []
    for name, found in document["ranges"].items():
        cells = [[between(row), f"{row['intervals']:,}", percent(row["coverage"])] for row in found]
        ranges.append(table([named.get(name, name), "intervals", "coverage"], cells))
    by_log: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        by_log.setdefault((row["setting"], row["n"]), {})[row["estimator"]] = row
    cells = []
    for (setting, n), found in by_log.items():
        about = found["is"]
        shape = "–" if about["k_hat"] is None else f"{about['k_hat']:.2f}"
        each = [found.get(name) for name in estimators]
        covers = ["–" if row is None else f"{percent(row['coverage'])} ({row['reliable']:.0%})" for row in each]
        cells.append([setting, f"{n:,}", f"{about['ess']:,.0f}", shape, percent(about["largest_share"]), *covers])
    of = "`{estimator}` on {setting}, n = {n}".format
    return PAGE.format(
        runs=document["runs"],
        problems=len({row["setting"] for row in rows}),
        rows=len(rows),
        poor=len(poor),
        worst=worst["reliable"],
        worst_of=of(**worst),
        mean=sum(row["reliable"] for row in poor) / len(poor),
        trusted=len(trusted),
        lowest=lowest["coverage"],
        lowest_of=of(**lowest),
        ranges="\n\n".join(ranges),
        settings=table(["problem", "n", "ESS", "k̂", "share", *estimators], cells),
    )
