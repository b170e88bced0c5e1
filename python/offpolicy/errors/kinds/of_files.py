"""Logs and other files that cannot be read."""

from __future__ import annotations

from offpolicy._util.words import WRITTEN_ANEW
from offpolicy.errors import BadFileError, ChangedLogError, OffPolicyError, UnreadableError, UsageError
from offpolicy.errors.kind import Kind

no_file = Kind(
    "no-file",
    BadFileError,
    "{file}: no {what}",
    meaning="A file does not exist, a pattern matches no file, or a folder has no Parquet file.",
    remedy="Check the path; relative paths start at the folder in which the process was started.",
    example={"file": "log.parquet", "what": "such file"},
)
unreadable_file = Kind(
    "unreadable-file",
    BadFileError,
    "{file}: {why}",
    meaning="A file cannot be read as the Parquet file of a log: it is cut short, damaged, of another format, or does "
    "not fit the other files of the log.",
    remedy="Write the file again, or leave it out; the message says what is wrong with it.",
    example={"file": "log.parquet", "why": "it is no Parquet file"},
)
missing_in_file = Kind(
    "missing-in-file",
    BadFileError,
    "{file}: it has no column {column}, which {owner} has",
    meaning="The files of a log do not have the same columns.",
    remedy="Write the column {column} into every file, or drop it from all of them.",
    example={"file": "b.parquet", "column": "'reward'", "owner": "a.parquet"},
)
types_of_files = Kind(
    "types-of-files",
    BadFileError,
    "{file}: column {column} is {found} here and {first} in {other}; no type holds both",
    meaning="A column has different types in two files of a log, and no single type holds the values of both without "
    "loss.",
    remedy="Cast the column to one type in all files.",
    example={"file": "b.parquet", "column": "'action'", "found": "String", "first": "Int64", "other": "a.parquet"},
)
not_parquet = Kind(
    "not-parquet",
    BadFileError,
    "{file}: a log is Parquet: other files go through Polars, op.evaluate({reader}(...))",
    meaning="A file of another format was named as a log.",
    remedy="Read it with Polars and give the frame: op.evaluate({reader}(...)).",
    example={"file": "log.csv", "reader": "pl.scan_csv"},
)
not_regular = Kind(
    "not-regular",
    BadFileError,
    "{file}: it is no regular file, and Parquet is not read front to back: copy it to one first",
    meaning="The path leads to a pipe or a device. A Parquet file is read from its end, which is not possible there.",
    remedy="Copy the data to a regular file and name that.",
    example={"file": "/dev/stdin"},
)
out_of_reach = Kind(
    "out-of-reach",
    BadFileError,
    "{file}: it cannot be read from here ({why}); copy it to this machine, or give "
    "pl.scan_parquet(..., storage_options=...)",
    meaning="An address in a cloud or on a server cannot be read.",
    remedy="Copy the file to this machine, or give pl.scan_parquet with the storage_options of your account.",
    example={"file": "s3://bucket/log.parquet", "why": "no credentials"},
)
refused_by_polars = Kind(
    "refused-by-polars",
    BadFileError,
    "{file}: Polars cannot read it: {why}",
    meaning="Polars failed while it read the log, with the reason that the message gives.",
    remedy="Try the query with Polars alone, mend what its message names, and evaluate again.",
    example={"file": "a query", "why": "division by zero"},
)
broken_stream = Kind(
    "broken-stream",
    UnreadableError,
    "{why}",
    meaning="A stream of Arrow batches broke off before its end, or its batches do not fit its schema.",
    remedy="Make the stream anew and evaluate again, or write it to a Parquet file first.",
    example={"why": "the stream failed after 1000 rows: connection lost"},
)
changed_log = Kind(
    "changed-log",
    ChangedLogError,
    ChangedLogError.template,
    meaning="A log is read more than once and changed in between, so that the numbers of the readings do not belong "
    "together.",
    remedy="Evaluate the log again, or a copy of it that nothing writes to.",
    example={"file": "log.parquet", "why": "it had 100 rows, and now has 120"},
)
damaged_runs = Kind(
    "damaged-runs",
    BadFileError,
    "{file}: it is damaged ({why}): {go_on}",
    meaning="A file with the runs of an experiment cannot be read.",
    remedy="Let the experiment write it anew, or choose another folder.",
    example={"file": "runs/results.json", "why": "unexpected end", "go_on": WRITTEN_ANEW},
)
damaged_line = Kind(
    "damaged-line",
    BadFileError,
    "{file}: {line} is damaged ({why}): {go_on}",
    meaning="A line of the file with the runs of an experiment is not what was written.",
    remedy="Delete the line, so that its run is done again, or choose another folder.",
    example={
        "file": "runs/sailing.jsonl",
        "line": "line 7",
        "why": "its checksum is not that of its text",
        "go_on": "delete it, and its run is done again",
    },
)
run_twice = Kind(
    "run-twice",
    BadFileError,
    "{file}: run {run} is there twice, in lines {first} and {second}: delete one of them",
    meaning="The file with the runs of an experiment has a run twice, and nothing says which one counts.",
    remedy="Delete one of the two lines.",
    example={"file": "runs/sailing.jsonl", "run": 3, "first": 5, "second": 9},
)
runs_of_another_version = Kind(
    "runs-of-another-version",
    BadFileError,
    "{file}: its runs have version {version} of the format, and offpolicy {offpolicy} reads version {ours}: go on with "
    "the offpolicy that wrote them, or choose another folder",
    meaning="The runs of an experiment were written by a version of offpolicy that uses another format.",
    remedy="Go on with the version of offpolicy that wrote them, or choose another folder.",
    example={"file": "runs/sailing.jsonl", "version": 1, "offpolicy": "0.2.0", "ours": 2},
)
other_runs = Kind(
    "other-runs",
    OffPolicyError,
    "{file} has runs of other settings, or of another offpolicy; choose another folder",
    meaning="Runs of one experiment with different settings cannot be put together.",
    remedy="Choose another folder for these settings, or go back to the settings of the runs.",
    example={"file": "runs/sailing.jsonl"},
)
not_a_log = Kind(
    "not-a-log",
    UsageError,
    "a log is a Polars frame, a Parquet path, or an object with __arrow_c_stream__, not {found}",
    meaning="The object that was given as a log is not a table.",
    remedy="Give a Polars frame, a path of Parquet files, or a table of pandas, pyarrow or DuckDB.",
    example={"found": "dict"},
)
not_paths = Kind(
    "not-paths",
    UsageError,
    "a list of logs holds paths, not {found}",
    meaning="The list that was given as a log has entries that are not paths.",
    remedy="Put the frames together with pl.concat, or give logs of several policies to op.pool.",
    example={"found": "DataFrame"},
)
no_paths = Kind(
    "no-paths",
    UsageError,
    "the list of paths is empty",
    meaning="The list of paths that was given as a log is empty.",
    remedy="Name at least one file.",
)
unreadable_frame = Kind(
    "unreadable-frame",
    UsageError,
    "the frame cannot be read: {why}",
    meaning="A table of another library cannot be turned into a Polars frame.",
    remedy="Give every column of the frame one type, or convert it with pl.DataFrame to see which column is at fault.",
    example={"why": "a column mixes numbers and texts"},
)
needs_pyarrow = Kind(
    "needs-pyarrow",
    UsageError,
    "a pandas frame with texts is read through pyarrow: pip install pyarrow",
    meaning="pandas keeps texts as Python objects, which only pyarrow can read.",
    remedy="Install pyarrow: pip install pyarrow.",
)
