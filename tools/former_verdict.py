"""The former rules of the verdict, for a comparison on the same logs:

unusable    ESS below 30, or the mean weight more than 5 standard errors and 0.1 from 1
fragile     ESS below 100, the mean weight more than 3 standard errors and 0.001 from 1, an e-value above 1000;
            k̂ above min(½, 1 − 1/log10 n), unless the largest weight has under 0.5% of the total and under 1/(2√n);
            one trajectory with more than a tenth of the variance, or no variance; the control variate more than 5
            standard errors from 0
"""

import polars as pl


def former_level() -> pl.Expr:
    """Return the level by these rules, from the columns of a table of runs."""
    errors, away = pl.col("mean_errors"), (pl.col("mean_weight") - 1).abs()
    unusable = (pl.col("ess") < 30) | ((errors > 5) & (away > 0.1))
    small = pl.min_horizontal(pl.lit(0.005), 0.5 / pl.col("n").sqrt())
    limit = pl.min_horizontal(pl.lit(0.5), 1 - 1 / pl.col("n").log10())
    fragile = pl.any_horizontal(
        pl.col("ess") < 100,
        errors > 3,
        pl.col("log10_e_value") >= 3,
        (pl.col("k_hat") > limit) & (pl.col("largest_share") > small),
        pl.col("concentration") > 0.1,
        ~pl.col("spread"),
        pl.col("control_errors") > 5,
    )
    words = [pl.lit(level) for level in ("unusable", "fragile", "reliable")]
    return pl.when(unusable).then(words[0]).when(fragile.fill_null(False)).then(words[1]).otherwise(words[2])
