"""What every server here can do: start on ports that are free, stop, be killed, start again."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from noetl.kernel.errors import ServerFailed
from noetl.servers.process import ChildProcess

STARTS_MAX = 5


class Server(ABC):
    """As a context manager it runs inside the block. Not for use by two threads at once."""

    name: ClassVar[str]
    port_taken_text: ClassVar[str]  # what its log says when somebody else has its port
    stop_seconds_max: ClassVar[float]

    def __init__(self) -> None:
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        if self._process is not None and self._process.is_running:
            raise ServerFailed(self.name, f"runs already, as process {self._process.pid}")
        self.stop()  # what is left of a run that ended by itself
        self._prepare()
        for _ in range(STARTS_MAX):
            try:
                self._process = self._serve()
            except ServerFailed as failure:
                self._clean_up()
                if self.port_taken_text not in failure.log_tail:
                    raise
                self._leave_ports()
            else:
                return
        raise ServerFailed(self.name, f"found its ports taken {STARTS_MAX} times")

    def stop(self) -> None:
        """An orderly end, forced when it takes too long. Does nothing when it does not run."""
        if self._process is not None:
            self._process.stop(timeout_seconds=self.stop_seconds_max)
            self._process = None
            self._clean_up()

    def kill(self) -> None:
        """End all of its processes at once, as a crash would."""
        self._running().kill()
        self._process = None
        self._clean_up()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _running(self) -> ChildProcess:
        if self._process is None:
            raise ServerFailed(self.name, "does not run; start it first")
        return self._process

    @abstractmethod
    def _prepare(self) -> None:
        """Make what the data folder needs before the server can run."""

    @abstractmethod
    def _serve(self) -> ChildProcess:
        """Start once and return when ready; choose ports where none were chosen before."""

    @abstractmethod
    def _leave_ports(self) -> None:
        """Forget the ports, for the next `_serve` to choose others."""

    @abstractmethod
    def _clean_up(self) -> None:
        """Remove what a run leaves outside the data folder."""
