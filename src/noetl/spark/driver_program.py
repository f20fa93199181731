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
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread, get_ident
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec

from noetl.spark import messages
from noetl.spark.control import JobControl, JobLabel, control_of
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

_GRPC_DETAILS = re.compile(r'^\s*details = "(.+)"$', re.MULTILINE)
_PYTHON_ERROR = re.compile(r"(noetl\.[\w.]+|[\w.]*(Error|Exception|Refused|Invalid)): ")
Answer = TypeVar("Answer")

_REQUEST = msgspec.json.Decoder(messages.Request)


class Running:
    """A job under way, and whether somebody wants it no more."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.ended = Event()
        self.code_in: int | None = None  # the thread that is inside code of a playbook
        self._stopping = Lock()

    def called(self, code: Callable[[], Answer]) -> Answer | None:
        """None when it was stopped. Once this has returned, nothing is raised in its thread."""
        answer = None
        try:
            self.code_in = get_ident()
            answer = code()
        except JobStopped:
            pass
        finally:
            self.code_in = None  # Python looks for such errors at calls: none is before this line
            try:
                with self._stopping:  # a stop that saw the code run has raised its error by now,
                    raise_in(get_ident(), None)  # which was for the code
            except JobStopped:
                pass
        return answer

    def stop(self) -> None:
        """Code sees it with its next line: what Spark cancels is not all that it does."""
        with self._stopping:
            thread = self.code_in
            if thread is not None:
                raise_in(thread, JobStopped)


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """With None, what was to be raised and was not yet is forgotten."""
    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)


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
                if isinstance(request, messages.CloseSession):
                    break
                self._take(request)
            else:
                self.end()
        if self._session is not None:
            answer_of(self._session.stop, lambda _: None)  # all of it is about to be ended anyway
        self.end()

    def end(self) -> NoReturn:
        """Nothing is left: no JVM, no Python worker, no folder."""
        end_session(os.getpid(), spared=os.getpid())
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)

    def _take(self, request: messages.Request) -> None:
        match request:
            case messages.OpenSession():
                Thread(target=self._open, args=(request,), daemon=True).start()
            case messages.StartJob(job=job):
                running = self._running[job.tag] = Running()
                Thread(target=self._run, args=(job, running), daemon=True).start()
            case messages.StartWork(job=work):
                running = self._running[work.tag] = Running()
                Thread(target=self._work, args=(work, running), daemon=True).start()
            case messages.CancelJob():
                if request.tag in self._running:
                    self._running[request.tag].is_cancelled = True
                Thread(target=self._cancel, args=(request,), daemon=True).start()
            case messages.AskStatus():
                self._say(messages.Status(request=request.request, running=tuple(self._running)))

    def _open(self, request: messages.OpenSession) -> None:
        reply = answer_of(
            lambda: self._opened(request), lambda error: messages.SessionFailed(reason=said(error))
        )
        self._say(reply)
        if self._control is not None:
            self._control.watch(self.end)

    def _opened(self, request: messages.OpenSession) -> messages.Reply:
        self._folder = Path(request.folder)
        self._settings = settings = request.settings
        ours = [] if settings.is_local else [str(pack_code(self._folder))]
        self._py_files = [*ours, *settings.py_files]
        self._session = open_session(settings, self._py_files)
        control = control_of(self._session, settings)
        opened = messages.SessionOpened(
            session_id=control.session_id,
            spark_version=self._session.version,
            ui_url=control.ui_url,
        )
        self._control = control
        return opened

    def _run(self, job: SlotJob, running: Running) -> None:
        """A job's own thread: labels of classic Spark belong to threads."""
        reply = answer_of(
            lambda: self._slots(job), lambda error: self._failed(job.tag, running, error)
        )
        self._over(job.tag, running, reply)

    def _slots(self, job: SlotJob) -> messages.Reply:
        assert self._session is not None, "a session is opened before jobs are sent"
        assert self._control is not None, "as above"
        description = job.description or job.tag
        self._control.label(JobLabel(tag=job.tag, description=description, pool=job.pool))
        return messages.JobDone(tag_of_job=job.tag, summaries=run_slots(self._session, job))

    def _work(self, job: WorkJob, running: Running) -> None:
        reply = answer_of(
            lambda: running.called(lambda: self._worked(job)),
            lambda error: self._failed(job.tag, running, error),
        )
        stopped = messages.JobFailed(tag_of_job=job.tag, reason="it was stopped", is_cancelled=True)
        self._over(job.tag, running, stopped if reply is None else reply)

    def _worked(self, job: WorkJob) -> messages.Reply:
        assert self._session is not None, "a session is opened before jobs are sent"
        own = work_session(self._session, self._settings, job.session_id, self._py_files)
        description = job.order.description or job.tag
        label = JobLabel(tag=job.tag, description=description, pool=job.pool)
        control_of(own, self._settings).label(label)
        return messages.WorkDone(tag_of_job=job.tag, answer=run_work(own, job))

    def _failed(self, tag: str, running: Running, error: Exception) -> messages.JobFailed:
        assert self._control is not None, "as above"
        if not running.is_cancelled and self._control.is_lost(error):
            sys.stderr.write(f"the session is lost: {said(error)}\n")
            self.end()
        return messages.JobFailed(
            tag_of_job=tag,
            reason=said(error),
            exception=type(error).__name__,
            is_cancelled=running.is_cancelled,
        )

    def _over(self, tag: str, running: Running, reply: messages.Reply) -> None:
        del self._running[tag]
        running.ended.set()
        self._say(reply)

    def _cancel(self, request: messages.CancelJob) -> None:
        number = request.request
        reply = answer_of(
            lambda: self._ended(request),
            lambda error: messages.Cancelled(request=number, reason=said(error)),
        )
        self._say(reply)

    def _ended(self, request: messages.CancelJob) -> messages.Reply:
        assert self._control is not None, "as above"
        running = self._running.get(request.tag)
        left = request.seconds_max
        self._control.cancel(request.tag, request.session_id)
        # The job may have been about to start, and then nothing was cancelled.
        while running is not None and not running.ended.wait(CANCEL_AGAIN_SECONDS):
            self._control.cancel(request.tag, request.session_id)
            running.stop()
            left -= CANCEL_AGAIN_SECONDS
            if left < 0:
                sys.stderr.write(f"{request.tag} does not stop\n")
                self.end()
        return messages.Cancelled(request=request.request)

    def _say(self, reply: messages.Reply) -> None:
        with self._writing, contextlib.suppress(OSError):  # nobody listens: `serve` sees it too
            self._connection.sendall(msgspec.json.encode(reply) + b"\n")


def answer_of(ask: Callable[[], Answer], failed: Callable[[Exception], Answer]) -> Answer:
    """The edge to Spark and to code of playbooks: whatever they raise is an answer, too, because
    somebody waits for one."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - as above
        return failed(error)


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
