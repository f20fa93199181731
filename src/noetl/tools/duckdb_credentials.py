"""Credentials as DuckDB wants them: secrets of one connection, and databases that are attached."""

from collections.abc import Iterator, Mapping

from noetl.domain.credential import OpenCredential
from noetl.tools.credential_fields import object_store_fields, postgres_fields

_OBJECT_STORES = {"s3": "s3", "aws": "s3", "minio": "s3", "hmac": "gcs", "gcs": "gcs", "gcp": "gcs"}


def statements_for(
    credentials: Mapping[str, OpenCredential], *, attach: bool
) -> Iterator[tuple[str, str]]:
    """`(extension, statement)` pairs, in order; `attach` makes databases known by their alias."""
    for alias, credential in credentials.items():
        name = _name(alias or credential.name)
        kind = credential.type.lower().partition("_")[0]
        if kind.startswith("postgres"):
            yield "postgres", _postgres_secret(name, credential)
            if attach:
                yield "postgres", f"ATTACH '' AS {name} (TYPE postgres, SECRET {name})"
        elif kind in _OBJECT_STORES:
            yield "httpfs", _object_store_secret(name, _OBJECT_STORES[kind], credential)


def _postgres_secret(name: str, credential: OpenCredential) -> str:
    fields = postgres_fields(credential.data)
    given = {
        "HOST": fields.host,
        "PORT": str(fields.port),
        "DATABASE": fields.database,
        "USER": fields.user,
        "PASSWORD": fields.password,
    }
    return _secret(name, "postgres", given)


def _object_store_secret(name: str, kind: str, credential: OpenCredential) -> str:
    fields = object_store_fields(credential)
    given = {
        "KEY_ID": fields.key_id,
        "SECRET": fields.secret,
        "REGION": fields.region,
        "ENDPOINT": _host(fields.endpoint),
        "SESSION_TOKEN": fields.session_token,
        "URL_STYLE": fields.url_style,
        "USE_SSL": None if fields.use_ssl is None else str(fields.use_ssl).lower(),
    }
    return _secret(name, kind, given)


def _secret(name: str, kind: str, given: Mapping[str, str | None]) -> str:
    parts = [f"TYPE {kind}"]
    parts += [f"{word} {_text(text)}" for word, text in given.items() if text is not None]
    return f"CREATE OR REPLACE TEMPORARY SECRET {name} ({', '.join(parts)})"


def _host(endpoint: str | None) -> str | None:
    return None if endpoint is None else endpoint.rpartition("://")[2].rstrip("/")


def _name(alias: str) -> str:
    return '"' + alias.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
