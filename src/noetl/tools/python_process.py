"""A process that runs code of playbooks, seen from our side: ask, and it answers or is gone."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from noetl.kernel.scope import Scope
from noetl.ports.tool import PassOn, ToolFailed
from noetl.ports.tool_services import ToolServices
from noetl.tools.child_process import ChildProcess, Program, exit_text
from noetl.tools.failures import failed
from noetl.tools.python_plain import RESULT_BYTES_MAX

CALLS_MAX = 1_000  # what libraries leave behind in a process stays bounded
OUTPUT_BYTES_MAX = 65_536
ANSWER_BYTES_MAX = RESULT_BYTES_MAX + 1_000_000
HEADER_BYTES = 8
FIRST_READ_BYTES = 65_536
GO_ON = b"{}"

_SCRIPT = Path(__file__).with_name("python_child.py")


class CodeFailure(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    message: str
    exception: str | None = None  # its class
    traceback: str | None = None


class AnswerTable(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the process wrote where it was told to."""

    row_count: int
    byte_length: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    value: Any = None
    table: AnswerTable | None = None
    failure: CodeFailure | None = None
    is_worn: bool = False  # the process should not run more code
    chunk: Any = msgspec.UNSET  # set: the code goes on when it hears from us
    has_more: bool = False


_ANSWER = msgspec.json.Decoder(Answer)


class PythonProcess:
    """One call at a time. It starts while its first request is on the way."""

    def __init__(self, services: ToolServices, scope: Scope) -> None:
        self.scope = scope  # whose code it runs: tenants do not share what code leaves in memory
        self._calls = 0
        self._is_fit = True
        self._folder = services.folder.absolute()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(self._socket.close)
            control, memory = str(theirs.fileno()), str(services.python_memory_bytes_max)
            command = [sys.executable, "-I", "-X", "utf8", str(_SCRIPT), control, memory]
            self._child = ChildProcess(
                Program(
                    command=command,
                    environment=services.environment,
                    folder=str(services.base),
                    passed=(theirs.fileno(),),
                    output_bytes_max=OUTPUT_BYTES_MAX,
                )
            )
            undo.pop_all()
        self._child.exited.add_done_callback(self._stop_listening)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_fit(self) -> bool:
        """Not so in the middle of a call: who leaves it there leaves a process to be ended."""
        return self._is_fit and self._calls < CALLS_MAX and self._is_listening()

    async def ask(self, request: bytes, pass_on: PassOn | None = None) -> Answer:
        """Raises ToolFailed when the process ends instead of answering."""
        self.take_output()
        self._calls += 1
        self._is_fit = False
        answer = await self._answer(request)
        while answer.chunk is not msgspec.UNSET and pass_on is not None:
            await pass_on(answer.chunk, answer.has_more)
            answer = await self._answer(GO_ON)
        self._is_fit = not answer.is_worn
        return answer

    async def _answer(self, request: bytes) -> Answer:
        loop = asyncio.get_running_loop()
        try:
            header = len(request).to_bytes(HEADER_BYTES, "big")
            await loop.sock_sendall(self._socket, header + request[:FIRST_READ_BYTES])
            if len(request) > FIRST_READ_BYTES:  # a large one is not copied for its header
                await loop.sock_sendall(self._socket, memoryview(request)[FIRST_READ_BYTES:])
            return _ANSWER.decode(await self._receive(loop))
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            raise await self._crash() from error

    @contextlib.contextmanager
    def table_place(self) -> Iterator[Path]:
        """Where the code of one call may leave a table; nothing stays there after the call."""
        place = self._folder / f"python-{self.pid}.feather"
        try:
            yield place
        finally:
            place.unlink(missing_ok=True)

    def take_output(self) -> str:
        """The last part of what the code printed; the next call starts afresh."""
        return self._child.stdout.take() + self._child.stderr.take()

    async def end(self) -> None:
        try:
            await self._child.end()
        finally:
            self._socket.close()

    def _is_listening(self) -> bool:
        """It has neither gone nor spoken unasked. Its end is seen here before we are told of it."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    async def _receive(self, loop: asyncio.AbstractEventLoop) -> bytearray:
        data = bytearray(await loop.sock_recv(self._socket, FIRST_READ_BYTES))
        while data and len(data) < HEADER_BYTES:
            data += await _more(loop, self._socket)
        size = int.from_bytes(data[:HEADER_BYTES], "big")
        received = len(data) - HEADER_BYTES
        if not max(1, received) <= size <= ANSWER_BYTES_MAX:
            raise EOFError  # nothing came, or what came is not our child speaking
        answer = bytearray(size)
        answer[:received] = memoryview(data)[HEADER_BYTES:]
        with memoryview(answer) as whole:
            while received < size:
                count = await loop.sock_recv_into(self._socket, whole[received:])
                if not count:
                    raise EOFError
                received += count
        return answer

    async def _crash(self) -> ToolFailed:
        code = await self._child.end()
        ending = exit_text(code)
        advice = "; it may have needed more memory than the machine has" * (ending == "SIGKILL")
        return failed(
            "unknown",
            f"the process that ran the code ended with {ending} before the code did{advice}",
            code=ending.removeprefix("exit status "),
            py={"exception": None, "traceback": None, "output": self.take_output()},
        )

    def _stop_listening(self, _: "asyncio.Future[int]") -> None:
        # A fork of the code may hold the other end open; what was sent can still be read.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


async def _more(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> bytes:
    chunk = await loop.sock_recv(connection, FIRST_READ_BYTES)
    if not chunk:
        raise EOFError
    return chunk
