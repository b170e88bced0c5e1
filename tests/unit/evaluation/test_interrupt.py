"""Ctrl-C and a source that fails end a scan at once, without a partial result."""

import signal
import subprocess
import sys
import threading

import offpolicy as op
import pyarrow as pa
import pytest
from logs import random_log
from offpolicy._util.interruptible import interruptible

ENDLESS = """
import sys
import threading
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


SLOW_CALL = """
import time
from offpolicy._util.interruptible import interruptible

def work(go_on):
    print("running", flush=True)
    time.sleep(600)

interruptible(work)
"""


def test_ctrl_c_does_not_wait_for_a_call_of_another_library():
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_CALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors


def test_work_that_nobody_waits_for_is_stopped():
    ended = threading.Event()

    def work(go_on):
        try:
            while True:
                go_on()
        finally:
            ended.set()

    class Impatient(Exception):
        pass

    def leave(_signal, _frame):
        raise Impatient

    before = signal.signal(signal.SIGALRM, leave)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Impatient):
            interruptible(work)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended.wait(timeout=60)
