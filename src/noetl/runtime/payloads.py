"""Large results leave the event for the payload store, and come back when someone looks."""

from typing import Any

import msgspec

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.payload import (
    PayloadReference,
    StoredPayload,
    is_payload_uri,
    payload_uri,
    reference_to,
)
from noetl.kernel import canonical_json
from noetl.kernel.errors import PayloadMissing
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import PayloadStore

INLINE_BYTES_MAX = 102_400
MEDIA_TYPE = "application/json"


async def externalize(
    result: Result, store: PayloadStore, scope: Scope, threshold_bytes: int = INLINE_BYTES_MAX
) -> Result:
    """The result as an event may carry it. One that has a reference already keeps that."""
    if result.reference is not None:
        return result
    canonical_json.check_plain(result.context, "context")  # as strict as an event itself
    encoded = canonical_json.encode(result.context)
    if len(encoded) <= threshold_bytes:
        return result
    stored = await store.put(scope, encoded, MEDIA_TYPE)
    return msgspec.structs.replace(result, reference=as_reference(stored), context={})


async def resolve(result: Result, store: PayloadStore, scope: Scope) -> Result:
    """The result as it was before `externalize`; any other result as it is."""
    if result.reference is None or result.context or not _is_ours(result.reference):
        return result
    reference = as_payload(result.reference, scope)
    # Another tenant's payload is not there for this one, even when its bytes are the same.
    if reference.uri != payload_uri(scope, reference.sha256):
        raise PayloadMissing(reference.uri)
    encoded = b"".join([chunk async for chunk in store.get(reference)])
    return msgspec.structs.replace(result, reference=None, context=msgspec.json.decode(encoded))


async def read_json(store: PayloadStore, scope: Scope, uri: str) -> Any:
    """What lies under the uri. Another tenant's payload is not there for this one."""
    digest = uri.rpartition("/")[2]
    if uri != payload_uri(scope, digest):
        raise PayloadMissing(uri)
    reference = reference_to(scope, StoredPayload(digest, 0), MEDIA_TYPE)
    return msgspec.json.decode(b"".join([chunk async for chunk in store.get(reference)]))


def _is_ours(reference: ResultReference) -> bool:
    return reference.media_type == MEDIA_TYPE and is_payload_uri(reference.uri)


def as_reference(stored: PayloadReference) -> ResultReference:
    """How an event names a payload."""
    return ResultReference(
        type="object_store",
        uri=stored.uri,
        sha256=stored.sha256,
        media_type=stored.media_type,
        byte_length=stored.byte_length,
    )


def as_payload(reference: ResultReference, scope: Scope) -> PayloadReference:
    """The payload behind a result's reference; the store refuses one that is not the scope's."""
    return PayloadReference(
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        uri=reference.uri,
        sha256=reference.sha256 or "",
        media_type=reference.media_type or MEDIA_TYPE,
        byte_length=reference.byte_length or 0,
        row_count=reference.row_count,
    )
