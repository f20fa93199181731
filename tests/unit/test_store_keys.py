"""What slots are told of a bucket: its keys, unless its address has its own way to them."""

from urllib.parse import parse_qsl

import pytest

from noetl.bootstrap.store_keys import store_variables, with_keys

KEYS = {"AWS_ACCESS_KEY_ID": "who", "AWS_SECRET_ACCESS_KEY": "a+b/c", "AWS_REGION": "here"}


def options_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(url.partition("?")[2]))


def test_variables_of_the_cloud_become_options() -> None:
    told = with_keys("s3://bucket/folder?endpoint=http://minio:9000", KEYS)
    assert told.startswith("s3://bucket/folder?")
    assert options_of(told) == {
        "endpoint": "http://minio:9000",
        "access_key_id": "who",
        "secret_access_key": "a+b/c",
        "region": "here",
    }


@pytest.mark.parametrize(
    "own", ["access_key_id=me&secret_access_key=mine", "credentials=boto3", "skip_signature=true"]
)
def test_an_address_with_its_own_keys_keeps_them(own: str) -> None:
    told = options_of(with_keys(f"s3://bucket?{own}", KEYS | {"AWS_SESSION_TOKEN": "t"}))
    assert told == dict(parse_qsl(own)) | {"region": "here"}


@pytest.mark.parametrize("url", ["file:", "file:///folder", "gs://bucket", "s3://bucket"])
def test_what_has_no_variables_stays_as_it_is(url: str) -> None:
    assert with_keys(url, {"AZURE_STORAGE_ACCOUNT_KEY": "other"}) == url


def test_every_cloud_has_its_own_variables() -> None:
    azure = {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "k=="}
    assert options_of(with_keys("az://c", azure)) == {"account_name": "a", "account_key": "k=="}
    google = {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"a": 1}'}
    assert options_of(with_keys("gs://b", google)) == {"service_account_key": '{"a": 1}'}


def test_variables_that_are_no_keys_of_buckets_stay_here() -> None:
    others = {"AWS_PROFILE": "me", "AWS_CONFIG_FILE": "/home/me", "GOOGLE_CLOUD_PROJECT": "p"}
    assert store_variables(KEYS | others) == KEYS
