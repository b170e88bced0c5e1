"""The best Polars queries found, for a log in memory and, streaming, for one in a Parquet file.

In memory, `cum_prod().over("episode")` is fastest once the episodes are known to be sorted. The streaming engine would
collect all rows for it, so there ρ_{1:t} is exp of one running sum over the whole file, minus the sum at the beginning
of the episode. A table by step is read by `gather`, which is faster than a join. The error of step-wis needs the
normalisers first, so the sums by step are one query and the sums by episode another.
"""

import math
from pathlib import Path

import polars as pl
from agreement import agree, agree_on_parquet
from definition import Estimate, Estimates
from polars import col
from workload import DISCOUNT

NAME = "Polars query"


def prepare(log: pl.DataFrame) -> pl.LazyFrame:
    return log.lazy()


def run(log: pl.LazyFrame, discount: float) -> Estimates:
    ratio = col("target_prob") / col("behavior_prob")
    weighted = (
        log.with_columns(col("episode").set_sorted())
        .with_columns(c=ratio.cum_prod().over("episode", mapping_strategy="explode"))
        .collect()
    )
    return _estimates(weighted.lazy(), discount, engine="in-memory")


def run_parquet(path: Path, discount: float) -> Estimates:
    log_ratio = (col("target_prob") / col("behavior_prob")).log()
    began = pl.when(col("step") == 0).then(col("total") - col("log_ratio")).forward_fill()
    weighted = (
        pl.scan_parquet(path)
        .with_columns(log_ratio=log_ratio)
        .with_columns(total=col("log_ratio").cum_sum())
        .with_columns(c=(col("total") - began).exp())
    )
    return _estimates(weighted, discount, engine="streaming")


def check() -> None:
    agree(lambda log: run(prepare(log), DISCOUNT))
    agree_on_parquet(lambda path: run_parquet(path, DISCOUNT))


def _estimates(weighted: pl.LazyFrame, discount: float, engine: str) -> Estimates:
    by_step = (
        weighted.select("step", "c", cr=col("c") * col("reward"))
        .group_by("step")
        .agg(col("c").sum(), col("cr").sum(), n=pl.len())
        .sort("step")
        .with_columns(g=pl.lit(discount).pow(col("step")), mean_reward=col("cr") / col("c"))
        .with_columns(scale=col("g") * col("n") / col("c"))
        .collect(engine=engine)
    )

    def at_step(name: str) -> pl.Expr:
        return pl.lit(by_step[name]).gather(col("step"))

    before = col("c") * col("behavior_prob") / col("target_prob")
    by_episode = (
        weighted.select(
            "episode",
            step_is=at_step("g") * col("c") * col("reward"),
            dr=at_step("g") * (before * col("v_hat") + col("c") * (col("reward") - col("q_hat"))),
            psi=at_step("scale") * col("c") * (col("reward") - at_step("mean_reward")),
        )
        .group_by("episode")
        .agg(pl.all().sum())
        .collect(engine=engine)
    )
    n = by_episode.height
    return {
        "step-is": _mean(by_episode["step_is"]),
        "step-wis": Estimate(
            (by_step["g"] * by_step["mean_reward"]).sum(),
            math.sqrt(by_episode["psi"].pow(2).sum() / (n * (n - 1))),
        ),
        "dr": _mean(by_episode["dr"]),
    }


def _mean(values: pl.Series) -> Estimate:
    return Estimate(values.mean(), values.std() / math.sqrt(len(values)))
