"""Who may come in: a key when one is set, else only callers on this machine."""

import hmac
import logging
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from noetl.api.metrics import Metrics
from noetl.api.problems import Refused, of_refusal
from noetl.api.services import Keys
from noetl.kernel.instant import Instant
from noetl.kernel.stage_token import StageGrant, grant_in
from noetl.runtime.log_lines import about

_LOG = logging.getLogger(__name__)
OPEN_PATHS = frozenset({"/health", "/api/health", "/", "/docs"})
"""Without a key: pages hold no data, and ask for it with the key that a person gives them."""

INTERNAL_PATHS = ("/api/internal/", "/api/work/", "/api/stages/", "/api/frames/")
STAGE_PATHS = (
    "/api/work/",
    "/api/stages/",
    "/api/frames/",
    "/api/internal/playbooks/",
    "/api/internal/credentials/",
)
"""All that the slot of a stage needs: its journals are work, and objects it gets from the store."""

_USUAL_PORTS = {"http": 80, "https": 443}


class Guard:
    """Before every route, also before those that are not there."""

    def __init__(
        self, app: ASGIApp, keys: Keys, metrics: Metrics, now: Callable[[], Instant]
    ) -> None:
        self._app = app
        self._now = now
        self._keys = keys
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        try:
            request.state.is_internal = self._admit(request)
            request.state.grant = self._grant(request)
        except Refused as refusal:
            self._metrics.answered("refused", request.method, refusal.status_code, 0.0)
            _LOG.warning("request refused: %s", refusal.code, extra=_about(request))
            await of_refusal(refusal, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admit(self, request: Request) -> bool:
        """Whether the caller is one of ours. Raises Refused for one who may not come in."""
        keys = self._keys
        given = _key_of(request)
        if self._grant(request) is not None:
            return False
        has_internal_key = _is_same(given, keys.internal)
        has_api_key = _is_same(given, keys.api)
        path: str = request.scope["path"]
        if path in OPEN_PATHS:
            return False
        if keys.internal is not None and path.startswith(INTERNAL_PATHS) and not has_internal_key:
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "key_missing",
                "workers give the internal key: Authorization: Bearer <NOETL_INTERNAL_KEY>",
            )
        if not (has_api_key or has_internal_key):
            self._admit_without_key(request)
        return has_internal_key or keys.internal is None

    def _grant(self, request: Request) -> StageGrant | None:
        """What a slot of a stage may do; None for all other callers. Raises Refused."""
        key = self._keys.internal
        grant = None if key is None else grant_in(_key_of(request), key, self._now())
        path: str = request.scope["path"]
        if grant is not None and not path.startswith(STAGE_PATHS):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "stage_only",
                "this token is for the slots of one stage, which have no business here",
            )
        return grant

    def _admit_without_key(self, request: Request) -> None:
        if self._keys.api is not None:
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "key_missing",
                "give the key: Authorization: Bearer <NOETL_API_KEY>, or X-API-Key",
            )
        # A page in a browser can send requests here, under a name of its own or under ours; what
        # another program of this machine shows is as foreign as a page from elsewhere.
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        is_ours = origin is None or _is_of(origin, host)
        if not is_ours or not is_loopback(_host_of(host)):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "host_refused",
                "without a key only this machine is served, by a name such as localhost, and of"
                " pages only its own; set NOETL_API_KEY to serve others",
            )


def _about(request: Request) -> dict[str, Any]:
    caller = None if request.client is None else request.client.host
    return about(method=request.method, path=request.scope["path"], caller=caller)


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _is_of(origin: str, host: str) -> bool:
    """Whether a page comes from where it asks: the same host and the same port."""
    try:
        page = urlsplit(origin)
        asked = urlsplit(f"{page.scheme}://{host}")
        usual = _USUAL_PORTS.get(page.scheme)
        at, wanted = page.port or usual, asked.port or usual
    except ValueError:
        return False
    return at is not None and (page.hostname, at) == (asked.hostname, wanted)


def _key_of(request: Request) -> str:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else request.headers.get("x-api-key", "")


def _is_same(given: str, key: str | None) -> bool:
    """In the same time for every wrong key."""
    return key is not None and hmac.compare_digest(given.encode(), key.encode())
