"""A task's parameters and credentials as one HTTP request, ready to be sent and sent again."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import msgspec
from multidict import CIMultiDict
from yarl import URL

from noetl.ports.tool import ToolCall
from noetl.templates.secret import Secret, scrub
from noetl.tools.credential_fields import http_fields, secrets_of
from noetl.tools.failures import failed

NO_EFFECT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"

_BODIES: Final = ("json", "payload", "form", "data", "body")
_BODIES_AT_ONCE: Final = frozenset(_BODIES)
_FORM = "application/x-www-form-urlencoded"
_METHOD = re.compile(r"[A-Z][A-Z0-9_-]{0,31}")
_USUAL_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})
_PLAIN_ADDRESS = re.compile(
    r"(?P<origin>https?://[a-z0-9][a-z0-9.\-]*(?::(?!80/|443/)(?:[1-5]\d{4}|[1-9]\d{0,3}))?)"
    r"(?P<path>/[A-Za-z0-9\-._~:/!$&'()*+,=%]*)"
)
_WRITTEN_OUT = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NOT_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Address(NamedTuple):
    """Where a request goes: all of it, whom to connect to, and what to ask for there."""

    text: str
    origin: str
    target: str


class Request(NamedTuple):
    method: str
    address: Address
    headers: "CIMultiDict[str]"
    body: bytes | None
    private_headers: frozenset[str]  # of credentials, in lower case
    secrets: tuple[Secret, ...]
    is_repeatable: bool = True  # False: sent once, whatever becomes of the connection


def has_no_effect(request: Request) -> bool:
    return request.is_repeatable and request.method in NO_EFFECT


def what(request: Request) -> str:
    return f"{request.method} {shown(request)}"


def shown(request: Request) -> str:
    """The address for people: no password, no key of a credential in its query."""
    return str(scrub(request.address.text, request.secrets))


def method_of(parameters: Mapping[str, Any]) -> str:
    written = parameters.get("method") or "GET"
    if isinstance(written, str) and written in _USUAL_METHODS:
        return written
    method = str(written).strip().upper()
    if not _METHOD.fullmatch(method):
        raise failed("client_error", "`method` is not a method of HTTP; write GET, POST, …")
    return method


def request_of(call: ToolCall) -> Request:
    parameters = call.parameters
    method = method_of(parameters)
    headers = _headers(parameters.get("headers"))
    params = _pairs("params", parameters.get("params"))
    secrets = secrets_of(call)
    private: frozenset[str] = frozenset()
    for credential in call.credentials.values():
        fields = http_fields(credential)
        private |= {name.lower() for name in fields.headers}
        for name, text in fields.headers.items():
            headers.setdefault(name, _header_text(name, text))
        params += list(fields.params.items())
    address, user_info = _address(parameters.get("url"), params)
    if user_info:
        headers.setdefault("Authorization", _basic(user_info))
        password = user_info.partition(":")[2]
        secrets += [Secret(text) for text in (password, unquote(password), _basic(user_info))]
    body = _body(parameters, headers)
    if method not in NO_EFFECT and call.idempotency_key:
        headers.setdefault(IDEMPOTENCY_HEADER, call.idempotency_key)
    return Request(
        method, address, headers, body, private, tuple(secrets), is_repeatable=call.is_repeatable
    )


def _basic(user_info: str) -> str:
    return "Basic " + base64.b64encode(unquote(user_info).encode()).decode()


def address_of(url: URL) -> Address:
    return Address(str(url), str(url.origin()), url.raw_path_qs)


def _address(value: Any, params: list[tuple[str, str]]) -> tuple[Address, str]:
    """The address with its query, and the user and password that were written into it."""
    text = str(value or "").strip()
    plain = _PLAIN_ADDRESS.fullmatch(text)
    if plain is None:
        return _taken_apart(text, params)
    origin, path = plain.groups()  # as most are: there is nothing to take apart
    target = f"{path}?{urlencode(params)}" if params else path
    return Address(origin + target, origin, target), ""


def _taken_apart(written: str, params: list[tuple[str, str]]) -> tuple[Address, str]:
    try:
        parts = urlsplit(written)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        user_info, _, host = parts.netloc.rpartition("@")
        query = "&".join(part for part in (parts.query, urlencode(params)) if part)
        text = urlunsplit((parts.scheme, host, parts.path, query, ""))
        # What is written out already stays as it is: signatures are made over the very bytes.
        url = URL(text, encoded=bool(_WRITTEN_OUT.fullmatch(text)))
        is_whole = is_whole and url.port is not None
    except ValueError:
        is_whole = False
    if not is_whole:
        raise failed("client_error", "`url` is not a whole address; begin with http:// or https://")
    return address_of(url), user_info


def _headers(value: Any) -> "CIMultiDict[str]":
    headers: CIMultiDict[str] = CIMultiDict()
    if value is None:
        return headers
    for name, item in _mapping("headers", value).items():
        if item is not None:
            headers[str(name)] = _header_text(str(name), _text(item))
    return headers


def _header_text(name: str, text: str) -> str:
    if not _HEADER_NAME.fullmatch(name) or _NOT_IN_HEADERS.search(text):
        raise failed(
            "client_error",
            f"the header {name!r} has a character that headers cannot have, such as a line break",
        )
    return text.strip()


def _mapping(name: str, value: Any) -> Mapping[Any, Any]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError:
            value = []
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise failed("client_error", f"`{name}` is not a map; write `name: value` lines")
    return value


def _pairs(name: str, value: Any) -> list[tuple[str, str]]:
    """Nothing is sent for None; a list is sent as several values of one name."""
    if value is None:
        return []
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        return parse_qsl(value.lstrip("?"), keep_blank_values=True)
    return [
        (str(key), _text(item))
        for key, items in _mapping(name, value).items()
        for item in (items if isinstance(items, list | tuple) else [items])
        if item is not None
    ]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | Mapping | list):
        return msgspec.json.encode(value).decode()
    return str(value)


def _body(parameters: Mapping[str, Any], headers: "CIMultiDict[str]") -> bytes | None:
    """The first that is given decides."""
    if _BODIES_AT_ONCE.isdisjoint(parameters):
        return None
    for name in _BODIES:
        if parameters.get(name) is not None:
            return _body_of(name, parameters[name], headers)
    return None


def _body_of(name: str, value: Any, headers: "CIMultiDict[str]") -> bytes:
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    is_form = name == "form" or (content_type == _FORM and isinstance(value, Mapping))
    if content_type == "multipart/form-data" and isinstance(value, Mapping):
        body, headers["Content-Type"] = _multipart(_pairs(name, value))
        return body
    if is_form:
        headers.setdefault("Content-Type", _FORM)
        return urlencode(_pairs(name, value)).encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and (name in ("data", "body") or _is_json(value)):
        kind = "application/json" if _is_json(value) else "text/plain; charset=utf-8"
        headers.setdefault("Content-Type", kind)
        return value.encode()
    headers.setdefault("Content-Type", "application/json")
    return _encoded(name, value)


def _encoded(name: str, value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise failed("transform", f"`{name}` cannot be written as JSON: {error}") from error


def _is_json(text: str) -> bool:
    """Text that a template made of an object or a list; a bare word or number is just text."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _multipart(pairs: list[tuple[str, str]]) -> tuple[bytes, str]:
    # A boundary that cannot be inside, without chance: the same call has the same bytes.
    boundary = f"noetl-{hashlib.sha256(repr(pairs).encode()).hexdigest()[:32]}"

    def lines() -> Iterator[str]:
        for name, text in pairs:
            quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
            yield f"--{boundary}"
            yield f'Content-Disposition: form-data; name="{quoted}"'
            yield ""
            yield text
        yield f"--{boundary}--"
        yield ""

    return "\r\n".join(lines()).encode(), f"multipart/form-data; boundary={boundary}"
