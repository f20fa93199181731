"""Keys of buckets for Spark, whose machines have not the variables of this one.

They travel in tasks alone: in no setting of Spark, no variable, no plan and no page. Code of loops
runs in a process apart from its slot and sees none of them; the code of a `spark` task runs where
its results are read and stored.
"""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

# option of the driver <- variables of the cloud, the first that is set
_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "s3": {
        "access_key_id": ("AWS_ACCESS_KEY_ID",),
        "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
        "session_token": ("AWS_SESSION_TOKEN",),
    },
    "gs": {
        "service_account_key": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        "service_account": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"),
        "application_credentials": ("GOOGLE_APPLICATION_CREDENTIALS",),
    },
    "az": {
        "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"),
        "sas_token": ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
        "client_id": ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"),
        "client_secret": ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
        "tenant_id": ("AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID"),
    },
}
_PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    "s3": {
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    },
    "az": {
        "account_name": ("AZURE_STORAGE_ACCOUNT_NAME",),
        "endpoint": ("AZURE_STORAGE_ENDPOINT",),
    },
}
_OWN_WAYS = ("credentials", "skip_signature", "role_arn")


def store_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that say how to reach a bucket."""
    options = [option for table in (_KEYS, _PLACES) for option in table.values()]
    known = {name for option in options for names in option.values() for name in names}
    return {name: value for name, value in variables.items() if name in known}


def with_keys(url: str, variables: Mapping[str, str]) -> str:
    """The address, and what the variables of its cloud say besides. Where they say nothing, the
    role of the machine that opens it counts, as it does here."""
    address, _, options = url.partition("?")
    scheme = address.partition("://")[0]
    given = dict(parse_qsl(options))
    keys = _KEYS.get(scheme, {})
    has_own = any(name in given for name in (*keys, *_OWN_WAYS))
    wanted = _PLACES.get(scheme, {}) | ({} if has_own else keys)
    found = {
        option: variables[name]
        for option, names in wanted.items()
        for name in [next((name for name in names if variables.get(name)), "")]
        if name and option not in given
    }
    return f"{address}?{urlencode(given | found)}" if found else url
