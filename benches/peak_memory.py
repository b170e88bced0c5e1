"""Evaluate one Parquet log and print this process's peak memory as JSON; bench_memory.py starts it."""

import json
import resource
import sys
from pathlib import Path


def peak_megabytes() -> float:
    """Of this program only: Linux hands the parent's `ru_maxrss` on to a child, but not its VmHWM."""
    try:
        status = Path("/proc/self/status").read_text()
        kilobytes = int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kilobytes = peak / 1024 if sys.platform == "darwin" else peak
    return kilobytes * 1024 / 1e6


if __name__ == "__main__":
    from ours import evaluate

    found = evaluate(sys.argv[1])
    print(json.dumps({"megabytes": peak_megabytes(), "steps": found.steps}))
