"""Credentials by name, unreadable at rest."""

from typing import Protocol

from noetl.domain.credential import CredentialEntry, NewCredential, OpenCredential
from noetl.kernel.scope import Scope


class CredentialStore(Protocol):
    """Promises every adapter keeps (each has a test of the same number):

    K1  what was put is what `get` gives, by name or by id
    K2  nothing of the data can be read at rest without the key; a wrong key is
        CredentialUnreadable, never an empty credential
    K3  putting under a name again replaces the data and keeps the id and the time of making
    K4  credentials of another scope are never given, listed or removed
    K5  `list` shows entries in order of their names and never data
    K6  everything put survives the death of the process
    """

    async def put(self, scope: Scope, credential: NewCredential) -> CredentialEntry: ...

    async def get(self, scope: Scope, name_or_id: str) -> OpenCredential | None: ...

    async def list(self, scope: Scope, *, type: str | None = None) -> list[CredentialEntry]: ...

    async def remove(self, scope: Scope, name_or_id: str) -> bool:
        """Whether there was one."""
        ...

    async def close(self) -> None: ...
