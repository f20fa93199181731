"""An answer as plain data, and which kind of failure a status stands for."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from noetl.kernel import instant
from noetl.kernel.canonical_json import DEPTH_MAX
from noetl.kernel.instant import Instant
from noetl.tools.failures import failed
from noetl.tools.sql_results import number

RESPONSE_TYPES: Final = ("auto", "json", "text", "bytes")
PREVIEW_CHARS_MAX = 300
BRACKETS_CHECKED_MAX = DEPTH_MAX - 4
"""With the levels around the body, no value is nested too deeply that has so few."""

_DIGITS_AS_ZEROS = bytes(ord("0") if byte in b"0123456789" else 0 for byte in range(256))
_LONG_NUMBER = b"0" * 19  # may be more than an encoder can carry

_KINDS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "auth",
    HTTPStatus.FORBIDDEN: "auth",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.REQUEST_TIMEOUT: "timeout",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit",
}
_ADVICE = {
    "auth": "check the credential and what it may do",
    "not_found": "check the url",
    "timeout": "try again",
    "rate_limit": "call less often, or try again later",
    "client_error": "check what is sent",
    "server_error": "try again later",
}


def kind_of_status(status: int) -> str:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "server_error"
    return _KINDS.get(status, "client_error")


def advice_for(kind: str) -> str:
    return _ADVICE[kind]


def header_map(headers: Mapping[str, str]) -> dict[str, str]:
    """Names in lower case; what was sent several times is joined, as HTTP has it."""
    joined: dict[str, str] = {}
    for written, text in headers.items():
        name = written.lower()
        joined[name] = f"{joined[name]}, {text}" if name in joined else text
    return joined


def retry_after_seconds(headers: Mapping[str, str], now: Instant) -> float | None:
    """How long the target asks to wait, said in seconds or as a date."""
    said = headers.get("retry-after", "").strip()
    if said.isdigit():
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, _seconds_until(until, now))


def _seconds_until(moment: datetime, now: Instant) -> float:
    return (moment - instant.to_datetime(now)).total_seconds()


class Parsed(NamedTuple):
    data: Any
    is_base64: bool = False
    is_checked: bool = False  # known to be plain, without a look at every part


def parsed(body: bytes, headers: Mapping[str, str], response_type: str) -> Parsed:
    """The body as plain data."""
    if response_type == "bytes":
        return Parsed(base64.b64encode(body).decode(), is_base64=True)
    content_type, charset = _content_type(headers.get("content-type", ""))
    if response_type == "json":
        return _json(body)
    is_json = content_type.endswith(("/json", "+json")) or not content_type
    if response_type == "auto" and is_json and body.strip():
        try:
            return _json(body)
        except ValueError:
            pass  # the target said JSON and meant something else: its words are still worth having
    return _text(body, charset, lossy=response_type == "text")


def _content_type(header: str) -> tuple[str, str]:
    content_type, more, rest = header.partition(";")
    charset = "utf-8"
    for part in rest.split(";") if more else ():
        name, _, text = part.partition("=")
        if name.strip().lower() == "charset":
            charset = text.strip().strip('"') or charset
    return content_type.strip().lower(), charset


def _text(body: bytes, charset: str, *, lossy: bool) -> Parsed:
    try:
        return Parsed(body.decode(charset))
    except (LookupError, UnicodeDecodeError):
        pass
    if lossy:
        return Parsed(body.decode("utf-8", errors="replace"))
    return Parsed(base64.b64encode(body).decode(), is_base64=True)


def _json(body: bytes) -> Parsed:
    """Raises ValueError also for what Python would take and JSON does not have."""
    integer = _integer if _LONG_NUMBER in body.translate(_DIGITS_AS_ZEROS) else None
    if integer is None:
        try:
            data = msgspec.json.decode(body)
            # All of it is plain, and what has few brackets cannot be nested deeply.
            brackets = body.count(b"{") + body.count(b"[")
            return Parsed(data, is_checked=brackets <= BRACKETS_CHECKED_MAX)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass  # what it does not take, the slower one may
    try:
        value = json.loads(body, parse_constant=_refuse, parse_int=integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if b"\\u" in body:
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is no text
    return Parsed(value)


def _integer(digits: str) -> int | float | str:
    return number(int(digits))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def check_response_type(value: Any) -> str:
    word = str(value or "auto").lower()
    word = {"binary": "bytes", "base64": "bytes"}.get(word, word)
    if word not in RESPONSE_TYPES:
        raise failed("client_error", f"`response_type` is none of {', '.join(RESPONSE_TYPES)}")
    return word


def preview(data: Any) -> str:
    """The beginning of what the target said, on one line."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    words = " ".join(text.split())
    return words if len(words) <= PREVIEW_CHARS_MAX else words[:PREVIEW_CHARS_MAX] + "…"
