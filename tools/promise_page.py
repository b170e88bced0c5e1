"""The page that shows the measurements of `measure_promise`."""

from collections.abc import Iterator

TEXT = """# What the bounds of `improve` are worth

Measured by `python tools/measure_promise.py --logs {logs}`: {problems} problems whose values are known
([improvement_problems.py](../../../tools/improvement_problems.py)), sizes of {sizes} episodes, {logs} logs of each, all
scored by the same candidates. [promise.json](promise.json) has all numbers.

- *held*: in how many logs the bounds of all candidates were below the truth at once; *promised* is what Bonferroni says
  if each bound holds as often as its level. A share of {logs} logs is off by up to {noise:.2f} by chance.
- *worse*: in how many logs a candidate was recommended that is worse than π0, where only such candidates were offered:
  the hardest case for a rule, as in the right panels of Fig. 4. *any verdict* is the same without asking for a verdict
  that is at least fragile.
- `difference` bounds the paired gain, `value` is the paper's rule, V − Cσ against the mean return. With `difference`
  and `step-is`, rewards that can be negative are counted from the lowest. Bounds whose standard error is 0 count as
  none.

| rule | estimator | bound | promised | held: lowest | median | worse: highest | any verdict |
| --- | --- | --- | --- | --- | --- | --- | --- |
{summary}

- The bounds of the normal law hold in the limit of many episodes. Here all of them held at once in as little as
  {lowest:.0%} of logs where {lowest_promised:.0%} was promised ({lowest_where}).
- `betting`, which is for finite samples, held in {betting:.1%} of logs or more in every problem, and recommended a
  worse policy in {betting_worse:.1%} at most.
- The paired rule recommended a worse policy in {paired_worse:.1%} of logs at most ({paired_where}), the paper's in
  {paper_worse:.1%} ({paper_where}): with a good model the error of V is small, and that of the mean return, which the
  paper's rule leaves out, decides.

## By problem and size

Candidates and their true gains:

{gains}

*Taken* is how often some candidate was recommended where all were offered, better ones among them.

{tables}
"""


def page(document: dict) -> str:
    """Return the page as Markdown."""
    rows, logs = document["rows"], document["logs"]
    normal = [row for row in rows if row["bound"] != "betting"]
    betting = [row for row in rows if row["bound"] == "betting"]
    short = min(normal, key=lambda row: row["held"] - row["promised"])
    paired = max((row for row in rows if row["rule"] == "difference"), key=lambda row: row["worse_of_worse"])
    paper = max((row for row in rows if row["rule"] == "value"), key=lambda row: row["worse_of_worse"])
    sizes = sorted({row["n"] for row in rows})
    return TEXT.format(
        logs=logs,
        problems=len(document["problems"]),
        sizes=", ".join(map(str, sizes[:-1])) + f" and {sizes[-1]}",
        noise=2 * (0.05 * 0.95 / logs) ** 0.5,
        summary="\n".join(_summary(rows)),
        lowest=short["held"],
        lowest_promised=short["promised"],
        lowest_where=_where(short),
        betting=min(row["held"] for row in betting),
        betting_worse=max(row["worse_of_worse"] for row in betting),
        paired_worse=paired["worse_of_worse"],
        paired_where=_where(paired),
        paper_worse=paper["worse_of_worse"],
        paper_where=_where(paper),
        gains="\n".join(_gains(document["problems"])),
        tables="\n\n".join(_table(problem["problem"], rows) for problem in document["problems"]),
    )


def _where(row: dict) -> str:
    return f"`{row['estimator']}`, {row['rule']}, {row['bound']}, {row['problem']}, n = {row['n']}"


def _summary(rows: list[dict]) -> Iterator[str]:
    """Yield one line per rule, estimator and bound, over all problems and sizes."""
    for key in dict.fromkeys((row["rule"], row["estimator"], row["bound"]) for row in rows):
        some = [row for row in rows if (row["rule"], row["estimator"], row["bound"]) == key]
        held = sorted(row["held"] for row in some)
        promised = sorted({row["promised"] for row in some})
        numbers = [f"{held[0]:.3f}", f"{held[len(held) // 2]:.3f}"]
        numbers += [
            f"{max(row[name] for row in some):.3f}" for name in ("worse_of_worse", "worse_of_worse_any_verdict")
        ]
        rule, estimator, bound = key
        level = " to ".join(f"{one:.3f}" for one in dict.fromkeys((promised[0], promised[-1])))
        yield f"| {rule} | `{estimator}` | {bound} | {level} | {' | '.join(numbers)} |"


def _gains(problems: list[dict]) -> Iterator[str]:
    for problem in problems:
        shown = ", ".join(f"{name} {gain:+.4g}" for name, gain in problem["gains"].items())
        yield f"- {problem['problem']} (π0 {problem['behavior']:.4g}): {shown}"


def _table(problem: str, rows: list[dict]) -> str:
    lines = [
        "| problem | n | rule | estimator | bound | promised | held | taken | worse | any verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if row["problem"] == problem:
            names = ("promised", "held", "recommended", "worse_of_worse", "worse_of_worse_any_verdict")
            numbers = " | ".join(f"{row[name]:.3f}" for name in names)
            lines.append(
                f"| {problem} | {row['n']} | {row['rule']} | `{row['estimator']}` | {row['bound']} | {numbers} |"
            )
    return "\n".join(lines)
