"""The object store that an address names: a folder, or a bucket."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import SettingInvalid
from noetl.ports.object_store import ObjectStore

SERVER = "server:"
"""The store of the server, through the server: for workers that cannot reach it themselves."""


def open_objects(settings: Settings) -> ObjectStore:
    """Where results and payloads lie. Keys of a cloud come from its own variables."""
    if settings.payload_url == SERVER:
        raise SettingInvalid(
            "NOETL_PAYLOAD_URL is server:, which is for `noetl worker`; a server needs a store"
        )
    if settings.payload_url == "file:":
        return FilesystemObjectStore(settings.payload_path)
    return open_object_url(settings.payload_url)


def open_object_url(url: str) -> ObjectStore:
    """`file:///folder`, also on a shared volume, or a bucket with options of the driver."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise SettingInvalid(f"{url} names no folder; use file:///folder")
        return FilesystemObjectStore(Path(unquote(parts.path)))
    from noetl.adapters.objectstore.connect import (  # noqa: PLC0415 - loads its library
        open_bucket,
    )

    return open_bucket(url)
