"""FrameJournal in a folder: `<execution>/<frame>.jsonl`, one entry per line.

A writer that dies half way leaves a torn line. The next one begins on a line of its own, so the
torn one spoils nothing but itself: its append has never returned.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from noetl.adapters.filesystem.draft import make_folder, sync_folder
from noetl.domain.naming.segment import escape
from noetl.domain.work import JournalEntry
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.ids import ExecutionId, FrameId

OPENINGS_MAX = 10
"""Tries to open a journal while others remove the folder that it is in, because it is empty."""

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(JournalEntry)
_MODE = 0o644

_Answer = TypeVar("_Answer")


class FilesystemFrameJournal:
    """Many processes may share one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        lines = b"\n" + _ENCODER.encode_lines(entries)
        path = self._path(execution, frame)
        await self._in_thread(lambda: _append(path, lines))

    async def read(self, execution: ExecutionId, frame: FrameId) -> list[JournalEntry]:
        path = self._path(execution, frame)
        return await self._in_thread(lambda: _read(path))

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        path = self._path(execution, frame)
        await self._in_thread(lambda: _remove(path))

    def _path(self, execution: ExecutionId, frame: FrameId) -> Path:
        return self._folder / escape(execution) / f"{escape(frame)}.jsonl"

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise StoreUnavailable(
                f"frame journals in {self._folder}: {error.strerror or error};"
                " give the folder space and permissions, then try again"
            ) from error


def _append(path: Path, lines: bytes) -> None:
    descriptor = _opened(path)
    try:
        left = memoryview(lines)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)  # also for one who made the file and died before this line


def _opened(path: Path) -> int:
    for _ in range(OPENINGS_MAX):
        with suppress(FileNotFoundError):
            make_folder(path.parent)
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
    raise FileNotFoundError(None, "the folder disappears whenever it is made", str(path))


def _read(path: Path) -> list[JournalEntry]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    entries: list[JournalEntry] = []
    for line in lines:
        with suppress(msgspec.MsgspecError):  # torn: its append has never returned
            entries.append(_DECODER.decode(line))
    return entries


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
    with suppress(OSError):  # other frames have theirs in it, or it is gone
        path.parent.rmdir()
