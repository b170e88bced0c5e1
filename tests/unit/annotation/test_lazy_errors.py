"""An error of the annotator crosses a lazy log whole: the same class, kind, problems and text as for a frame."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import offpolicy as op
import polars as pl
import pytest
from offpolicy._util.carried import Failures, kept_error
from offpolicy.policies import FromCallable, Uniform
from offpolicy.testing import Walk

WALK = Walk()
LOG = WALK.simulate(WALK.behavior, 60, seed=1)
PI = Uniform(WALK.actions)
COLUMNS = op.Columns(state=WALK.state_columns)


def with_actions(**actions: int) -> pl.DataFrame:
    """The log with other actions in some rows, which are given as row_7=9."""
    rows = {int(name.removeprefix("row_")): action for name, action in actions.items()}
    changed = LOG["action"].to_list()
    for row, action in rows.items():
        changed[row] = action
    return LOG.with_columns(action=pl.Series(changed, dtype=LOG.schema["action"]))


BAD = with_actions(row_40=99)


def raised(call) -> op.OffPolicyError:
    with pytest.raises(op.OffPolicyError) as caught:
        call()
    return caught.value


def alike(found: op.OffPolicyError, expected: op.OffPolicyError) -> bool:
    parts = [(type(e), e.kind, e.remedy, str(e), getattr(e, "problems", None)) for e in (found, expected)]
    return parts[0] == parts[1]


def annotated(frame: pl.DataFrame, policy=PI) -> pl.LazyFrame:
    return op.annotate(frame.lazy(), policy, columns=COLUMNS)


def of_frame(frame: pl.DataFrame, policy=PI) -> op.OffPolicyError:
    return raised(lambda: op.annotate(frame, policy, columns=COLUMNS))


READERS = {
    "evaluate": op.evaluate,
    "evaluate-map": lambda log: op.evaluate(log, map=map),
    "evaluate-any": lambda log: op.evaluate(log, order="any"),
    "evaluate-derived": lambda log: op.evaluate(log.filter(pl.col("step") >= 0).with_columns(other=1)),
    "evaluate-twice": lambda log: op.evaluate(op.annotate(log, PI, columns=COLUMNS)),
    "check": op.check,
    "cross_fit": lambda log: op.cross_fit(log, WALK, policy={"logged": PI}, folds=2),
    "improve": lambda log: op.improve(log, WALK, generator={"uniform": PI}),
    "collect": lambda log: log.collect(),
    "collect-streaming": lambda log: log.collect(engine="streaming"),
    "collect-part": lambda log: log.select(pl.col("target_prob").sum()).collect(),
    "sink": lambda log: log.sink_parquet("annotated.parquet"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_bad_row_gives_the_error_that_a_frame_gives(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = of_frame(BAD)
    assert (type(expected), expected.kind) == (op.BadLogError, "bad-log")
    assert expected.problems[0].kind == "no-such-action"
    assert alike(raised(lambda: READERS[reader](annotated(BAD))), expected)


@pytest.mark.parametrize("reader", ["evaluate", "check", "collect"])
def test_an_error_that_is_not_about_rows_arrives_whole_too(reader):
    wrong = FromCallable(lambda states, step: [[0.5] * (WALK.actions + 1)])
    expected = of_frame(LOG, wrong)
    assert expected.kind is not None
    assert type(expected) is not op.BadLogError
    assert alike(raised(lambda: READERS[reader](annotated(LOG, wrong))), expected)


@pytest.mark.parametrize("reader", ["evaluate", "collect"])
def test_a_reading_can_fail_again(reader):
    log = annotated(BAD)
    first, second = (raised(lambda: READERS[reader](log)) for _ in range(2))
    assert alike(first, second)
    assert first is not second  # each has a traceback of its own


def test_logs_that_are_read_at_once_keep_their_own_errors():
    """The first six logs have errors of the same text, since the text shows five problems and counts the others."""
    shown = {f"row_{row}": 50 for row in range(5)}
    frames = [with_actions(**shown, row_30=60 + other) for other in range(6)]
    frames += [with_actions(**{f"row_{row}": 70}) for row in range(6)]
    expected = [of_frame(frame) for frame in frames]
    assert len({str(error) for error in expected}) == 7
    logs = [annotated(frame) for frame in frames]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = list(pool.map(lambda log: raised(lambda: op.evaluate(log, threads=1)), logs))
            assert all(map(alike, found, expected))


def test_errors_are_forgotten_with_their_function():
    failures = Failures()
    query = pl.LazyFrame({"x": [1]}).with_columns(pl.col("x").alias(failures.name))
    error = failures.carried(op.UsageError("no"))
    assert str(kept_error(query, "python: UsageError: no")) == "no"
    assert kept_error(query, "python: UsageError: yes") is None
    assert kept_error(pl.LazyFrame({"x": [1]}), "python: UsageError: no") is None
    del failures, error
    assert kept_error(query, "python: UsageError: no") is None
