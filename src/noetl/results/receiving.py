"""Bytes that enter the machine: checked against their digest before anybody reads them.

Everything here blocks; call it from a thread.
"""

import hashlib
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from noetl.kernel.errors import PayloadCorrupt, StoreUnavailable
from noetl.results.mapping import mapped

MEMORY_BYTES = 1024 * 1024
"""Up to here an object that is fetched needs no file."""


class Expected(NamedTuple):
    """What is known of bytes before they are there."""

    sha256: str | None  # None: nobody knows, so nothing can prove them
    byte_length: int


class Receiving:
    """One object on its way in: to memory, or to a file that is mapped first and then removed."""

    def __init__(self, expected: Expected, name: str, scratch: Path | None) -> None:
        self._expected = expected
        self._name = name
        self._scratch = scratch
        self._digest = hashlib.sha256()
        self._byte_length = 0
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self.disk_failed = False

    def add(self, block: bytes | bytearray) -> None:
        self._digest.update(block)
        self._byte_length += len(block)
        if self._byte_length > self._expected.byte_length:
            raise self._corrupt()
        if self._scratch is None:
            self._memory += block
            return
        try:
            self._opened(self._scratch).write(block)
        except OSError as error:
            raise self._without_disk(error) from error

    def finish(self) -> tuple[memoryview, Path | None]:
        """The bytes, and the file that holds them until `discard`."""
        if self._expected.sha256 not in (None, self._digest.hexdigest()):
            raise self._corrupt()
        if self._file is None:
            return memoryview(self._memory).toreadonly(), None
        try:
            self._file.flush()
            return mapped(self._file.fileno(), self._byte_length), Path(self._file.name)
        except OSError as error:
            raise self._without_disk(error) from error

    def discard(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk fails again here; the file is gone all the same
                self._file.close()

    def _opened(self, scratch: Path) -> IO[bytes]:
        if self._file is None:
            scratch.mkdir(parents=True, exist_ok=True)
            # Closed, and removed, by `discard`.
            self._file = tempfile.NamedTemporaryFile(dir=scratch, prefix="fetch-")  # noqa: SIM115
        return self._file

    def _corrupt(self) -> PayloadCorrupt:
        actual = self._digest.hexdigest()
        return PayloadCorrupt(self._name, expected=self._expected.sha256 or "", actual=actual)

    def _without_disk(self, error: OSError) -> StoreUnavailable:
        self.disk_failed = True
        return StoreUnavailable(
            f"{self._name} does not fit below {self._scratch}: {error.strerror or error};"
            " give the folder space and permissions, then try again"
        )
