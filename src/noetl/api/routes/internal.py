"""What only workers may read: playbooks by digest, credentials in the open."""

import re

from starlette.responses import Response

from noetl.api.route import Asked, Nothing, get
from noetl.domain.credential import OpenCredential
from noetl.domain.payload import StoredPayload, reference_to
from noetl.kernel.errors import CredentialMissing, EntryNotFound, PayloadMissing
from noetl.runtime.playbooks import MEDIA_TYPE

_DIGEST = re.compile(r"[0-9a-f]{64}")


async def playbook(asked: Asked[Nothing, Nothing]) -> Response:
    """The text as it was registered, whatever was registered since."""
    digest = asked.path["digest"]
    missing = EntryNotFound(f"playbook with the digest {digest}")
    if not _DIGEST.fullmatch(digest):
        raise missing
    reference = reference_to(asked.scope, StoredPayload(digest, 0), MEDIA_TYPE)
    try:
        chunks = [chunk async for chunk in asked.services.payloads.get(reference)]
    except PayloadMissing:
        raise missing from None
    return Response(b"".join(chunks), media_type=MEDIA_TYPE)


async def credential(asked: Asked[Nothing, Nothing]) -> OpenCredential:
    name = asked.path["name"]
    opened = await asked.services.credentials.get(asked.scope, name)
    if opened is None:
        raise CredentialMissing(name)
    return opened


ROUTES = (
    get(
        "/api/internal/playbooks/{digest}",
        "The text of a playbook",
        playbook,
        media_type=MEDIA_TYPE,
    ),
    get(
        "/api/internal/credentials/{name:path}",
        "A credential with its data",
        credential,
        gives=OpenCredential,
    ),
)
