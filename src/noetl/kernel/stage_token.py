"""Tokens for the slots of one stage: whoever shows one may work on that stage, until it expires."""

import base64
import hashlib
import hmac

import msgspec

from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.instant import Instant

_PREFIX = "stage."


class StageGrant(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    stage_id: StageId
    expires_at: Instant


def stage_token(key: str, grant: StageGrant) -> str:
    body = base64.urlsafe_b64encode(msgspec.json.encode(grant)).decode().rstrip("=")
    return f"{_PREFIX}{body}.{_signed(key, body)}"


def grant_in(token: str, key: str, now: Instant) -> StageGrant | None:
    """None for what is no token of ours, and for one that has expired."""
    body, dot, signature = token.removeprefix(_PREFIX).partition(".")
    if not token.startswith(_PREFIX) or not dot:
        return None
    if not hmac.compare_digest(signature.encode(), _signed(key, body).encode()):
        return None
    padded = body + "=" * (-len(body) % 4)
    grant = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=StageGrant)
    return grant if now < grant.expires_at else None


def _signed(key: str, body: str) -> str:
    return hmac.new(key.encode(), f"noetl stage {body}".encode(), hashlib.sha256).hexdigest()
