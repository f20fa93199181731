"""Datasets and results for Spark: `spark.read.format("noetl.results").load("noetl://…")`.

A file is a task; small ones are read together. Options: `rows=all` brings failed rows too, with
`_index`, `_status` and `_error`; `json=columns` makes columns of values that are kept as JSON text;
`columns=a,b` reads these only; `url`, `env`, `region`, `cell` and `shard_count` say where. Whoever
has the result's reference may give it as JSON, `reference={…}`: it proves the bytes under the name.
What a manifest lists is proven by its digests, by the task that reads it.
"""

import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from noetl.domain.events.values import ResultReference
from noetl.kernel.errors import RequestInvalid
from noetl.ports.object_store import ObjectStore
from noetl.results.dataset_tables import DatasetTables, Layout, Piece, Wanted, read
from noetl.results.named_reads import NamedReads
from noetl.results.read_chain import ReadChain
from noetl.spark.object_place import Answer, ObjectPlace, with_objects

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

FORMAT = "noetl.results"
PARTITION_BYTES = 8 * 1024 * 1024
"""Files are put together up to this size: a task costs more than reading so much."""

_PLACE = ("url", "env", "region", "cell")


class ResultsSource(DataSource):
    """Registered as a class of its own for each place: see `source_at`."""

    place: ObjectPlace | None = None

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._uri = options.get("path") or ""
        self._place = _place(self.place, options)
        self._columns = _names(options.get("columns"))
        self._known = _reference(options.get("reference"), self._uri)
        self._layout: Layout | None = None
        wanted = Wanted(
            _one_of("rows", options.get("rows") or "ok", ("ok", "all")),
            _one_of("json", options.get("json") or "text", ("text", "columns")),
        )
        self._wanted = wanted

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        schema = self._looked_at().schema
        return from_arrow_schema(_chosen(schema, self._columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema
        return ResultsReader(self._looked_at(), self._place, self._columns)

    def _looked_at(self) -> Layout:
        if self._layout is None:
            uri, wanted, known = self._uri, self._wanted, self._known

            async def look(tables: DatasetTables) -> Layout:
                return await tables.layout(uri, wanted, known)

            self._layout = _with_tables(self._place, look)
        return self._layout


class ResultsReader(DataSourceReader):
    def __init__(self, layout: Layout, place: ObjectPlace, columns: Sequence[str]) -> None:
        self._layout = layout
        self._place = place
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(group) for group in grouped(self._layout.pieces)]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        for piece in partition.value:

            async def open_piece(tables: DatasetTables, piece: Piece = piece) -> Any:
                return await tables.source(piece)

            for batch in read(self._layout, piece, _with_tables(self._place, open_piece)):
                yield batch.select(list(self._columns)) if self._columns else batch


def source_at(place: ObjectPlace) -> type[DataSource]:
    """The data source with a place that need not be said with every read."""
    return type("NoetlResults", (ResultsSource,), {"place": place})


def register_at(spark: "SparkSession", place: ObjectPlace) -> None:
    spark.dataSource.register(source_at(place))


def grouped(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Neighbours stay together, so that rows keep their order within a task."""
    groups: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        if not groups or piece.byte_length > room:
            groups.append([])
            room = PARTITION_BYTES
        groups[-1].append(piece)
        room -= piece.byte_length
    return groups


def _with_tables(place: ObjectPlace, use: Callable[[DatasetTables], Awaitable[Answer]]) -> Answer:
    """What is fetched passes through a file of this machine that is gone once it is mapped."""

    async def used(objects: ObjectStore) -> Answer:
        chain = ReadChain([], objects, Path(tempfile.gettempdir()))
        try:
            return await use(DatasetTables(NamedReads(chain, place.placement)))
        finally:
            await chain.close()

    return with_objects(place, used)


def _reference(text: str | None, uri: str) -> ResultReference | None:
    if not text:
        return None
    try:
        known = msgspec.json.decode(text, type=ResultReference)
    except msgspec.MsgspecError as error:
        raise RequestInvalid(f"the option reference is no reference: {error}") from error
    if known.uri != uri:
        raise RequestInvalid(f"the option reference is of {known.uri}, not of {uri}")
    return known


def _place(known: ObjectPlace | None, options: Mapping[str, str]) -> ObjectPlace:
    given: dict[str, Any] = {name: options[name] for name in _PLACE if options.get(name)}
    if options.get("shard_count"):
        given["shard_count"] = int(options["shard_count"])
    if known is not None:
        own = {"keys": ""} if "url" in given else {}  # of another store they are none
        return msgspec.structs.replace(known, **given, **own)
    if "url" not in given:
        raise RequestInvalid(
            "where results lie is not known here; call noetl.spark.register(spark, home=…) first,"
            " or give the option url"
        )
    return ObjectPlace(**given)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _one_of(option: str, given: str, known: tuple[str, ...]) -> Any:
    if given not in known:
        raise RequestInvalid(f"the option {option} is {given!r}; use {' or '.join(known)}")
    return given


def _chosen(schema: Any, columns: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - loaded with the first table

    missing = [name for name in columns if name not in schema.names]
    if missing:
        known = ", ".join(schema.names)
        raise RequestInvalid(f"the dataset has no column {missing[0]!r}; it has {known}")
    chosen = [schema.field(name) for name in columns or schema.names]
    return cast(Any, pa.schema([field.remove_metadata() for field in chosen]))
