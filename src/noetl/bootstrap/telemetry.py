"""Spans are sent when a setting says where; otherwise nothing of OpenTelemetry is loaded."""

from noetl import __version__
from noetl.adapters.system.chance import new_uuid
from noetl.bootstrap.settings import Settings
from noetl.kernel.errors import SettingInvalid
from noetl.pipeline.boundary import Tools
from noetl.ports.clock import Clock
from noetl.ports.telemetry import NoTelemetry, Telemetry


def open_telemetry(settings: Settings, clock: Clock, role: str) -> Telemetry:
    if settings.otlp_endpoint is None:
        return NoTelemetry()
    try:
        from noetl.adapters.telemetry.otlp import OtlpTelemetry  # noqa: PLC0415 - of an extra
    except ModuleNotFoundError as error:
        raise SettingInvalid(
            f"NOETL_OTLP_ENDPOINT is set, but the package {error.name!r} is not installed;"
            " pip install 'noetl[telemetry]', or unset it"
        ) from error
    service = {"instance.id": role, "version": __version__}
    return OtlpTelemetry(
        settings.otlp_endpoint, service, clock, lambda: new_uuid().replace("-", "")
    )


def traced(tools: Tools, telemetry: Telemetry) -> Tools:
    if isinstance(telemetry, NoTelemetry):
        return tools
    from noetl.adapters.telemetry.traced_tools import TracedTools  # noqa: PLC0415 - seldom

    return TracedTools(tools, telemetry)
