"""The credential store of a server: for its workers, and for the command line."""

from urllib.parse import quote

import msgspec

from noetl.client.connection import Connection
from noetl.domain.credential import CredentialEntry, NewCredential, OpenCredential
from noetl.kernel.errors import CredentialMissing, RequestInvalid
from noetl.kernel.scope import Scope


class _Items(msgspec.Struct, frozen=True, kw_only=True):
    items: list[CredentialEntry]


class HttpCredentialStore:
    """A server keeps the credentials of one scope; in any other there are none."""

    def __init__(self, connection: Connection, scope: Scope) -> None:
        self._connection = connection
        self._scope = scope

    async def put(self, scope: Scope, credential: NewCredential) -> CredentialEntry:
        if scope != self._scope:
            raise RequestInvalid(f"{self._connection.server} keeps no credentials of {scope}")
        return await self._connection.post("/api/credentials", credential, CredentialEntry)

    async def get(self, scope: Scope, name_or_id: str) -> OpenCredential | None:
        if scope != self._scope:
            return None
        path = f"/api/internal/credentials/{quote(name_or_id, safe='')}"
        try:
            return await self._connection.get(path, OpenCredential)
        except CredentialMissing:
            return None

    async def list(self, scope: Scope, *, type: str | None = None) -> list[CredentialEntry]:
        if scope != self._scope:
            return []
        query = {} if type is None else {"type": type}
        return (await self._connection.get("/api/credentials", _Items, query)).items

    async def remove(self, scope: Scope, name_or_id: str) -> bool:
        if scope != self._scope:
            return False
        path = f"/api/credentials/{quote(name_or_id, safe='')}"
        try:
            await self._connection.data("DELETE", path)
        except CredentialMissing:
            return False
        return True

    async def close(self) -> None:
        """The connection belongs to whoever opened it."""
