"""Evaluate one Parquet log and print the peak memory of this process as JSON, started by bench_memory.py."""

import json
import resource
import sys
from pathlib import Path


def peak_megabytes() -> float:
    """Return the peak of this program only: on Linux a child inherits its parent's `ru_maxrss`, but not its VmHWM."""
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
