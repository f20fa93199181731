"""One driver from its start to its end, seen from our side: requests go out, replies come in."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from noetl.kernel.errors import (
    SparkDriverLost,
    SparkJobCancelled,
    SparkJobFailed,
    SparkStartFailed,
)
from noetl.spark import messages
from noetl.spark.driver_folder import DriverFolder
from noetl.spark.processes import end_session
from noetl.spark.session import SparkSettings, write_settings
from noetl.spark.slots import SlotJob, SlotSummary
from noetl.spark.work_job import WorkAnswer, WorkJob

CLOSE_SECONDS_MAX = 20.0

_REPLY = msgspec.json.Decoder(messages.Reply)

Summaries = tuple[SlotSummary, ...]


class DriverProcess:
    """Made inside a running loop. When it is gone, nothing that it started is left."""

    def __init__(self, settings: SparkSettings, environment: Mapping[str, str]) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._folder = DriverFolder()
        self._numbers = count(1)
        self._opened: asyncio.Future[messages.SessionOpened] = loop.create_future()
        self._jobs: dict[str, asyncio.Future[Any]] = {}  # by tag
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._is_gone = False
        with contextlib.ExitStack() as undo:
            undo.callback(self._folder.remove)
            write_settings(settings, self._folder.path)
            self._socket, theirs = socket.socketpair()
            undo.callback(self._socket.close)
            with theirs:
                self._child = self._start(theirs, environment)
            undo.pop_all()
        self._listening = loop.create_task(self._listen())

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_gone(self) -> bool:
        return self._is_gone

    async def open(self) -> messages.SessionOpened:
        """Raises SparkStartFailed; then the process has to be ended."""
        await self._send(
            messages.OpenSession(settings=self._settings, folder=str(self._folder.path))
        )
        return await asyncio.shield(self._opened)

    async def start_job(self, job: SlotJob) -> "asyncio.Future[Summaries]":
        ended = self._new_job(job.tag)
        await self._send(messages.StartJob(job=job))
        return ended

    async def start_work(self, job: WorkJob) -> "asyncio.Future[WorkAnswer]":
        ended = self._new_job(job.tag)
        await self._send(messages.StartWork(job=job))
        return ended

    def has_job(self, tag: str) -> bool:
        return tag in self._jobs

    async def cancel(self, tag: str, session_id: str, seconds_max: float) -> None:
        """Returns once the job is over. Raises SparkDriverLost when that took all there is."""
        number, answer = self._expected()
        request = messages.CancelJob(
            request=number, tag=tag, session_id=session_id, seconds_max=seconds_max
        )
        await self._send(request)
        cancelled: messages.Cancelled = await answer
        if cancelled.reason is not None:
            raise SparkJobFailed(tag, f"it could not be cancelled: {cancelled.reason}")

    async def status(self) -> messages.Status:
        number, answer = self._expected()
        await self._send(messages.AskStatus(request=number))
        status: messages.Status = await answer
        return status

    async def end(self, *, is_orderly: bool) -> None:
        if is_orderly and not self._is_gone:
            with contextlib.suppress(SparkDriverLost, TimeoutError):
                await self._send(messages.CloseSession())
                await asyncio.wait_for(asyncio.shield(self._listening), CLOSE_SECONDS_MAX)
        if not self._listening.done():
            await asyncio.to_thread(end_session, self.pid)  # the listener then sees the end
        await self._listening

    def _start(
        self, theirs: socket.socket, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        local = str(self._folder.path / "local")
        ours = {"SPARK_CONF_DIR": str(self._folder.path / "conf"), "TMPDIR": local}
        descriptor = theirs.fileno()
        # Spark warns of newer libraries at each start; its log should hold what matters.
        python = [sys.executable, "-W", "ignore::FutureWarning"]
        with self._folder.log.open("ab") as log:
            return subprocess.Popen(
                [*python, "-m", "noetl.spark.driver_program", str(descriptor)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, **ours},
                cwd=local,
                pass_fds=(descriptor,),
                start_new_session=True,
            )

    async def _listen(self) -> None:
        reader, self._writer = await asyncio.open_connection(
            sock=self._socket, limit=messages.LINE_BYTES_MAX
        )
        try:
            while line := await reader.readline():
                self._hear(_REPLY.decode(line))
        except (OSError, ValueError, msgspec.MsgspecError):
            pass  # what does not speak our language is as good as gone
        finally:
            await self._bury()

    def _hear(self, reply: messages.Reply) -> None:
        match reply:
            case messages.SessionOpened():
                self._opened.set_result(reply)
            case messages.SessionFailed(reason=reason):
                self._opened.set_exception(SparkStartFailed(reason, self._folder.log_tail()))
            case messages.JobDone() | messages.WorkDone() | messages.JobFailed():
                self._hear_of_job(reply)
            case messages.Cancelled() | messages.Status():
                answer = self._answers.pop(reply.request)
                if not answer.done():  # who asked may have gone
                    answer.set_result(reply)

    def _hear_of_job(
        self, reply: messages.JobDone | messages.WorkDone | messages.JobFailed
    ) -> None:
        tag = reply.tag_of_job
        ended = self._jobs.pop(tag)
        match reply:
            case messages.JobDone(summaries=summaries):
                ended.set_result(summaries)
            case messages.WorkDone(answer=answer):
                ended.set_result(answer)
            case messages.JobFailed(is_cancelled=True):
                ended.set_exception(SparkJobCancelled(tag))
            case messages.JobFailed():
                ended.set_exception(SparkJobFailed(tag, reply.reason, reply.exception))

    async def _bury(self) -> None:
        self._is_gone = True
        # Before it is reaped, while its id can be nobody else's.
        await asyncio.to_thread(end_session, self.pid)
        code = await asyncio.to_thread(self._child.wait)
        if self._writer is not None:
            self._writer.close()
        tail = self._folder.log_tail()
        await asyncio.to_thread(self._folder.remove)
        ending = f"ended with signal {-code}" if code < 0 else "ended"
        if not self._opened.done():
            self._opened.set_exception(SparkStartFailed(f"its process {ending}", tail))
        self._opened.exception()  # looked at: nobody may be waiting
        for waiting in (*self._jobs.values(), *self._answers.values()):
            if not waiting.done():
                waiting.set_exception(SparkDriverLost(ending))
        self._jobs.clear()
        self._answers.clear()

    def _new_job(self, tag: str) -> "asyncio.Future[Any]":
        self._folder.bound_log()
        ended = self._jobs[tag] = asyncio.get_running_loop().create_future()
        ended.add_done_callback(_looked_at)
        return ended

    def _expected(self) -> "tuple[int, asyncio.Future[Any]]":
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_looked_at)
        return number, answer

    async def _send(self, request: messages.Request) -> None:
        if self._is_gone:
            raise SparkDriverLost("ended")
        line = msgspec.json.encode(request) + b"\n"
        while self._writer is None:  # the listener takes a turn of the loop to begin
            await asyncio.wait({self._listening}, timeout=0)
        self._writer.write(line)
        with contextlib.suppress(OSError):  # the listener tells everybody who waits
            await self._writer.drain()


def _looked_at(waiting: "asyncio.Future[Any]") -> None:
    """A failure that nobody waits for is no failure of ours."""
    if not waiting.cancelled():
        waiting.exception()
