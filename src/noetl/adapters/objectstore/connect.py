"""The driver's store for a URL: S3, GCS, Azure, or memory."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

from obstore.exceptions import BaseError
from obstore.store import ObjectStore as Driver
from obstore.store import from_url

from noetl.adapters.objectstore.arrow import arrow_files
from noetl.adapters.objectstore.credentials import credential_provider
from noetl.adapters.objectstore.object_store import BucketObjectStore
from noetl.kernel.errors import SettingInvalid

RETRY_SECONDS_MAX = 30.0

_SCHEMES = ("s3", "gs", "az", "memory")


def open_bucket(address: str) -> BucketObjectStore:
    """A URL whose options follow a question mark: `s3://bucket/folder?endpoint=http://…`."""
    url, _, options = address.partition("?")
    config = dict(parse_qsl(options))
    allow_http = config.get("endpoint", "").startswith("http://")
    return open_store(url, config, allow_http=allow_http)


def open_store(
    url: str, config: Mapping[str, str], *, allow_http: bool = False
) -> BucketObjectStore:
    driver = connect(url, dict(config), allow_http=allow_http)
    return BucketObjectStore(driver, url, arrow_files(url, config))


def connect(
    url: str,
    config: dict[str, Any] | None = None,
    *,
    allow_http: bool = False,
    retry_seconds_max: float = RETRY_SECONDS_MAX,
) -> Driver:
    """`config` holds the driver's settings for the scheme, such as `endpoint` and `region`.

    Two more are ours, for keys that expire: see `credentials`.
    """
    scheme = url.partition(":")[0]
    if scheme not in _SCHEMES:
        # Local files have an adapter of their own: the driver does not say when they are safe.
        raise SettingInvalid(f"{url} is not an object store; use {', '.join(_SCHEMES)}")
    rest, provider = credential_provider(scheme, config)
    options: dict[str, Any] = {"config": rest}
    if provider is not None:
        options["credential_provider"] = provider
    try:
        return from_url(
            url,
            client_options={"allow_http": allow_http},
            retry_config={"retry_timeout": timedelta(seconds=retry_seconds_max)},
            **options,
        )
    except (BaseError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise SettingInvalid(f"{url} cannot be used as an object store: {reason}") from error
