import os

import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from logs import random_log, wide_log

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=50, derandomize="CI" in os.environ, **COMMON)
#: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", max_examples=100_000, **COMMON)
settings.load_profile("quick")


@pytest.fixture
def log() -> pl.DataFrame:
    """Ragged, every column of the design, 0-based steps."""
    return random_log(seed=11, episodes=8, horizon=6)


@pytest.fixture(scope="session")
def wide() -> pl.DataFrame:
    """Ragged, numbers over 24 decades."""
    return wide_log(seed=12, episodes=120, horizon=9)


@pytest.fixture
def log_file(log, tmp_path):
    path = tmp_path / "log.parquet"
    log.write_parquet(path)
    return path
