"""Who asks the bucket: keys that were given, and keys that expire and are fetched again.

Without any option the driver looks by itself: AWS_*, GOOGLE_* and AZURE_STORAGE_* variables, then
the role of the machine or the container (web identity tokens, ECS, EKS and EC2 roles, the
metadata server of GCE and GKE, Azure's managed and workload identities). It fetches such keys
again before they expire. What needs a cloud's own library is asked for by `credentials=…`:

    s3  credentials=boto3    profiles, SSO, processes; with role_arn=… that role is taken on
    gs  credentials=google   Google's application default credentials
    az  credentials=azure    DefaultAzureCredential: the command line, managed identity, …
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from noetl.kernel.errors import SettingInvalid

OPTION = "credentials"
ROLE = "role_arn"
SESSION_NAME = "noetl"

# scheme and value of the option -> module, class, and what to install for it
_PROVIDERS = {
    ("s3", "boto3"): ("obstore.auth.boto3", "Boto3CredentialProvider", "boto3"),
    ("gs", "google"): ("obstore.auth.google", "GoogleCredentialProvider", "google-auth requests"),
    ("az", "azure"): ("obstore.auth.azure", "AzureCredentialProvider", "azure-identity"),
}
_ROLE_PROVIDER = "StsCredentialProvider"

Provider = Callable[[], Any]


def credential_provider(
    scheme: str, config: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, Provider | None]:
    """The rest of the settings, and what gives the keys; None: the driver finds them."""
    if not config:
        return config, None
    rest = dict(config)
    kind, role = rest.pop(OPTION, None), rest.pop(ROLE, None)
    if role is not None and (scheme, kind) != ("s3", "boto3"):
        raise SettingInvalid(f"{ROLE} goes with s3:// and {OPTION}=boto3 only")
    if kind is not None:
        return rest, _provider(scheme, kind, role)
    if scheme == "s3" and "access_key_id" in rest:
        return _own_keys(rest)
    return rest, None


def _provider(scheme: str, kind: str, role: str | None) -> Provider:
    if (scheme, kind) not in _PROVIDERS:
        known = ", ".join(f"{option} for {name}://" for name, option in _PROVIDERS)
        raise SettingInvalid(f"{OPTION}={kind} is not known for {scheme}://; use {known}")
    module_name, class_name, packages = _PROVIDERS[scheme, kind]
    try:
        module = import_module(module_name)
        if role is None:
            found: Provider = getattr(module, class_name)()
        else:
            given = {"RoleArn": role, "RoleSessionName": SESSION_NAME}
            found = getattr(module, _ROLE_PROVIDER)(**given)
    except ModuleNotFoundError as error:
        raise SettingInvalid(f"{OPTION}={kind} needs: pip install {packages}") from error
    except ValueError as error:  # the library found no credentials
        raise SettingInvalid(f"{OPTION}={kind} finds none: {error}") from error
    return found


def _own_keys(rest: dict[str, Any]) -> tuple[dict[str, Any], Provider]:
    """Keys by function: to plain ones the driver adds a session token from the environment."""
    credential = {
        "access_key_id": rest.pop("access_key_id"),
        "secret_access_key": rest.pop("secret_access_key", ""),
        "token": rest.pop("session_token", None),
        "expires_at": None,
    }
    return rest, lambda: credential
