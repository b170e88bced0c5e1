"""Arrow objects that are not what they say are refused; in processes of their own, which a crash would end."""

import os
import subprocess
import sys
import textwrap

import pytest
from places import ROOT

#: The columns of a good log, and ways to spoil them; each leaves `log`.
GOOD = """
import struct
import offpolicy as op
import pyarrow as pa
from lying_stream import Lying

n = 8
columns = {
    "episode": pa.array([0, 0, 1, 1, 2, 2, 3, 3]),
    "step": pa.array([0, 1] * 4),
    "reward": pa.array([0.5] * n),
    "behavior_prob": pa.array([0.5] * n),
    "target_prob": pa.array([0.25] * n),
}
text = pa.array(["a", "a", "b", "b", "c", "c", "d", "d"])

class Producer:
    "Any object with the stream of a reader."
    def __init__(self, reader):
        self.reader = reader
    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)

def stream(episode, **others):
    table = pa.table(columns | {"episode": episode} | others)
    return Producer(table.to_reader())

def view(length, prefix, buffer, offset):
    return struct.pack("<i4sii", length, prefix, buffer, offset)
"""

SPOILED = {
    "a view beyond its buffer": """
        data = pa.py_buffer(b"x" * 64)
        views = pa.py_buffer(b"".join(view(20, b"xxxx", 0, 2**30) for _ in range(n)))
        log = stream(pa.Array.from_buffers(pa.string_view(), n, [None, views, data]))
    """,
    "a view of no buffer": """
        data = pa.py_buffer(b"x" * 64)
        views = pa.py_buffer(b"".join(view(20, b"xxxx", 7, 0) for _ in range(n)))
        log = stream(pa.Array.from_buffers(pa.string_view(), n, [None, views, data]))
    """,
    "a view of negative length": """
        data = pa.py_buffer(b"x" * 64)
        views = pa.py_buffer(b"".join(view(-5, b"xxxx", 0, 0) for _ in range(n)))
        log = stream(pa.Array.from_buffers(pa.string_view(), n, [None, views, data]))
    """,
    "offsets that go down": """
        offsets = pa.py_buffer(struct.pack("<9i", 0, 1, 2, 3, 2**30, 5, 6, 7, 8))
        log = stream(pa.Array.from_buffers(pa.string(), n, [None, offsets, pa.py_buffer(b"abcdefgh")]))
    """,
    "a negative offset": """
        offsets = pa.py_buffer(struct.pack("<9i", 0, 1, 2, -9, 4, 5, 6, 7, 8))
        log = stream(pa.Array.from_buffers(pa.string(), n, [None, offsets, pa.py_buffer(b"abcdefgh")]))
    """,
    "large offsets that go down": """
        offsets = pa.py_buffer(struct.pack("<9q", 0, 1, 2, 3, 2**60, 5, 6, 7, 8))
        log = stream(pa.Array.from_buffers(pa.large_string(), n, [None, offsets, pa.py_buffer(b"abcdefgh")]))
    """,
    "no UTF-8": """
        offsets = pa.py_buffer(struct.pack("<9i", *range(9)))
        log = stream(pa.Array.from_buffers(pa.string(), n, [None, offsets, pa.py_buffer(bytes([0xFF] * 8))]))
    """,
    "an index of no entry": """
        indices = pa.array([0, 0, 1, 1, 2, 2, 99, 99], pa.int32())
        log = stream(pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False))
    """,
    "a negative index": """
        indices = pa.array([0, 0, 1, 1, 2, 2, -7, -7], pa.int32())
        log = stream(pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False))
    """,
    "an index of no entry in a table": """
        indices = pa.array([0, 0, 1, 1, 2, 2, 99, 99], pa.int32())
        episode = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False)
        log = pa.table(columns | {"episode": episode})
    """,
    "a view beyond its buffer in a table": """
        data = pa.py_buffer(b"x" * 64)
        views = pa.py_buffer(b"".join(view(20, b"xxxx", 0, 2**30) for _ in range(n)))
        log = pa.table(columns | {"episode": pa.Array.from_buffers(pa.string_view(), n, [None, views, data])})
    """,
    "offsets that go down in a table": """
        offsets = pa.py_buffer(struct.pack("<9i", 0, 1, 2, 3, 2**30, 5, 6, 7, 8))
        episode = pa.Array.from_buffers(pa.string(), n, [None, offsets, pa.py_buffer(b"abcdefgh")])
        log = pa.table(columns | {"episode": episode})
    """,
}

#: Batches of another schema than that of their reader.
CHANGING = {
    "fewer columns": "other = pa.record_batch({'episode': columns['episode']})",
    "more columns": "other = pa.record_batch(columns | {'more': columns['step']})",
    "texts for numbers": "other = pa.record_batch(columns | {'reward': text})",
    "views for numbers": "other = pa.record_batch(columns | {'reward': text.cast(pa.string_view())})",
    "a dictionary for numbers": "other = pa.record_batch(columns | {'episode': text.dictionary_encode()})",
    "lists for numbers": "other = pa.record_batch(columns | {'reward': pa.array([[1.0]] * n)})",
}


def run(code: str) -> subprocess.CompletedProcess:
    end = textwrap.dedent(
        """
        try:
            print(op.evaluate(log, discount=0.9, threads=2).table)
        except op.OffPolicyError as error:
            assert not isinstance(error, op.errors.InternalError), repr(error)
            print("refused:", error)
        """
    )
    script = f"{GOOD}\n{textwrap.dedent(code)}\n{end}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "support"), *sys.path])}
    words = [sys.executable, "-c", script]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=environment)


@pytest.mark.parametrize("code", SPOILED.values(), ids=SPOILED)
def test_a_damaged_array_is_refused(code):
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("refused:"), found.stdout


@pytest.mark.parametrize("code", CHANGING.values(), ids=CHANGING)
def test_batches_of_another_schema_are_refused(code):
    batches = "batch = pa.record_batch(columns)\nlog = Lying(batch.schema, [batch, other])"
    found = run(f"{code}\n{batches}")
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("refused:"), found.stdout


#: What an array of views may say of itself.
SAID = {
    "a negative number of buffers": "n_buffers = -1",
    "too few buffers": "n_buffers = 2",
    "a negative length": "length = -8",
    "a negative offset": "offset = -1",
    "no buffers": "buffers = None",
    "a child": "n_children = 1",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_an_array_whose_own_numbers_cannot_be_is_refused(said):
    code = f"""
        def spoil(batch):
            batch.children[0].contents.{said}
        texts = pa.record_batch(columns | {{"episode": text.cast(pa.string_view())}})
        log = Lying(texts.schema, [texts], spoil)
    """
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("refused:"), found.stdout


@pytest.mark.parametrize("given", ["None", "3", "Lying.__arrow_c_stream__(other)"])
def test_what_is_no_capsule_of_a_stream_is_refused(given):
    code = f"""
        other = Lying(pa.record_batch(columns).schema, [])
        other.name = b"arrow_array"
        log = type("Odd", (), {{"__arrow_c_stream__": lambda self, requested_schema=None: {given}}})()
    """
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout == "refused: __arrow_c_stream__ gave no capsule of a stream\n"


@pytest.mark.parametrize("kind", ["string_view", "string", "large_string"])
def test_numbers_where_the_schema_says_texts_are_refused(kind):
    code = f"""
        texts = pa.record_batch(columns | {{"episode": text.cast(pa.{kind}())}})
        log = Lying(texts.schema, [texts, pa.record_batch(columns)])
    """
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("refused:"), found.stdout


def test_good_arrays_of_every_kind_are_read():
    code = """
        kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
        tables = [op.evaluate(stream(text.cast(kind)), discount=0.9).table for kind in kinds]
        assert all(table.equals(tables[0]) for table in tables)
        batch = pa.record_batch(columns)
        assert op.evaluate(Lying(batch.schema, [batch]), discount=0.9).table.equals(tables[0])
        log = stream(columns["episode"])
    """
    found = run(code)
    assert found.returncode == 0, found.stderr
    assert "shape" in found.stdout
