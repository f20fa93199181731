"""Results on their way to the store: encoded, stored under their names, and shared on the node."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming import access_plan
from noetl.domain.naming.placement import CellPlacement, dataset_key, physical_key
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.ports.object_store import ObjectStore, StoredObject
from noetl.ports.result_cache import CacheKey
from noetl.results.counts import ResultCounts
from noetl.results.dataset import DatasetManifest, manifest_bytes
from noetl.results.mapping import mapped_file
from noetl.results.nested import without_tables
from noetl.results.sharing import Sharing
from noetl.results.table_file import chunks_of
from noetl.results.tiers import (
    FEATHER_MEDIA_TYPE,
    INLINE_BYTES_MAX,
    JSON_MEDIA_TYPE,
    Encoded,
    encode,
)
from noetl.templates.layered import StoredResult
from noetl.templates.recorded import content_of, referred_result

if TYPE_CHECKING:
    from noetl.results.table_writer import TableFile

EXTENSIONS = dict(zip((FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE), access_plan.EXTENSIONS, strict=True))
_MEDIA_TYPES = {extension: media_type for media_type, extension in EXTENSIONS.items()}

LARGE_ITEMS = 1_000
LARGE_CHARS = 1_000_000
"""Lists, objects and texts from this length on are encoded in a thread: others have their turn."""


class ResultWriter:
    inline_bytes_max: int = INLINE_BYTES_MAX
    """Up to here a result stays in its event. Whoever opens the store may set another limit."""

    def __init__(
        self, objects: ObjectStore, placement: CellPlacement, sharing: Sharing | None = None
    ) -> None:
        self.objects = objects
        self.placement = placement
        self.counts = ResultCounts()
        self._sharing = sharing

    async def record(
        self,
        name: ResultName,
        value: Any,
        *,
        status: str = "ok",
        inline_bytes_max: int | None = None,
    ) -> Result:
        """The producer stores before it reports, so that no report names what is not there."""
        if isinstance(value, StoredResult) and value.recorded is not None:
            return msgspec.structs.replace(value.recorded, status=status)
        content = content_of(value)
        kept = without_tables(content)
        if inline_bytes_max is None:
            inline_bytes_max = self.inline_bytes_max
        encoded = await _encoded(kept, inline_bytes_max)
        if encoded.tier == "inline":
            self.counts.stage("inline", len(encoded.data))
            return Result(status=status, context=content)
        return referred_result(content, await self.stage(name, encoded), status)

    async def stage(self, name: ResultName, encoded: Encoded) -> ResultReference:
        extension = EXTENSIONS[encoded.media_type]
        key = physical_key(name, self.placement, extension)
        stored = await self.objects.create(key, encoded.data, media_type=encoded.media_type)
        self.counts.stage(extension, stored.byte_length)
        reference = ResultReference(
            type="object_store",
            uri=name.uri,
            sha256=stored.sha256,
            media_type=encoded.media_type,
            schema_digest=encoded.schema_digest,
            byte_length=stored.byte_length,
            row_count=encoded.row_count,
            encoder=encoded.encoder,
            arrow_version=encoded.arrow_version,
        )
        if self._sharing is not None:
            view = memoryview(encoded.data)
            await self._sharing.share(cache_key(name, reference), view, reference)
        return reference

    async def stage_rows(self, name: ResultName, content: dict[str, Any]) -> ResultReference:
        """The output of a frame: never inside its event."""
        return await self.stage(name, await _encoded(content, 0))

    async def stage_file(self, name: ResultName, table: "TableFile") -> ResultReference:
        """A table that a tool wrote to a file, in pieces."""
        extension = EXTENSIONS[FEATHER_MEDIA_TYPE]
        key = physical_key(name, self.placement, extension)
        stored = await self.objects.create(
            key, chunks_of(table.view or table.path), media_type=FEATHER_MEDIA_TYPE
        )
        self.counts.stage(extension, stored.byte_length)
        reference = table_reference(name, stored, table)
        await self._share_file(name, table, reference)
        return reference

    async def stage_dataset(
        self, name: DatasetName | ResultName, manifest: DatasetManifest
    ) -> ResultReference:
        """The manifest of a stage, before its end is recorded. The dataset of a step is what a
        stage ended well with; a stage that failed, and may be taken up again, has another name."""
        data = manifest_bytes(manifest)
        stored = await self.objects.create(
            self.key_of(name, JSON_MEDIA_TYPE), data, media_type=JSON_MEDIA_TYPE
        )
        self.counts.stage("dataset", stored.byte_length)
        return ResultReference(
            type="object_store",
            uri=name.uri,
            sha256=stored.sha256,
            media_type=JSON_MEDIA_TYPE,
            byte_length=stored.byte_length,
            row_count=manifest.row_count,
        )

    def key_of(self, name: ResultName | DatasetName, media_type: str) -> str:
        return object_key(name, self.placement, media_type)

    async def _share_file(
        self, name: ResultName, table: "TableFile", reference: ResultReference
    ) -> None:
        if self._sharing is None:
            return
        view = table.view or await asyncio.to_thread(mapped_file, table.path)
        if view is not None:
            await self._sharing.share(cache_key(name, reference), view, reference)


def object_key(name: ResultName | DatasetName, placement: CellPlacement, media_type: str) -> str:
    if isinstance(name, DatasetName):
        return dataset_key(name, placement)
    return physical_key(name, placement, EXTENSIONS[media_type])


def encoded_as(key: str) -> str:
    """The media type that the key of an object says."""
    return _MEDIA_TYPES[key.rpartition(".")[2]]


def cache_key(name: ResultName | DatasetName, known: ResultReference) -> CacheKey:
    """What layers know the bytes by: everybody computes the same from the reference."""
    return CacheKey(
        tenant_id=name.tenant,
        organization_id=name.project,
        execution_id=name.execution_id,
        sha256=known.sha256 or "",
        byte_length=known.byte_length or 0,
        frame=str(getattr(name, "frame", 0)),
    )


async def _encoded(content: dict[str, Any], inline_bytes_max: int) -> Encoded:
    if _is_large(content):
        return await asyncio.to_thread(encode, content, inline_bytes_max)
    return encode(content, inline_bytes_max)


def _is_large(value: Any, depth: int = 4) -> bool:
    """A guess that costs nothing: only the size of what is near the surface."""
    if isinstance(value, str):
        return len(value) >= LARGE_CHARS
    if isinstance(value, list):
        return len(value) >= LARGE_ITEMS
    if not isinstance(value, dict) or depth == 0:
        return False
    return len(value) >= LARGE_ITEMS or any(_is_large(item, depth - 1) for item in value.values())


def table_reference(name: ResultName, stored: StoredObject, table: "TableFile") -> ResultReference:
    """How events name a table that was written to a file and stored."""
    from noetl.results import feather  # noqa: PLC0415 - Arrow is loaded with the first table

    return ResultReference(
        type="object_store",
        uri=name.uri,
        sha256=stored.sha256,
        media_type=FEATHER_MEDIA_TYPE,
        schema_digest=table.schema_digest,
        byte_length=stored.byte_length,
        row_count=table.row_count,
        encoder=feather.ENCODER,
        arrow_version=feather.ARROW_VERSION,
    )
