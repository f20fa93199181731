"""The regions of one home in a folder of shared memory: named, counted, reserved and removed."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from noetl.adapters.cache.folder_lock import drop_lock, locked
from noetl.adapters.cache.producer import is_dead
from noetl.adapters.cache.region import HEADER, Region, unpack
from noetl.ports.result_cache import CacheKey

PREFIX = "noetl-"
PART = ".part"
LOCK = ".lock"

_NAME_CHARACTERS_MAX = 40
_MICROS_PER_SECOND = 1_000_000
_parts = count()


class Listed(NamedTuple):
    path: Path
    size: int
    used_micros: int

    def may_go(self, now_micros: int, idle_since: int) -> bool:
        is_part = self.path.name.endswith(PART)
        if self.used_micros > idle_since and not is_part:
            return False  # without a look inside: most regions end here
        region = self.region()
        if isinstance(region, str):
            return False  # of another build: the sweep knows when
        return is_dead(region.producer) if is_part else region.lease_micros <= now_micros

    def region(self) -> Region | str:
        try:
            descriptor = open_region(self.path)
        except OSError:
            return "absent"
        try:
            return unpack(os.pread(descriptor, HEADER.size, 0))
        finally:
            os.close(descriptor)


class Room(NamedTuple):
    """An answer to who asks for space: the file to write to, or why there is none."""

    descriptor: int | None
    part: Path
    evicted: int = 0


class RegionFolder:
    def __init__(self, folder: Path, home_id: str, budget_bytes: int) -> None:
        self._folder = folder
        self._prefix = f"{PREFIX}{_segment(home_id)}-"
        self._lock_path = folder / f"{PREFIX}{_segment(home_id)}{LOCK}"
        self._budget_bytes = budget_bytes

    def name(self, key: CacheKey) -> str:
        """Computed, so that who has the key needs nothing else."""
        owner = f"{key.tenant_id}\0{key.organization_id}\0{key.sha256}"
        sequence = hashlib.sha256(owner.encode()).hexdigest()[:16]
        return f"{self._prefix}{_segment(key.execution_id)}-{_segment(key.frame)}-{sequence}"

    def path(self, key: CacheKey) -> Path:
        return self._folder / self.name(key)

    def sizes(self) -> list[int]:
        if not any(self.listed()):
            return []
        with locked(self._lock_path):  # or what goes and what comes would both count
            return [each.size for each in self.listed()]

    def listed(self, prefix: str | None = None) -> Iterator[Listed]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if not entry.name.startswith(prefix or self._prefix):
                    continue
                with suppress(FileNotFoundError):
                    facts = entry.stat(follow_symlinks=False)
                    if S_ISREG(facts.st_mode):  # anybody may put a folder of that name here
                        used = facts.st_mtime_ns // 1_000
                        yield Listed(Path(entry.path), facts.st_size, used)

    def reserve(self, name: str, region: Region, now_micros: int, idle_since: int) -> Room:
        """A file of the region's size: from now on it counts, whoever else asks.

        Regions past their lease make room for it if nobody has used them since `idle_since`.
        """
        size = region.data_offset + region.byte_length
        part = self._folder / f"{name}.{os.getpid()}.{next(_parts)}{PART}"
        with locked(self._lock_path):
            listed = list(self.listed())
            excess = sum(each.size for each in listed) + size - self._budget_bytes
            evicted = _free(listed, excess, now_micros, idle_since) if excess > 0 else 0
            if evicted is None:
                return Room(None, part)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(part, flags, 0o600)
            # Header and length before the lock goes: whoever counts or sweeps next sees both.
            os.pwrite(descriptor, region.pack(), 0)
            os.ftruncate(descriptor, size)
        return Room(descriptor, part, evicted)

    def publish(self, part: Path, name: str) -> None:
        """Under its name others find it. Whoever counts meanwhile would see both names or none."""
        with locked(self._lock_path):
            part.rename(self._folder / name)

    def sweep(self, now_micros: int, grace_seconds: float) -> int:
        """Remove what nobody may read any more, and what dead processes left behind."""
        idle_micros = round(grace_seconds * _MICROS_PER_SECOND)

        def is_over(listed: Listed) -> bool:
            region = listed.region()
            if isinstance(region, str):  # of another build, or damaged: give it the grace
                return now_micros - listed.used_micros > idle_micros
            return region.valid_micros <= now_micros or is_dead(region.producer)

        removed = self._sweep_others(now_micros)
        if any(self.listed()):
            with locked(self._lock_path):
                removed += _unlink([each for each in self.listed() if is_over(each)])
        self._drop_locks()
        return removed

    def _drop_locks(self) -> None:
        """The last region of a home takes the lock of the home along."""
        for each in self.listed(PREFIX):
            if each.path.name.endswith(LOCK):
                regions = f"{each.path.name.removesuffix(LOCK)}-"
                drop_lock(each.path, partial(self._has_any, regions))

    def _has_any(self, prefix: str) -> bool:
        return any(self.listed(prefix))

    def _sweep_others(self, now_micros: int) -> int:
        """A home that is gone sends nobody: what is over goes, whosever it was. Whether those who
        wrote it live is for those to say who share their home."""

        def is_over(listed: Listed) -> bool:
            region = listed.region()
            return not isinstance(region, str) and region.valid_micros <= now_micros

        others = (
            each
            for each in self.listed(PREFIX)
            if each.size and not each.path.name.startswith(self._prefix)
        )
        return _unlink([each for each in others if is_over(each)])


def _free(listed: list[Listed], excess: int, now_micros: int, idle_since: int) -> int | None:
    """Make `excess` bytes free, or nothing at all if that much cannot be made free."""
    victims: list[Listed] = []
    for each in sorted(listed, key=lambda each: each.used_micros):
        if excess <= 0:
            break
        if each.may_go(now_micros, idle_since):
            victims.append(each)
            excess -= each.size
    return _unlink(victims) if excess <= 0 else None


def open_region(path: Path, extra_flags: int = os.O_RDONLY) -> int:
    """Refuses links and files of other users: anybody may write to a folder of shared memory."""
    descriptor = os.open(path, extra_flags | os.O_CLOEXEC | os.O_NOFOLLOW)
    if os.fstat(descriptor).st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(f"{path} belongs to another user")
    return descriptor


def _unlink(victims: list[Listed]) -> int:
    for each in victims:
        with suppress(FileNotFoundError):
            each.path.unlink()
    return len(victims)


def _segment(text: str) -> str:
    """Letters and digits as they are, the rest escaped: a dash always ends a part of the name."""
    escape: Callable[[re.Match[str]], str] = lambda found: f"%{ord(found[0]):X}"  # noqa: E731
    escaped = re.sub(r"[^0-9A-Za-z]", escape, text)
    if len(escaped) <= _NAME_CHARACTERS_MAX:
        return escaped
    return hashlib.sha256(text.encode()).hexdigest()[:32]
