"""ResultCache in the shared memory of a node: files in `/dev/shm` that every process may map.

A region whose producer holds a lease stays; past its lease it makes room, the least recently used
first; past the grace it is gone. What a reader brings back from below holds no lease. It takes the
room only of what nobody has used since the reader missed it before: reading everything once, or in
turn again and again, evicts nothing.
"""

import errno
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import msgspec

from noetl.adapters.cache import region as regions
from noetl.adapters.cache.producer import this_process
from noetl.adapters.cache.region import HEADER, LEASE, LEASE_OFFSET, Region
from noetl.adapters.cache.region_folder import RegionFolder, open_region
from noetl.adapters.cache.tally import Tally
from noetl.domain.payload import is_digest
from noetl.kernel.instant import Instant
from noetl.ports.result_cache import CachedBytes, CacheKey, CacheStats, Offering
from noetl.results.mapping import mapped

LAYER = "shared_memory"
FOLDER = Path("/dev/shm")
BUDGET_BYTES = 1024 * 1024 * 1024
GRACE_SECONDS = 30.0
KEEP_SECONDS = 300.0
MISSES_REMEMBERED_MAX = 4_096

_WRITE_BYTES = 16 * 1024 * 1024
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EFBIG}


class SharedMemoryOptions(msgspec.Struct, frozen=True, kw_only=True):
    home_id: str  # processes of one home share regions and budget
    node_id: str  # the machine's name, the same for everybody who sees this folder
    folder: Path = FOLDER
    budget_bytes: int = BUDGET_BYTES  # 0: nothing is shared
    grace_seconds: float = GRACE_SECONDS  # past a lease
    keep_seconds: float = KEEP_SECONDS  # for what holds no lease


class SharedMemoryResultCache:
    in_process = False

    def __init__(self, options: SharedMemoryOptions, now: Callable[[], Instant]) -> None:
        self._options = options
        self._now = now
        self._folder = RegionFolder(options.folder, options.home_id, options.budget_bytes)
        self._node = regions.node_digest(options.node_id)
        self._tally = Tally(LAYER, options.budget_bytes)
        self._missed: OrderedDict[str, tuple[int, int]] = OrderedDict()  # the last two times
        self._lock = Lock()

    def get(self, key: CacheKey, /) -> CachedBytes | None:
        found = self._attach(key)
        if isinstance(found, CachedBytes):
            self._tally.hit()
            return found
        self._tally.missed(found)
        self._remember(self._folder.name(key))
        return None

    def offer(self, key: CacheKey, offering: Offering, /) -> bool:
        """Put a copy where the node's other processes find it: its name follows from the key."""
        try:
            refusal = self._share(key, offering)
        except OSError as error:
            refusal = "no_space" if error.errno in _NO_SPACE else "failed"
        if refusal is not None:
            self._tally.refused(refusal)
            return False
        self._tally.admitted()
        return True

    def file_of(self, _key: CacheKey, /) -> Path | None:
        return None  # a region begins with a header

    def sweep(self) -> int:
        """Remove what is over and what dead producers left; on start, and now and then."""
        try:
            removed = self._folder.sweep(self._now_micros(), self._options.grace_seconds)
        except OSError:
            return 0
        self._tally.evicted(removed)
        return removed

    def stats(self) -> CacheStats:
        try:
            sizes = self._folder.sizes()
        except OSError:
            sizes = []
        return self._tally.stats(bytes_in_use=sum(sizes), entries=len(sizes))

    def _attach(self, key: CacheKey) -> CachedBytes | str:
        if not self._options.budget_bytes:
            return "disabled"
        try:
            descriptor = open_region(self._folder.path(key))
        except FileNotFoundError:
            return "absent"
        except OSError:
            return "failed"
        try:
            return self._map(descriptor, key)
        except (OSError, ValueError):  # no more mappings, or a file that shrank
            return "failed"
        finally:
            os.close(descriptor)

    def _map(self, descriptor: int, key: CacheKey) -> CachedBytes | str:
        region = self._usable(descriptor, key)
        if isinstance(region, str):
            return region
        view = mapped(descriptor, region.byte_length, region.data_offset)
        self._touch(descriptor)
        return CachedBytes(view, LAYER, borrowed=True)

    def _usable(self, descriptor: int, key: CacheKey) -> Region | str:
        region = regions.unpack(os.pread(descriptor, HEADER.size, 0))
        if isinstance(region, str):
            return region
        size = os.fstat(descriptor).st_size
        wrong = {
            "length": region.byte_length != key.byte_length
            or size != region.data_offset + region.byte_length,
            "digest": region.sha256.hex() != key.sha256,
            "scope": region.scope != regions.scope_digest(key),
            "foreign_node": region.node != self._node,
            "expired": region.valid_micros <= self._now_micros(),
        }
        return next((reason for reason, is_so in wrong.items() if is_so), region)

    def _share(self, key: CacheKey, offering: Offering) -> str | None:
        """None when the region is there, else the reason why not."""
        if not self._options.budget_bytes:
            return "disabled"
        if offering.view.nbytes != key.byte_length or not is_digest(key.sha256):
            return "length"
        if key.byte_length + HEADER.size > self._options.budget_bytes:
            return "too_large"
        region = self._described(key, offering)
        if self._extended(key, region):
            return None
        name = self._folder.name(key)
        is_leased = offering.lease_expires_at is not None
        now = self._now_micros()
        idle_since = now if is_leased else self._missed_before(name)
        room = self._folder.reserve(name, region, now, idle_since)
        self._tally.evicted(room.evicted)
        if room.descriptor is None:
            return "budget" if is_leased else "full"  # only the first is a reason for alarm
        try:
            _write(room.descriptor, offering.view, region.data_offset)
            self._touch(room.descriptor)
            self._folder.publish(room.part, name)
        except OSError:
            room.part.unlink(missing_ok=True)
            raise
        finally:
            os.close(room.descriptor)
        return None

    def _described(self, key: CacheKey, offering: Offering) -> Region:
        now, options = self._now_micros(), self._options
        lease, seconds = now, options.keep_seconds
        if offering.lease_expires_at is not None:
            lease, seconds = regions.micros(offering.lease_expires_at), options.grace_seconds
        schema, rows = offering.schema_digest, offering.row_count
        return Region(
            sha256=bytes.fromhex(key.sha256),
            scope=regions.scope_digest(key),
            byte_length=key.byte_length,
            lease_micros=lease,
            valid_micros=lease + round(seconds * 1_000_000),
            producer=this_process(),
            node=self._node,
            rows=regions.ROWS_UNKNOWN if rows is None else rows,
            schema=regions.NO_SCHEMA if schema is None else regions.text_digest(schema),
        )

    def _extended(self, key: CacheKey, wanted: Region) -> bool:
        """Whether the bytes are there already; then a later lease takes the place of theirs."""
        try:
            descriptor = open_region(self._folder.path(key), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            there = self._usable(descriptor, key)
            if isinstance(there, str):
                return False
            lease = max(there.lease_micros, wanted.lease_micros)
            valid = max(there.valid_micros, wanted.valid_micros)
            os.pwrite(descriptor, LEASE.pack(lease, valid), LEASE_OFFSET)
        finally:
            os.close(descriptor)
        return True

    def _touch(self, descriptor: int) -> None:
        used_ns = self._now_micros() * 1_000
        os.utime(descriptor, ns=(used_ns, used_ns))

    def _remember(self, name: str) -> None:
        now = self._now_micros()
        with self._lock:
            _, before = self._missed.pop(name, (0, 0))
            self._missed[name] = (before, now)
            if len(self._missed) > MISSES_REMEMBERED_MAX:
                self._missed.popitem(last=False)

    def _missed_before(self, name: str) -> int:
        """When it was missed the time before the last; 0 if it was not."""
        with self._lock:
            return self._missed.get(name, (0, 0))[0]

    def _now_micros(self) -> int:
        return regions.micros(self._now())


def _write(descriptor: int, view: memoryview, offset: int) -> None:
    """Space first: a page that cannot be had later would kill whoever touches it."""
    flat = view.cast("B")
    os.posix_fallocate(descriptor, 0, offset + flat.nbytes)
    written = 0
    while written < flat.nbytes:
        block = flat[written : written + _WRITE_BYTES]
        written += os.pwrite(descriptor, block, offset + written)
