"""Every setting: name, type, default, meaning. The only reader of the environment."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from noetl.kernel.errors import SettingInvalid
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import NODE_MAX

PREFIX = "NOETL_"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is an environment variable: `home` is `NOETL_HOME`, and so on."""

    home: Annotated[str, msgspec.Meta(description="Folder of the embedded log and payloads.")] = (
        ".noetl"
    )
    log_url: Annotated[
        str,
        msgspec.Meta(description="Where the log is: `sqlite:` in the home, or `postgresql://…`."),
    ] = "sqlite:"
    payload_url: Annotated[
        str,
        msgspec.Meta(
            description="Where payloads are: `file:` in the home, or `s3://…`, `gs://…`, `az://…`."
        ),
    ] = "file:"
    tenant_id: Annotated[str, msgspec.Meta(description="Whose data commands ask for.")] = "default"
    organization_id: Annotated[
        str, msgspec.Meta(description="The organization within the tenant.")
    ] = "default"
    node: Annotated[
        int,
        msgspec.Meta(
            description="This process in its ids; unique among processes.", ge=0, le=NODE_MAX
        ),
    ] = 0

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant_id, self.organization_id)

    @property
    def log_path(self) -> Path:
        return Path(self.home) / "log.db"

    @property
    def payload_path(self) -> Path:
        return Path(self.home) / "payloads"


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the environment once. A name that is not a setting is an error, not a wish."""
    given = os.environ if environment is None else environment
    values = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in given.items()
        if name.startswith(PREFIX)
    }
    for name in values:
        if name not in Settings.__struct_fields__:
            raise SettingInvalid(f"{PREFIX}{name.upper()} is not a setting{_nearest(name)}")
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise SettingInvalid(f"a setting has a wrong value: {error}") from error


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, Settings.__struct_fields__, n=1)
    return f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
