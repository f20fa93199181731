"""Where events are sent: the subject of every execution."""

from functools import lru_cache
from urllib.parse import quote

from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope

SHARDS = 256

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MASK = 2**64 - 1


@lru_cache(maxsize=10_000)
def subject_of(scope: Scope, execution: ExecutionId) -> str:
    """`noetl.events.<tenant>.<org>.<execution>.<shard>`; one execution has one subject."""
    tenant, organization = (_token(name) for name in scope)
    shard = shard_of(scope, execution)
    return f"noetl.events.{tenant}.{organization}.{execution}.{shard}"


def shard_of(scope: Scope, execution: ExecutionId) -> int:
    """FNV-1a, 64 bits, over `tenant/organization/execution`."""
    digest = _FNV_OFFSET
    for byte in f"{scope.tenant_id}/{scope.organization_id}/{execution}".encode():
        digest = (digest ^ byte) * _FNV_PRIME & _MASK
    return digest % SHARDS


def _token(name: str) -> str:
    """A name as one token of a subject, where dots separate and `*` and `>` match anything."""
    return quote(name, safe="").replace(".", "%2E")
