"""Stored results for tools: read by name, as data or as a file."""

from pathlib import Path
from typing import Any, Protocol

from noetl.domain.events.values import ResultReference
from noetl.kernel.scope import Scope


class StoredResults(Protocol):
    async def content(self, scope: Scope, uri: str, known: ResultReference | None = None) -> Any:
        """All of it, decoded; `known` proves the bytes. Raises PayloadError, StoreUnavailable."""
        ...

    async def local_file(self, scope: Scope, reference: ResultReference, scratch: Path) -> Path:
        """A file of the result's bytes to be read or mapped, never written; it is below `scratch`
        unless it lies on this machine anyway. Raises PayloadError, StoreUnavailable."""
        ...
