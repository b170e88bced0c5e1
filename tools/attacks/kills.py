"""Commands that are ended by a signal at a random moment."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from attacks.outcomes import REFUSED, RIGHT, failure
from logs import random_log
from offpolicy._util.scratch import sweep

TRIED = 150
ATTACKED = "commands killed (TERM, KILL, INT)"
SURVIVING = (
    "The process ends within a minute, with 143 after TERM and 130 after INT once Python has begun; a file it was to "
    "write is absent or whole; what it left in the place for temporary files is swept at the next start, or was gone "
    "already. *Refused* are those that ended, *right number* those that were done before the signal."
)
#: How the system ends a process that has not yet said what it does with a signal.
CODES = {signal.SIGTERM: (143, -signal.SIGTERM), signal.SIGINT: (130, -signal.SIGINT), signal.SIGKILL: (-9,)}
LOG = random_log(seed=3, episodes=60_000, horizon=8).sample(fraction=1.0, shuffle=True, seed=1)


def command(log: Path, out: Path) -> list[str]:
    """Return a command that sorts a copy of the log, reads it, reads it again, and writes a file."""
    words = ["evaluate", str(log), "--order", "any", "--interval", "bootstrap", "--discount", "0.9", "--out", str(out)]
    return [sys.executable, "-m", "offpolicy", *words]


@cache
def undisturbed(folder: Path) -> tuple[Path, dict, float]:
    """Return the log, what the command writes when nobody disturbs it, and the seconds that it takes."""
    log, out = folder / "log.parquet", folder / "whole.json"
    LOG.write_parquet(log)
    begun = time.monotonic()
    subprocess.run(command(log, out), check=True, capture_output=True)
    return log, json.loads(out.read_text()), time.monotonic() - begun


def case(number: int, folder: Path) -> str:
    """End one command and look at what it left."""
    rng = random.Random(number)
    log, whole, seconds = undisturbed(folder)
    place, out = folder / f"tmp-{number}", folder / f"out-{number}" / "result.json"
    place.mkdir()
    out.parent.mkdir()
    how, moment = rng.choice(list(CODES)), rng.uniform(0, 1.05 * seconds)
    environment = os.environ | {"TMPDIR": str(place)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command(log, out), stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
        try:
            _, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            return failure(f"no end within a minute after {how.name} at {moment:.2f} s")
    code, done = process.returncode, process.returncode == 0
    if not done and code not in CODES[how]:
        return failure(f"exit code {code} after {how.name} at {moment:.2f} s: {said[-300:]}")
    if "panicked" in said or ("Traceback" in said and "offpolicy" in said):
        return failure(f"{how.name} at {moment:.2f} s: {said[-400:]}")
    if out.exists() and json.loads(out.read_text()) != whole:
        return failure(f"another result after {how.name} at {moment:.2f} s")
    if done and not out.exists():
        return failure("no result without a signal")
    return left(place, out, how, moment) or (RIGHT if done else REFUSED)


def left(place: Path, out: Path, how: signal.Signals, moment: float) -> str | None:
    """Tell what is still there after the next start has swept; None for nothing."""
    before = [path.name for path in place.iterdir()]
    if how != signal.SIGKILL and before:
        return failure(f"{before} left by {how.name} at {moment:.2f} s")
    sweep(place)
    sweep(out.parent)
    after = [path.name for path in (*place.iterdir(), *out.parent.iterdir()) if path != out]
    return failure(f"{after} not swept after {how.name} at {moment:.2f} s") if after else None
