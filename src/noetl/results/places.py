"""Where copies of objects are, the nearest first; a place that fails goes last for a while."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from noetl.kernel.errors import (
    NoETLError,
    ObjectMissing,
    PayloadCorrupt,
    PayloadMissing,
    StoreUnavailable,
)
from noetl.ports.object_store import ArrowFile, ObjectFacts

LAYER_STORE = "object_store"
LAYER_LOCAL = "local_store"
LAYER_REPLICA = "replica"
SOURCES = (LAYER_LOCAL, LAYER_STORE, LAYER_REPLICA)

FAILED_SECONDS = 30.0
"""How long a place that did not answer is asked last."""

TROUBLE = (StoreUnavailable, PayloadCorrupt, ObjectMissing, PayloadMissing)
"""What another copy can make good; the first of these tells most about why there is no answer."""


class ObjectSource(Protocol):
    """What readers need of an object store."""

    def read(self, key: str) -> AsyncIterator[bytes]: ...

    def local_path(self, key: str) -> Path | None: ...

    def arrow_file(self, key: str) -> ArrowFile | None: ...

    async def head(self, key: str) -> ObjectFacts | None: ...


class Place(NamedTuple):
    """One copy of a cell's objects; what is copied later may not be there yet."""

    name: str
    objects: ObjectSource
    is_replica: bool = False


class Places:
    def __init__(self, places: Sequence[Place], seconds: Callable[[], float]) -> None:
        """In the order in which they are asked; `seconds` is a clock that only rises."""
        self._places = tuple(places)
        self._seconds = seconds
        self._failed: dict[str, float] = {}  # until when
        self.failures: dict[str, int] = {place.name: 0 for place in places}

    def in_order(self) -> list[Place]:
        if not self._failed:
            return list(self._places)
        now = self._seconds()
        self._failed = {name: until for name, until in self._failed.items() if until > now}
        return sorted(self._places, key=lambda place: place.name in self._failed)

    @property
    def failed(self) -> frozenset[str]:
        """The names of those that are asked last."""
        return frozenset(place.name for place in self.in_order() if place.name in self._failed)

    def note(self, place: Place, error: NoETLError) -> None:
        """Missing at one place is no failure of it: copies come later."""
        if isinstance(error, (StoreUnavailable, PayloadCorrupt)):
            self.failures[place.name] += 1
        if isinstance(error, StoreUnavailable):
            self._failed[place.name] = self._seconds() + FAILED_SECONDS

    async def head(self, key: str) -> ObjectFacts | None:
        """None when every place says that it is not there."""
        trouble: StoreUnavailable | None = None
        for place in self.in_order():
            try:
                facts = await place.objects.head(key)
            except StoreUnavailable as error:
                self.note(place, error)
                trouble = error
            else:
                if facts is not None:
                    return facts
        if trouble is not None:
            raise trouble
        return None

    async def first_there(self, keys: Iterable[str]) -> ObjectFacts | None:
        """Of keys that a name may stand for, one for each encoding."""
        for key in keys:
            facts = await self.head(key)
            if facts is not None:
                return facts
        return None

    async def whole(self, key: str) -> bytes:
        """All bytes at once, of an object whose digest nobody knows."""
        problems: list[NoETLError] = []
        for place in self.in_order():
            try:
                return b"".join([chunk async for chunk in place.objects.read(key)])
            except TROUBLE as error:
                self.note(place, error)
                problems.append(error)
        raise most_telling(problems)


def layer_of(place: Place, layer: str) -> str:
    return LAYER_REPLICA if place.is_replica else layer


def only(source: ObjectSource) -> Places:
    """One place, as most cells have it."""
    return Places([Place("primary", source)], lambda: 0.0)


def most_telling(problems: Sequence[NoETLError]) -> NoETLError:
    """A store that was away may have had it, so it is not known to be missing."""
    return min(problems, key=_rank)


def _rank(error: NoETLError) -> int:
    return next(rank for rank, kind in enumerate(TROUBLE) if isinstance(error, kind))
