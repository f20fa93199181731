"""Stored results, whatever their encoding: the whole content, or what stands under some keys."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from noetl.results.errors import ResultUnreadable
from noetl.results.tiers import FEATHER_MEDIA_TYPE
from noetl.templates.lookup import look_up


class Stored(Protocol):
    """A content outside its event."""

    def whole(self) -> dict[str, Any]: ...

    def look_into(self, keys: Sequence[str | int]) -> Any:
        """What stands under these keys, or MISSING."""
        ...

    def close(self) -> None: ...


class StoredJson:
    """A content that is not a table is decoded as a whole."""

    def __init__(self, source: Path | bytes | memoryview) -> None:
        data = source.read_bytes() if isinstance(source, Path) else source
        try:
            self._content = msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise ResultUnreadable(f"is not a JSON object: {error}") from error

    def whole(self) -> dict[str, Any]:
        return self._content

    def look_into(self, keys: Sequence[str | int]) -> Any:
        found: Any = self._content
        for key in keys:
            found = look_up(found, key)
        return found

    def close(self) -> None:
        """Nothing is held open."""


def open_stored(source: Path | bytes | memoryview, media_type: str) -> Stored:
    """A path is mapped into memory where the encoding allows. Raises ResultUnreadable."""
    if media_type != FEATHER_MEDIA_TYPE:
        return StoredJson(source)
    from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow

    return StoredTable(source)
