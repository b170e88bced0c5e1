"""Arrow C streams made by hand, whose batches need not be what their schema says."""

import ctypes

import pyarrow as pa


class CArray(ctypes.Structure):
    """An array as the Arrow C data interface hands it over."""


CArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
    ("dictionary", ctypes.POINTER(CArray)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class CStream(ctypes.Structure):
    """A stream of arrays, likewise."""


_Get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.c_void_p)
_LastError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(CStream))
_Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(CStream))
CStream._fields_ = [
    ("get_schema", _Get),
    ("get_next", _Get),
    ("get_last_error", _LastError),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(CArray))


@_ReleaseArray
def _released(array):
    array.contents.release = None  # the memory stays: it belongs to objects of pyarrow that are kept


class Lying:
    """Say one schema and give batches of another, or arrays that `spoil` has changed."""

    name, codes, message = b"arrow_array_stream", {"schema": 0, "next": 0}, None

    def __init__(self, schema: pa.Schema, batches, spoil=None):
        self.schema, self.batches, self.spoil, self.kept = schema, iter(batches), spoil, []

    def __arrow_c_stream__(self, requested_schema=None):
        stream = self.stream = CStream()

        @_Get
        def get_schema(_, out):
            if not self.codes["schema"]:
                self.schema._export_to_c(out)
            return self.codes["schema"]

        @_Get
        def get_next(_, out):
            if self.codes["next"]:
                return self.codes["next"]
            batch = next(self.batches, None)
            ctypes.memset(out, 0, ctypes.sizeof(CArray))
            if batch is not None:
                self.hand_over(batch, ctypes.cast(out, ctypes.POINTER(CArray)).contents)
            return 0

        @_LastError
        def get_last_error(_):
            return self.message

        @_Release
        def release(given):
            given.contents.release = _Release()

        self.kept += [get_schema, get_next, get_last_error, release]
        stream.get_schema, stream.get_next, stream.get_last_error, stream.release = self.kept[-4:]
        return _new_capsule(ctypes.addressof(stream), self.name, None)

    def hand_over(self, batch, array):
        """Export a batch; one that is spoiled is never released by pyarrow, which would trust its own numbers."""
        batch._export_to_c(ctypes.addressof(array))
        if self.spoil is not None:
            self.kept.append(batch)
            array.release = ctypes.cast(_released, ctypes.c_void_p)
            self.spoil(array)
