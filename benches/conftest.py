"""Fixtures and options of all benchmarks, and the table at the end."""

import importlib
import os
from importlib.metadata import PackageNotFoundError, version
from io import StringIO

# The libraries read these when they are first imported, hence before the imports below.
os.environ.update(POLARS_MAX_THREADS="2", OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2", OMP_NUM_THREADS="2")

import pytest
from contest import Contest
from rich.console import Console
from sizes import FULL, SMALL
from table import rich_table
from workload import log as make_log
from workload import parquet

_PACKAGES = ("offpolicy", "numpy", "polars", "numba", "pyarrow", "duckdb", "gymnasium", "scipy", "scope-rl")
_reasons = pytest.StashKey[dict]()
_outcomes = pytest.StashKey[dict]()


def pytest_addoption(parser):
    parser.addoption("--small", action="store_true", help="little data; fail if a ratio is beyond its guard")
    parser.addoption("--require-bars", action="store_true", help="fail if a bar is not met")


def pytest_configure(config):
    config.stash[_reasons] = {}
    config.stash[_outcomes] = {}


@pytest.fixture(scope="session")
def size(pytestconfig):
    return SMALL if pytestconfig.getoption("small") else FULL


@pytest.fixture(scope="session")
def log(size):
    return make_log(size.memory_rows)


@pytest.fixture(scope="session")
def parquet_log(size):
    """Return the path of the log, which is written when first needed and read once to fill the page cache."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed; it writes the Parquet file")
    path = parquet(size.parquet_rows, row_group=size.row_group)
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass
    return path


@pytest.fixture(scope="session")
def ours():
    module = importlib.import_module("ours")
    module.check()
    return module


@pytest.fixture(scope="session")
def peer():
    """Return a function that loads a peer's module, checks it against the definition, and skips if it is absent."""
    checked = {}

    def load(name):
        if name not in checked:
            try:
                checked[name] = importlib.import_module(f"peers.{name}")
                checked[name].check()
            except ImportError as missing:
                pytest.skip(str(missing))
        return checked[name]

    return load


@pytest.fixture
def contest(request, benchmark, size):
    bar_id = request.node.get_closest_marker("bar").args[0]
    yield Contest(bar_id, benchmark, size.small, request.config.getoption("require_bars"))
    if benchmark.extra_info:
        request.config.stash[_outcomes][bar_id] = dict(benchmark.extra_info)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    marker = item.get_closest_marker("bar")
    if marker and (report.skipped or report.failed):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else call.excinfo.exconly()
        item.config.stash[_reasons][marker.args[0]] = reason.removeprefix("Skipped: ").splitlines()[0]
    return report


def pytest_benchmark_update_machine_info(config, machine_info):
    """Name the machine by its hardware, not by its host name."""
    cpu = machine_info.get("cpu", {})
    machine_info["node"] = f"{cpu.get('brand_raw', machine_info['machine'])}, {os.cpu_count()} cores"
    machine_info.pop("release")


def pytest_benchmark_update_commit_info(config, commit_info):
    commit_info["project"] = "offpolicy"


def pytest_benchmark_update_json(config, benchmarks, output_json):
    output_json["not_run"] = _not_run(config)
    output_json["packages"] = {name: found for name in _PACKAGES if (found := _version(name))}


def pytest_terminal_summary(terminalreporter, config):
    outcomes, not_run = config.stash[_outcomes], _not_run(config)
    if outcomes or not_run:
        text = StringIO()
        console = Console(file=text, width=140, force_terminal=terminalreporter.hasmarkup)
        console.print(rich_table(outcomes, not_run))
        terminalreporter.write(text.getvalue())


def _not_run(config):
    """Return, by bar, the reason why there is no outcome."""
    outcomes = config.stash[_outcomes]
    return {bar: reason for bar, reason in config.stash[_reasons].items() if bar not in outcomes}


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None
