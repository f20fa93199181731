"""Our own code as one file for executors: sources only, and the same bytes each time."""

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import noetl

_OLDEST = (1980, 1, 1, 0, 0, 0)  # the first time that the format can say
_LEFT_OUT = {"__pycache__", "testing"}


def pack_code(folder: Path) -> Path:
    """`noetl-<version>-<digest>.zip` in the folder, which Python can import from."""
    packed = io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: noetl\nVersion: {noetl.__version__}\n"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _sources(files("noetl"), "noetl"):
            archive.writestr(_entry(name), content)
        archive.writestr(_entry(f"noetl-{noetl.__version__}.dist-info/METADATA"), metadata)
    content = packed.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:12]
    place = folder / f"noetl-{noetl.__version__}-{digest}.zip"
    unfinished = place.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    os.replace(unfinished, place)
    return place


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            if entry.name not in _LEFT_OUT:
                yield from _sources(entry, path)
        elif not entry.name.endswith(".pyc"):
            yield path, entry.read_bytes()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _OLDEST)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
