"""Every setting: name, type, default, meaning. The only reader of the environment."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from noetl.bootstrap.settings_of_others import INSTEAD
from noetl.domain.naming.distance import Preference
from noetl.domain.naming.placement import (
    PLACE_PATTERN,
    SHARD_COUNT,
    SHARD_COUNT_MAX,
    CellPlacement,
)
from noetl.kernel.errors import SettingInvalid
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import NODE_MAX

PREFIX = "NOETL_"
Key = Annotated[str, msgspec.Meta(min_length=8)]
PlaceName = Annotated[str, msgspec.Meta(pattern=PLACE_PATTERN)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
_SECRET_FIELDS = (
    *("secret_key", "api_key", "internal_key", "spark_master", "spark_conf"),
    *("payload_url", "log_url"),  # which may hold keys, and a password
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is an environment variable: `home` is `NOETL_HOME`, and so on."""

    home: Annotated[
        str, msgspec.Meta(description="Folder of the embedded log and payloads.", min_length=1)
    ] = ".noetl"
    log_url: Annotated[
        str,
        msgspec.Meta(description="Where the log is: `sqlite:` in the home, or `postgresql://…`."),
    ] = "sqlite:"
    payload_url: Annotated[
        str,
        msgspec.Meta(
            description="Where results and payloads lie: `file:` in the home, `file:///folder`,"
            " or `s3://…`, `gs://…`, `az://…`; a worker may say `server:`."
        ),
    ] = "file:"
    tenant_id: Annotated[
        str, msgspec.Meta(description="Whose data commands ask for.", min_length=1)
    ] = "default"
    organization_id: Annotated[
        str, msgspec.Meta(description="The organization within the tenant.", min_length=1)
    ] = "default"
    node: Annotated[
        int | None,
        msgspec.Meta(description="This process in its ids, 0 to 1023; by default from its pid."),
    ] = None

    secret_key: Annotated[
        str | None,
        msgspec.Meta(
            description="Locks stored credentials: 32 bytes in base64; by default in the home."
        ),
    ] = None
    worker_slots: Annotated[
        int,
        msgspec.Meta(description="Pieces of work that a worker runs at once.", ge=1, le=10_000),
    ] = 1_000
    drain_seconds: Annotated[
        float,
        msgspec.Meta(
            description="How long running work may take to end when its process is to stop.", ge=0
        ),
    ] = 10.0
    locality_preference: Annotated[
        Preference,
        msgspec.Meta(description="Where work goes first: so near to its rows, or nearer."),
    ] = "zone"
    lease_seconds: Annotated[
        float,
        msgspec.Meta(description="How long a worker may be quiet before its work is taken.", ge=1),
    ] = 60.0
    attempts_max: Annotated[
        int, msgspec.Meta(description="Workers that may lose a command before it fails.", ge=1)
    ] = 10
    visits_max: Annotated[
        int, msgspec.Meta(description="How often an execution may enter one step.", ge=1)
    ] = 100_000
    python_processes: Annotated[
        int, msgspec.Meta(description="Processes for Python code; 0: one per processor.", ge=0)
    ] = 0
    python_memory_mb: Annotated[
        int, msgspec.Meta(description="Memory that one such process may use.", ge=64)
    ] = 2_048
    spark_master: Annotated[
        str,
        msgspec.Meta(
            description="Where Spark runs: here, or `spark://…`, `k8s://…`, `yarn`, `sc://…`."
        ),
    ] = ""
    spark_memory_mb: Annotated[
        int,
        msgspec.Meta(description="Memory of Spark's driver, and of each executor.", ge=512),
    ] = 1_024
    spark_conf: Annotated[
        str,
        msgspec.Meta(description="More settings of Spark: `name=value`, semicolons between them."),
    ] = ""
    java_home: Annotated[
        str,
        msgspec.Meta(description="The Java for Spark; by default JAVA_HOME, PATH or the wheel."),
    ] = ""
    template_env: Annotated[
        str,
        msgspec.Meta(description="Environment variables that templates may read: names, commas."),
    ] = ""

    api_key: Annotated[Key | None, msgspec.Meta(description="Callers of the API give it.")] = None
    internal_key: Annotated[
        Key | None, msgspec.Meta(description="Remote workers give it, and who reads secrets.")
    ] = None

    log_format: Annotated[
        LogFormat | None,
        msgspec.Meta(description="Lines on stderr: `text` or `json`; text on a terminal."),
    ] = None
    log_level: Annotated[
        LogLevel | None,
        msgspec.Meta(
            description="`debug`, `info`, `warning`, `error`; `dev`, `worker`: info, else warning."
        ),
    ] = None
    worker_metrics_port: Annotated[
        Port | None,
        msgspec.Meta(description="Where `noetl worker` shows its metrics; none: nowhere."),
    ] = None
    otlp_endpoint: Annotated[
        str | None,
        msgspec.Meta(description="Where spans go, e.g. `http://127.0.0.1:4318`; none: no spans."),
    ] = None

    result_cell: Annotated[
        str,
        msgspec.Meta(description="The cell that keeps results, in keys.", pattern=PLACE_PATTERN),
    ] = "local"
    result_cell_env: Annotated[
        str, msgspec.Meta(description="The cell's environment, in keys.", pattern=PLACE_PATTERN)
    ] = "dev"
    result_cell_region: Annotated[
        str, msgspec.Meta(description="The cell's region, in keys.", pattern=PLACE_PATTERN)
    ] = "local"
    result_shard_count: Annotated[
        int,
        msgspec.Meta(description="Shards of keys, the same for all.", ge=1, le=SHARD_COUNT_MAX),
    ] = SHARD_COUNT
    result_cells: Annotated[
        str | None,
        msgspec.Meta(
            description="All cells: JSON, or a file of it; by default the one of the payloads."
        ),
    ] = None
    result_read_region: Annotated[
        PlaceName | None,
        msgspec.Meta(
            description="Copies of results in this region are read first; by default the cell's."
        ),
    ] = None

    stage_engine: Annotated[
        Literal["auto", "spark", "local"],
        msgspec.Meta(description="Where loops run that do not say it themselves."),
    ] = "auto"
    spark_slots: Annotated[
        int,
        msgspec.Meta(description="Spark tasks on a stage; 0: one per processor.", ge=0, le=10_000),
    ] = 0
    public_url: Annotated[
        str | None,
        msgspec.Meta(description="Where executors on other machines reach this server."),
    ] = None

    event_result_context_max_bytes: Annotated[
        int,
        msgspec.Meta(
            description="Results up to this size, as JSON, lie in their event.", ge=0, le=163_840
        ),
    ] = 102_400
    result_memory_mb: Annotated[
        int, msgspec.Meta(description="Memory of a process for results it has read.", ge=0)
    ] = 128
    result_shared_memory_mb: Annotated[
        int,
        msgspec.Meta(description="Shared memory of a node for results; 0 shares nothing.", ge=0),
    ] = 1024
    node_name: Annotated[
        str | None,
        msgspec.Meta(
            description="The machine, the same for all who share its memory; by default its host."
        ),
    ] = None
    result_disk_mb: Annotated[
        int, msgspec.Meta(description="Disk of a node for results that lie elsewhere.", ge=0)
    ] = 10_240

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        for name in _SECRET_FIELDS:
            shown[name] = "***" if shown[name] else shown[name]
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def processors(self) -> int:
        return self.python_processes or os.cpu_count() or 1

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant_id, self.organization_id)

    @property
    def placement(self) -> CellPlacement:
        return CellPlacement(
            self.result_cell_env, self.result_cell_region, self.result_cell, self.result_shard_count
        )

    @property
    def read_region(self) -> str:
        return self.result_read_region or self.result_cell_region

    @property
    def id_node(self) -> int:
        """Processes that start by themselves seldom share a node; a fleet gives each its own."""
        return os.getpid() & NODE_MAX if self.node is None else self.node

    @property
    def log_path(self) -> Path:
        return Path(self.home) / "log.db"

    @property
    def payload_path(self) -> Path:
        return Path(self.home) / "payloads"


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the environment once. A name that is not a setting is an error, not a wish."""
    given = os.environ if environment is None else environment
    names = {PREFIX + field.upper(): field for field in Settings.__struct_fields__}
    for name in given:
        if name.startswith(PREFIX) and name not in names:
            raise SettingInvalid(f"{name} is not a setting{_instead(name, list(names))}")
    values = {field: given[name] for name, field in names.items() if name in given}
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        message = str(error)
        for name, field in names.items():
            message = message.replace(f"`$.{field}`", name)
        raise SettingInvalid(f"a setting has a wrong value: {message}") from error
    if settings.node is not None and not 0 <= settings.node <= NODE_MAX:
        raise SettingInvalid(f"{PREFIX}NODE is {settings.node}; use 0 to {NODE_MAX}")
    return settings


def template_environment(settings: Settings) -> dict[str, str]:
    """What `{{ env.NAME }}` may see: the names that were allowed, as they are now."""
    names = [name.strip() for name in settings.template_env.split(",")]
    return {name: os.environ[name] for name in names if name in os.environ}


def child_environment() -> dict[str, str]:
    """What programs started by tools get: enough to find programs and a language, no secrets."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ}


def spark_environment() -> dict[str, str]:
    """What Spark's driver gets, and code of playbooks in its workers: no secrets either."""
    kept = ("JAVA_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "KUBECONFIG")
    return child_environment() | {name: os.environ[name] for name in kept if name in os.environ}


def cloud_environment() -> dict[str, str]:
    """Keys of buckets: for stores, and for nothing that code of playbooks can see."""
    kept = ("AWS_", "GOOGLE_", "AZURE_")
    return {name: value for name, value in os.environ.items() if name.startswith(kept)}


def _instead(name: str, known: list[str]) -> str:
    if name in INSTEAD:
        return f"; {INSTEAD[name]}"
    near = difflib.get_close_matches(name.upper(), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
