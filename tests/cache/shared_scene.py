"""A node's shared memory in a folder, and things to put into it."""

from pathlib import Path
from typing import Any

import msgspec

from noetl.adapters.cache.region import HEADER
from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.ports.result_cache import CacheKey
from noetl.testing.compliance.result_cache import key_of
from tests.cache.held_clock import HeldClock

DATA = bytes(range(256)) * 40
KEY = key_of(DATA)
SIZE = len(DATA) + HEADER.size


def opened(folder: Path, clock: HeldClock, **changes: Any) -> SharedMemoryResultCache:
    options = SharedMemoryOptions(home_id="home", node_id="node", folder=folder)
    return SharedMemoryResultCache(msgspec.structs.replace(options, **changes), clock)


def numbered(number: int) -> tuple[CacheKey, bytes]:
    data = bytes([number]) * len(DATA)
    return key_of(data), data
