"""Registered playbooks: a path, its versions, and the digest under which each text is stored."""

from typing import Any

import msgspec

from noetl.kernel.instant import Instant


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a playbook. The text is in the payload store under `digest`."""

    catalog_id: str
    path: str
    version: int
    kind: str
    digest: str
    name: str
    description: str | None = None
    registered_at: Instant
    meta: dict[str, Any] = {}


class NewCatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    kind: str
    digest: str
    name: str
    description: str | None = None
    meta: dict[str, Any] = {}
