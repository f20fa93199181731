"""Catalog in dicts: the reference adapter. Forgets when it dies."""

from collections.abc import Callable
from copy import deepcopy

from noetl.domain.catalog import CatalogEntry, NewCatalogEntry
from noetl.kernel import canonical_json
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.ports.catalog import LIST_ENTRIES_MAX


class MemoryCatalog:
    def __init__(self, clock: Callable[[], Instant], new_id: Callable[[], str]) -> None:
        self._clock = clock
        self._new_id = new_id
        self._versions: dict[Scope, dict[str, list[CatalogEntry]]] = {}

    async def register(self, scope: Scope, entry: NewCatalogEntry) -> CatalogEntry:
        canonical_json.check_plain(entry.meta, "meta")
        versions = self._versions.setdefault(scope, {}).setdefault(entry.path, [])
        if not versions or versions[-1].digest != entry.digest:
            versions.append(
                CatalogEntry(
                    catalog_id=self._new_id(),
                    path=entry.path,
                    version=len(versions) + 1,
                    kind=entry.kind,
                    digest=entry.digest,
                    name=entry.name,
                    description=entry.description,
                    registered_at=self._clock(),
                    meta=deepcopy(entry.meta),
                )
            )
        return deepcopy(versions[-1])

    async def find(
        self, scope: Scope, path: str, version: int | None = None
    ) -> CatalogEntry | None:
        versions = self._versions.get(scope, {}).get(path, [])
        if version is None:
            return deepcopy(versions[-1]) if versions else None
        return deepcopy(versions[version - 1]) if 1 <= version <= len(versions) else None

    async def find_by_id(self, scope: Scope, catalog_id: str) -> CatalogEntry | None:
        for versions in self._versions.get(scope, {}).values():
            for entry in versions:
                if entry.catalog_id == catalog_id:
                    return deepcopy(entry)
        return None

    async def list(
        self,
        scope: Scope,
        *,
        path: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = LIST_ENTRIES_MAX,
    ) -> list[CatalogEntry]:
        later = [
            entry
            for name, versions in sorted(self._versions.get(scope, {}).items())
            for entry in versions
            if path in (None, name) and (name, entry.version) > after
        ]
        return deepcopy(later[: min(limit, LIST_ENTRIES_MAX)])

    async def close(self) -> None:
        """Nothing to let go of."""
