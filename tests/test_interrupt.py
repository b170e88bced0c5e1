"""Ctrl-C and a source that fails end a scan at once, without a partial result."""

import signal
import subprocess
import sys

import offpolicy as op
import pyarrow as pa
import pytest
from logs import random_log

ENDLESS = """
import sys
import offpolicy as op
import pyarrow as pa

schema = pa.schema({"episode": pa.int64(), "step": pa.int64(), "reward": pa.float64()})

def batches():
    episode = 0
    while True:
        ids = list(range(episode, episode + 1000))
        yield pa.record_batch([ids, [0] * 1000, [1.0] * 1000], schema=schema)
        episode += 1000
        if episode == 5000:
            print("running", flush=True)

op.evaluate(pa.RecordBatchReader.from_batches(schema, batches()))
print("finished")
"""


def test_ctrl_c_ends_a_scan_that_would_never_end():
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode != 0
    assert "finished" not in output
    assert "KeyboardInterrupt" in errors
    assert "panicked" not in errors


@pytest.mark.parametrize("estimators", [["mc"], ["step-wis"], None])
def test_a_source_that_fails_halfway_gives_no_partial_result(estimators):
    table = random_log(111, episodes=20).to_arrow()

    def batches():
        yield from table.to_batches(max_chunksize=5)[:3]
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    with pytest.raises((op.OffPolicyError, OSError), match="the disk is gone"):
        op.evaluate(reader, estimators=estimators)
