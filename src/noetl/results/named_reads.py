"""The bytes behind the names of results: which encoding is there, and proof where there can be one.

Whoever knows the reference gets bytes that have its digest, or an error. Who knows the name alone
gets what is stored under it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import CellPlacement
from noetl.domain.naming.result_name import DatasetName, ResultName, parse_results
from noetl.kernel.errors import (
    NoETLError,
    ObjectMissing,
    PayloadCorrupt,
    PayloadMissing,
    StoreUnavailable,
)
from noetl.ports.result_cache import CachedBytes
from noetl.results.counts import TIER, ResultCounts
from noetl.results.read_chain import ReadChain
from noetl.results.tiers import FEATHER_MEDIA_TYPE, JSON_MEDIA_TYPE, media_type_of
from noetl.results.writer import EXTENSIONS, cache_key, encoded_as, object_key

_TROUBLES = (
    ((ObjectMissing, PayloadMissing), "missing"),
    (PayloadCorrupt, "corrupt"),
    (StoreUnavailable, "unavailable"),
)


class Located(NamedTuple):
    """An object that is, or should be, under a name."""

    name: ResultName | DatasetName
    key: str
    media_type: str
    known: ResultReference | None  # which proves the bytes
    byte_length: int | None = None

    @property
    def is_arrow(self) -> bool:
        return self.media_type == FEATHER_MEDIA_TYPE


class NamedReads:
    def __init__(
        self, chain: ReadChain, placement: CellPlacement, counts: ResultCounts | None = None
    ) -> None:
        self.chain = chain
        self.placement = placement
        self.counts = counts or ResultCounts()

    async def located(
        self, name: ResultName | DatasetName, known: ResultReference | None = None
    ) -> Located:
        """By the reference, or by asking the store which of the two encodings is there.

        Raises PayloadMissing, StoreUnavailable.
        """
        if known is not None:
            return self._known(name, known)
        if isinstance(name, DatasetName):
            key = object_key(name, self.placement, JSON_MEDIA_TYPE)
            return Located(name, key, JSON_MEDIA_TYPE, None)
        keys = [object_key(name, self.placement, media_type) for media_type in EXTENSIONS]
        facts = await self.chain.places.first_there(keys)
        if facts is None:
            self.counts.resolved[TIER, "missing"] += 1
            raise PayloadMissing(name.uri)
        return Located(name, facts.key, encoded_as(facts.key), None, facts.byte_length)

    async def read(self, located: Located) -> CachedBytes:
        """Raises PayloadMissing, PayloadCorrupt, StoreUnavailable."""
        with self.resolving(TIER, located.media_type, located.name.uri):
            if located.known is not None:
                key = cache_key(located.name, located.known)
                return await self.chain.read(key, located.key)
            if located.byte_length is None or not located.is_arrow:
                data = await self.chain.places.whole(located.key)
                return CachedBytes(memoryview(data), "")
            return await self.chain.read_unproven(located.key, located.byte_length)

    def read_now(self, known: ResultReference) -> CachedBytes:
        """As `read`, for whoever blocks until the bytes are there."""
        located = self._known(parse_results(known.uri), known)
        with self.resolving(TIER, located.media_type, known.uri):
            return self.chain.read_now(cache_key(located.name, known), located.key)

    @contextmanager
    def resolving(self, path: str, media_type: str, uri: str) -> Iterator[None]:
        """Count how the attempt ends."""
        outcome = f"resolved_{EXTENSIONS[media_type]}"
        try:
            yield
        except NoETLError as error:
            outcome = next((text for kind, text in _TROUBLES if isinstance(error, kind)), "other")
            if isinstance(error, ObjectMissing):
                raise PayloadMissing(uri) from error
            raise
        finally:
            self.counts.resolved[path, outcome] += 1

    def _known(self, name: ResultName | DatasetName, known: ResultReference) -> Located:
        media_type = media_type_of(known)
        key = object_key(name, self.placement, media_type)
        is_proof = bool(known.sha256) and known.byte_length is not None
        return Located(name, key, media_type, known if is_proof else None, known.byte_length)
