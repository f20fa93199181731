"""The driver's store for a URL: S3, GCS, Azure, or memory."""

from datetime import timedelta
from typing import Any

from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from noetl.kernel.errors import SettingInvalid

RETRY_SECONDS_MAX = 30.0

_SCHEMES = ("s3", "gs", "az", "memory")


def connect(
    url: str,
    config: dict[str, Any] | None = None,
    *,
    allow_http: bool = False,
    retry_seconds_max: float = RETRY_SECONDS_MAX,
) -> ObjectStore:
    """`config` holds the driver's settings for the scheme, such as `endpoint` and `region`."""
    scheme = url.partition(":")[0]
    if scheme not in _SCHEMES:
        # Local files have an adapter of their own: the driver does not say when they are safe.
        raise SettingInvalid(f"{url} is not an object store; use {', '.join(_SCHEMES)}")
    options: dict[str, Any] = {"config": config}
    if scheme == "s3" and config and "access_key_id" in config:
        options = _with_own_keys(config)
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


def _with_own_keys(config: dict[str, Any]) -> dict[str, Any]:
    """Keys by function: to plain ones the driver adds a session token from the environment."""
    rest = dict(config)
    credential = {
        "access_key_id": rest.pop("access_key_id"),
        "secret_access_key": rest.pop("secret_access_key", ""),
        "token": rest.pop("session_token", None),
        "expires_at": None,
    }
    return {"config": rest, "credential_provider": lambda: credential}
