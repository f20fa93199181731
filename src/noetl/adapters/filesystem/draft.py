"""A file on its way to its name: whole and safe on the disk, or not there at all.

Everything here blocks; call it from a thread.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO


class Draft:
    """Bytes without a name. A writer that is killed leaves one behind, for `sweep`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    def write(self, block: bytes) -> None:
        self._opened().write(block)

    def publish(self, target: Path) -> bool:
        """Give the bytes their name; False when it is taken already, by whatever bytes."""
        file = self._synced(target)
        taken = False
        try:
            os.link(file.name, target)
        except FileExistsError:
            taken = True
        sync_folder(target.parent)
        return not taken

    def supersede(self, target: Path) -> None:
        """Give the bytes their name and take it from those that have it, at one moment."""
        file = self._synced(target)
        second = f"{file.name}.second"  # the first name is the draft's own, to be discarded
        os.link(file.name, second)
        os.replace(second, target)
        sync_folder(target.parent)

    def discard(self) -> None:
        """Remove the draft, published or not."""
        if self._file is not None:
            with suppress(OSError):  # a full disk fails again here; the file is gone all the same
                self._file.close()

    def _synced(self, target: Path) -> IO[bytes]:
        file = self._opened()
        file.flush()
        os.fsync(file.fileno())
        make_folder(target.parent)
        return file

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            make_folder(self._folder)
            self._file = tempfile.NamedTemporaryFile(dir=self._folder)  # noqa: SIM115 - see discard
        return self._file


def sweep(folder: Path, age_seconds_max: float) -> None:
    """Remove drafts that nobody has written to for so long that their writer must be dead."""
    make_folder(folder)
    with tempfile.NamedTemporaryFile(dir=folder) as probe:
        # The clock of the file system stamped the drafts, so ask the same clock for the time.
        now = os.fstat(probe.fileno()).st_mtime
        for path in folder.iterdir():
            with suppress(OSError):  # gone meanwhile, or not ours to remove
                if now - path.stat().st_mtime > age_seconds_max:
                    path.unlink()


def make_folder(folder: Path) -> None:
    """A folder that is still there after a power cut, like everything above it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
