"""A value as an event carries it: small ones inline, large ones stored first and referred to."""

from typing import Any

from noetl.domain.events.values import Result
from noetl.kernel import canonical_json
from noetl.kernel.scope import Scope
from noetl.ports.payload_store import PayloadStore
from noetl.runtime.payloads import INLINE_BYTES_MAX, MEDIA_TYPE, as_reference
from noetl.templates.recorded import content_of, referred_result


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
