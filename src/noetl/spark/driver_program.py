"""The process that drives Spark: it holds the session and runs jobs, each in a thread of its own.

Run as `python -m noetl.spark.driver_program SOCKET`. It leads a session of processes, and when its
supervisor is gone it takes all of them along.
"""

import contextlib
import ctypes
import os
import re
import shutil
import socket
import sys
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, NoReturn

import msgspec

from noetl.spark.control import JobControl, JobLabel, control_of
from noetl.spark.messages import (
    AskStatus,
    CancelJob,
    Cancelled,
    CloseSession,
    JobDone,
    JobFailed,
    OpenSession,
    Reply,
    Request,
    SessionFailed,
    SessionOpened,
    StartJob,
    StartWork,
    Status,
    WorkDone,
)
from noetl.spark.processes import end_session
from noetl.spark.session import SparkSettings, open_session, work_session
from noetl.spark.shipping import pack_code
from noetl.spark.slots import SlotJob, run_slots
from noetl.spark.work import run_work
from noetl.spark.work_code import JobStopped
from noetl.spark.work_job import WorkJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CANCEL_AGAIN_SECONDS = 0.25
REASON_LENGTH_MAX = 2_000
STOP_SECONDS_MAX = 30.0
"""Code that goes on for so long after it was stopped ends the driver, and all that runs in it."""

_GRPC_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)
_PYTHON_ERROR = re.compile(r"(noetl\.[\w.]+|[\w.]*(Error|Exception|Refused|Invalid)): ")
_REQUEST = msgspec.json.Decoder(Request)


class Running:
    """A job under way, and whether somebody wants it no more."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.ended = Event()
        self.code: Thread | None = None  # which runs code of a playbook

    def stop(self) -> None:
        """Code sees it with its next line: what Spark cancels is not all that it does."""
        if self.code is not None and self.code.ident is not None and not self.ended.is_set():
            ident = ctypes.c_ulong(self.code.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(JobStopped))


class DriverProgram:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = Lock()
        self._running: dict[str, Running] = {}
        self._folder: Path | None = None
        self._session: SparkSession | None = None
        self._settings = SparkSettings()
        self._py_files: list[str] = []
        self._control: JobControl | None = None

    def serve(self) -> None:
        """Only reads here, so that the end of the supervisor is seen whatever else goes on."""
        with self._connection.makefile("rb") as lines:
            for line in lines:
                request = _REQUEST.decode(line)
                if isinstance(request, CloseSession):
                    break
                self._take(request)
            else:
                self.end()
        if self._session is not None:
            with contextlib.suppress(Exception):  # all of it is about to be ended anyway
                self._session.stop()
        self.end()

    def end(self) -> NoReturn:
        """Nothing is left: no JVM, no Python worker, no folder."""
        end_session(os.getpid(), spared=os.getpid())
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)

    def _take(self, request: Request) -> None:
        match request:
            case OpenSession():
                Thread(target=self._open, args=(request,), daemon=True).start()
            case StartJob(job=job):
                running = self._running[job.tag] = Running()
                Thread(target=self._run, args=(job, running), daemon=True).start()
            case StartWork(job=work):
                running = self._running[work.tag] = Running()
                running.code = Thread(target=self._work, args=(work, running), daemon=True)
                running.code.start()
            case CancelJob():
                if request.tag in self._running:
                    self._running[request.tag].is_cancelled = True
                Thread(target=self._cancel, args=(request,), daemon=True).start()
            case AskStatus():
                self._say(Status(request=request.request, running=tuple(self._running)))

    def _open(self, request: OpenSession) -> None:
        self._folder = Path(request.folder)
        self._settings = settings = request.settings
        try:
            ours = [] if settings.is_local else [str(pack_code(self._folder))]
            self._py_files = [*ours, *settings.py_files]
            self._session = open_session(settings, self._py_files)
            self._control = control = control_of(self._session, settings)
            opened = SessionOpened(
                session_id=control.session_id,
                spark_version=self._session.version,
                ui_url=control.ui_url,
            )
        except Exception as error:  # noqa: BLE001 - Spark's edge: whatever it says is the answer
            self._say(SessionFailed(reason=said(error)))
            return
        self._say(opened)
        control.watch(self.end)

    def _run(self, job: SlotJob, running: Running) -> None:
        """A job's own thread: labels of classic Spark belong to threads."""
        assert self._session is not None, "a session is opened before jobs are sent"
        assert self._control is not None, "as above"
        reply: Reply
        try:
            description = job.description or job.tag
            self._control.label(JobLabel(tag=job.tag, description=description, pool=job.pool))
            reply = JobDone(tag_of_job=job.tag, summaries=run_slots(self._session, job))
        except Exception as error:  # noqa: BLE001 - as above
            reply = self._failed(job.tag, running, error)
        self._over(job.tag, running, reply)

    def _work(self, job: WorkJob, running: Running) -> None:
        assert self._session is not None, "a session is opened before jobs are sent"
        reply: Reply
        try:
            own = work_session(self._session, self._settings, job.session_id, self._py_files)
            description = job.order.description or job.tag
            label = JobLabel(tag=job.tag, description=description, pool=job.pool)
            control_of(own, self._settings).label(label)
            reply = WorkDone(tag_of_job=job.tag, answer=run_work(own, job))
        except Exception as error:  # noqa: BLE001 - as above, and whatever code of playbooks says
            reply = self._failed(job.tag, running, error)
        except JobStopped:
            reply = JobFailed(tag_of_job=job.tag, reason="it was stopped", is_cancelled=True)
        self._over(job.tag, running, reply)

    def _failed(self, tag: str, running: Running, error: Exception) -> JobFailed:
        assert self._control is not None, "as above"
        if not running.is_cancelled and self._control.is_lost(error):
            sys.stderr.write(f"the session is lost: {said(error)}\n")
            self.end()
        return JobFailed(
            tag_of_job=tag,
            reason=said(error),
            exception=type(error).__name__,
            is_cancelled=running.is_cancelled,
        )

    def _over(self, tag: str, running: Running, reply: Reply) -> None:
        del self._running[tag]
        running.ended.set()
        self._say(reply)

    def _cancel(self, request: CancelJob) -> None:
        assert self._control is not None, "as above"
        running = self._running.get(request.tag)
        left = STOP_SECONDS_MAX
        try:
            self._control.cancel(request.tag, request.session_id)
            # The job may have been about to start, and then nothing was cancelled.
            while running is not None and not running.ended.wait(CANCEL_AGAIN_SECONDS):
                self._control.cancel(request.tag, request.session_id)
                running.stop()
                left -= CANCEL_AGAIN_SECONDS
                if running.code is not None and left < 0:
                    sys.stderr.write(f"{request.tag} does not stop\n")
                    self.end()
        except Exception as error:  # noqa: BLE001 - as above
            self._say(Cancelled(request=request.request, reason=said(error)))
        else:
            self._say(Cancelled(request=request.request))

    def _say(self, reply: Reply) -> None:
        with self._writing, contextlib.suppress(OSError):  # nobody listens: `serve` sees it too
            self._connection.sendall(msgspec.json.encode(reply) + b"\n")


def said(error: Exception) -> str:
    """What Spark and Python say about a failure, without the stacks of the JVM."""
    text = str(error) or type(error).__name__
    if details := _GRPC_DETAILS.search(text):
        return details[1][:REASON_LENGTH_MAX]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(("at ", "File ", "...", "^"))]
    python = [line for line in own if _PYTHON_ERROR.match(line)]
    return (python[-1] if python else (own or lines)[0])[:REASON_LENGTH_MAX]


def main(arguments: list[str]) -> None:
    connection = socket.socket(fileno=int(arguments[0]))
    connection.set_inheritable(False)  # the JVM must not keep it open
    DriverProgram(connection).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
