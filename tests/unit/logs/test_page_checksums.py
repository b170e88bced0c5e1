"""Pages of Parquet files: a checksum that does not match is refused, and a size that its header contradicts."""

import offpolicy as op
import pyarrow as pa
import pyarrow.parquet
import pytest
from logs import random_log

LOG = random_log(seed=3, episodes=40, horizon=6)
ASKED = {"discount": 0.9, "estimators": ["step-is", "step-wis"]}


def written(path, *, checksums, compression="none", version="1.0"):
    pa.parquet.write_table(
        LOG.to_arrow(),
        path,
        compression=compression,
        use_dictionary=False,
        write_page_checksum=checksums,
        data_page_version=version,
    )
    return path


def first_page(path, column):
    """Where the first page of a column begins and ends."""
    chunk = pa.parquet.ParquetFile(path).metadata.row_group(0).column(LOG.columns.index(column))
    start = chunk.data_page_offset
    return start, start + chunk.total_compressed_size


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
def test_a_page_that_does_not_match_its_checksum_is_refused(tmp_path, compression, version):
    path = written(tmp_path / "log.parquet", checksums=True, compression=compression, version=version)
    expected = op.evaluate(LOG, **ASKED).table
    assert op.evaluate(path, **ASKED).table.equals(expected)
    content = bytearray(path.read_bytes())
    content[first_page(path, "reward")[1] - 9] ^= 4
    path.write_bytes(content)
    with pytest.raises(op.BadFileError, match=r"log\.parquet: .*CRC checksum mismatch"):
        op.evaluate(path, **ASKED)


def test_without_checksums_files_are_read_as_before(tmp_path):
    expected = op.evaluate(LOG, **ASKED).table
    for compression in ("none", "zstd"):
        path = written(tmp_path / "log.parquet", checksums=False, compression=compression)
        assert op.evaluate(path, **ASKED).table.equals(expected)


def zigzag(number):
    """A whole number as Thrift writes it."""
    number, found = 2 * number, bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("more", [-8, -1, 1, 8])
def test_a_page_whose_header_says_another_size_is_refused(tmp_path, compression, more):
    path = written(tmp_path / "log.parquet", checksums=False, compression=compression)
    content = path.read_bytes()
    start, _ = first_page(path, "reward")
    assert content[start : start + 3] == b"\x15\x00\x15", "a data page and the size that it has without compression"
    said, shift, at = 0, 0, start + 3
    while True:
        said |= (content[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 0x80:
            break
    wrong = zigzag(said // 2 + more)
    assert len(wrong) == at - start - 3
    path.write_bytes(content[: start + 3] + wrong + content[at:])
    with pytest.raises(op.BadFileError, match=r"log\.parquet: "):
        op.evaluate(path, **ASKED)
