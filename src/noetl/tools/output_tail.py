"""The last part of what a child process writes, however much it writes."""

import asyncio
import contextlib
import os

READ_BYTES = 65_536
DRAIN_READS_MAX = 64


class OutputTail:
    """A pipe that is always read, so that the writer never waits, and a bound on what is kept."""

    def __init__(self, bytes_max: int) -> None:
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._bytes_cut = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to read; from now on only the child can write."""
        self._close_write_end()
        self._loop = loop
        loop.add_reader(self._read_end, self._read)

    def drain(self) -> None:
        """Read what is written already."""
        for _ in range(DRAIN_READS_MAX):
            if not self._read():
                return

    def take(self) -> str:
        """The text so far, with a first line that says what was cut; the next one starts afresh."""
        self.drain()
        self._cut(self._bytes_max)
        text = self._kept.decode(errors="replace")
        if self._bytes_cut:
            text = f"[the first {self._bytes_cut} bytes were cut]\n{text}"
        self._kept.clear()
        self._bytes_cut = 0
        return text

    def close(self) -> None:
        self._close_write_end()
        if self._read_end < 0:
            return
        if self._loop is not None:
            self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        self._read_end = -1

    def _read(self) -> bool:
        """Whether there may be more."""
        if self._read_end < 0:
            return False
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(self._read_end, READ_BYTES)
            if not chunk:
                self.close()
                return False
            self._kept += chunk
            if len(self._kept) > 2 * self._bytes_max:  # not at each chunk: cutting copies
                self._cut(self._bytes_max)
            return True
        return False

    def _cut(self, bytes_max: int) -> None:
        too_many = len(self._kept) - bytes_max
        if too_many > 0:
            del self._kept[:too_many]
            self._bytes_cut += too_many

    def _close_write_end(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1
