"""The spellings of a credential's fields, read once: connections, headers, object stores."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, get_args
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import msgspec

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolCall
from noetl.templates.secret import Secret
from noetl.tools.failures import failed

_HOST: Final = ("db_host", "host", "hostname", "server")
_PORT: Final = ("db_port", "port")
_DATABASE: Final = ("db_name", "database", "db", "dbname")
_USER: Final = ("db_user", "user", "username")
_PASSWORD: Final = ("db_password", "password")
_SSL: Final = ("sslmode", "ssl", "ssl_mode")
_SCHEMA: Final = ("schema", "db_schema", "search_path")
_POSTGRES_SPELLINGS: Final = (_HOST, _PORT, _DATABASE, _USER, _PASSWORD, _SSL, _SCHEMA)
_ADDRESS: Final = ("dsn", "connection_string", "uri", "url")
_TOKEN: Final = ("token", "access_token", "bearer_token", "id_token")
_API_KEY: Final = ("api_key", "apikey", "key", "value")
_KEY_ID: Final = ("key_id", "access_key_id", "aws_access_key_id", "access_key", "hmac_key_id")
_KEY: Final = ("secret", "secret_key", "secret_access_key", "aws_secret_access_key", "hmac_secret")

SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
SSL_MODES: Final[tuple[SslMode, ...]] = get_args(SslMode)

# What may stand in a failure. Every other text of a credential is taken for a secret.
_OTHER_PUBLIC: Final = """
    type in header header_name prefix param scheme region endpoint bucket service scope provider
    nats_user url_style use_ssl driver accept content-type user-agent
"""
_PUBLIC: Final = frozenset(
    (*_HOST, *_PORT, *_DATABASE, *_USER, *_SSL, *_SCHEMA, *_OTHER_PUBLIC.split())
)


class PostgresFields(msgspec.Struct, frozen=True, kw_only=True):
    """Where a database is and as whom to open it."""

    host: str
    port: int
    database: str
    user: str
    password: str | None = None
    sslmode: SslMode | None = None
    schema: str | None = None

    def __repr__(self) -> str:
        return f"PostgresFields({self.user}@{self.host}:{self.port}/{self.database})"


class NatsFields(msgspec.Struct, frozen=True, kw_only=True):
    url: str | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return "NatsFields(***)"


class HttpFields(msgspec.Struct, frozen=True, kw_only=True):
    """What a credential adds to a request."""

    headers: dict[str, str]
    params: dict[str, str]

    def __repr__(self) -> str:
        return f"HttpFields({', '.join([*self.headers, *self.params])})"


class ObjectStoreFields(msgspec.Struct, frozen=True, kw_only=True):
    """Keys for `s3://` and, with HMAC keys, for `gs://`."""

    key_id: str
    secret: str
    region: str | None = None
    endpoint: str | None = None
    session_token: str | None = None
    url_style: str | None = None
    use_ssl: bool | None = None

    def __repr__(self) -> str:
        return "ObjectStoreFields(***)"


def postgres_fields(*layers: Mapping[str, Any]) -> PostgresFields:
    """Each layer overrides the ones before it; within one, a field overrides a whole address."""
    given: dict[str, str] = {}
    for layer in layers:
        address = _text(layer, _ADDRESS)
        for part in (_from_address(address) if address else {}, layer):
            found = {names[0]: _text(part, names) for names in _POSTGRES_SPELLINGS}
            given |= {name: text for name, text in found.items() if text is not None}
    missing = [name for name in ("db_host", "db_name", "db_user") if name not in given]
    if missing:
        raise failed(
            "client_error",
            f"the connection lacks {', '.join(missing)}; add it to the credential, or beside the"
            " query",
        )
    return PostgresFields(
        host=given["db_host"],
        port=_port(given.get("db_port")),
        database=given["db_name"],
        user=given["db_user"],
        password=given.get("db_password"),
        sslmode=_sslmode(given.get("sslmode")),
        schema=given.get("schema"),
    )


def nats_fields(data: Mapping[str, Any]) -> NatsFields:
    return NatsFields(
        url=_text(data, ("nats_url", "url", "servers", "server")),
        user=_text(data, ("nats_user", *_USER)),
        password=_text(data, ("nats_password", *_PASSWORD)),
        token=_text(data, ("nats_token", "token")),
    )


def http_fields(credential: OpenCredential) -> HttpFields:
    """By the fields that are there; the type decides only where they leave a choice."""
    data = credential.data
    headers = _text_map(data.get("headers"))
    params = _text_map(data.get("params"))
    user, password = _text(data, _USER), _text(data, _PASSWORD)
    token, api_key = _text(data, _TOKEN), _text(data, _API_KEY)
    kind = credential.type.lower().replace("-", "_")
    if kind in ("api_key", "apikey", "header") and (api_key or token):
        _add_api_key(data, api_key or token or "", headers, params)
    elif kind != "basic" and (token or (kind == "bearer" and api_key)):
        prefix = _text(data, ("prefix", "scheme")) or "Bearer"
        headers.setdefault("Authorization", f"{prefix} {token or api_key}")
    elif user is not None and password is not None:
        headers.setdefault("Authorization", f"Basic {_basic(user, password)}")
    elif api_key and kind not in ("secret", "basic"):
        _add_api_key(data, api_key, headers, params)
    if not headers and not params:
        raise failed(
            "client_error",
            f"the credential {credential.name!r} has nothing that HTTP can use; give it `token`,"
            " `user` and `password`, `api_key`, or `headers`",
        )
    return HttpFields(headers=headers, params=params)


def object_store_fields(credential: OpenCredential) -> ObjectStoreFields:
    data = credential.data
    key_id, secret = _text(data, _KEY_ID), _text(data, _KEY)
    if key_id is None or secret is None:
        raise failed(
            "client_error",
            f"the credential {credential.name!r} has no keys of an object store; give it `key_id`"
            " and `secret` (for Google Cloud Storage: an HMAC key)",
        )
    use_ssl = data.get("use_ssl")
    return ObjectStoreFields(
        key_id=key_id,
        secret=secret,
        region=_text(data, ("region", "region_name", "aws_region")),
        endpoint=_text(data, ("endpoint", "endpoint_url")),
        session_token=_text(data, ("session_token", "aws_session_token")),
        url_style=_text(data, ("url_style",)),
        use_ssl=None if use_ssl is None else str(use_ssl).lower() in ("true", "1", "yes"),
    )


def secrets_of(call: ToolCall) -> list[Secret]:
    """What no failure of this call may hold, also in the forms it takes on the way."""
    if not call.credentials and call.parameters.keys().isdisjoint(_PASSWORD):
        return []
    plain = set(_secret_texts(credential.data for credential in call.credentials.values()))
    plain |= {str(call.parameters[name]) for name in _PASSWORD if call.parameters.get(name)}
    for credential in call.credentials.values():
        user, password = _text(credential.data, _USER), _text(credential.data, _PASSWORD)
        if user is not None and password is not None:
            plain.add(_basic(user, password))
    written = {form(text) for text in plain for form in (quote, quote_plus)}
    written |= {quote(text, safe="") for text in plain}
    return [Secret(text) for text in (plain | written) - {""}]


def _secret_texts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Mapping):
            yield from _secret_texts(part[name] for name in part if name.lower() not in _PUBLIC)
        elif isinstance(part, list | tuple):
            yield from _secret_texts(part)
        elif isinstance(part, str):
            yield from _secrets_in(part)


def _secrets_in(text: str) -> Iterator[str]:
    """An address is no secret, but the password inside it is."""
    if "://" not in text:
        yield text
    elif "@" in text:
        yield text
        user_info = text.split("://", 1)[1].rsplit("@", 1)[0]
        password = user_info.partition(":")[2]
        yield from (password, unquote(password))


def _from_address(address: str) -> dict[str, Any]:
    parts = urlsplit(address)
    if parts.scheme not in ("postgres", "postgresql"):
        return {}
    found = {
        "host": parts.hostname,
        "port": parts.port,
        "database": unquote(parts.path.lstrip("/")),
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        **dict(parse_qsl(parts.query)),
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def _first(data: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((data[name] for name in names if data.get(name) not in (None, "")), None)


def _text(data: Mapping[str, Any], names: Iterable[str]) -> str | None:
    found = _first(data, names)
    return None if found is None or isinstance(found, dict | list) else str(found)


def _text_map(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(text) for name, text in value.items() if text is not None}


def _port(text: str | None) -> int:
    try:
        return int(text or 5432)
    except ValueError:
        raise failed("client_error", "the port of the connection is not a number") from None


def _sslmode(text: str | None) -> SslMode | None:
    if text is None:
        return None
    word = {"true": "require", "false": "disable"}.get(text.lower(), text.lower())
    for mode in SSL_MODES:
        if word == mode:
            return mode
    raise failed("client_error", f"sslmode is none of {', '.join(SSL_MODES)}")


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def _add_api_key(
    data: Mapping[str, Any], key: str, headers: dict[str, str], params: dict[str, str]
) -> None:
    if _text(data, ("in", "location")) == "query":
        params.setdefault(_text(data, ("param", "name", "header")) or "api_key", key)
        return
    prefix = _text(data, ("prefix",))
    name = _text(data, ("header", "header_name", "name")) or "X-API-Key"
    headers.setdefault(name, f"{prefix} {key}" if prefix else key)
