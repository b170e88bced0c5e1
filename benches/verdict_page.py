"""The page that shows how often intervals cover the truth, and what the verdict says of them."""

PAGE = """# What the verdict rests on

Measured by `python benches/measure_verdict.py --runs {runs}`: {problems} problems whose true value is known
([hard_problems.py](../../benches/hard_problems.py)), five sizes or six, {runs} logs of each. Of every log each
estimator's 95% t interval is held against the truth, and its verdict noted. [table.json](table.json) has all numbers;
the rules are in [verdict.py](../../python/offpolicy/verdict.py).

- Of {rows} combinations of problem, size and estimator, {poor} have intervals that cover the truth in fewer than 90 of
  100 logs. The verdict *reliable* was given to them in {worst:.1%} of the logs at most ({worst_of}), and in
  {mean:.2%} on average: a sample that by chance lacks its tail cannot show that it does.
- Where *reliable* was the verdict on most logs ({trusted} combinations), the lowest coverage is {lowest:.1%}
  ({lowest_of}).

This is about {right} problems whose logs are what they seem. Of the others (`unlogged`, `wrong`, `shifted`),
{wrong_poor} combinations of {wrong_rows} have a coverage below 90%, and *reliable* was said of them in {wrong_mean:.1%}
of the logs on average, at worst in {wrong_worst:.1%} ({wrong_of}): probabilities that are wrong by no more than a few
of the log's own standard errors leave no trace in it, while an interval already misses the truth.

## Coverage by diagnostic

All estimators together, of logs in which no other rule objects: what each rule adds to the others. The first three
tables have the problems whose logs are what they seem, the last three all of them.

{ranges}

A large effective sample size alone does not save an estimate whose variance one trajectory carries (`survival 0.7`:
hundreds, and coverage of `is` far below 95%), which is why the share of one trajectory in the variance, the
concentration, is looked at too. From k̂ = ½ on weights have no variance; where no other rule objects, coverage does not
fall there: the limit is that of the theory, and a margin. So is an effective sample size of 100: between 30 and 100
it did no harm here where no other rule objects.

Two standard errors of the mean weight or more are as often the sign of a wrong log here as chance; the limit is 3,
which of right logs one in 400 exceeds by chance. That of the control variate is 5, and coverage falls there. The
e-value was never alone: where it objected, another rule did too.

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
    rows = [row for row in document["settings"] if row["right"]]
    wrong = [row for row in document["settings"] if not row["right"]]
    estimators = list(dict.fromkeys(row["estimator"] for row in document["settings"]))
    poor, wrong_poor = ([row for row in some if row["coverage"] < 0.9] for some in (rows, wrong))
    trusted = [row for row in rows if row["reliable"] > 0.5]
    unseen = max(wrong_poor, key=lambda row: row["reliable"])
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
    for row in document["settings"]:
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
        problems=len({row["setting"] for row in document["settings"]}),
        right=len({row["setting"] for row in rows}),
        wrong_rows=len(wrong),
        wrong_poor=len(wrong_poor),
        wrong_mean=sum(row["reliable"] for row in wrong_poor) / len(wrong_poor),
        wrong_worst=unseen["reliable"],
        wrong_of=of(**unseen),
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
