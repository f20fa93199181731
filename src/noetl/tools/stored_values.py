"""Values that lie in the payload store: written under a reference, read back as they were."""

from typing import Any

import msgspec

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import is_result_uri
from noetl.domain.payload import PayloadReference, is_digest, is_payload_uri
from noetl.domain.playbook.wording import shown
from noetl.kernel import canonical_json
from noetl.kernel.errors import (
    EventInvalid,
    PayloadError,
    PayloadMissing,
    StoreUnavailable,
)
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import PayloadStore
from noetl.ports.stored_results import StoredResults
from noetl.templates.layered import PipelineResult, plain_result
from noetl.templates.recorded import ORDER, TASKS, VALUE, content_of, value_of
from noetl.tools.failures import failed

MEDIA_TYPE = "application/json"


async def read_value(uri: str, store: StoredResults, scope: Scope) -> Any:
    """What was stored under the reference. Raises ToolFailed when it is not there."""
    content = await _read_content(uri, store, scope)
    if isinstance(content, dict):
        if content.keys() == {VALUE}:
            return content[VALUE]
        if content.keys() == {TASKS, ORDER}:
            tasks = content[TASKS]
            return plain_result(PipelineResult({name: tasks[name] for name in content[ORDER]}))
    return content


async def result_value(result: Result, store: StoredResults, scope: Scope) -> Any:
    """A recorded result as plain data, fetched where the event holds only a reference."""
    fetched = {}
    if result.reference is not None:
        uri = result.reference.uri
        fetched[uri] = await _read_content(uri, store, scope, result.reference)
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


async def _read_content(
    uri: str, store: StoredResults, scope: Scope, known: ResultReference | None = None
) -> Any:
    if not is_result_uri(uri) and not _is_payload(uri):
        raise failed(
            "client_error",
            f"{shown(uri)!r} is no reference of a stored result; use `_ref` of a step's result",
        )
    try:
        return await store.content(scope, uri, known)
    except msgspec.DecodeError as error:
        raise failed(
            "parse", f"{shown(uri)} holds no JSON; fetch results only, not tables or files"
        ) from error
    except PayloadMissing as error:
        raise _missing(uri) from error
    except PayloadError as error:
        raise failed("storage_access", f"{error}; restore it from a backup") from error
    except StoreUnavailable as error:
        raise failed("connection", f"the payload store did not answer: {error}") from error


def _is_payload(uri: str) -> bool:
    return is_payload_uri(uri) and is_digest(uri.rpartition("/")[2])


def _missing(uri: str) -> Exception:
    return failed(
        "missing_reference",
        f"nothing is stored under {uri}; it was never stored in this tenant, or was collected",
    )
