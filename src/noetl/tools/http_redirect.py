"""Where a redirect leads, and what of a request may go there."""

from typing import Final
from urllib.parse import urljoin

from multidict import CIMultiDict
from yarl import URL

from noetl.ports.tool import ToolFailed
from noetl.templates.secret import scrub
from noetl.tools.failures import failed
from noetl.tools.http_request import Request, address_of, shown, what

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_BECOMES_GET: Final = frozenset({301, 302, 303})
_FOR_ANYBODY: Final = frozenset(
    (
        *("accept", "accept-charset", "accept-encoding", "accept-language", "user-agent"),
        *("cache-control", "content-type", "idempotency-key", "pragma", "range"),
        *("if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"),
    )
)
"""Of any other header nobody but its author knows whether it is a secret."""


def redirected(request: Request, status: int, target: str) -> Request:
    url = URL(urljoin(request.address.text, target))
    if url.scheme not in ("http", "https") or not url.host:
        raise failed("client_error", f"{shown(request)} redirects to what is no HTTP address")
    becomes_get = status in _BECOMES_GET and request.method not in ("GET", "HEAD")
    body = None if becomes_get else request.body
    headers = CIMultiDict(request.headers)
    if str(url.origin()) != request.address.origin:
        if body:
            raise _body_for_another(request, status, url)
        headers = _headers_for_others(request)
    if becomes_get:
        headers.popall("Content-Type", None)
    return request._replace(
        method="GET" if becomes_get else request.method,
        address=address_of(url.with_user(None)),
        headers=headers,
        body=body,
    )


def _body_for_another(request: Request, status: int, url: URL) -> ToolFailed:
    origin = scrub(str(url.origin()), request.secrets)
    return failed(
        "client_error",
        f"{what(request)} is redirected to {origin}, which gets no body that was meant for"
        " another; write its address as `url`, or `follow_redirects: false` to see the answer",
        code=str(status),
    )


def _headers_for_others(request: Request) -> "CIMultiDict[str]":
    """What another target may hear than the one that the request was meant for."""
    allowed = _FOR_ANYBODY - request.private_headers
    return CIMultiDict(each for each in request.headers.items() if each[0].lower() in allowed)
