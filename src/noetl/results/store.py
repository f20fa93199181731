"""Results by name: written once by whoever made them, read by anybody who knows the name.

Two kinds of names lead to bytes. A result's own name is its coordinates, and its key follows from
them; a payload's name is the digest of its bytes. Collections, playbooks and what older versions
stored are payloads.
"""

import asyncio
import hashlib
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import CellPlacement
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.domain.payload import (
    StoredPayload,
    is_payload_uri,
    payload_uri,
    reference_to,
)
from noetl.kernel.errors import NameInvalid, ObjectMissing, PayloadMissing
from noetl.kernel.scope import Scope
from noetl.ports.object_store import ObjectStore
from noetl.ports.payload_store import PayloadStore
from noetl.results.counts import PAYLOAD
from noetl.results.dataset import (
    DatasetManifest,
    DatasetPart,
    is_manifest,
    is_table,
    rows_of,
)
from noetl.results.dataset_file import dataset_file
from noetl.results.lazily import content_within
from noetl.results.named_reads import NamedReads
from noetl.results.nested import STORED, NestedTable, with_tables
from noetl.results.proof import fingerprint_of
from noetl.results.read_chain import ReadChain
from noetl.results.reading import Stored, open_stored
from noetl.results.sharing import Sharing
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE, media_type_of
from noetl.results.writer import EXTENSIONS, ResultWriter
from noetl.templates.recorded import LOOP, VALUE
from noetl.templates.table_rows import TableRows


class ResultStore(ResultWriter):
    """Reads by name what it wrote, or what others with the same placement did."""

    def __init__(
        self,
        objects: ObjectStore,
        payloads: PayloadStore,
        placement: CellPlacement,
        chain: ReadChain,
        sharing: Sharing | None = None,
    ) -> None:
        super().__init__(objects, placement, sharing)
        self.payloads = payloads
        self.chain = chain
        self.reads = NamedReads(chain, placement, self.counts)

    async def close(self) -> None:
        """The objects are closed by whoever opened them."""
        await self.chain.close()

    async def content(
        self,
        scope: Scope,
        uri: str,
        known: ResultReference | None = None,
        *,
        lazily: bool = False,
    ) -> Any:
        """All of it, decoded; `lazily`: large tables that are known are TableRows instead.

        Raises PayloadError, StoreUnavailable, msgspec.DecodeError.
        """
        if is_payload_uri(uri):
            return msgspec.json.decode(await self._payload(scope, uri))
        name = _own(scope, uri)
        if isinstance(name, DatasetName):
            return await self._loop_content(scope, await self.manifest(name, known))
        stored = await self._open(name, known)
        content = await asyncio.to_thread(content_within, stored, known if lazily else None)
        if is_manifest(content):
            manifest = msgspec.convert(content, DatasetManifest)
            if lazily and known is not None and (table := self._lazy_rows(manifest, known)):
                return {VALUE: table}
            return await self._loop_content(scope, manifest)
        if STORED not in content:
            return content

        async def rows(nested: NestedTable) -> Any:
            reference = nested.reference
            inner = await self.content(scope, reference.uri, reference, lazily=lazily)
            return reduce(getitem, nested.keys, inner)

        return await with_tables(content, rows)

    async def manifest(
        self, name: DatasetName, known: ResultReference | None = None
    ) -> DatasetManifest:
        found = await self.reads.read(await self.reads.located(name, known))
        return msgspec.json.decode(found.view, type=DatasetManifest)

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
            payload = reference_to(scope, stored, media_type_of(reference))
            if payload.uri != reference.uri:
                raise PayloadMissing(reference.uri)
            return sum([len(chunk) async for chunk in self.payloads.get(payload)])
        key = self._key(scope, reference)
        try:
            fingerprint = await fingerprint_of(self.objects, key)
        except ObjectMissing as error:
            raise PayloadMissing(reference.uri) from error
        fingerprint.check(reference.uri, reference.sha256)
        return fingerprint.stored().byte_length

    async def local_file(self, scope: Scope, reference: ResultReference, scratch: Path) -> Path:
        """A file of the result's bytes for a program to map; below `scratch` unless it lies here
        anyway."""
        name = _own(scope, reference.uri)
        located = await self.reads.located(name, reference)
        digest = hashlib.sha256(reference.uri.encode()).hexdigest()
        path = scratch / f"{digest}.{EXTENSIONS[FEATHER_MEDIA_TYPE]}"
        if not located.is_arrow:  # a table in parts, or only its name is known
            return await dataset_file(self.reads, reference.uri, path, located.known)
        found = await self.reads.read(located)
        if found.path is not None and await asyncio.to_thread(found.path.exists):
            return found.path
        await asyncio.to_thread(path.write_bytes, found.view)
        return path

    async def discard(self, scope: Scope, reference: ResultReference) -> None:
        """Remove a table in parts that nobody was told of."""
        key = self._key(scope, reference)
        content = msgspec.json.decode(await self.chain.places.whole(key), type=DatasetManifest)
        for part in content.parts:
            if part.reference is not None:
                await self.objects.delete(self._key(scope, part.reference))
        await self.objects.delete(key)

    def _lazy_rows(self, manifest: DatasetManifest, known: ResultReference) -> TableRows | None:
        """None: it is no table, or its parts can only be read by waiting for them."""
        if not is_table(manifest):
            return None
        from noetl.results.parted_rows import PartedRows  # noqa: PLC0415 - loads Arrow
        from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow

        if not self.objects.is_direct:
            return None

        def open_part(reference: ResultReference) -> StoredTable:
            return StoredTable(self.reads.read_now(reference).view)

        return TableRows(PartedRows(manifest.parts, open_part), known, (VALUE,))

    async def _payload(self, scope: Scope, uri: str) -> bytes:
        digest = uri.rpartition("/")[2]
        if uri != payload_uri(scope, digest):  # another tenant's is not there for this one
            raise PayloadMissing(uri)
        reference = reference_to(scope, StoredPayload(digest, 0), JSON_MEDIA_TYPE)
        with self.reads.resolving(PAYLOAD, JSON_MEDIA_TYPE, uri):
            return b"".join([chunk async for chunk in self.payloads.get(reference)])

    async def _open(self, name: ResultName, known: ResultReference | None) -> Stored:
        located = await self.reads.located(name, known)
        found = await self.reads.read(located)
        return await asyncio.to_thread(open_stored, found.view, located.media_type)

    def _key(self, scope: Scope, reference: ResultReference) -> str:
        return self.key_of(_own(scope, reference.uri), media_type_of(reference))

    async def _loop_content(self, scope: Scope, manifest: DatasetManifest) -> dict[str, Any]:
        """What a loop's result is, or a table's, all rows in their order."""
        values: list[Any] = []
        if is_table(manifest):
            for part in manifest.parts:
                values += await self.rows(scope, part)
            return {VALUE: values}
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
