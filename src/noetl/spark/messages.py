"""What a driver is asked and what it says: JSON over a socket, a message in each line."""

import msgspec

from noetl.spark.session import SparkSettings
from noetl.spark.slots import SlotJob, SlotSummary
from noetl.spark.work_job import WorkAnswer, WorkJob

LINE_BYTES_MAX = 1 << 28  # ten thousand slots with the longest summaries, in base64


class OpenSession(msgspec.Struct, frozen=True, kw_only=True, tag="open"):
    """The first request, once."""

    settings: SparkSettings
    folder: str


class StartJob(msgspec.Struct, frozen=True, kw_only=True, tag="start_job"):
    job: SlotJob


class StartWork(msgspec.Struct, frozen=True, kw_only=True, tag="start_work"):
    job: WorkJob


class CancelJob(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """Of this session, or with Connect of an earlier one."""

    request: int
    tag: str
    session_id: str
    seconds_max: float  # a job that goes on for longer ends the driver, and all that runs in it


class AskStatus(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    request: int


class CloseSession(msgspec.Struct, frozen=True, kw_only=True, tag="close"):
    """An orderly end; the end of the connection is the other one."""


class SessionOpened(msgspec.Struct, frozen=True, kw_only=True, tag="opened"):
    session_id: str
    spark_version: str
    ui_url: str | None


class SessionFailed(msgspec.Struct, frozen=True, kw_only=True, tag="open_failed"):
    reason: str


class JobDone(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    tag_of_job: str
    summaries: tuple[SlotSummary, ...]


class WorkDone(msgspec.Struct, frozen=True, kw_only=True, tag="work_done"):
    tag_of_job: str
    answer: WorkAnswer


class JobFailed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    tag_of_job: str
    reason: str
    exception: str = ""  # what the code of a playbook raised
    is_cancelled: bool = False


class Cancelled(msgspec.Struct, frozen=True, kw_only=True, tag="cancelled"):
    request: int
    reason: str | None = None  # why it could not be


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    request: int
    running: tuple[str, ...]  # tags


Request = OpenSession | StartJob | StartWork | CancelJob | AskStatus | CloseSession
Reply = SessionOpened | SessionFailed | JobDone | WorkDone | JobFailed | Cancelled | Status
