"""A stored credential: what people may see of it, and what only a tool may."""

from typing import Any

import msgspec

from noetl.kernel.instant import Instant


class CredentialEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the secret; safe to list, print and log."""

    id: str
    name: str
    type: str  # postgres, http, bearer, nats, s3, hmac, gcs, secret, …
    description: str | None = None
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    created_at: Instant
    updated_at: Instant


class NewCredential(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str
    data: dict[str, Any]
    description: str | None = None
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"NewCredential({self.name!r}, {self.type!r}, ***)"


class OpenCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential with its secret in the open: in memory, for a tool, never recorded."""

    name: str
    type: str
    data: dict[str, Any]

    def __repr__(self) -> str:
        return f"OpenCredential({self.name!r}, {self.type!r}, ***)"
