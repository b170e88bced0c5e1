"""Arrow objects whose buffers, lengths, children or schemas are not what they say.

The C data interface does not tell how long a buffer is. So no consumer can find a length or a last offset that is too
large for its memory, or numbers that are narrower than their schema says; such objects are not among these.
"""

import random
import struct
from functools import cache
from pathlib import Path

import offpolicy as op
import polars as pl
import pyarrow as pa
from attacks.outcomes import READABLE, RIGHT, failure, refusal
from logs import random_log
from lying_stream import CArray, Lying

TRIED = 3_000
ATTACKED = "hostile Arrow objects"
SURVIVING = (
    "An error of ours; or the result of the undamaged object; or the object is valid after all, by pyarrow's full "
    "validation, and the result is right of what it holds."
)
LOG = random_log(seed=8, episodes=12, horizon=5)
KINDS = (
    pa.int64(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
)
NUMBERS = (-(2**63), -(2**31), -7, -1, 2**31 - 1, 2**48, 2**62, 2**63 - 1)


def good(kind: pa.DataType) -> pa.RecordBatch:
    """Return the log with ids of a kind."""
    ids = LOG["episode"].cast(pl.String).to_list() if kind != pa.int64() else LOG["episode"].to_list()
    episode = pa.array(ids).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(ids, kind)
    columns = {name: pa.array(LOG[name].to_list()) for name in LOG.columns if name != "episode"}
    return pa.record_batch({"episode": episode, **columns})


def evaluated(log: object) -> pl.DataFrame:
    """Return the numbers of a log."""
    return op.evaluate(log, discount=0.9, threads=2).table


@cache
def expected() -> pl.DataFrame:
    """Return the right numbers, which do not depend on the kind of ids."""
    return evaluated(LOG)


def case(number: int, folder: Path) -> str:
    """Evaluate one hostile object."""
    rng = random.Random(number)
    batch = good(rng.choice(KINDS))
    log, valid = rng.choice((structure, structure, content, content, content, schema, stream))(batch, rng)
    try:
        found = evaluated(log)
    except op.OffPolicyError as error:
        return refusal(error)
    except BaseException as error:
        return failure(f"{type(error).__name__}: {error}")
    if found.equals(expected()):
        return RIGHT
    same = valid is not None and found.equals(evaluated(pl.DataFrame(valid.to_pydict())))
    return READABLE if same else failure("another number")


def structure(batch: pa.RecordBatch, rng: random.Random) -> tuple[object, pa.RecordBatch | None]:
    """Change what an array says of itself: lengths, offsets, counts, pointers."""
    field = rng.choice(("length", "offset", "null_count", "n_buffers", "n_children", "buffers", "children", "a buffer"))
    where, which, number = rng.randrange(-1, batch.num_columns), rng.randrange(4), rng.choice(NUMBERS)
    few = rng.randrange(-2, 8)

    def spoil(top: CArray) -> None:
        array = top if where < 0 else top.children[where].contents
        if array.dictionary and which == 0:
            array = array.dictionary.contents
        match field:
            case "length":  # shorter, or impossible: what is longer than its memory cannot be seen
                array.length = rng.choice([number, few]) if number < 0 or number > 2**47 else few
            case "offset" | "null_count":
                setattr(array, field, number if number < 0 or number > 2**47 else -3)
            case "n_buffers":  # more of them than there are cannot be seen where their number is free
                array.n_buffers = rng.choice([min(few, array.n_buffers - 1), number if number < 0 else -1])
            case "n_children":
                array.n_children = rng.choice([few, number])
            case "buffers" | "children":
                setattr(array, field, None)
            case "a buffer":
                if array.n_buffers > 1:
                    array.buffers[1] = None

    shorter = batch.slice(0, few) if few > 0 else None  # which is all that a shorter length of the whole means
    return Lying(batch.schema, [batch], spoil), shorter


def content(batch: pa.RecordBatch, rng: random.Random) -> tuple[object, pa.RecordBatch | None]:
    """Change bytes inside the buffers: offsets, views, indices, texts, bits of validity."""
    which = 0 if rng.random() < 0.8 else rng.randrange(batch.num_columns)
    column = batch.column(which)
    dictionary = pa.types.is_dictionary(column.type)
    array = column.indices if dictionary else column
    buffers = [None if buffer is None else bytearray(buffer) for buffer in array.buffers()]
    at = rng.choice([index for index, buffer in enumerate(buffers) if buffer])
    changed = buffers[at]
    texts = column.type in (pa.string(), pa.large_string())
    width = {pa.string(): 4, pa.large_string(): 8, pa.string_view(): 4}.get(column.type, 1)
    for _ in range(rng.choice((1, 1, 3))):
        # The last offset of texts stays: it alone tells how long their memory is.
        used = width * len(column) if texts and at == 1 else len(changed)
        place = rng.randrange(max(used // width, 1)) * width
        if width > 1 and at == 1 and rng.random() < 0.7:
            form = "<i" if width == 4 else "<q"
            limit = 2 ** (8 * width - 1)
            value = rng.choice([n for n in (*NUMBERS, *range(-3, 70)) if -limit <= n < limit])
            changed[place : place + width] = struct.pack(form, value)
        else:
            changed[place] ^= 1 << rng.randrange(8)
    made = [None if buffer is None else pa.py_buffer(bytes(buffer)) for buffer in buffers]
    try:
        array = pa.Array.from_buffers(array.type, len(array), made)
    except pa.ArrowInvalid:  # refused by pyarrow itself, so that there is no such object
        return content(batch, rng)
    if dictionary:
        array = pa.DictionaryArray.from_arrays(array, column.dictionary, safe=False)
    columns = [array if index == which else batch.column(index) for index in range(batch.num_columns)]
    spoiled = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    try:
        spoiled.validate(full=True)
        valid = spoiled
    except pa.ArrowInvalid:
        valid = None
    table = pa.Table.from_batches([spoiled])
    return rng.choice((spoiled, table, Lying(spoiled.schema, [spoiled]), table.to_reader())), valid


def schema(batch: pa.RecordBatch, rng: random.Random) -> tuple[object, pa.RecordBatch | None]:
    """Say other columns than the batches have: fewer, more, of types with other buffers, in later batches alone."""
    names = batch.schema.names
    which = rng.randrange(len(names))
    texts = pa.array(["x"] * batch.num_rows, rng.choice((pa.string(), pa.string_view(), pa.large_string())))
    lists = pa.array([[1.0]] * batch.num_rows)
    match rng.randrange(5):
        case 0:
            other = batch.drop_columns([names[which]])
        case 1:
            other = batch.append_column("more", texts)
        case 2:
            other = batch.set_column(which, names[which], rng.choice((texts, lists)))
        case 3:
            other = batch.select([*reversed(names)])
            if batch.schema.types[0] == pa.int64():  # numbers of one width in the place of others cannot be seen
                return schema(batch, rng)
        case _:
            other = pa.record_batch({"nothing": texts})
    if other.schema.types == batch.schema.types:  # by position these are the columns that were said
        return Lying(batch.schema, [other]), other.rename_columns(names)
    first, second = (batch, other) if rng.random() < 0.5 else (other, batch)
    return Lying(batch.schema, rng.choice(([first], [second], [batch, other]))), None


def stream(batch: pa.RecordBatch, rng: random.Random) -> tuple[object, pa.RecordBatch | None]:
    """Fail on the way: error codes, messages that are no text, capsules that are none, streams that were read."""
    lying = Lying(batch.schema, [batch])
    lying.message = rng.choice((None, b"", b"\xff\xfe", b"gone\n\x1b[31m", b"x" * 10_000))
    match rng.randrange(5):
        case 0:
            lying.codes = {"schema": rng.choice((1, 5, 22, -1)), "next": 0}
        case 1:
            lying.codes = {"schema": 0, "next": rng.choice((1, 5, 22, -1))}
        case 2:
            lying.name = rng.choice((b"arrow_array", b"", b"arrow_array_stream2"))
        case 3:
            lying = type("Odd", (), {"__arrow_c_stream__": lambda self, requested_schema=None: rng.choice((None, 3))})()
        case _:
            lying = pa.RecordBatchReader.from_batches(batch.schema, [batch])
            lying.read_all()
    return lying, None
