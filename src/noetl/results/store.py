"""Results by name: written once by whoever made them, read by anybody who knows the name.

Two kinds of names lead to bytes. A result's own name is its coordinates, and its key follows from
them; a payload's name is the digest of its bytes. Collections, playbooks and what older versions
stored are payloads.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.placement import CellPlacement, dataset_key, physical_key
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.domain.payload import (
    Fingerprint,
    StoredPayload,
    is_payload_uri,
    payload_uri,
    reference_to,
)
from noetl.kernel.errors import NameInvalid, ObjectMissing, PayloadCorrupt, PayloadMissing
from noetl.kernel.scope import Scope
from noetl.ports.object_store import ObjectStore
from noetl.ports.payload_store import PayloadStore
from noetl.ports.result_cache import CacheKey
from noetl.results.dataset import DatasetManifest, DatasetPart, is_manifest, rows_of
from noetl.results.read_chain import ReadChain
from noetl.results.reading import Stored, open_stored
from noetl.results.table_file import chunks_of
from noetl.results.tiers import (
    FEATHER_MEDIA_TYPE,
    INLINE_BYTES_MAX,
    JSON_MEDIA_TYPE,
    Encoded,
    encode,
)
from noetl.templates.recorded import LOOP, content_of, referred_result

if TYPE_CHECKING:
    from noetl.results.table_writer import TableFile

EXTENSIONS = {FEATHER_MEDIA_TYPE: "feather", JSON_MEDIA_TYPE: "json"}
_MEDIA_TYPES = {extension: media_type for media_type, extension in EXTENSIONS.items()}

JSON = ResultReference(type="object_store", uri="", media_type=JSON_MEDIA_TYPE)
"""All that is known of an object before it is written."""

LARGE_ITEMS = 1_000
LARGE_CHARS = 1_000_000
"""Lists, objects and texts from this length on are encoded in a thread: others have their turn."""


class ResultStore:
    def __init__(
        self,
        objects: ObjectStore,
        payloads: PayloadStore,
        placement: CellPlacement,
        chain: ReadChain,
    ) -> None:
        self.objects = objects
        self.payloads = payloads
        self.placement = placement
        self.chain = chain

    async def close(self) -> None:
        """The objects are closed by whoever opened them."""
        await self.chain.close()

    async def record(
        self,
        name: ResultName,
        value: Any,
        *,
        status: str = "ok",
        inline_bytes_max: int = INLINE_BYTES_MAX,
    ) -> Result:
        """The producer stores before it reports, so that no report names what is not there."""
        content = content_of(value)
        encoded = await _encoded(content, inline_bytes_max)
        if encoded.tier == "inline":
            return Result(status=status, context=content)
        return referred_result(content, await self.stage(name, encoded), status)

    async def stage(self, name: ResultName, encoded: Encoded) -> ResultReference:
        key = physical_key(name, self.placement, EXTENSIONS[encoded.media_type])
        stored = await self.objects.create(key, encoded.data, media_type=encoded.media_type)
        return ResultReference(
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

    async def stage_rows(self, name: ResultName, content: dict[str, Any]) -> ResultReference:
        """The output of a frame: never inside its event."""
        return await self.stage(name, await _encoded(content, 0))

    async def stage_file(self, name: ResultName, table: "TableFile") -> ResultReference:
        """A table that a tool wrote to a file, in pieces."""
        from noetl.results import feather  # noqa: PLC0415 - Arrow is loaded with the first table

        key = physical_key(name, self.placement, EXTENSIONS[FEATHER_MEDIA_TYPE])
        stored = await self.objects.create(
            key, chunks_of(table.path), media_type=FEATHER_MEDIA_TYPE
        )
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

    async def stage_dataset(
        self, name: DatasetName | ResultName, manifest: DatasetManifest
    ) -> ResultReference:
        """The manifest of a stage, before its end is recorded. The dataset of a step is what a
        stage ended well with; a stage that failed, and may be taken up again, has another name."""
        data = msgspec.json.encode(manifest)
        key = await self._key(name, JSON)
        stored = await self.objects.create(key, data, media_type=JSON_MEDIA_TYPE)
        return ResultReference(
            type="object_store",
            uri=name.uri,
            sha256=stored.sha256,
            media_type=JSON_MEDIA_TYPE,
            byte_length=stored.byte_length,
            row_count=manifest.row_count,
        )

    async def content(self, scope: Scope, uri: str, known: ResultReference | None = None) -> Any:
        """All of it, decoded. Raises PayloadError, StoreUnavailable, msgspec.DecodeError."""
        if is_payload_uri(uri):
            return msgspec.json.decode(await self._payload(scope, uri))
        name = _own(scope, uri)
        if isinstance(name, DatasetName):
            return await self._loop_content(scope, await self.manifest(name, known))
        stored = await self._open(name, known)
        try:
            content = await asyncio.to_thread(stored.whole)
        finally:
            stored.close()
        if is_manifest(content):
            return await self._loop_content(scope, msgspec.convert(content, DatasetManifest))
        return content

    async def manifest(
        self, name: DatasetName, known: ResultReference | None = None
    ) -> DatasetManifest:
        key = dataset_key(name, self.placement)
        data = await self._bytes(name, key, known)
        return msgspec.json.decode(data, type=DatasetManifest)

    async def rows(self, scope: Scope, part: DatasetPart) -> list[dict[str, Any]]:
        """The rows of one frame, with how each of them ended."""
        if part.reference is None:
            return part.outcomes or []
        if is_payload_uri(part.reference.uri):  # as frames were kept before results had names
            rows: list[dict[str, Any]] = await self.content(scope, part.reference.uri)
            return rows
        return rows_of(await self.content(scope, part.reference.uri, part.reference))

    async def open(self, scope: Scope, uri: str, known: ResultReference | None = None) -> Stored:
        """A single result, to be looked into without decoding all of it. Close it after use."""
        name = _own(scope, uri)
        if isinstance(name, DatasetName):
            raise PayloadMissing(uri)
        return await self._open(name, known)

    async def verify(self, scope: Scope, reference: ResultReference) -> int:
        """Read all of it from the store and count; raises PayloadMissing, PayloadCorrupt."""
        if is_payload_uri(reference.uri):
            stored = StoredPayload(reference.sha256 or "", reference.byte_length or 0)
            payload = reference_to(scope, stored, _media_type(reference))
            if payload.uri != reference.uri:
                raise PayloadMissing(reference.uri)
            return sum([len(chunk) async for chunk in self.payloads.get(payload)])
        key = await self._key(_own(scope, reference.uri), reference)
        fingerprint = Fingerprint()
        try:
            async for chunk in self.objects.read(key):
                await asyncio.to_thread(fingerprint.add, chunk)
        except ObjectMissing as error:
            raise PayloadMissing(reference.uri) from error
        found = fingerprint.stored()
        if found.sha256 != reference.sha256:
            expected = reference.sha256 or ""
            raise PayloadCorrupt(reference.uri, expected=expected, actual=found.sha256)
        return found.byte_length

    async def local_file(self, scope: Scope, reference: ResultReference, scratch: Path) -> Path:
        """A file of the result's bytes for a program to map; below `scratch` unless it lies here
        anyway."""
        name = _own(scope, reference.uri)
        key = await self._key(name, reference)
        found = await self.chain.read(_cache_key(name, reference), key)
        if found.path is not None:
            return found.path
        path = scratch / f"{reference.sha256}.{EXTENSIONS[_media_type(reference)]}"
        await asyncio.to_thread(path.write_bytes, found.view)
        return path

    async def _payload(self, scope: Scope, uri: str) -> bytes:
        digest = uri.rpartition("/")[2]
        if uri != payload_uri(scope, digest):  # another tenant's is not there for this one
            raise PayloadMissing(uri)
        reference = reference_to(scope, StoredPayload(digest, 0), JSON_MEDIA_TYPE)
        return b"".join([chunk async for chunk in self.payloads.get(reference)])

    async def _open(self, name: ResultName, known: ResultReference | None) -> Stored:
        key = await self._key(name, known)
        media_type = _MEDIA_TYPES[key.rpartition(".")[2]]
        data = await self._bytes(name, key, known)
        return await asyncio.to_thread(open_stored, data, media_type)

    async def _key(self, name: ResultName | DatasetName, known: ResultReference | None) -> str:
        """By the reference, or by asking the store which of the two encodings is there."""
        if isinstance(name, DatasetName):
            return dataset_key(name, self.placement)
        if known is not None:
            return physical_key(name, self.placement, EXTENSIONS[_media_type(known)])
        for extension in EXTENSIONS.values():
            key = physical_key(name, self.placement, extension)
            if await self.objects.head(key) is not None:
                return key
        raise PayloadMissing(name.uri)

    async def _bytes(
        self, name: ResultName | DatasetName, key: str, known: ResultReference | None
    ) -> memoryview | bytes:
        """Checked against the digest where it is known."""
        try:
            if known is not None and known.sha256 and known.byte_length is not None:
                return (await self.chain.read(_cache_key(name, known), key)).view
            return b"".join([chunk async for chunk in self.objects.read(key)])
        except ObjectMissing as error:
            raise PayloadMissing(name.uri) from error

    async def _loop_content(self, scope: Scope, manifest: DatasetManifest) -> dict[str, Any]:
        """What a loop's result is, all rows in their order."""
        values: list[Any] = []
        for part in manifest.parts:
            values += [row.get("value") for row in await self.rows(scope, part)]
        return {LOOP: {**manifest.loop, "results": values}}


def _own(scope: Scope, uri: str) -> ResultName | DatasetName:
    """Another tenant's result is not there for this one, however its name was come by."""
    try:
        name = parse_results(uri)
    except NameInvalid as error:
        raise PayloadMissing(uri) from error
    if name.scope != scope:
        raise PayloadMissing(uri)
    return name


def _cache_key(name: ResultName | DatasetName, known: ResultReference) -> CacheKey:
    return CacheKey(
        tenant_id=name.tenant,
        organization_id=name.project,
        execution_id=name.execution_id,
        sha256=known.sha256 or "",
        byte_length=known.byte_length or 0,
        frame=str(getattr(name, "frame", 0)),
    )


def _media_type(reference: ResultReference) -> str:
    return reference.media_type or JSON_MEDIA_TYPE


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
