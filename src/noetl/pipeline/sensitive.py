"""Which parts of a credential must never be seen, and in which forms they may show up."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

from noetl.templates.secret import (
    FORMS_KEPT_MAX,
    SUBSTRING_CHARS_MIN,
    Secret,
    forms_of,
    scrub_forms,
)

# Every other field of a credential is taken for a secret.
_HARMLESS: Final = frozenset(
    (
        *("host", "hostname", "server", "db_host", "port", "db_port", "database", "db", "dbname"),
        *("db_name", "user", "username", "db_user", "nats_user", "login", "schema", "db_schema"),
        *("search_path", "ssl", "sslmode", "ssl_mode", "use_ssl", "type", "name", "kind"),
        *("in", "location", "header", "header_name", "param", "prefix", "scheme", "driver"),
        *("region", "endpoint", "bucket", "service", "scope", "provider", "source", "project"),
        *("project_id", "account", "warehouse", "role", "url_style", "timeout", "client_id"),
        *("token_type", "expires_in", "auth_uri", "token_uri", "client_email", "audience"),
        *("accept", "content_type", "user_agent", "method"),
    )
)
_SCHEMES: Final = ("Bearer ", "Basic ", "Token ", "ApiKey ")


Secrets = tuple[Secret, ...]
"""Of one credential, or of one look-up: the rows that use it share them."""


class SecretsSeen:
    """The secrets that one row has used: nothing that leaves the row may contain them."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: tuple[Secrets, ...] = ()

    def add(self, secrets: Secrets) -> None:
        if secrets and secrets not in self._groups:
            self._groups = (*self._groups, secrets)

    def forms(self) -> list[str]:
        """Every text to look for, longer ones first."""
        return list(_forms_of(self._groups))

    def scrub(self, value: Any) -> Any:
        return scrub_forms(value, _forms_of(self._groups)) if self._groups and value else value


@lru_cache(FORMS_KEPT_MAX)
def _forms_of(groups: tuple[Secrets, ...]) -> Sequence[str]:
    """The same for all rows that came across the same credentials."""
    return forms_of(secret for secrets in groups for secret in secrets)


def secrets_of(data: Mapping[str, Any]) -> Secrets:
    """The secrets of a credential, as they are and as they look in headers and addresses."""
    return _in_all_forms({*_sensitive(data), *_pairs(data)})


def secrets_in(value: Any) -> Secrets:
    """Every text of a value that is secret as a whole."""
    return _in_all_forms(set(_texts(value)))


def hidden(value: Any) -> Any:
    """The value with every text in it as a Secret, for templates."""
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, Mapping):
        return {key: hidden(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hidden(item) for item in value]
    return value


def _in_all_forms(texts: set[str]) -> Secrets:
    plain = {text for text in texts if len(text) >= SUBSTRING_CHARS_MIN}
    forms = {form(text) for text in plain for form in _FORMS}
    forms |= {case(text) for text in plain if len(text) >= CASE_CHARS_MIN for case in _CASES}
    return tuple(Secret(text) for text in sorted(plain | forms) if text)


def _quoted_whole(text: str) -> str:
    return quote(text, safe="")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode().rstrip("=")


def _base64_for_addresses(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_FORMS: Final = (
    *(quote, quote_plus, _quoted_whole, _base64, _base64_for_addresses),
    str.strip,
)
"""What templates, headers and addresses make of a text without changing what it gives away."""

_CASES: Final = (str.lower, str.upper, str.title, str.capitalize)
CASE_CHARS_MIN = 8
"""A shorter secret in another case is mostly a word of its own."""


def _sensitive(value: Any, field: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _sensitive(item, str(key).lower().replace("-", "_"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _sensitive(item, field)
    elif field not in _HARMLESS:
        yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield from _within(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _within(text: str) -> Iterator[str]:
    """An address is no secret, but the password inside it is; a header holds its token."""
    if "://" not in text:
        yield text
        yield from (text.removeprefix(each) for each in _SCHEMES if text.startswith(each))
    elif "@" in text:
        yield text
        password = text.split("://", 1)[1].rsplit("@", 1)[0].partition(":")[2]
        yield from (password, unquote(password))


def _pairs(data: Mapping[str, Any]) -> Iterator[str]:
    """User and password as HTTP sends them."""
    user = next((data[key] for key in ("user", "username", "db_user") if key in data), None)
    password = next((data[key] for key in ("password", "db_password") if key in data), None)
    if user is not None and password is not None:
        yield base64.b64encode(f"{user}:{password}".encode()).decode()
