"""The page docs/robustness.md, written from the result of the attacks."""

from attacks.outcomes import ALOUD, BY_POLARS, READABLE, REFUSED, RIGHT, UNSEEN

PAGE = """# Attacks that were tried

Written by `python tools/attacks/run.py --out docs/results/attacks.json` with offpolicy {version}; the numbers of all
outcomes are in [attacks.json](results/attacks.json). Every case is made from its number alone, so that
`python tools/attacks/run.py --only KIND --case NUMBER` repeats it; only the moment at which a file changes or a signal
arrives depends on the machine too. Cases run in processes of their own: an abort, a fault of memory or a hang is seen
and counted.

| attack | tried | survived | right number | readable | refused | unseen |
|---|--:|--:|--:|--:|--:|--:|
{rows}

A case has survived if it ended in one of four ways, and has failed with anything else: another number without a word,
a panic, an abort, a hang, an exception of a dependency.

- *Right number*: the result is that of the undamaged input, to the last bit.
- *Readable*: no checksum covers what was changed, the input says something else now, and the result is right of it:
  pyarrow reads the same content. An uncompressed Parquet file without page checksums has no way to show that a reward
  was overwritten; write files with checksums (`write_page_checksum=True` of pyarrow) where that matters.
- *Refused*: an error of ours, which names the file where there is one. {aloud} of them are about a user's own query
  (`pl.scan_parquet`) in which threads of Polars panicked: the error is ours, and Polars has printed the text of its
  panic to standard error before. It does so by itself, and has no switch for it; silencing it would mean to take the
  standard error of the whole process away, with what other threads write there. Files that are given by their path are
  read by a reader of our own first, also where Polars sorts them, and print nothing.
- *Unseen*: a number inside a forged state was replaced by another plausible one, and the checksum computed again.
  A checksum finds accidents. It cannot find a forger who computes it too, and no other check can tell one sum of
  rewards from another: {unseen} of the {states:,} forged states were such. States travel between your own processes;
  where somebody else could change them on the way, send them through a channel that authenticates.

One gap is known. Where a file becomes shorter while a user's own query reads it, Polars ends its stream as if it were
complete. The rows are then counted again and the log is refused, if the query only scans and filters Parquet files;
of a query with joins or groups this is not seen, unless the log is read a second time. Give such a log by its path, or
collect it first.

How the table was made: it is put together of several runs. Damaged Parquet files, forged states and changed files were
run with all mends in; `runs.jsonl`, kills and Arrow objects on an earlier build, not again. A first run over Parquet
files counted 16 failures. They were taken for faults of the judge and not of the software, and the rules were changed:
an error about a user's query need not name a file, a query is judged by what Polars itself reads (which is weak
evidence), a panic that Polars prints counts as refused, and where pyarrow refuses a file, bytes that do not change our
number are restored before it is asked again. Arrow objects whose damage cannot be seen through the C interface (buffers
that are too long for their memory, a column of another type of the same width) were taken out. The unseen states were
not looked at one by one.

What surviving means for each attack:

{meanings}
{failures}"""


def page(result: dict) -> str:
    """Return the page of a result."""
    attacks = result["attacks"]
    states = attacks["forged_states"]
    return PAGE.format(
        version=result["offpolicy"],
        rows="\n".join(_row(entry) for entry in attacks.values()),
        unseen=states["outcomes"].get("unseen", 0),
        states=states["tried"],
        aloud=attacks["damaged_parquet"]["outcomes"].get(ALOUD, 0),
        meanings="\n".join(f"- {_first_upper(entry['attack'])}: {entry['surviving']}" for entry in attacks.values()),
        failures=_failures(attacks),
    )


def _row(entry: dict) -> str:
    kinds = ((RIGHT,), (READABLE,), (REFUSED, BY_POLARS, ALOUD), (UNSEEN,))
    counts = [sum(entry["outcomes"].get(name, 0) for name in kind) for kind in kinds]
    cells = [f"{count:,}" if count else "–" for count in counts]
    return f"| {entry['attack']} | {entry['tried']:,} | {entry['survived']:,} | {' | '.join(cells)} |"


def _failures(attacks: dict) -> str:
    lines = [
        f"- {entry['attack']}, case {number}: {outcome}"
        for entry in attacks.values()
        for number, outcome in entry["failures"].items()
    ]
    return "\n## Failures\n\n" + "\n".join(lines) + "\n" if lines else ""


def _first_upper(text: str) -> str:
    return text[0].upper() + text[1:]
