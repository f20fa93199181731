"""Results for a program: the store by name, with the layers that are near."""

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlencode

from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.cache.memory import MemoryResultCache
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import SystemClock, utc_now
from noetl.bootstrap.cells import check_own_cell, known_cells
from noetl.bootstrap.objects import open_object_url
from noetl.bootstrap.settings import Settings
from noetl.bootstrap.store_keys import with_keys
from noetl.domain.naming.access_plan import Asking, Location, in_order, locations_of
from noetl.domain.naming.locator import Locality
from noetl.ports.clock import Clock
from noetl.ports.object_store import ObjectStore
from noetl.ports.result_cache import ResultCache
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.places import Place, Places, only
from noetl.results.read_chain import ReadChain
from noetl.results.sharing import Sharing
from noetl.results.store import ResultStore

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
MEGABYTE = 1024 * 1024
SWEEP_SECONDS = 30.0
"""How often a process that serves looks for regions that are over."""


@asynccontextmanager
async def open_results(
    settings: Settings, objects: ObjectStore, variables: Mapping[str, str] = NO_VARIABLES
) -> AsyncIterator[ResultStore]:
    """`variables` have the keys of replicas, beside those of this process.

    Whoever comes removes what the dead have left in shared memory, and only that: counting
    the disk is for those who stay."""
    layers = _layers(settings)
    shared = [layer for layer in layers if isinstance(layer, SharedMemoryResultCache)]
    sharing = Sharing(shared[0], utc_now, settings.lease_seconds) if shared else None
    await sweep_shared(layers)
    async with AsyncExitStack() as stack:
        places = _places(settings, objects, variables, stack)
        chain = ReadChain(layers, places, Path(settings.home) / "scratch")
        store = ResultStore(
            objects, ObjectPayloadStore(objects), settings.placement, chain, sharing
        )
        store.inline_bytes_max = settings.event_result_context_max_bytes
        stack.push_async_callback(store.close)
        yield store


async def keep_swept(results: ResultStore, clock: Clock) -> None:
    """For as long as a process serves."""
    layers = results.chain.layers
    for layer in layers:
        if isinstance(layer, DiskResultCache):
            await asyncio.to_thread(layer.sweep)
    while True:
        await clock.sleep(SWEEP_SECONDS)
        await sweep_shared(layers)


async def sweep_shared(layers: Iterable[ResultCache]) -> None:
    for layer in layers:
        if isinstance(layer, SharedMemoryResultCache):
            await asyncio.to_thread(layer.sweep)


def _places(
    settings: Settings, objects: ObjectStore, variables: Mapping[str, str], stack: AsyncExitStack
) -> Places:
    """The settings' own store, and the replicas of its cell; the nearest first."""
    registry = known_cells(settings)
    if registry is None:
        return only(objects)
    check_own_cell(settings, registry)
    asking = Asking(requester=Locality(region=settings.read_region))
    places: list[Place] = []
    for location in in_order(locations_of(registry.find(settings.result_cell)), asking):
        if location.replica_state == "primary":
            places.append(Place(location.name, objects))
            continue
        replica = open_object_url(with_keys(_address(location), variables))
        stack.push_async_callback(replica.close)
        places.append(Place(location.name, replica, is_replica=True))
    return Places(places, SystemClock().monotonic)


def _address(location: Location) -> str:
    if location.endpoint is None:
        return location.url
    return f"{location.url}?{urlencode({'endpoint': location.endpoint})}"


def open_shared_memory(settings: Settings) -> SharedMemoryResultCache:
    """Regions of this home on this node; whoever starts sweeps what the dead have left."""
    home = hashlib.sha256(str(Path(settings.home).resolve()).encode()).hexdigest()[:12]
    options = SharedMemoryOptions(
        home_id=home,
        node_id=settings.node_name or socket.gethostname(),
        budget_bytes=settings.result_shared_memory_mb * MEGABYTE,
    )
    return SharedMemoryResultCache(options, utc_now)


def _layers(settings: Settings) -> list[ResultCache]:
    layers: list[ResultCache] = []
    if settings.result_memory_mb:
        layers.append(MemoryResultCache(settings.result_memory_mb * MEGABYTE))
    if settings.result_shared_memory_mb:
        layers.append(open_shared_memory(settings))
    if settings.result_disk_mb:
        folder = Path(settings.home) / "cache"
        layers.append(DiskResultCache(folder, utc_now, settings.result_disk_mb * MEGABYTE))
    return layers
