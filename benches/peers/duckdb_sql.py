"""The best DuckDB SQL found: window functions over the Parquet file in its own order, on two threads.

`over (rows unbounded preceding)` streams, whereas `partition by episode order by step` sorts rows that are already
sorted and takes twice as long. So ρ_{1:t} is exp of one running sum over the whole file, minus the sum at the beginning
of the episode.
"""

from pathlib import Path

import duckdb
from agreement import agree_on_parquet
from definition import Estimate, Estimates
from workload import DISCOUNT, folder

NAME = "DuckDB SQL"

_QUERY = """
with ratios as (
  select *, ln(target_prob / behavior_prob) as log_ratio from read_parquet($path)
), summed as (
  select *, sum(log_ratio) over (rows unbounded preceding) as total from ratios
), weighted as (
  select *, exp(total - last_value(case when step = 0 then total - log_ratio end ignore nulls)
                          over (rows unbounded preceding)) as c from summed
), terms as materialized (
  select episode, step, c, c * reward as cr, c * exp(-log_ratio) * v_hat + c * (reward - q_hat) as dr
  from weighted
), by_step as (
  select step, $discount ** step as g, avg(c) as d, sum(cr) / sum(c) as mean_reward from terms group by step
), by_episode as (
  select sum(g * cr) as step_is, sum(g * dr) as dr, sum(g / d * (cr - c * mean_reward)) as psi
  from terms join by_step using (step) group by episode
)
select avg(step_is), stddev_samp(step_is) / sqrt(count(*)),
       (select sum(g * mean_reward) from by_step), sqrt(sum(psi * psi) / (count(*) * (count(*) - 1.0))),
       avg(dr), stddev_samp(dr) / sqrt(count(*))
from by_episode
"""


def run_parquet(path: Path, discount: float) -> Estimates:
    with duckdb.connect(config={"threads": 2, "temp_directory": str(folder() / "duckdb")}) as db:
        found = db.execute(_QUERY, {"path": str(path), "discount": discount}).fetchone()
    names = ("step-is", "step-wis", "dr")
    return {name: Estimate(*found[2 * i : 2 * i + 2]) for i, name in enumerate(names)}


def check() -> None:
    agree_on_parquet(lambda path: run_parquet(path, DISCOUNT))
