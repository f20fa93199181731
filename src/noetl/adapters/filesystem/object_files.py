"""The files behind objects: what they are, what lies below a folder. Everything here blocks."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from noetl.adapters.filesystem.draft import sync_folder
from noetl.domain.payload import Fingerprint
from noetl.kernel.instant import from_datetime
from noetl.ports.object_store import CHUNK_BYTES, ObjectFacts, is_key


def facts_of(key: str, path: Path) -> ObjectFacts | None:
    """What is seen is sure to stay: the one who wrote it may not have got to the sync yet."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        sync_folder(path.parent)
    except FileNotFoundError:
        return None
    return _facts(key, found)


def facts_below(folder: Path, prefix: str, after: str) -> Iterator[ObjectFacts]:
    """In the order of the keys, without looking into folders that lie before `after`."""
    for entry in _entries(folder):
        key = prefix + entry.name
        if not is_key(key):
            continue  # a stranger's, or our drafts
        if entry.is_dir():
            below = f"{key}/"
            if below > after or after.startswith(below):
                yield from facts_below(Path(entry.path), below, after)
        elif key > after:
            with suppress(FileNotFoundError):  # deleted while we looked
                yield _facts(key, entry.stat())


def fingerprint_of(path: Path) -> Fingerprint:
    fingerprint = Fingerprint()
    with path.open("rb") as file:
        while block := file.read(CHUNK_BYTES):
            fingerprint.add(block)
    return fingerprint


def delete_file(path: Path) -> None:
    with suppress(FileNotFoundError, IsADirectoryError):
        path.unlink()
        sync_folder(path.parent)  # the folder stays: a write may be on its way into it


def _facts(key: str, found: os.stat_result) -> ObjectFacts:
    modified = datetime.fromtimestamp(found.st_mtime, UTC)
    return ObjectFacts(key, found.st_size, from_datetime(modified))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_rank)
    except FileNotFoundError:
        return []


def _rank(entry: os.DirEntry[str]) -> str:
    """A folder stands where the keys below it stand: `a-b` before `a/b`."""
    return f"{entry.name}/" if entry.is_dir() else entry.name
