"""Objects that are files of this machine: mapped where they lie, and checked once."""

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from noetl.kernel.errors import PayloadCorrupt
from noetl.ports.result_cache import CacheKey
from noetl.results.mapping import mapped
from noetl.results.proof import sha256_of

CHECKED_MAX = 10_000


class _Identity(NamedTuple):
    """Whatever is written to a file changes one of these."""

    device: int
    inode: int
    byte_length: int
    modified_ns: int
    sha256: str


class LocalFiles:
    def __init__(self) -> None:
        self._checked: OrderedDict[_Identity, None] = OrderedDict()
        self._lock = Lock()

    def map(self, path: Path, key: CacheKey, name: str) -> memoryview | None:
        """None when there is no such file. Blocks: the first time it reads all of it."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            facts = os.fstat(descriptor)
            view = mapped(descriptor, facts.st_size)
        finally:
            os.close(descriptor)
        identity = _Identity(
            facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, key.sha256
        )
        if not self._knows(identity):
            actual = sha256_of(view)
            if actual != key.sha256 or facts.st_size != key.byte_length:
                raise PayloadCorrupt(name, expected=key.sha256, actual=actual)
            self._remember(identity)
        return view

    def _knows(self, identity: _Identity) -> bool:
        with self._lock:
            return identity in self._checked

    def _remember(self, identity: _Identity) -> None:
        with self._lock:
            self._checked[identity] = None
            if len(self._checked) > CHECKED_MAX:
                self._checked.popitem(last=False)
