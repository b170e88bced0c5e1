"""Mistakes that the tests must detect: each is put into a copy of the source, and a test must fail.

    python tools/mutants.py [WORDS OF A NAME...]

The tests of the core detect a mistake in Rust, and those of the package a mistake in Python; the latter need the
compiled core. Without any mistake the tests must pass, so that a failure is due to the mistake. The copy and its builds
are kept in target/mutants. The first run compiles the dependencies of the core, and each mistake in Rust then takes
half a minute.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILDS = ROOT / "target" / "mutants"
COPY = BUILDS / "source"


@dataclass(frozen=True)
class Mutant:
    """One mistake: `new` replaces `old`, which occurs once in the file, and `tests` detect it."""

    name: str
    file: str
    old: str
    new: str
    tests: str

    def __str__(self) -> str:
        """Return the mistake and its file."""
        return f"{self.name} ({self.file})"

    @property
    def command(self) -> list[str]:
        """Return the command that runs the tests."""
        runner = (
            ["cargo", "test", "--quiet", "--package", "offpolicy-core"]
            if self.file.endswith(".rs")
            else [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        )
        return runner + self.tests.split()


def core(name: str, file: str, old: str, new: str, tests: str) -> Mutant:
    """Make a mistake in the core that a property of all logs contradicts."""
    return Mutant(name, f"rust/core/src/{file}", old, new, f"--test properties {tests}")


def package(name: str, file: str, old: str, new: str, tests: str) -> Mutant:
    """Make a mistake in the package."""
    return Mutant(name, f"python/offpolicy/{file}", old, new, f"tests/{tests}")


RUNNING = "normaliser over running episodes only"
DDOF = "variance divided by n"
LOGARITHM = "ln(2/δ) for ln(4/δ)"
TAILS = "one-sided quantile in a two-sided interval"
DISCOUNT = "γ^t for γ^(t-1)"
DROPPED = "zero-return episodes dropped"
EPSILON = "ε in denominators"
FIXED = "bootstrap with the normaliser fixed"
SINGLE = "single sum in HCOPE"

MUTANTS = [
    core(RUNNING, "pass/normalisers.rs", "weight.merge(&ended);", "", "absorbing_steps"),
    package(
        RUNNING,
        "logs/trajectories.py",
        "shape, after=1.0)",
        "shape, after=0.0)",
        "unit/intervals/test_bootstrap.py -k replicates",
    ),
    core(
        DDOF,
        "number/moments.rs",
        "spread.divide(&n.times(&n).times(&n.minus(&Exact::integer(1)))).sqrt()",
        "spread.divide(&n.times(&n).times(&n)).sqrt()",
        "forward_sums",
    ),
    core(
        DDOF,
        "number/moments.rs",
        "self.squares.exact().divide(&n.times(&n.minus(&Exact::integer(1)))).sqrt()",
        "self.squares.exact().divide(&n.times(&n)).sqrt()",
        "a_doubled_log",
    ),
    core(
        DDOF,
        "estimators/wis.rs",
        "c4.times(&Exact::integer(n - 1))",
        "c4.times(&Exact::integer(n))",
        "a_doubled_log",
    ),
    package(
        DDOF, "intervals/hcope.py", ".sum()) / (n - 1)", ".sum()) / n", "unit/intervals/test_finite_sample.py -k hcope"
    ),
    package(DDOF, "intervals/likelihood.py", "/ (self.n - 2))", "/ self.n)", "unit/intervals/test_likelihood.py"),
    package(
        LOGARITHM,
        "intervals/bernstein.py",
        "log = math.log(2 / tail)",
        "log = math.log(1 / tail)",
        "unit/intervals/test_finite_sample.py -k bernstein",
    ),
    package(
        TAILS,
        "intervals/request.py",
        'return 0.5 + self.confidence / 2 if self.side == "two" else self.confidence',
        "return self.confidence",
        "unit/intervals/test_intervals.py -k t_interval",
    ),
    package(
        TAILS,
        "intervals/request.py",
        '(1 - self.confidence) / (2 if self.side == "two" else 1)',
        "1 - self.confidence",
        "unit/intervals/test_finite_sample.py -k formulas",
    ),
    core(
        DISCOUNT,
        "pass/table.rs",
        "let (mut power, mut error) = (Scaled::ONE, Scaled::ZERO);",
        "let (mut power, mut error) = (Scaled::from(discount), Scaled::ZERO);",
        "forward_sums",
    ),
    package(
        DISCOUNT,
        "intervals/ratios.py",
        "np.arange(h),",
        "np.arange(1, h + 1),",
        "unit/intervals/test_bootstrap.py -k replicates",
    ),
    core(
        DROPPED,
        "pass/engine/mod.rs",
        "        *self.sums.lengths.entry(open.steps).or_default() += 1;\n",
        "        if open.policies[0].lanes.iter().any(|returns| returns.total().is_zero()) { return; }\n"
        "        *self.sums.lengths.entry(open.steps).or_default() += 1;\n",
        "forward_sums",
    ),
    package(
        DROPPED,
        "intervals/ratios.py",
        "values = samples.values(policy, request.estimator)",
        'values = samples.values(policy, request.estimator).filter(pl.col("value") != 0)',
        "unit/intervals/test_bootstrap.py -k earn",
    ),
    core(EPSILON, "pass/ratios.rs", "pi_1[j] / pi_0[j]", "pi_1[j] / (pi_0[j] + 1e-8)", "forward_sums"),
    core(
        EPSILON,
        "pass/engine/mod.rs",
        "pi_1.0[j] / pi_0.0[j]",
        "pi_1.0[j] / (pi_0.0[j] + Scaled::from(1e-8))",
        "rewards_scale",
    ),
    core(
        EPSILON,
        "pass/normalisers.rs",
        "weight.merge(&ended);",
        "weight.merge(&ended);\n            weight.add(Scaled::from(1e-8));",
        "ratios_of_one",
    ),
    package(
        EPSILON,
        "intervals/ratios.py",
        "sums[:, self.num] / sums[:, self.den]",
        "sums[:, self.num] / (sums[:, self.den] + 1e-8)",
        "unit/intervals/test_bootstrap.py -k replicates",
    ),
    package(
        FIXED,
        "intervals/ratios.py",
        "sums[:, self.num] / sums[:, self.den]",
        "sums[:, self.num] / sums[:1, self.den]",
        "unit/intervals/test_bootstrap.py -k normalisers",
    ),
    package(
        SINGLE,
        "intervals/hcope.py",
        "half_width(math.sqrt(variance / n), c",
        "half_width(math.sqrt(variance / (2 * n * n)), c",
        "unit/intervals/test_finite_sample.py -k reward_bounds_alone",
    ),
]


def refresh_copy() -> None:
    """Copy the source and the compiled core, except files that are unchanged, which need not be compiled again."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    files = {ROOT / name: COPY / name for name in filter(None, names) if (ROOT / name).is_file()}
    compiled = importlib.util.find_spec("offpolicy._core")
    if compiled is None or compiled.origin is None:
        raise SystemExit("the compiled core is not there: pip install '.[test]'")
    files[Path(compiled.origin)] = COPY / "python" / "offpolicy" / Path(compiled.origin).name
    for file, copy in files.items():
        if not copy.exists() or copy.read_bytes() != file.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def fails(command: list[str]) -> bool:
    """Tell whether a test fails. A test that cannot be run stops the program."""
    paths = [COPY / "python", *COPY.glob("plugins/*/src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"CARGO_TARGET_DIR": str(BUILDS), "PYTHONPATH": os.pathsep.join(map(str, paths))}

    def run(*words: str, expected: tuple[int, ...]) -> int:
        done = subprocess.run(words, cwd=COPY, env=os.environ | settings, capture_output=True, text=True)
        if done.returncode not in expected:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.returncode

    if command[0] == "cargo":
        run(*command, "--no-run", expected=(0,))
        return run(*command, expected=(0, 101)) != 0
    return run(*command, expected=(0, 1)) != 0


def lives(mutant: Mutant) -> bool:
    """Tell whether no test detects the mistake."""
    file = COPY / mutant.file
    right = file.read_text()
    file.write_text(right.replace(mutant.old, mutant.new))
    try:
        return not fails(mutant.command)
    finally:
        file.write_text(right)


def main(words: list[str]) -> int:
    """Try all mutants, or those whose names contain one of the words, and return 1 if one lives."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in str(mutant) for word in words)]
    refresh_copy()
    for command in dict.fromkeys(tuple(mutant.command) for mutant in chosen):
        if fails(list(command)):
            raise SystemExit(f"{' '.join(command)} fails without any mistake")
    alive = 0
    for mutant in chosen:
        alive += (found := lives(mutant))
        print(f"{'LIVES' if found else 'dies'}: {mutant}", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} die")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
