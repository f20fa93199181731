"""One layer on the way to a result's bytes: quick when it has them, a miss whenever it has not.

Everything here blocks, for as long as files take; only layers that are `in_process` do not.
"""

from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from noetl.kernel.instant import Instant


class CacheKey(msgspec.Struct, frozen=True, kw_only=True):
    """Whose bytes, and which: equal bytes of two executions are two entries."""

    tenant_id: str
    organization_id: str
    execution_id: str
    sha256: str
    byte_length: int
    frame: str = "0"


class CachedBytes(NamedTuple):
    """Bytes to read and not to write. They stay as they are while somebody holds the view."""

    view: memoryview
    layer: str
    path: Path | None = None  # a file of exactly these bytes; it may be gone when it is opened
    borrowed: bool = False  # from memory that others count: use it, do not keep it


class Offering(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes whose digest the one who offers them has checked."""

    view: memoryview
    path: Path | None = None  # a file of exactly these bytes that nobody will write to
    schema_digest: str | None = None  # of a table, for programs that attach without a reference
    row_count: int | None = None
    lease_expires_at: Instant | None = None  # until then nothing else takes its place


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts since this process opened the layer; bytes and entries are those of the moment."""

    layer: str
    budget_bytes: int
    bytes_in_use: int
    entries: int
    hits: int
    misses: dict[str, int]  # by reason
    admissions: int
    refusals: dict[str, int]  # by reason
    evictions: int

    @property
    def reads(self) -> int:
        return self.hits + sum(self.misses.values())

    @property
    def offers(self) -> int:
        return self.admissions + sum(self.refusals.values())

    @property
    def hit_ratio(self) -> float:
        return self.hits / self.reads if self.reads else 0.0


class ResultCache(Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    C1  what was admitted is what is got: exactly those bytes, and nobody can write to them
    C2  equal bytes of another tenant, organization or execution are a miss
    C3  whatever goes wrong is a miss or a refusal, never an error
    C4  bytes in use stay within the budget, also with many writers; a budget of 0 admits nothing
    C5  bytes that were handed out stay as they are when their entry goes
    C6  offering again, also by many at once, leaves one entry
    C7  bytes of another length than the key's are refused, and never handed out
    C8  every get counts as one hit or one miss, every offer as one admission or one refusal
    """

    @property
    def in_process(self) -> bool:
        """Whether it answers at once, without files."""
        ...

    def get(self, key: CacheKey, /) -> CachedBytes | None: ...

    def offer(self, key: CacheKey, offering: Offering, /) -> bool:
        """Whether the bytes were admitted, or had been before."""
        ...

    def file_of(self, key: CacheKey, /) -> Path | None:
        """A file of exactly these bytes if the layer keeps one; asking is no read."""
        ...

    def stats(self) -> CacheStats: ...
