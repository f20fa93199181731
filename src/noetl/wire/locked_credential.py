"""How the data of a credential is locked and opened, the same in every store."""

from typing import Any

import msgspec

from noetl.domain.credential import NewCredential, OpenCredential
from noetl.kernel import canonical_json
from noetl.kernel.errors import CredentialUnreadable
from noetl.kernel.scope import Scope


def context_of(scope: Scope, name: str, type: str) -> bytes:
    """What the data is locked for: a row that was moved or renamed at rest does not open."""
    return canonical_json.encode(["credential", *scope, name, type])


def plain_of(credential: NewCredential) -> bytes:
    """The data as bytes; refuses what would not come back as it was."""
    canonical_json.check_plain(credential.data, "data")
    return canonical_json.encode(credential.data)


def opened(name: str, type: str, plain: bytes | None) -> OpenCredential:
    if plain is None:
        raise CredentialUnreadable(name)
    data: dict[str, Any] = msgspec.json.decode(plain)
    return OpenCredential(name=name, type=type, data=data)
