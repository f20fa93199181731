"""References to bytes that live outside the log: immutable, named by their digest."""

import hashlib
import re

import msgspec

from noetl.domain.naming.locator import SCHEME, ResourceLocator, parse
from noetl.domain.naming.segment import escape
from noetl.kernel.errors import NameInvalid, PayloadCorrupt, PayloadMissing, ScopeMissing
from noetl.kernel.scope import Scope

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PAYLOAD_KINDS = ["tenant", "org", "payload"]


class PayloadReference(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="kind",
    tag="payload_store",
):
    """Where the bytes are, and what proves that they are the right ones."""

    tenant_id: str
    organization_id: str
    uri: str
    sha256: str
    media_type: str
    byte_length: int
    schema_digest: str | None = None  # of the Arrow schema, so shapes compare without content
    row_count: int | None = None
    compression: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant_id, self.organization_id)


class StoredPayload(msgspec.Struct, frozen=True):
    """An object that a payload store holds, without its bytes."""

    sha256: str
    byte_length: int


class Fingerprint:
    """The digest and the length of bytes that pass by in pieces."""

    def __init__(self, data: bytes = b"") -> None:
        self._hash = hashlib.sha256(data)
        self._byte_length = len(data)

    def add(self, data: bytes) -> None:
        self._hash.update(data)
        self._byte_length += len(data)

    def stored(self) -> StoredPayload:
        return StoredPayload(self._hash.hexdigest(), self._byte_length)

    def check(self, uri: str, sha256: str | None) -> None:
        """Refuse bytes that are not the ones the name was given for."""
        actual = self._hash.hexdigest()
        if actual != sha256:
            raise PayloadCorrupt(uri, expected=sha256 or "", actual=actual)


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def reference_to(scope: Scope, stored: StoredPayload, media_type: str) -> PayloadReference:
    return PayloadReference(
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        uri=payload_uri(scope, stored.sha256),
        sha256=stored.sha256,
        media_type=media_type,
        byte_length=stored.byte_length,
    )


def payload_uri(scope: Scope, sha256: str) -> str:
    """The same name in every store: moving bytes renames nothing."""
    tenant, organization = escape(scope.tenant_id), escape(scope.organization_id)
    return f"{SCHEME}tenant/{tenant}/org/{organization}/payload/{escape(sha256)}"


def is_payload_uri(uri: str) -> bool:
    try:
        name = parse(uri)
    except NameInvalid:
        return False
    return isinstance(name, ResourceLocator) and [kind for kind, _ in name.pairs] == _PAYLOAD_KINDS


def payload_prefix(scope: Scope) -> str:
    for field, name in zip(scope._fields, scope, strict=True):
        if not name:
            raise ScopeMissing(field)
    return f"{escape(scope.tenant_id)}/{escape(scope.organization_id)}/"


def payload_key(scope: Scope, sha256: str) -> str:
    """The object's path below the root of a store, spread over 65,536 folders."""
    # A reference may come from outside: a path in place of its digest must lead nowhere.
    if not is_digest(sha256):
        raise PayloadMissing(payload_uri(scope, sha256))
    return f"{payload_prefix(scope)}{sha256[:2]}/{sha256[2:4]}/{sha256}"
