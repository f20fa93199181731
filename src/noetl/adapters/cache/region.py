"""The header of a region in shared memory: what a reader of any language checks before it attaches.

Little endian, 192 bytes, then the payload as it is, aligned to 64 bytes:

      0  magic `NOETLIPC`             88  lease end, microseconds since 1970, u64
      8  version u32                  96  valid until, microseconds since 1970, u64
     12  offset of the payload u32   104  rows u64, all ones when unknown
     16  length of the payload u64   112  process id of the producer u32, then 4 bytes of zeros
     24  sha256 of the payload       120  start of that process, in clock ticks since boot, u64
     56  sha256 of the scope         128  machine and process namespace of the producer, 16 bytes
                                     144  node, 16 bytes
                                     160  sha256 of the schema's digest as text, zeros if unknown
"""

import hashlib
import struct
from datetime import timedelta

import msgspec

from noetl.kernel.instant import Instant, from_millis, to_datetime
from noetl.ports.result_cache import CacheKey

MAGIC = b"NOETLIPC"
VERSION = 1
ALIGNMENT = 64
HEADER = struct.Struct("<8sIIQ32s32sQQQI4xQ16s16s32s")
LEASE = struct.Struct("<QQ")
LEASE_OFFSET = 88
ROWS_UNKNOWN = 2**64 - 1
NO_SCHEMA = bytes(32)

_PREFIX = struct.Struct("<8sI")
_EPOCH = to_datetime(from_millis(0))


class Producer(msgspec.Struct, frozen=True):
    """A process, told apart from a later one with the same number."""

    pid: int
    start_ticks: int
    place: bytes


class Region(msgspec.Struct, frozen=True, kw_only=True):
    sha256: bytes
    scope: bytes
    byte_length: int
    lease_micros: int
    valid_micros: int
    producer: Producer
    node: bytes
    rows: int = ROWS_UNKNOWN
    schema: bytes = NO_SCHEMA
    data_offset: int = HEADER.size

    def pack(self) -> bytes:
        return HEADER.pack(
            MAGIC,
            VERSION,
            self.data_offset,
            self.byte_length,
            self.sha256,
            self.scope,
            self.lease_micros,
            self.valid_micros,
            self.rows,
            self.producer.pid,
            self.producer.start_ticks,
            self.producer.place,
            self.node,
            self.schema,
        )


def unpack(data: bytes) -> Region | str:
    """The header, or in one word why it is none."""
    if len(data) < _PREFIX.size:
        return "length"
    magic, version = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        return "magic"
    if version != VERSION:
        return "version"
    if len(data) < HEADER.size:
        return "length"
    offset, length, sha256, scope, lease, valid, *rest = HEADER.unpack_from(data)[2:]
    rows, pid, ticks, place, node, schema = rest
    if offset < HEADER.size or offset % ALIGNMENT:
        return "length"
    return Region(
        sha256=sha256,
        scope=scope,
        byte_length=length,
        lease_micros=lease,
        valid_micros=valid,
        producer=Producer(pid, ticks, place),
        node=node,
        rows=rows,
        schema=schema,
        data_offset=offset,
    )


def scope_digest(key: CacheKey) -> bytes:
    """Names with their lengths before them, so that no two scopes run together."""
    names = (key.tenant_id, key.organization_id, key.execution_id)
    parts = [name.encode() for name in names]
    return hashlib.sha256(b"".join(struct.pack("<Q", len(part)) + part for part in parts)).digest()


def text_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def node_digest(node_id: str) -> bytes:
    return text_digest(node_id)[:16]


def micros(instant: Instant) -> int:
    """Exact integer arithmetic: a float of seconds would lose the last digits."""
    return (to_datetime(instant) - _EPOCH) // timedelta(microseconds=1)
