"""Which kinds of tools there are, and each of them made when it is first asked for.

A tool's module is imported on first use, so that starting the program imports no driver.
"""

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast, runtime_checkable

from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.kernel.errors import SettingInvalid
from noetl.ports.tool import Tool
from noetl.ports.tool_services import ToolFactory, ToolServices
from noetl.tools.failures import failed

ENTRY_POINT_GROUP = "noetl.tools"

ON_SERVER = "spark"
"""The kind that runs only in the process that drives Spark."""


Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class OnFirstUse(Generic[Made]):
    """A factory by the name of its class; `extra` brings the driver that its module imports."""

    kind: str
    module: str
    name: str
    extra: str | None = None

    def __call__(self, services: ToolServices) -> Made:
        try:
            factory = getattr(importlib.import_module(self.module), self.name)
        except ModuleNotFoundError as error:
            if self.extra is None or (error.name or "").startswith("noetl."):
                raise
            raise failed(
                "client_error",
                f"the {self.kind} tool needs the package {error.name!r};"
                f" pip install 'noetl[{self.extra}]'",
            ) from error
        return cast(Callable[[ToolServices], Made], factory)(services)


@dataclass(frozen=True, slots=True)
class _FromEntryPoint:
    point: importlib.metadata.EntryPoint

    def __call__(self, services: ToolServices) -> Tool:
        try:
            factory = self.point.load()
        except (ImportError, AttributeError) as error:
            raise failed(
                "client_error",
                f"the {self.point.name} tool cannot be loaded from {self.point.value}: {error};"
                " repair or remove the package that offers it",
            ) from error
        return cast(ToolFactory, factory)(services)


@runtime_checkable
class Gauged(Protocol):
    """A tool that keeps something worth watching."""

    def gauges(self) -> Mapping[str, float]: ...


def _built_in(kind: str, module: str, name: str, extra: str | None = None) -> OnFirstUse[Tool]:
    return OnFirstUse(kind, f"noetl.tools.{module}", name, extra)


_BUILT_IN: dict[str, ToolFactory] = {
    factory.kind: factory
    for factory in (
        _built_in("python", "python", "PythonTool"),
        _built_in("http", "http", "HttpTool"),
        _built_in("postgres", "postgres", "PostgresTool", "postgres"),
        _built_in("duckdb", "duckdb", "DuckdbTool", "duckdb"),
        _built_in("sqlite", "sqlite", "SqliteTool"),
        _built_in("shell", "shell", "ShellTool"),
        _built_in("noop", "noop", "NoopTool"),
        _built_in("playbook", "playbook", "PlaybookTool"),
        _built_in("wait", "wait", "WaitTool"),
        _built_in("nats", "nats", "NatsTool", "nats"),
        _built_in("artifact", "artifact", "ArtifactTool"),
        _built_in("result_fetch", "artifact", "ArtifactTool"),
        _built_in("resolve", "artifact", "ArtifactTool"),
        _built_in("transfer", "transfer", "TransferTool"),
        _built_in("secrets", "secrets", "SecretsTool"),
        _built_in("spark", "spark", "SparkTool"),
    )
}


def tool_factories() -> dict[str, ToolFactory]:
    """Our own kinds and those that installed packages offer. Loads nothing."""
    factories = dict(_BUILT_IN)
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        if point.name in factories:
            raise SettingInvalid(
                f"the tool kind {shown(point.name)!r} of {point.value} exists already; a kind has"
                f" one tool: rename the entry point in {ENTRY_POINT_GROUP!r}, or remove its package"
            )
        factories[point.name] = _FromEntryPoint(point)
    return factories


class Tools:
    """One tool per kind, made on first use and closed together."""

    def __init__(
        self, services: ToolServices, factories: Mapping[str, ToolFactory] | None = None
    ) -> None:
        self._services = services
        self._factories = dict(tool_factories() if factories is None else factories)
        self._made: dict[str, Tool] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """What this process offers: jobs of Spark only where Spark is driven."""
        is_driver = self._services.spark is not None
        return tuple(kind for kind in self._factories if kind != ON_SERVER or is_driver)

    def get(self, kind: str) -> Tool:
        """Raises ToolFailed for a kind that is unknown, or whose driver is not installed."""
        if kind not in self._made:
            self._made[kind] = self._factory(kind)(self._services)
        return self._made[kind]

    def gauges(self) -> dict[str, float]:
        """What tools that were made can tell of themselves, by name."""
        found: dict[str, float] = {}
        for tool in self._made.values():
            if isinstance(tool, Gauged):
                found |= tool.gauges()
        return found

    async def close(self) -> None:
        """Close what was made; one that fails to close does not keep the others open."""
        errors: list[Exception] = []
        while self._made:
            _, tool = self._made.popitem()
            try:
                await tool.close()
            except Exception as error:  # noqa: BLE001 - raised below, when all are closed
                errors.append(error)
        if errors:
            raise errors[0]

    def _factory(self, kind: str) -> ToolFactory:
        if kind in self._factories:
            return self._factories[kind]
        meant = nearest(kind, self._factories)
        advice = f"did you mean {meant!r}?" if meant else f"use {choices(sorted(self._factories))}"
        raise failed("client_error", f"there is no tool {shown(kind)!r}; {advice}")
