"""What the reference to a stored result said, from its bytes: for those that the log left out."""

import asyncio

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import ResultName
from noetl.domain.payload import Fingerprint
from noetl.results.dataset import DatasetManifest, is_manifest
from noetl.results.store import ResultStore
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_ENCODER, JSON_MEDIA_TYPE
from noetl.results.writer import EXTENSIONS, encoded_as


async def stored_reference(results: ResultStore, name: ResultName) -> ResultReference | None:
    """None: nothing is stored under this name. Whoever names the result again writes the same."""
    keys = [results.key_of(name, media_type) for media_type in EXTENSIONS]
    facts = await results.chain.places.first_there(keys)
    if facts is None:
        return None
    data = b"".join([chunk async for chunk in results.objects.read(facts.key)])
    describe = _table if encoded_as(facts.key) == FEATHER_MEDIA_TYPE else _document
    return await asyncio.to_thread(describe, name, data)


def _table(name: ResultName, data: bytes) -> ResultReference:
    """By the encoder of today: where it was another one, other bytes come of it, and are told."""
    from noetl.results import feather  # noqa: PLC0415 - loads Arrow
    from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow

    with StoredTable(data) as table:
        return msgspec.structs.replace(
            _reference(name, data, FEATHER_MEDIA_TYPE),
            schema_digest=table.schema_digest,
            row_count=table.length,
            encoder=feather.ENCODER,
            arrow_version=feather.ARROW_VERSION,
        )


def _document(name: ResultName, data: bytes) -> ResultReference:
    reference = _reference(name, data, JSON_MEDIA_TYPE)
    content = msgspec.json.decode(data)
    if is_manifest(content):
        row_count = msgspec.convert(content, DatasetManifest).row_count
        return msgspec.structs.replace(reference, row_count=row_count)
    return msgspec.structs.replace(reference, encoder=JSON_ENCODER)


def _reference(name: ResultName, data: bytes, media_type: str) -> ResultReference:
    fingerprint = Fingerprint()
    fingerprint.add(data)
    stored = fingerprint.stored()
    return ResultReference(
        type="object_store",
        uri=name.uri,
        sha256=stored.sha256,
        media_type=media_type,
        byte_length=stored.byte_length,
    )
