"""Datasets and single results as tables of Arrow: for Spark, for DuckDB, for whoever has Arrow.

The rows of a loop become rows of their values: objects give a column for each field, anything
else one column `value`. A piece is proven by the digest that its manifest has of it, and mapped;
batches come as they are read.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import ResultName, parse_results
from noetl.kernel.errors import PayloadMissing
from noetl.results.arrow_objects import schema_at
from noetl.results.columns import column_of, is_json, json_field
from noetl.results.dataset import ROWS, DatasetManifest, frame_content, is_manifest, is_table
from noetl.results.feather import schema_digest
from noetl.results.named_reads import Located, NamedReads
from noetl.results.nested import STORED, NestedTable
from noetl.results.tiers import FEATHER_MEDIA_TYPE, media_type_of
from noetl.results.unified import fitted, unified_columns
from noetl.templates.recorded import LOOP, ORDER, TASKS, VALUE

INDEX, STATUS, ERROR = "_index", "_status", "_error"
"""Columns beside the values, for those who want all rows."""

RowsWanted = Literal["ok", "all"]
JsonAs = Literal["text", "columns"]


class Piece(NamedTuple):
    """Some rows of a dataset: in an object, or at hand."""

    reference: ResultReference | None
    rows: list[Any] | None
    is_frame: bool  # rows say how each of them ended, beside their value

    @property
    def is_arrow(self) -> bool:
        return self.reference is not None and media_type_of(self.reference) == FEATHER_MEDIA_TYPE

    @property
    def byte_length(self) -> int:
        return 0 if self.reference is None else self.reference.byte_length or 0

    @property
    def schema_digest(self) -> str | None:
        return None if self.reference is None else self.reference.schema_digest


class Wanted(NamedTuple):
    rows: RowsWanted = "ok"
    json: JsonAs = "text"


class Layout(NamedTuple):
    """What a dataset looks like as a table, and where its rows are. Plain enough to be sent."""

    pieces: tuple[Piece, ...]
    fields: list[Any]  # of the values
    is_flat: bool  # values are objects, a column for each of their fields
    wanted: Wanted

    @property
    def schema(self) -> Any:
        beside: list[Any] = []
        if self.wanted.rows == "all":
            beside = [pa.field(INDEX, pa.int64()), pa.field(STATUS, pa.string())]
            beside.append(json_field(ERROR))
        return pa.schema([*beside, *self.fields])


class DatasetTables:
    """Reads by name; whoever calls has checked whose names these are."""

    def __init__(self, reads: NamedReads) -> None:
        self._reads = reads

    async def layout(
        self, uri: str, wanted: Wanted | None = None, known: ResultReference | None = None
    ) -> Layout:
        """Reads manifests and headers only. Raises PayloadError, NameInvalid, StoreUnavailable."""
        wanted = wanted or Wanted()
        pieces = await self._pieces(uri, known)
        seen: set[str] = set()
        flat: list[Any] = []
        values: list[Any] = []
        for piece in pieces:
            if piece.schema_digest in seen and wanted.json == "text":
                continue
            seen |= {piece.schema_digest} if piece.schema_digest else set()
            given = await self._looked_at(piece, wanted)
            flat.append(_flat(piece, given, wanted))
            values.append([given.schema.field(VALUE)] if piece.is_frame else [])
        is_flat = all(table is not None for table in flat)
        columns = [list(table.schema) for table in flat] if is_flat else values
        fields = unified_columns(columns) or [pa.field(VALUE, pa.string())]
        return Layout(tuple(pieces), fields, is_flat, wanted)

    async def table(self, uri: str, wanted: Wanted | None = None) -> Any:
        """All of it as a `pyarrow.Table`, over mapped files."""
        layout = await self.layout(uri, wanted)
        batches: list[Any] = []
        for piece in layout.pieces:
            batches += read(layout, piece, await self.source(piece))
        return pa.Table.from_batches(batches, layout.schema)

    async def source(self, piece: Piece) -> Any:
        """What `read` reads from: a `pyarrow.NativeFile` of proven bytes; None for rows at hand.

        Raises PayloadMissing, PayloadCorrupt, StoreUnavailable.
        """
        if piece.reference is None:
            return None
        located = await self._located(piece.reference)
        return pa.BufferReader((await self._reads.read(located)).view)

    async def _pieces(self, uri: str, known: ResultReference | None) -> list[Piece]:
        name = parse_results(uri)
        located = await self._reads.located(name, known)
        if located.is_arrow:
            reference = located.known or ResultReference(
                type="object_store",
                uri=uri,
                media_type=located.media_type,
                byte_length=located.byte_length,
            )
            return [Piece(reference, None, is_frame=False)]
        content = msgspec.json.decode((await self._reads.read(located)).view)
        if is_manifest(content):
            return _listed(msgspec.convert(content, DatasetManifest))
        return await self._single(content)

    async def _single(self, content: dict[str, Any]) -> list[Piece]:
        """A result that is JSON: its list of records, or the value as the only row."""
        for nested in msgspec.convert(content.get(STORED, []), list[NestedTable]):
            if nested.at in ((VALUE,), (TASKS, *content.get(ORDER, [])[-1:])):
                return await self._pieces(nested.reference.uri, nested.reference)
        value = content.get(VALUE)
        if ORDER in content:
            value = content[TASKS][content[ORDER][-1]]
        if LOOP in content:
            value = content[LOOP].get("results")
        rows = value if isinstance(value, list) else [value]
        return [Piece(None, rows, is_frame=False)]

    async def _located(self, reference: ResultReference) -> Located:
        name = parse_results(reference.uri)
        if not isinstance(name, ResultName):
            raise PayloadMissing(reference.uri)
        return await self._reads.located(name, reference)

    async def _looked_at(self, piece: Piece, wanted: Wanted) -> Any:
        """A table that has the types of the piece, and its rows only where types are in them."""
        if not piece.is_arrow:
            return next(_tables(piece, await self.source(piece)))
        schema = await self._header(piece)
        if schema is None:
            schema = ipc.open_file(await self.source(piece)).schema
        is_text = piece.is_frame and is_json(schema.field(VALUE))
        if is_text and wanted.json == "columns":
            return ipc.open_file(await self.source(piece)).read_all()
        return schema.empty_table()

    async def _header(self, piece: Piece) -> Any | None:
        """The schema alone, from the nearest place; its own digest proves it."""
        assert piece.reference is not None
        located = await self._located(piece.reference)
        nearest = self._reads.chain.places.in_order()[0]
        schema = await asyncio.to_thread(schema_at, nearest, located.key)
        if schema is None or located.known is None:
            return schema
        return schema if schema_digest(schema) == piece.schema_digest else None


def _listed(manifest: DatasetManifest) -> list[Piece]:
    is_frame = not is_table(manifest)
    pieces: list[Piece] = []
    for part in manifest.parts:
        if part.reference is not None:
            pieces.append(Piece(part.reference, None, is_frame))
            continue
        rows = part.outcomes or []
        pieces.append(Piece(None, frame_content(rows)[ROWS] if is_frame else rows, is_frame))
    return pieces


def table_of_rows(rows: Sequence[Any]) -> Any:
    """Rows at hand as a `pyarrow.Table` that other programs can take: no column is without type."""
    given = _table_of(rows)
    fields = unified_columns([list(given.schema)]) or [pa.field(VALUE, pa.string())]
    columns = [
        _fitted(given, field) if field.name in given.schema.names else pa.array([], field.type)
        for field in fields
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def read(layout: Layout, piece: Piece, source: Any) -> Iterator[Any]:
    """Record batches of the layout's schema, rows in their order. Blocks."""
    for given in _tables(piece, source):
        yield from _shaped(layout, piece, given).to_batches()


def _tables(piece: Piece, source: Any) -> Iterator[Any]:
    """What is in a piece, a batch at a time."""
    if piece.rows is not None:
        yield _table_of(piece.rows)
    elif not piece.is_arrow:
        content = msgspec.json.decode(source.read())
        yield _table_of(content[ROWS] if isinstance(content, dict) else content)
    else:
        reader = ipc.open_file(source)
        for index in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(index)], reader.schema)


def _shaped(layout: Layout, piece: Piece, given: Any) -> Any:
    if piece.is_frame and layout.wanted.rows == "ok" and given.num_rows:
        is_ok = pc.equal(given.column("status"), "ok")
        if not pc.all(is_ok).as_py():
            given = given.filter(is_ok)
    values = _flat(piece, given, layout.wanted) if layout.is_flat else given.select([VALUE])
    assert values is not None, "the layout has looked at this piece, too"
    columns: list[Any] = [] if layout.wanted.rows == "ok" else _beside(piece, given)
    for field in layout.fields:
        if field.name in values.schema.names:
            columns.append(_fitted(values, field))
        else:
            columns.append(pa.nulls(given.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=layout.schema)


def _flat(piece: Piece, given: Any, wanted: Wanted) -> Any:
    """A column for each field of the values; None: they are not objects."""
    if not piece.is_frame:
        return given
    column, field = given.column(VALUE), given.schema.field(VALUE)
    if pa.types.is_null(field.type):
        return given.select([])
    if pa.types.is_struct(field.type):
        arrays = [
            pa.chunked_array([chunk.flatten()[at] for chunk in column.chunks], inner.type)
            for at, inner in enumerate(field.type)
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema(list(field.type)))
    if wanted.json == "text" or not is_json(field):
        return None
    values = [{} if text is None else msgspec.json.decode(text) for text in column.to_pylist()]
    return _table_of(values) if all(isinstance(value, dict) for value in values) else None


def _table_of(rows: Sequence[Any]) -> Any:
    """Of records; of anything else one column."""
    if rows and all(isinstance(row, dict) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        columns = [column_of(name, [row.get(name) for row in rows]) for name in names]
    else:
        columns = [column_of(VALUE, list(rows))] if rows else []
    arrays = [pa.array(values, field.type) for field, values in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema([field for field, _ in columns]))


def _beside(piece: Piece, given: Any) -> list[Any]:
    if not piece.is_frame:  # nothing else is known of rows of a table
        count = given.num_rows
        return [pa.nulls(count, pa.int64()), pa.array(["ok"] * count), pa.nulls(count, pa.string())]
    columns = given.select(["index", "status", "error"])
    kinds = (pa.field("index", pa.int64()), pa.field("status", pa.string()), json_field("error"))
    return [_fitted(columns, kind) for kind in kinds]


def _fitted(values: Any, field: Any) -> Any:
    given = values.schema.field(field.name)
    chunks = [fitted(chunk, given, field) for chunk in values.column(field.name).chunks]
    return pa.chunked_array(chunks, field.type)
