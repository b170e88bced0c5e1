"""Run the benchmark and print its table:

    python benches/run.py                        everything; needs 6 GB of disk and some minutes
    python benches/run.py --small                a minute or so; fails if a ratio is far off, as CI does
    python benches/run.py --only throughput numba   some suites (bench_*.py) or some bars (bars.py)
    python benches/run.py --install-peers        first install what it is compared with into this environment

Each run is kept as JSON, in pytest-benchmark's format, in .benchmarks (or --out). The Parquet log is kept in the
system's temporary folder (or OFFPOLICY_BENCH_FOLDER).
"""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parent


def main() -> int:
    options = _options()
    if options.install_peers:
        _install_peers()
    missing = [name for name in ("offpolicy", "pytest_benchmark") if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"not installed: {', '.join(missing)}; run `pip install '.[test]'` in the repository",
            file=sys.stderr,
        )
        return 2
    import pytest

    return pytest.main(_arguments(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="little data; fail if a ratio is beyond its guard")
    parser.add_argument("--require-bars", action="store_true", help="fail if a bar is not met")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="suites or bars")
    parser.add_argument("--install-peers", action="store_true", help="pip install the peers first")
    parser.add_argument("--out", type=Path, default=BENCHES.parent / ".benchmarks", help="folder for the JSON")
    return parser.parse_args()


def _arguments(options: argparse.Namespace) -> list[str]:
    suites = [BENCHES / f"bench_{name}.py" for name in options.only]
    files = [str(path) for path in suites if path.exists()]
    bars = [name for name, path in zip(options.only, suites, strict=True) if not path.exists()]
    arguments = ["-c", str(BENCHES / "pytest.ini"), *(files or [str(BENCHES)])]
    if bars:
        arguments += ["-k", " or ".join(f"test_{name}" for name in bars)]
    if options.small:
        arguments.append("--small")
    if options.require_bars:
        arguments.append("--require-bars")
    return [*arguments, f"--benchmark-storage={options.out}", "--benchmark-autosave"]


def _install_peers() -> None:
    pip = [sys.executable, "-m", "pip", "install"]
    subprocess.run([*pip, "-r", str(BENCHES / "requirements-peers.txt")], check=True)
    subprocess.run([*pip, "--no-deps", "-r", str(BENCHES / "requirements-peers-alone.txt")], check=True)


if __name__ == "__main__":
    sys.exit(main())
