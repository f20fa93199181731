"""One process at a time: a lock that the system takes back when its holder dies."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """The open lock file. Hold it for bookkeeping only: others wait for it."""
    descriptor = _taken(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def drop_lock(path: Path, is_needed: Callable[[], bool]) -> None:
    """Remove the file, unless somebody holds it or `is_needed` says, while nobody can, that it has
    to stay. Whoever waits for it makes another."""
    with suppress(OSError):
        descriptor = os.open(path, _FLAGS)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _lies_at(descriptor, path) and not is_needed():
                path.unlink()
        finally:
            os.close(descriptor)


def _taken(path: Path) -> int:
    while True:
        descriptor = os.open(path, _FLAGS | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _lies_at(descriptor, path):
                return os.dup(descriptor)  # the same lock: it goes with the last of the two
        finally:
            os.close(descriptor)


def _lies_at(descriptor: int, path: Path) -> bool:
    """False when the file was removed while we waited: a lock on it keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
