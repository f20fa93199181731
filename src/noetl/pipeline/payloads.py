"""Values that outgrow an event: stored first and referred to, read back when somebody looks."""

from typing import Any

import msgspec

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.payload import PayloadReference, StoredPayload, payload_uri, reference_to
from noetl.kernel import canonical_json
from noetl.kernel.errors import PayloadMissing
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import PayloadStore
from noetl.templates.recorded import INLINE_BYTES_MAX, content_of, referred_result

MEDIA_TYPE = "application/json"


async def recorded(
    value: Any,
    payloads: PayloadStore,
    scope: Scope,
    *,
    status: str = "ok",
    inline_bytes_max: int = INLINE_BYTES_MAX,
) -> Result:
    """The producer stores before it reports, so that no report names what is not there."""
    content = content_of(value)
    encoded = canonical_json.encode(content)
    if len(encoded) <= inline_bytes_max:
        return Result(status=status, context=content)
    stored = await payloads.put(scope, encoded, MEDIA_TYPE)
    return referred_result(content, as_reference(stored), status)


async def read_bytes(store: PayloadStore, scope: Scope, uri: str) -> bytes:
    """What lies under the uri. Another tenant's payload is not there for this one."""
    digest = uri.rpartition("/")[2]
    if uri != payload_uri(scope, digest):
        raise PayloadMissing(uri)
    reference = reference_to(scope, StoredPayload(digest, 0), MEDIA_TYPE)
    return b"".join([chunk async for chunk in store.get(reference)])


async def read_json(store: PayloadStore, scope: Scope, uri: str) -> Any:
    return msgspec.json.decode(await read_bytes(store, scope, uri))


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
