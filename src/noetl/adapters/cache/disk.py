"""ResultCache in a folder: `<boot>/<2 digits>/<digest of the key>`, each file exactly the bytes.

Files are not synced: a power cut may leave some that are wrong, and nothing else can. So what an
earlier boot wrote is checked against its digest once, before it moves to the folder of this boot.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from noetl.adapters.cache.folder_lock import locked
from noetl.adapters.cache.producer import boot_id
from noetl.adapters.cache.region import micros, scope_digest
from noetl.adapters.cache.tally import Tally
from noetl.kernel.instant import Instant
from noetl.ports.result_cache import CachedBytes, CacheKey, CacheStats, Offering
from noetl.results.mapping import mapped, mapped_file
from noetl.results.proof import sha256_of

LAYER = "disk"
BUDGET_BYTES = 10 * 1024 * 1024 * 1024
KEPT_PERCENT = 90  # of the budget, when room is made: looking through the folder is slow

_DRAFTS = ".drafts"
_LOCK = ".lock"  # holds the bytes in use, as counted by everybody who wrote
_NOTE_BYTES_MAX = 32


class _Entry(NamedTuple):
    path: Path
    size: int
    used_ns: int


class DiskResultCache:
    """Many processes may share one folder; it stays when they end."""

    in_process = False

    def __init__(
        self,
        root: Path,
        now: Callable[[], Instant],
        budget_bytes: int = BUDGET_BYTES,
        *,
        boot: str | None = None,
    ) -> None:
        self._root = root
        self._now = now
        self._budget_bytes = budget_bytes
        self._boot = (boot_id() if boot is None else boot) or "unknown"
        self._tally = Tally(LAYER, budget_bytes)

    def get(self, key: CacheKey, /) -> CachedBytes | None:
        try:
            found = self._map(key) if self._budget_bytes else "disabled"
        except FileNotFoundError:
            found = "absent"
        except (OSError, ValueError):  # ValueError: a file that shrank before it was mapped
            found = "failed"
        if isinstance(found, CachedBytes):
            self._tally.hit()
            return found
        self._tally.missed(found)
        return None

    def offer(self, key: CacheKey, offering: Offering, /) -> bool:
        try:
            refusal = self._admit(key, offering)
        except OSError:
            refusal = "failed"
        if refusal is None:
            self._tally.admitted()
        else:
            self._tally.refused(refusal)
        return refusal is None

    def file_of(self, key: CacheKey, /) -> Path | None:
        path = self._path(key)
        try:
            is_whole = bool(self._budget_bytes) and path.stat().st_size == key.byte_length
        except OSError:
            return None
        return path if is_whole else None

    def sweep(self) -> None:
        """Count anew, and remove drafts of dead writers; on start."""
        with suppress(OSError):
            self._make_folders()
            with locked(self._root / _LOCK) as note:
                self._make_room(note, 0)
            for folder in (*self._root.glob("*/??"), *self._boots()):
                with suppress(OSError):  # only empty ones go
                    if self._boot not in folder.parts:
                        folder.rmdir()

    def stats(self) -> CacheStats:
        try:
            with locked(self._root / _LOCK):  # or what goes and what comes would both count
                sizes = [entry.size for entry in self._entries()]
        except OSError:
            sizes = []
        return self._tally.stats(bytes_in_use=sum(sizes), entries=len(sizes))

    def _map(self, key: CacheKey) -> CachedBytes | str:
        path = self._path(key)
        if not path.exists() and not self._adopted(key, path):
            return "absent"
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_size != key.byte_length:
                path.unlink(missing_ok=True)
                return "length"
            used_ns = micros(self._now()) * 1_000
            os.utime(descriptor, ns=(used_ns, used_ns))
            return CachedBytes(mapped(descriptor, key.byte_length), LAYER, path)
        finally:
            os.close(descriptor)

    def _adopted(self, key: CacheKey, path: Path) -> bool:
        """Whether an earlier boot left the bytes, and they are still the right ones."""
        place = path.relative_to(self._root / self._boot)
        for boot in self._boots():
            older = boot / place
            if boot.name == self._boot or not older.is_file():
                continue
            view = mapped_file(older)
            if view is not None and sha256_of(view) == key.sha256:
                path.parent.mkdir(parents=True, exist_ok=True)
                older.rename(path)
                return True
            older.unlink(missing_ok=True)
        return False

    def _admit(self, key: CacheKey, offering: Offering) -> str | None:
        if offering.view.nbytes != key.byte_length:
            return "length"
        if key.byte_length > self._budget_bytes or not self._budget_bytes:
            return "budget"
        path = self._path(key)
        if path.exists():
            return None
        self._make_folders()
        path.parent.mkdir(parents=True, exist_ok=True)
        if offering.path is not None and self._named(offering.path, path, key.byte_length):
            return None
        with tempfile.NamedTemporaryFile(dir=self._root / _DRAFTS) as draft:
            fcntl.flock(draft, fcntl.LOCK_EX)  # says that its writer lives
            draft.write(offering.view)
            draft.flush()
            return None if self._named(Path(draft.name), path, key.byte_length) else "failed"

    def _named(self, source: Path, path: Path, byte_length: int) -> bool:
        """Give a file its second name once there is room for it; not across file systems."""
        with locked(self._root / _LOCK) as note:
            if path.exists():
                return True
            text = os.pread(note, _NOTE_BYTES_MAX, 0)
            used = int(text) if text.isdigit() else self._budget_bytes  # count before trusting
            if used + byte_length > self._budget_bytes:
                used = self._make_room(note, byte_length)
            try:
                os.link(source, path)
            except OSError:
                return False
            _write_note(note, used + byte_length)
        used_ns = micros(self._now()) * 1_000
        os.utime(path, ns=(used_ns, used_ns))
        return True

    def _make_room(self, note: int, byte_length: int) -> int:
        """The bytes in use once there is room, in truth: a count drifts when writers die."""
        self._remove_drafts()
        entries = sorted(self._entries(), key=lambda entry: entry.used_ns)
        used = sum(entry.size for entry in entries)
        allowed = self._budget_bytes - byte_length
        if used > allowed:
            allowed = min(allowed, self._budget_bytes * KEPT_PERCENT // 100)
        for entry in entries:
            if used <= allowed:
                break
            entry.path.unlink(missing_ok=True)
            used -= entry.size
            self._tally.evicted(1)
        _write_note(note, used)
        return used

    def _remove_drafts(self) -> None:
        for draft in (self._root / _DRAFTS).iterdir():
            with suppress(OSError), draft.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()

    def _entries(self) -> Iterator[_Entry]:
        for boot in self._boots():
            for path in boot.glob("??/*"):
                with suppress(OSError):
                    facts = path.stat(follow_symlinks=False)
                    yield _Entry(path, facts.st_size, facts.st_mtime_ns)

    def _boots(self) -> list[Path]:
        try:
            return [path for path in self._root.iterdir() if not path.name.startswith(".")]
        except OSError:
            return []

    def _path(self, key: CacheKey) -> Path:
        name = hashlib.sha256(scope_digest(key) + key.sha256.encode()).hexdigest()
        return self._root / self._boot / name[:2] / name

    def _make_folders(self) -> None:
        (self._root / _DRAFTS).mkdir(parents=True, exist_ok=True)


def _write_note(note: int, used: int) -> None:
    text = str(used).encode()
    os.pwrite(note, text, 0)
    os.ftruncate(note, len(text))
