"""Where pyarrow finds the objects of a bucket: its own client, with the settings of ours."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from noetl.adapters.objectstore.credentials import ROLE
from noetl.ports.object_store import ArrowFile


def arrow_files(url: str, config: Mapping[str, str]) -> Callable[[str], ArrowFile] | None:
    """Key -> file; None for a store that pyarrow cannot reach.

    Given keys are handed on; without them pyarrow looks in the same places as the driver does:
    the variables of the cloud, then the role of the machine or the container.
    """
    scheme, _, root = url.partition("://")
    make = _FILESYSTEMS.get(scheme)
    if make is None:
        return None
    folder = root.rstrip("/")
    connected = cache(lambda: make(config))  # one client for a store, made when it is needed
    return lambda key: ArrowFile(connected(), f"{folder}/{key}")


def _s3(config: Mapping[str, str]) -> Any:
    from pyarrow.fs import S3FileSystem  # noqa: PLC0415 - slow

    return S3FileSystem(
        **_given(
            config,
            access_key="access_key_id",
            secret_key="secret_access_key",
            session_token="session_token",
            region="region",
            role_arn=ROLE,
        ),
        **_endpoint(config, "endpoint_override", "scheme"),
        anonymous=_is_anonymous(config),
        force_virtual_addressing=config.get("virtual_hosted_style_request") == "true",
    )


def _gs(config: Mapping[str, str]) -> Any:
    from pyarrow.fs import GcsFileSystem  # noqa: PLC0415 - slow

    return GcsFileSystem(anonymous=_is_anonymous(config))


def _az(config: Mapping[str, str]) -> Any:
    from pyarrow.fs import AzureFileSystem  # noqa: PLC0415 - slow

    return AzureFileSystem(
        **_given(
            config,
            account_name="account_name",
            account_key="account_key",
            sas_token="sas_token",
            client_id="client_id",
            client_secret="client_secret",
            tenant_id="tenant_id",
        ),
        **_endpoint(config, "blob_storage_authority", "blob_storage_scheme"),
    )


def _given(config: Mapping[str, str], **names: str) -> dict[str, str]:
    return {theirs: config[ours] for theirs, ours in names.items() if ours in config}


def _endpoint(config: Mapping[str, str], authority: str, scheme: str) -> dict[str, str]:
    if "endpoint" not in config:
        return {}
    kind, _, rest = config["endpoint"].partition("://")
    return {scheme: kind, authority: rest.partition("/")[0]}


def _is_anonymous(config: Mapping[str, str]) -> bool:
    return config.get("skip_signature") == "true"


_FILESYSTEMS: dict[str, Callable[[Mapping[str, str]], Any]] = {"s3": _s3, "gs": _gs, "az": _az}
