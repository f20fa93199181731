"""Values that lie in the payload store: written under a reference, read back as they were."""

from typing import Any

import msgspec

from noetl.domain.events.values import Result
from noetl.domain.payload import PayloadReference, is_digest, is_payload_uri, payload_uri
from noetl.domain.playbook.wording import shown
from noetl.kernel import canonical_json
from noetl.kernel.errors import (
    EventInvalid,
    PayloadCorrupt,
    PayloadMissing,
    StoreUnavailable,
)
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import PayloadStore
from noetl.templates.layered import PipelineResult, plain_result
from noetl.templates.recorded import ORDER, TASKS, VALUE, content_of, value_of
from noetl.tools.failures import failed

MEDIA_TYPE = "application/json"


async def read_value(uri: str, store: PayloadStore, scope: Scope) -> Any:
    """What was stored under the reference. Raises ToolFailed when it is not there."""
    content = await _read_content(uri, store, scope)
    if isinstance(content, dict):
        if content.keys() == {VALUE}:
            return content[VALUE]
        if content.keys() == {TASKS, ORDER}:
            tasks = content[TASKS]
            return plain_result(PipelineResult({name: tasks[name] for name in content[ORDER]}))
    return content


async def result_value(result: Result, store: PayloadStore, scope: Scope) -> Any:
    """A recorded result as plain data, fetched where the event holds only a reference."""
    fetched = {}
    if result.reference is not None:
        uri = result.reference.uri
        fetched[uri] = await _read_content(uri, store, scope)
    return plain_result(value_of(result, fetched))


async def write_value(value: Any, store: PayloadStore, scope: Scope) -> PayloadReference:
    """Stored in the form of a result, so that reading it gives exactly this value."""
    try:
        canonical_json.check_plain(value, "data")
        encoded = canonical_json.encode(content_of(value))
    except EventInvalid as error:
        raise failed("schema", f"what is put must be plain data: {error}") from error
    try:
        return await store.put(scope, encoded, MEDIA_TYPE)
    except StoreUnavailable as error:
        raise failed("connection", f"the payload store did not answer: {error}") from error


async def _read_content(uri: str, store: PayloadStore, scope: Scope) -> Any:
    encoded = await _read(_reference(uri, scope), store)
    try:
        return msgspec.json.decode(encoded)
    except msgspec.DecodeError as error:
        raise failed(
            "parse", f"{shown(uri)} holds no JSON; fetch results only, not tables or files"
        ) from error


def _reference(uri: str, scope: Scope) -> PayloadReference:
    sha256 = uri.rpartition("/")[2]
    if not is_payload_uri(uri) or not is_digest(sha256):
        raise failed(
            "client_error",
            f"{shown(uri)!r} is no reference of a stored result; use `_ref` of a step's result",
        )
    # Another tenant's payload is not there for this one, even when its bytes are the same.
    if uri != payload_uri(scope, sha256):
        raise _missing(uri)
    return PayloadReference(
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        uri=uri,
        sha256=sha256,
        media_type=MEDIA_TYPE,
        byte_length=0,
    )


async def _read(reference: PayloadReference, store: PayloadStore) -> bytes:
    try:
        return b"".join([chunk async for chunk in store.get(reference)])
    except PayloadMissing as error:
        raise _missing(reference.uri) from error
    except PayloadCorrupt as error:
        raise failed("storage_access", f"{error}; restore it from a backup") from error
    except StoreUnavailable as error:
        raise failed("connection", f"the payload store did not answer: {error}") from error


def _missing(uri: str) -> Exception:
    return failed(
        "missing_reference",
        f"nothing is stored under {uri}; it was never stored in this tenant, or was collected",
    )
