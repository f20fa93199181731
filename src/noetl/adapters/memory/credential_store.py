"""CredentialStore in dicts: the reference adapter. Nothing is at rest, so nothing is locked."""

from collections.abc import Callable
from copy import deepcopy

from noetl.domain.credential import CredentialEntry, NewCredential, OpenCredential
from noetl.kernel import canonical_json
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.wire.locked_credential import opened, plain_of


class MemoryCredentialStore:
    def __init__(self, clock: Callable[[], Instant], new_id: Callable[[], str]) -> None:
        self._clock = clock
        self._new_id = new_id
        self._kept: dict[tuple[Scope, str], tuple[CredentialEntry, bytes]] = {}

    async def put(self, scope: Scope, credential: NewCredential) -> CredentialEntry:
        canonical_json.check_plain(credential.meta, "meta")
        now, plain = self._clock(), plain_of(credential)
        known = self._kept.get((scope, credential.name))
        entry = CredentialEntry(
            id=self._new_id() if known is None else known[0].id,
            name=credential.name,
            type=credential.type,
            description=credential.description,
            tags=credential.tags,
            meta=deepcopy(credential.meta),
            created_at=now if known is None else known[0].created_at,
            updated_at=now,
        )
        self._kept[scope, credential.name] = (entry, plain)
        return deepcopy(entry)

    async def get(self, scope: Scope, name_or_id: str) -> OpenCredential | None:
        name = self._name(scope, name_or_id)
        if name is None:
            return None
        entry, plain = self._kept[scope, name]
        return opened(entry.name, entry.type, plain)

    async def list(self, scope: Scope, *, type: str | None = None) -> list[CredentialEntry]:
        found = [
            deepcopy(entry)
            for (owner, _), (entry, _) in self._kept.items()
            if owner == scope and type in (None, entry.type)
        ]
        return sorted(found, key=lambda entry: entry.name)

    async def remove(self, scope: Scope, name_or_id: str) -> bool:
        name = self._name(scope, name_or_id)
        if name is None:
            return False
        del self._kept[scope, name]
        return True

    async def close(self) -> None:
        """Nothing to let go of."""

    def _name(self, scope: Scope, name_or_id: str) -> str | None:
        """Whose name or id it is; a name goes first."""
        if (scope, name_or_id) in self._kept:
            return name_or_id
        for (owner, name), (entry, _) in self._kept.items():
            if owner == scope and entry.id == name_or_id:
                return name
        return None
