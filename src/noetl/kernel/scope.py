"""Whose data it is. Every event, payload and read model has exactly one scope."""

from typing import NamedTuple


class Scope(NamedTuple):
    tenant_id: str
    organization_id: str


DEFAULT_SCOPE = Scope("default", "default")
