"""Files as memory: read without copying, for as long as somebody looks at them."""

import mmap
import os
from pathlib import Path


def mapped(descriptor: int, byte_length: int, offset: int = 0) -> memoryview:
    """Read-only bytes of an open file; they outlive the descriptor and the file's name."""
    if byte_length == 0:
        return memoryview(b"")  # there are no mappings without length
    whole = mmap.mmap(descriptor, offset + byte_length, access=mmap.ACCESS_READ)
    return memoryview(whole)[offset:]


def place_file(view: memoryview, source: Path | None, target: Path) -> None:
    """A file of these bytes for a program that wants one: another name, or else a copy."""
    if source is not None:
        try:
            os.link(source, target)
        except OSError:  # gone meanwhile, or on another file system
            pass
        else:
            return
    target.write_bytes(view)


def mapped_file(path: Path) -> memoryview | None:
    """All bytes of a file; None when it cannot be had."""
    try:
        with path.open("rb") as file:
            return mapped(file.fileno(), os.fstat(file.fileno()).st_size)
    except (OSError, ValueError):  # ValueError: it shrank meanwhile
        return None
