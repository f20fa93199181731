"""Tables as Feather: the Arrow file format, written in exactly one way.

Equal contents are equal bytes: columns in order of their names, batches of a fixed number of
rows, no compression, no dictionaries, and metadata of our own only. What stands around the table
travels in the metadata, so that a file is the whole content.
Arrow puts buffers at multiples of eight bytes; its Python side offers no other alignment.
"""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import ipc

from noetl.kernel import canonical_json
from noetl.kernel.errors import EventInvalid
from noetl.results import batch_file
from noetl.results.batch_file import BATCH_ROWS, KEYS, SHELL, WRITTEN_BY, write_options
from noetl.results.columns import column_of, is_json
from noetl.results.errors import ResultUnreadable
from noetl.results.tabular import Keys, TablePath, rows_at, without_table

ENCODER = batch_file.ENCODER
ARROW_VERSION: str = pa.__version__

_ECHOES = b"noetl.table.echoes"
_COUNTS = b"noetl.table.counts"


class EncodedTable(NamedTuple):
    data: bytes
    row_count: int
    schema_digest: str


def encode_table(content: Mapping[str, Any], table: TablePath) -> EncodedTable:
    """Raises NotFinite or ValueNotPlain, naming the first thing that cannot be recorded."""
    try:
        return _encoded(content, table)
    except (EventInvalid, UnicodeEncodeError):
        canonical_json.check_plain(content)
        raise


def _encoded(content: Mapping[str, Any], table: TablePath) -> EncodedTable:
    rows = rows_at(content, table)
    columns = [column_of(name, list(map(itemgetter(name), rows))) for name in sorted(rows[0])]
    fields = [field for field, _values in columns]
    schema = pa.schema(fields, metadata_of(without_table(content, table), table))
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, schema, options=write_options()) as writer:
        for start in range(0, len(rows), BATCH_ROWS):
            stop = start + BATCH_ROWS
            arrays = [pa.array(values[start:stop], field.type) for field, values in columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return EncodedTable(sink.getvalue().to_pybytes(), len(rows), schema_digest(schema))


def metadata_of(shell: Mapping[str, Any], table: TablePath) -> dict[bytes, bytes]:
    metadata = {
        WRITTEN_BY: ENCODER.encode(),
        SHELL: canonical_json.encode(shell),
        KEYS: canonical_json.encode(table.keys),
    }
    if table.echoes:
        metadata[_ECHOES] = canonical_json.encode(table.echoes)
    if table.counts:
        metadata[_COUNTS] = canonical_json.encode(table.counts)
    return metadata


def shell_in(schema: Any) -> tuple[dict[str, Any], TablePath]:
    """What `metadata_of` wrote. Raises ResultUnreadable."""
    metadata = schema.metadata or {}
    encoder = metadata.get(WRITTEN_BY, b"").decode()
    if encoder != ENCODER:
        written = f"was written by {encoder}" if encoder else "does not say who wrote it"
        raise ResultUnreadable(f"{written}; this build reads {ENCODER}")
    shell = msgspec.json.decode(metadata[SHELL], type=dict[str, Any])
    keys = msgspec.json.decode(metadata[KEYS], type=Keys)
    echoes = msgspec.json.decode(metadata.get(_ECHOES, b"[]"), type=tuple[Keys, ...])
    counts = msgspec.json.decode(metadata.get(_COUNTS, b"[]"), type=tuple[Keys, ...])
    return shell, TablePath(keys, echoes, counts)


def schema_digest(schema: Any) -> str:
    """Of names and types alone: the same for every table of this form."""
    # Names and words only: nobody need look for what a number may be.
    described = canonical_json.encode_recorded(list(_described(schema)))
    return canonical_json.sha256_hex(described)


def _described(fields: Any) -> Iterator[list[Any]]:
    for field in fields:
        kind = "json" if is_json(field) else _described_type(field.type)
        yield [field.name, kind, field.nullable]


def _described_type(kind: Any) -> Any:
    """In words of our own: how Arrow spells a nested type is Arrow's to change."""
    if pa.types.is_struct(kind):
        return {"struct": list(_described(kind))}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        large = "large_list" if pa.types.is_large_list(kind) else "list"
        return {large: _described_type(kind.value_type)}
    return str(kind)
