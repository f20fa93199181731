"""Every spelling of a credential's fields leads to the same connection, header or key."""

import base64
import itertools
from typing import Any

import pytest

from noetl.domain.credential import OpenCredential
from noetl.ports.tool import ToolFailed
from noetl.templates.secret import scrub
from noetl.tools.credential_fields import (
    PostgresFields,
    http_fields,
    nats_fields,
    object_store_fields,
    postgres_fields,
    secrets_of,
)
from tests.tools.tool_calls import call

WHOLE = PostgresFields(
    host="h", port=6543, database="d", user="u", password="p@ss", sslmode="require", schema="s"
)


def opened(kind: str, data: dict[str, Any]) -> OpenCredential:
    return OpenCredential(name="mine", type=kind, data=data)


SPELLINGS = {
    "h": ["db_host", "host", "hostname", "server"],
    "6543": ["db_port", "port"],
    "d": ["db_name", "database", "db", "dbname"],
    "u": ["db_user", "user", "username"],
    "p@ss": ["db_password", "password"],
    "require": ["sslmode", "ssl"],
    "s": ["schema"],
}


@pytest.mark.parametrize("names", list(itertools.product(*SPELLINGS.values())))
def test_a_database_has_one_meaning_in_all_its_spellings(names: tuple[str, ...]) -> None:
    assert postgres_fields(dict(zip(names, SPELLINGS, strict=True))) == WHOLE


def test_a_whole_address_is_taken_apart_and_fields_override_it() -> None:
    address = "postgresql://u:p%40ss@h:6543/d?sslmode=require"
    assert postgres_fields({"dsn": address, "schema": "s"}) == WHOLE
    assert postgres_fields({"dsn": address, "database": "other"}).database == "other"


def test_what_stands_beside_the_query_overrides_the_credential_in_any_spelling() -> None:
    stored = {"db_host": "h", "db_name": "d", "username": "u", "db_password": "p"}
    fields = postgres_fields(stored, {"host": "other", "port": 1})
    assert (fields.host, fields.port, fields.database) == ("other", 1, "d")


def test_ssl_may_be_yes_or_no_and_the_port_has_a_default() -> None:
    data = {"host": "h", "database": "d", "user": "u"}
    assert postgres_fields(data).port == 5432
    assert postgres_fields(data).sslmode is None
    assert postgres_fields(data | {"ssl": True}).sslmode == "require"
    assert postgres_fields(data | {"ssl": "false"}).sslmode == "disable"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"password": "hidden"}, "db_host, db_name, db_user"),
        ({"host": "h", "db": "d", "user": "u", "port": "x"}, "not a number"),
        ({"host": "h", "db": "d", "user": "u", "ssl": "often"}, "verify-full"),
    ],
)
def test_what_is_missing_is_named(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolFailed, match=words) as raised:
        postgres_fields(data)
    assert "hidden" not in str(raised.value)


def test_nats_has_spellings_too() -> None:
    fields = nats_fields({"nats_url": "nats://n", "nats_user": "u", "nats_password": "p"})
    assert fields == nats_fields({"url": "nats://n", "user": "u", "password": "p"})
    assert nats_fields({"token": "t"}).token == "t"


BASIC = "Basic " + base64.b64encode(b"u:p").decode()


@pytest.mark.parametrize(
    ("kind", "data", "headers", "params"),
    [
        ("bearer", {"token": "t"}, {"Authorization": "Bearer t"}, {}),
        ("bearer", {"value": "t"}, {"Authorization": "Bearer t"}, {}),
        ("oauth2", {"access_token": "t"}, {"Authorization": "Bearer t"}, {}),
        ("secret", {"token": "t", "prefix": "Token"}, {"Authorization": "Token t"}, {}),
        ("basic", {"username": "u", "password": "p"}, {"Authorization": BASIC}, {}),
        ("http", {"user": "u", "password": "p"}, {"Authorization": BASIC}, {}),
        ("api_key", {"api_key": "k"}, {"X-API-Key": "k"}, {}),
        ("api-key", {"key": "k", "header": "X-Mine"}, {"X-Mine": "k"}, {}),
        ("api_key", {"value": "k", "in": "query", "param": "key"}, {}, {"key": "k"}),
        ("http", {"headers": {"X-A": "1"}, "params": {"b": 2}}, {"X-A": "1"}, {"b": "2"}),
        ("http", {"headers": {"Authorization": "A"}, "token": "t"}, {"Authorization": "A"}, {}),
    ],
)
def test_http_credentials_become_headers_or_parameters(
    kind: str, data: dict[str, Any], headers: dict[str, str], params: dict[str, str]
) -> None:
    fields = http_fields(opened(kind, data))
    assert (fields.headers, fields.params) == (headers, params)


def test_a_credential_that_http_cannot_use_says_what_it_needs() -> None:
    with pytest.raises(ToolFailed, match="`token`"):
        http_fields(opened("postgres", {"host": "h"}))


def test_keys_of_object_stores() -> None:
    data = {"access_key_id": "i", "secret_access_key": "s", "region": "r", "use_ssl": "false"}
    fields = object_store_fields(opened("s3", data))
    assert (fields.key_id, fields.secret, fields.region, fields.use_ssl) == ("i", "s", "r", False)
    with pytest.raises(ToolFailed, match="HMAC"):
        object_store_fields(opened("gcs", {"service_account": "{}"}))


def test_t4_secrets_are_known_in_every_form_they_take_on_the_way() -> None:
    data = {"user": "reader", "password": "p@ss w/rd", "host": "db.example"}
    secrets = secrets_of(call("postgres", credentials={"": opened("postgres", data)}))
    basic = base64.b64encode(b"reader:p@ss w/rd").decode()
    text = f"reader@db.example: p@ss w/rd p%40ss%20w%2Frd p%40ss+w%2Frd {basic}"
    assert scrub(text, secrets) == "reader@db.example: *** *** *** ***"


def test_t4_the_password_inside_an_address_is_a_secret() -> None:
    data = {"dsn": "postgresql://u:p%40ssword@h/d", "url": "https://public.example/x"}
    secrets = secrets_of(call("postgres", credentials={"": opened("postgres", data)}))
    assert scrub("p@ssword p%40ssword https://public.example/x", secrets) == (
        "*** *** https://public.example/x"
    )


def test_t4_no_value_shows_a_secret_when_it_is_printed() -> None:
    values = [
        WHOLE,
        nats_fields({"token": "p@ss"}),
        http_fields(opened("bearer", {"token": "p@ss"})),
        object_store_fields(opened("s3", {"key_id": "p@ss", "secret": "p@ss"})),
    ]
    assert "p@ss" not in repr(values)
