"""The objects that events name: where each lies, whether it is whole, and how it is put back."""

from collections.abc import AsyncIterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from noetl.domain.events import PlaybookInitialized
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import CellPlacement
from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import is_payload_uri, payload_key, payload_uri
from noetl.kernel.errors import NameInvalid, ObjectMissing, PayloadError
from noetl.kernel.scope import Scope
from noetl.ports.object_store import OCTETS, ObjectStore
from noetl.results.proof import fingerprint_of, proven
from noetl.results.store import ResultStore
from noetl.results.table_file import chunks_of
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE
from noetl.results.within import named_within
from noetl.results.writer import object_key
from noetl.runtime.payload_verification import payloads_named_by, scope_of
from noetl.runtime.playbooks import MEDIA_TYPE as PLAYBOOK_MEDIA_TYPE

Verdict = Literal["ok", "missing", "corrupt", "wrong_length", "foreign"]
Data = bytes | memoryview | AsyncIterable[bytes]


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """An object, and the first event that names it: that one tells who made it. An event may name
    it by way of another object."""

    scope: Scope
    reference: ResultReference
    key: str | None  # None: it is another scope's, and so never looked at
    recorded: RecordedEvent
    within: str | None = None  # the name of the object that names it, if the event does not


class Examined(NamedTuple):
    verdict: Verdict
    byte_length: int = 0  # that were read


def objects_named_by(recorded: RecordedEvent, placement: CellPlacement) -> Iterator[Named]:
    """In the event's envelope or body; the text of the playbook belongs to the first event."""
    scope = recorded.envelope.scope
    for reference in (*_playbook(recorded, scope), *payloads_named_by(recorded)):
        key = _own_key(reference, scope, placement)
        yield Named(scope=scope, reference=reference, key=key, recorded=recorded)


async def objects_named_within(results: ResultStore, named: Named) -> list[Named]:
    """None of an object that is lost or damaged: it says so itself. Raises StoreUnavailable."""
    if named.key is None:
        return []
    try:
        nested = await named_within(results, named.scope, named.reference)
    except PayloadError:
        return []
    return [
        Named(
            scope=named.scope,
            reference=reference,
            key=_own_key(reference, named.scope, results.placement),
            recorded=named.recorded,
            within=named.reference.uri,
        )
        for reference in nested
    ]


def key_of(reference: ResultReference, scope: Scope, placement: CellPlacement) -> str | None:
    """None for a name that leads to no object."""
    try:
        if is_payload_uri(reference.uri):
            return payload_key(scope, reference.uri.rpartition("/")[2])
        is_table = reference.media_type == FEATHER_MEDIA_TYPE
        media_type = FEATHER_MEDIA_TYPE if is_table else JSON_MEDIA_TYPE
        return object_key(parse_results(reference.uri), placement, media_type)
    except NameInvalid:
        return None


def _own_key(reference: ResultReference, scope: Scope, placement: CellPlacement) -> str | None:
    return key_of(reference, scope, placement) if scope_of(reference) == scope else None


def _playbook(recorded: RecordedEvent, scope: Scope) -> Iterator[ResultReference]:
    event = recorded.event
    if isinstance(event, PlaybookInitialized):
        digest = event.playbook_digest
        yield ResultReference(
            type="object_store",
            uri=payload_uri(scope, digest),
            sha256=digest,
            media_type=PLAYBOOK_MEDIA_TYPE,
        )


async def examine(objects: ObjectStore, named: Named) -> Examined:
    """All of its bytes are read, a chunk at a time. A store that is away is no verdict."""
    if named.key is None:
        return Examined("foreign")
    try:
        fingerprint = await fingerprint_of(objects, named.key)
    except ObjectMissing:
        return Examined("missing")
    found, reference = fingerprint.stored(), named.reference
    if reference.byte_length not in (None, found.byte_length):
        return Examined("wrong_length", found.byte_length)
    if found.sha256 != reference.sha256:
        return Examined("corrupt", found.byte_length)
    return Examined("ok", found.byte_length)


async def put_back(objects: ObjectStore, named: Named, verdict: Verdict, data: Data) -> None:
    """Whole and proven, or not at all. Raises PayloadCorrupt when these are other bytes."""
    assert named.key is not None
    write = objects.create if verdict == "missing" else objects.replace
    reference = named.reference
    chunks = chunks_of(memoryview(data)) if isinstance(data, bytes | memoryview) else data
    whole = proven(chunks, reference.uri, reference.sha256)
    await write(named.key, whole, media_type=reference.media_type or OCTETS)
