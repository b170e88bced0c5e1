"""One class for each kind of log, behind a registry; nobody else asks of which kind a log is."""

import re
from pathlib import Path

import offpolicy as op
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from offpolicy.errors import UsageError
from offpolicy.logs import sources
from offpolicy.logs.sources import KINDS, open_log

LOG = op.demo_log(episodes=5)


@pytest.fixture
def path(tmp_path):
    LOG.write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_every_kind_of_log_is_opened_by_its_class_and_read_alike(path):
    table = LOG.to_arrow()
    logs = {
        "FrameSource": [LOG, table, LOG.to_pandas()],
        "StreamSource": [LOG.lazy()],
        "ParquetSource": [path, str(path), [path], path.parent, str(path.parent / "*.parquet"), table.to_reader()],
        "ReaderSource": [pa.dataset.dataset(table)],
        "RemoteSource": [path.as_uri(), [path.as_uri()]],
    }
    assert set(logs) == {kind.__name__ for kind in KINDS}
    expected = op.evaluate(LOG).table
    for kind, some in logs.items():
        for log in some:
            source = open_log(log)
            assert type(source).__name__ == kind
            assert op.evaluate(source).table.equals(expected)
            assert pl.DataFrame(source.as_polars().lazy().select("reward").collect()).equals(LOG.select("reward"))
            assert (source.in_memory is not None) == (kind == "FrameSource")
            assert source.is_query == (kind in ("StreamSource", "ReaderSource", "RemoteSource"))
            assert op.evaluate(source.reopened()).table.equals(expected)


def test_what_is_no_log_is_refused():
    for wrong in (None, 3, {"a": 1}):
        with pytest.raises(UsageError, match="a log is a Polars frame"):
            open_log(wrong)
    with pytest.raises(UsageError, match="a list of logs holds paths, not int"):
        open_log(["s3://bucket/log.parquet", 3])


def test_nobody_asks_of_which_kind_a_log_is():
    room = Path(sources.__file__).parent
    kinds = "|".join(kind.__name__ for kind in KINDS)
    asking = re.compile(rf"isinstance\([^()]*\b({kinds})\b")
    files = [file for file in room.parents[1].rglob("*.py") if room not in file.parents]
    assert len(files) > 100
    assert [str(file) for file in files if asking.search(file.read_text())] == []
