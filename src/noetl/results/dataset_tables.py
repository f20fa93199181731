"""Datasets and single results as tables of Arrow: for Spark, for DuckDB, for whoever has Arrow.

The rows of a loop become rows of their values: objects give a column for each field, anything
else one column `value`. Files are opened where they lie, and batches come as they are read.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import CellPlacement, dataset_key, physical_key
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.kernel.errors import ObjectMissing, PayloadMissing
from noetl.ports.object_store import ObjectStore
from noetl.results.columns import column_of, is_json, json_field
from noetl.results.dataset import ROWS, DatasetManifest, frame_content, is_manifest, is_table
from noetl.results.nested import STORED, NestedTable
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from noetl.results.unified import fitted, unified_columns
from noetl.results.writer import EXTENSIONS
from noetl.templates.recorded import LOOP, ORDER, TASKS, VALUE

INDEX, STATUS, ERROR = "_index", "_status", "_error"
"""Columns beside the values, for those who want all rows."""

RowsWanted = Literal["ok", "all"]
JsonAs = Literal["text", "columns"]


class Piece(NamedTuple):
    """Some rows of a dataset: in an object, or at hand."""

    key: str | None
    rows: list[Any] | None
    is_frame: bool  # rows say how each of them ended, beside their value
    byte_length: int = 0
    schema_digest: str | None = None

    @property
    def is_arrow(self) -> bool:
        return self.key is not None and self.key.endswith(EXTENSIONS[FEATHER_MEDIA_TYPE])


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

    def __init__(self, objects: ObjectStore, placement: CellPlacement) -> None:
        self._objects = objects
        self._placement = placement

    async def layout(self, uri: str, wanted: Wanted | None = None) -> Layout:
        """Reads manifests and headers only. Raises PayloadMissing, NameInvalid."""
        wanted = wanted or Wanted()
        pieces = await self._pieces(uri)
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
        """All of it as a `pyarrow.Table`; files of this machine are mapped, not read."""
        layout = await self.layout(uri, wanted)
        batches: list[Any] = []
        for piece in layout.pieces:
            batches += read(layout, piece, await self.source(piece))
        return pa.Table.from_batches(batches, layout.schema)

    async def source(self, piece: Piece) -> Any:
        """What `read` reads from: a file where it lies, or its bytes; None for rows at hand."""
        return None if piece.key is None else await opened(self._objects, piece.key)

    async def _pieces(self, uri: str) -> list[Piece]:
        name = parse_results(uri)
        if isinstance(name, DatasetName):
            content = await self._json(dataset_key(name, self._placement), uri)
            return self._listed(msgspec.convert(content, DatasetManifest))
        key = physical_key(name, self._placement, EXTENSIONS[FEATHER_MEDIA_TYPE])
        if facts := await self._objects.head(key):
            return [Piece(key, None, is_frame=False, byte_length=facts.byte_length)]
        key = physical_key(name, self._placement, EXTENSIONS[JSON_MEDIA_TYPE])
        content = await self._json(key, uri)
        if is_manifest(content):
            return self._listed(msgspec.convert(content, DatasetManifest))
        return await self._single(content)

    async def _single(self, content: dict[str, Any]) -> list[Piece]:
        """A result that is JSON: its list of records, or the value as the only row."""
        for nested in msgspec.convert(content.get(STORED, []), list[NestedTable]):
            if nested.at in ((VALUE,), (TASKS, *content.get(ORDER, [])[-1:])):
                return await self._pieces(nested.reference.uri)
        value = content.get(VALUE)
        if ORDER in content:
            value = content[TASKS][content[ORDER][-1]]
        if LOOP in content:
            value = content[LOOP].get("results")
        rows = value if isinstance(value, list) else [value]
        return [Piece(None, rows, is_frame=False)]

    def _listed(self, manifest: DatasetManifest) -> list[Piece]:
        is_frame = not is_table(manifest)
        pieces: list[Piece] = []
        for part in manifest.parts:
            if part.reference is None:
                rows = part.outcomes or []
                rows = frame_content(rows)[ROWS] if is_frame else rows
                pieces.append(Piece(None, rows, is_frame=is_frame))
            else:
                pieces.append(self._stored(part.reference, is_frame=is_frame))
        return pieces

    def _stored(self, reference: ResultReference, *, is_frame: bool) -> Piece:
        name = parse_results(reference.uri)
        if not isinstance(name, ResultName):
            raise PayloadMissing(reference.uri)
        extension = EXTENSIONS[reference.media_type or JSON_MEDIA_TYPE]
        key = physical_key(name, self._placement, extension)
        length = reference.byte_length or 0
        return Piece(key, None, is_frame, length, reference.schema_digest)

    async def _looked_at(self, piece: Piece, wanted: Wanted) -> Any:
        """A table that has the types of the piece, and its rows only where types are in them."""
        source = await self.source(piece)
        if source is None or not piece.is_arrow:
            return next(_tables(piece, source))
        reader = ipc.open_file(source)
        schema = reader.schema
        is_text = piece.is_frame and is_json(schema.field(VALUE))
        return reader.read_all() if is_text and wanted.json == "columns" else schema.empty_table()

    async def _json(self, key: str, uri: str) -> Any:
        try:
            data = b"".join([chunk async for chunk in self._objects.read(key)])
        except ObjectMissing as error:
            raise PayloadMissing(uri) from error
        return msgspec.json.decode(data)


async def opened(objects: ObjectStore, key: str) -> Any:
    """A `pyarrow.NativeFile`. Raises PayloadMissing."""
    path = objects.local_path(key)
    try:
        if path is not None:
            return pa.memory_map(str(path))
        if found := objects.arrow_file(key):
            return found.filesystem.open_input_file(found.path)
        data = b"".join([chunk async for chunk in objects.read(key)])
        return pa.BufferReader(data)
    except (FileNotFoundError, ObjectMissing) as error:
        raise PayloadMissing(key) from error


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
