"""Repeat the attacks on everything that reads input: `python tools/attacks/run.py --out docs/results/attacks.json`.

Each kind of attack is a module with its number of cases (`TRIED`), the words of the table (`ATTACKED`, `SURVIVING`) and
`case(number, folder)`, which tries one case, made from its number alone, and returns its outcome. `--quick` tries a
hundredth of each; `--only KIND` one kind; `--only KIND --case NUMBER` one case, whose outcome is printed. Finished
chunks are kept in `--log`, and a run that was interrupted goes on behind them.

The page docs/robustness.md is written from the result when all kinds have been tried in full. The exit code is 1 where
a case has failed.
"""

import argparse
import json
import queue
import subprocess
import sys
import threading
from collections import Counter
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import _support  # noqa: F401  makes the helpers of the tests importable
import offpolicy as op
from attacks.outcomes import FAILURE, failure
from attacks.page import page

KINDS = ("damaged_parquet", "forged_states", "damaged_runs", "kills", "changed_files", "arrow_objects")
ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("worker.py")
#: Cases of one worker.
CHUNK = 500
#: Seconds without an end of a case after which it hangs.
PATIENCE = 120.0


def tried(kind: str, start: int, end: int) -> dict[int, str]:
    """Return the outcome of each case of a chunk; one that ends or blocks its worker has failed."""
    found: dict[int, str] = {}
    while start < end:
        last = start
        words = [sys.executable, str(WORKER), kind, str(start), str(end)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
            lines: queue.Queue[str] = queue.Queue()
            threading.Thread(target=_forward, args=(worker.stdout, lines), daemon=True).start()
            why = "its process ended"
            while True:
                try:
                    line = lines.get(timeout=PATIENCE)
                except queue.Empty:
                    why = f"no end within {PATIENCE:.0f} s"
                    worker.kill()
                    break
                if not line:
                    break
                report = json.loads(line)
                if "begins" in report:
                    last = report["begins"]
                else:
                    found[report["ends"]] = report["outcome"]
            said = worker.stderr.read()
        if len(found) and max(found) == end - 1:
            break
        found[last] = failure(f"{why} (exit code {worker.returncode}): {said[-300:]}")
        start = last + 1
    return found


def _forward(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put("")


def counted(kind: str, cases: int, log: Path) -> dict:
    """Try all cases of a kind, chunk by chunk, and return its entry of the result."""
    attack = import_module(f"attacks.{kind}")
    outcomes: Counter[str] = Counter()
    failures = {}
    for start in range(0, cases, CHUNK):
        end = min(start + CHUNK, cases)
        for number, outcome in finished(kind, start, end, log).items():
            short = outcome.split(":")[0]
            outcomes[short] += 1
            if short == FAILURE:
                failures[number] = outcome
        print(f"{kind}: {end} of {cases}: {dict(outcomes)}", flush=True)
    return {
        "attack": attack.ATTACKED,
        "surviving": attack.SURVIVING,
        "tried": outcomes.total(),
        "survived": outcomes.total() - outcomes[FAILURE],
        "outcomes": dict(sorted(outcomes.items())),
        "failures": failures,
    }


def finished(kind: str, start: int, end: int, log: Path) -> dict[int, str]:
    """Return the outcomes of a chunk, from the log of an earlier run where it has them."""
    if log.exists():
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if (entry["kind"], entry["from"], entry["to"]) == (kind, start, end):
                return {int(number): outcome for number, outcome in entry["outcomes"].items()}
    found = tried(kind, start, end)
    with log.open("a") as file:
        print(json.dumps({"kind": kind, "from": start, "to": end, "outcomes": found}), file=file)
    return found


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the result goes")
    parser.add_argument("--log", type=Path, help="finished chunks; beside the result by default")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the cases")
    parser.add_argument("--only", choices=KINDS, help="one kind of attack")
    parser.add_argument("--case", type=int, help="one case of that kind")
    given = parser.parse_args()
    if given.only is None if given.case is not None else given.out is None:
        parser.error("give --out, or --only and --case")
    return given


def main() -> int:
    """Run the attacks and write what came of them."""
    given = arguments()
    if given.case is not None:
        (outcome,) = tried(given.only, given.case, given.case + 1).values()
        print(outcome)
        return int(outcome.startswith(FAILURE))
    log = given.log or given.out.with_suffix(".log.jsonl")
    found = {}
    for kind in [given.only] if given.only else KINDS:
        cases = import_module(f"attacks.{kind}").TRIED
        found[kind] = counted(kind, max(cases // 100, 5) if given.quick else cases, log)
    result = {"offpolicy": op.__version__, "attacks": found}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n")
    if not given.quick and not given.only:
        (ROOT / "docs" / "robustness.md").write_text(page(result))
    return int(any(entry["failures"] for entry in found.values()))


if __name__ == "__main__":
    sys.exit(main())
