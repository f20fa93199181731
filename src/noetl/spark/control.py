"""Naming and cancelling jobs of a session: one port, for classic Spark and for Spark Connect.

The two do not agree: in a classic session `interruptTag` does nothing, and a Connect session has no
context to ask.
"""

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from noetl.spark.session import SparkSettings, connect_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


GONE_SECONDS_MAX = 1.0
_SESSION_GONE = ("NO_ACTIVE_SESSION", "INVALID_HANDLE.SESSION")


class JobLabel(msgspec.Struct, frozen=True, kw_only=True):
    tag: str
    description: str
    pool: str


class JobControl(Protocol):
    @property
    def session_id(self) -> str: ...

    @property
    def ui_url(self) -> str | None: ...

    def label(self, label: JobLabel) -> None:
        """Called in the thread that will run the job, before it does."""

    def cancel(self, tag: str, session_id: str) -> None:
        """Only what runs now is reached: a job about to start has to be cancelled again."""

    def is_lost(self, error: Exception) -> bool:
        """Whether the session is gone, so that no further job can run in it."""

    def watch(self, ended: Callable[[], None]) -> None:
        """Block until the process behind the session is gone; at once where there is none."""


class ClassicControl:
    def __init__(self, session: "SparkSession") -> None:
        self._context = session.sparkContext

    @property
    def session_id(self) -> str:
        return str(self._context.applicationId)

    @property
    def ui_url(self) -> str | None:
        return self._context.uiWebUrl

    def label(self, label: JobLabel) -> None:
        self._context.addJobTag(label.tag)
        self._context.setJobDescription(label.description)
        self._context.setLocalProperty("spark.scheduler.pool", label.pool)

    def cancel(self, tag: str, session_id: str) -> None:
        if session_id == self.session_id:  # jobs of another are gone with its driver
            self._context.cancelJobsWithTag(tag)

    def is_lost(self, error: Exception) -> bool:
        """A job fails a moment before its JVM is seen to be gone."""
        del error
        gateway: Any = self._context._gateway
        try:
            gateway.proc.wait(GONE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return False
        return True

    def watch(self, ended: Callable[[], None]) -> None:
        gateway: Any = self._context._gateway
        gateway.proc.wait()
        ended()


class ConnectControl:
    def __init__(self, session: "SparkSession", settings: SparkSettings) -> None:
        self._session: Any = session  # its class differs from what the package promises
        self._url = settings.url

    @property
    def session_id(self) -> str:
        return str(self._session.session_id)

    @property
    def ui_url(self) -> str | None:
        return None  # the server's own, wherever that is

    def label(self, label: JobLabel) -> None:
        self._session.addTag(label.tag)

    def cancel(self, tag: str, session_id: str) -> None:
        if session_id == self.session_id:
            self._session.interruptTag(tag)
            return
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, and slow to import

        # Not stopped afterwards: that would end the session for whoever may still use it.
        other: Any = SparkSession.builder.remote(connect_url(self._url, session_id)).create()
        other.interruptTag(tag)

    def is_lost(self, error: Exception) -> bool:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra
        from pyspark.errors.exceptions.connect import (  # noqa: PLC0415 - an extra
            SparkConnectGrpcException,
        )

        if not isinstance(error, PySparkException):
            return False
        condition = error.getCondition() or ""
        is_unreachable = type(error) is SparkConnectGrpcException  # subclasses are errors of jobs
        return is_unreachable or condition.startswith(_SESSION_GONE)

    def watch(self, ended: Callable[[], None]) -> None:
        del ended


def control_of(session: "SparkSession", settings: SparkSettings) -> JobControl:
    return ConnectControl(session, settings) if settings.is_connect else ClassicControl(session)
