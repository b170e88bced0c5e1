"""The reader of the learning file `cup98LRN.txt` of the KDD Cup 1998.

The file is comma-separated with a header, and has 95,412 donors of a national veterans organization. Two kinds of
columns are read: ADATE_n is the month YYMM in which campaign n was mailed, and RAMNT_n is the resulting gift in
dollars. Blanks mean no mailing and no gift.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from offpolicy.errors import BadFileError

from offpolicy_kdd98.campaigns import SUFFIXES, Campaigns

#: The environment variable with the path of the file.
VARIABLE = "OFFPOLICY_KDD98"
MONTH = r"^\d{2}(0[1-9]|1[0-2])$"


def read(path: str | Path) -> Campaigns:
    """Read all donors of the file, in its order."""
    path = Path(path)
    if not path.is_file():
        raise BadFileError(
            str(path), "no such file; give the path of cup98LRN.txt, or leave it out for synthetic donors"
        )
    dates, gifts = [f"ADATE_{n}" for n in SUFFIXES], [f"RAMNT_{n}" for n in SUFFIXES]
    header = _header(path)
    missing = [name for name in [*dates, *gifts] if name not in header]
    if missing:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise BadFileError(
            str(path), f"{len(missing)} columns are missing ({shown}); is it cup98LRN.txt, with its header?"
        )
    try:
        frame = pl.read_csv(path, columns=[*dates, *gifts], infer_schema=False, encoding="utf8-lossy")
    except pl.exceptions.PolarsError as error:
        raise BadFileError(str(path), f"not a comma-separated file: {error}") from None
    if frame.is_empty():
        raise BadFileError(str(path), "no donor in the file")
    frame = frame.select(pl.all().str.strip_chars().replace("", None))
    return Campaigns(_mailed(path, frame, dates), _gifts(path, frame, gifts), synthetic=False)


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf8", errors="replace") as file:
        return [name.strip().strip('"') for name in file.readline().split(",")]


def _mailed(path: Path, frame: pl.DataFrame, names: list[str]) -> NDArray[np.bool_]:
    for name in names:
        wrong = ~frame[name].str.contains(MONTH).fill_null(True)
        _refuse(path, frame[name], wrong, "a month YYMM such as 9406, or a blank")
    return frame.select(pl.col(names).is_not_null()).to_numpy()


def _gifts(path: Path, frame: pl.DataFrame, names: list[str]) -> NDArray[np.float64]:
    numbers = frame.select(pl.col(names).cast(pl.Float64, strict=False))
    for name in names:
        good = numbers[name].is_finite() & (numbers[name] >= 0)
        wrong = frame[name].is_not_null() & ~good.fill_null(False)
        _refuse(path, frame[name], wrong, "an amount in dollars, or a blank")
    return numbers.fill_null(0.0).to_numpy()


def _refuse(path: Path, column: pl.Series, wrong: pl.Series, expected: str) -> None:
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise BadFileError(str(path), f"line {row + 2}: {column.name} is {column[row]!r}; expected {expected}")
