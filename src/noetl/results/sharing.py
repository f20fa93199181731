"""What a producer leaves on its node for whoever reads next: a copy, and never the only one."""

import asyncio
from collections.abc import Callable

from noetl.domain.events.values import ResultReference
from noetl.kernel.instant import Instant, plus
from noetl.ports.result_cache import CacheKey, Offering, ResultCache


class Sharing:
    """After the bytes are durable, and before they are reported. A refusal is a reader's miss."""

    def __init__(
        self, layer: ResultCache, now: Callable[[], Instant], lease_seconds: float
    ) -> None:
        self._layer = layer
        self._now = now
        self._lease_seconds = lease_seconds

    async def share(self, key: CacheKey, view: memoryview, reference: ResultReference) -> None:
        offering = Offering(
            view=view,
            schema_digest=reference.schema_digest,
            row_count=reference.row_count,
            lease_expires_at=plus(self._now(), seconds=self._lease_seconds),
        )
        await asyncio.to_thread(self._layer.offer, key, offering)
