"""Results for a program: the store by name, with the layers that are near."""

import hashlib
import socket
from pathlib import Path

from noetl.adapters.cache.disk import DiskResultCache
from noetl.adapters.cache.memory import MemoryResultCache
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.bootstrap.settings import Settings
from noetl.ports.object_store import ObjectStore
from noetl.ports.result_cache import ResultCache
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore

MEGABYTE = 1024 * 1024


def open_results(settings: Settings, objects: ObjectStore) -> ResultStore:
    chain = ReadChain(_layers(settings), objects, Path(settings.home) / "scratch")
    return ResultStore(objects, ObjectPayloadStore(objects), settings.placement, chain)


def open_shared_memory(settings: Settings) -> SharedMemoryResultCache:
    """Regions of this home on this node; whoever starts sweeps what the dead have left."""
    home = hashlib.sha256(str(Path(settings.home).resolve()).encode()).hexdigest()[:12]
    options = SharedMemoryOptions(
        home_id=home,
        node_id=socket.gethostname(),
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
