"""The way to a result's bytes: process memory, shared memory, disk, and the object store last.

Each layer may lie empty or fail, and then it is a miss. What is found below fills the layers above
it if they want it. Several askers for one object at one time cause one fetch.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import msgspec

from noetl.kernel.errors import NoETLError, StoreUnavailable
from noetl.ports.result_cache import CachedBytes, CacheKey, Offering, ResultCache
from noetl.results.blocking_reads import BlockingReads
from noetl.results.local_file import LocalFiles
from noetl.results.mapping import mapped_file
from noetl.results.places import (
    LAYER_LOCAL,
    LAYER_STORE,
    TROUBLE,
    ObjectSource,
    Place,
    Places,
    layer_of,
    most_telling,
    only,
)
from noetl.results.receiving import MEMORY_BYTES, Expected, Receiving

MEMORY_BYTES_MAX = 256 * 1024 * 1024
"""Up to here it may do without one when the disk is full."""

FILLS_MAX = 2
"""Copies upwards at one time; past that a layer stays without, and the next reader tries again."""

_BATCH_BYTES = 4 * 1024 * 1024  # small blocks are not worth a thread each

_Arguments = TypeVarTuple("_Arguments")
_Answer = TypeVar("_Answer")


class ChainStats(msgspec.Struct, frozen=True, kw_only=True):
    reads: int
    joined: int  # reads that waited for the fetch of another
    fallbacks: int  # reads that no layer could answer
    fetched_bytes: int  # that entered the machine
    found: dict[str, int]  # by the layer or store that had them


class _Flight:
    def __init__(self, task: asyncio.Task[CachedBytes]) -> None:
        self.task = task
        self.askers = 0


class ReadChain:
    """Layers from the quickest to the slowest. `scratch` holds objects while they arrive."""

    def __init__(
        self, layers: Sequence[ResultCache], source: ObjectSource | Places, scratch: Path
    ) -> None:
        self.layers = tuple(layers)
        self.places = source if isinstance(source, Places) else only(source)
        self._near = [layer for layer in layers if layer.in_process]
        self._far = [layer for layer in layers if not layer.in_process]
        self._scratch = scratch
        self._flights: dict[CacheKey, _Flight] = {}
        self._fills: set[asyncio.Task[None]] = set()
        self._local_files = LocalFiles()
        self._blocking = BlockingReads(layers, self.places, self._local_files, scratch)
        self._reads = self._joined = self._fallbacks = self._fetched_bytes = 0
        self._found: Counter[str] = Counter()

    async def read(self, key: CacheKey, object_key: str) -> CachedBytes:
        """The bytes. PayloadCorrupt when the store has others; what the store raises comes out."""
        self._reads += 1
        for layer in self._near:
            found = layer.get(key)
            if found is not None:
                self._found[found.layer] += 1
                return found
        flight = self._flights.get(key)
        if flight is None:
            flight = self._take_off(key, object_key)
        else:
            self._joined += 1
        flight.askers += 1
        try:
            found = await asyncio.shield(flight.task)
            self._found[found.layer] += 1
            return found
        finally:
            flight.askers -= 1
            if not flight.askers:  # done, or nobody waits for it any more
                self._land(key, flight)
                flight.task.cancel()

    async def read_unproven(self, object_key: str, byte_length: int) -> CachedBytes:
        """Of an object whose digest nobody knows: no layer has it, and none is given it."""

        async def from_place(place: Place) -> CachedBytes:
            local = place.objects.local_path(object_key)
            view = None if local is None else await _in_thread(mapped_file, local)
            if view is not None:
                return CachedBytes(view, layer_of(place, LAYER_LOCAL), local)
            expected = Expected(None, byte_length)
            view = await self._fetched(place, object_key, expected, lambda _: None)
            return CachedBytes(view, layer_of(place, LAYER_STORE))

        self._reads += 1
        found = await self._from_first(from_place)
        self._found[found.layer] += 1
        return found

    def read_now(self, key: CacheKey, object_key: str) -> CachedBytes:
        """As `read`, for whoever blocks until the bytes are there."""
        self._reads += 1
        found = self._blocking.read(key, object_key)
        self._found[found.layer] += 1
        return found

    def stats(self) -> ChainStats:
        return ChainStats(
            reads=self._reads,
            joined=self._joined,
            fallbacks=self._fallbacks + self._blocking.fallbacks,
            fetched_bytes=self._fetched_bytes + self._blocking.fetched_bytes,
            found=dict(self._found),
        )

    async def close(self) -> None:
        """Wait for copies that are under way."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._fills, return_exceptions=True)

    def _take_off(self, key: CacheKey, object_key: str) -> _Flight:
        flight = _Flight(asyncio.create_task(self._find(key, object_key)))
        self._flights[key] = flight
        flight.task.add_done_callback(lambda _: self._land(key, flight))
        flight.task.add_done_callback(_look_at)  # an error that nobody waited for is no news
        return flight

    def _land(self, key: CacheKey, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _find(self, key: CacheKey, object_key: str) -> CachedBytes:
        found, depth = await _in_thread(self._look, key)
        if found is None:
            self._fallbacks += 1
            return await self._from_source(key, object_key)
        if not found.borrowed:
            offering = Offering(view=found.view, path=found.path)
            self._offer_near(key, offering)
            self._fill_later(key, offering, self._far[:depth])
        return found

    def _look(self, key: CacheKey) -> tuple[CachedBytes | None, int]:
        for depth, layer in enumerate(self._far):
            found = layer.get(key)
            if found is not None:
                return found, depth
        return None, len(self._far)

    async def _from_source(self, key: CacheKey, object_key: str) -> CachedBytes:
        return await self._from_first(lambda place: self._from_place(place, key, object_key))

    async def _from_first(self, ask: Callable[[Place], Awaitable[CachedBytes]]) -> CachedBytes:
        """From the first place that has the right bytes."""
        problems: list[NoETLError] = []
        for place in self.places.in_order():
            try:
                return await ask(place)
            except TROUBLE as error:
                self.places.note(place, error)
                problems.append(error)
        raise most_telling(problems)

    async def _from_place(self, place: Place, key: CacheKey, object_key: str) -> CachedBytes:
        local = place.objects.local_path(object_key)
        if local is not None:
            view = await _in_thread(self._local_files.map, local, key, object_key)
            if view is not None:
                self._offer_near(key, Offering(view=view, path=local))
                return CachedBytes(view, layer_of(place, LAYER_LOCAL), local)
        expected = Expected(key.sha256, key.byte_length)
        view = await self._fetched(place, object_key, expected, partial(_offer, self._far, key))
        path = await _in_thread(_file_in, self._far, key)
        self._offer_near(key, Offering(view=view, path=path))
        return CachedBytes(view, layer_of(place, LAYER_STORE), path)

    async def _fetched(
        self, place: Place, object_key: str, expected: Expected, keep: Callable[[Offering], None]
    ) -> memoryview:
        scratch = None if expected.byte_length <= MEMORY_BYTES else self._scratch
        receiving = Receiving(expected, object_key, scratch)
        try:
            return await self._received(place, object_key, receiving, keep)
        except StoreUnavailable:
            if not receiving.disk_failed or expected.byte_length > MEMORY_BYTES_MAX:
                raise
        receiving = Receiving(expected, object_key, None)
        return await self._received(place, object_key, receiving, keep)

    async def _received(
        self, place: Place, object_key: str, receiving: Receiving, keep: Callable[[Offering], None]
    ) -> memoryview:
        try:
            async for batch in _batches(place.objects.read(object_key)):
                self._fetched_bytes += len(batch)
                await _in_thread(receiving.add, batch)
            view, path = await _in_thread(receiving.finish)
            # The file goes next, so layers that keep it take it now.
            await _in_thread(keep, Offering(view=view, path=path))
        finally:
            await _in_thread(receiving.discard)
        return view

    def _offer_near(self, key: CacheKey, offering: Offering) -> None:
        _offer(self._near, key, offering)

    def _fill_later(self, key: CacheKey, offering: Offering, layers: list[ResultCache]) -> None:
        if layers and len(self._fills) < FILLS_MAX:
            fill = asyncio.create_task(_in_thread(_offer, layers, key, offering))
            self._fills.add(fill)
            fill.add_done_callback(self._fills.discard)


def _look_at(task: asyncio.Task[CachedBytes]) -> None:
    if not task.cancelled():
        task.exception()


def _offer(layers: list[ResultCache], key: CacheKey, offering: Offering) -> None:
    for layer in reversed(layers):
        layer.offer(key, offering)


def _file_in(layers: Sequence[ResultCache], key: CacheKey) -> Path | None:
    """For programs that want a file: one that a layer has kept is as good as a copy."""
    return next((path for layer in layers if (path := layer.file_of(key)) is not None), None)


async def _batches(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytearray]:
    waiting = bytearray()
    async for block in blocks:
        waiting += block
        if len(waiting) >= _BATCH_BYTES:
            yield waiting
            waiting = bytearray()
    yield waiting


async def _in_thread(work: Callable[[*_Arguments], _Answer], *arguments: *_Arguments) -> _Answer:
    running = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        # The caller removes files next: the thread must have let go of them.
        await asyncio.wait([running])
        raise
