"""Playbooks by path and version."""

from typing import Protocol

from noetl.domain.catalog import CatalogEntry, NewCatalogEntry
from noetl.kernel.scope import Scope

LIST_ENTRIES_MAX = 1_000


class Catalog(Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    C1  versions of a path are 1, 2, 3 … in the order of registration, also when many register
        at once
    C2  registering the text of the newest version again gives that version and writes nothing
    C3  an entry never changes
    C4  entries of another scope are never found or listed
    C5  `list` gives entries in order of path, then version, page by page, all of them once
    C6  everything registered survives the death of the process
    """

    async def register(self, scope: Scope, entry: NewCatalogEntry) -> CatalogEntry: ...

    async def find(
        self, scope: Scope, path: str, version: int | None = None
    ) -> CatalogEntry | None:
        """That version, or the newest one."""
        ...

    async def find_by_id(self, scope: Scope, catalog_id: str) -> CatalogEntry | None: ...

    async def list(
        self,
        scope: Scope,
        *,
        path: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = LIST_ENTRIES_MAX,
    ) -> list[CatalogEntry]:
        """All versions of one path, or of every path; `after` is the last of the page before."""
        ...

    async def close(self) -> None: ...
