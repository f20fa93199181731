"""Processes to be killed, one at a time, and what they said before they died."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 180.0

Word = dict[str, Any]


class Victims:
    def __init__(self, stderr_path: Path) -> None:
        self._stderr_path = stderr_path
        self._unread = b""
        self._is_one_there = False

    def __enter__(self) -> Self:
        with self._stderr_path.open("wb") as stderr:
            self._zygote = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.zygote"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.close()
        self._zygote.wait(PATIENCE_SECONDS)
        self._zygote.stdout.close()

    def start(self, task: str, **order: Any) -> None:
        self._is_one_there = True
        self._tell(f"start {json.dumps({'task': task, **order})}")

    def hear(self, count: int) -> list[Word]:
        """The next `count` things that the process says."""
        return [self._next_word() for _ in range(count)]

    def kill(self) -> list[Word]:
        """End the process now; returns what it had said and nobody had heard."""
        words = self._last_words()
        status = words.pop()["ended"]
        assert not any("failed" in word for word in words), words
        assert os.WIFSIGNALED(status), f"it ended before it was killed\n{self._complaint()}"
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return words

    def leave_nobody(self) -> None:
        """A test that failed may not have come to its kill."""
        if self._is_one_there:
            self._last_words()

    def _last_words(self) -> list[Word]:
        self._is_one_there = False
        self._tell("kill")
        words = [self._heard()]
        while "ended" not in words[-1]:
            words.append(self._heard())
        return words

    def offspring(self) -> set[psutil.Process]:
        """The processes that the process to be killed has started."""
        found: set[psutil.Process] = set()
        for victim in psutil.Process(self._zygote.pid).children():
            found |= {*victim.children(recursive=True)}
        return found

    def _tell(self, line: str) -> None:
        assert self._zygote.stdin is not None
        self._zygote.stdin.write(line.encode() + b"\n")

    def _next_word(self) -> Word:
        word = self._heard()
        assert "failed" not in word, word["failed"]
        return word

    def _heard(self) -> Word:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\n" not in self._unread:
            self._unread += self._read(deadline)
        line, _, self._unread = self._unread.partition(b"\n")
        word: Word = json.loads(line)
        return word

    def _read(self, deadline: float) -> bytes:
        assert self._zygote.stdout is not None
        ready, _, _ = select.select([self._zygote.stdout], [], [], deadline - time.monotonic())
        assert ready, f"it has been silent for {PATIENCE_SECONDS} seconds\n{self._complaint()}"
        data = os.read(self._zygote.stdout.fileno(), 1 << 16)
        assert data, f"the zygote ended\n{self._complaint()}"
        return data

    def _complaint(self) -> str:
        return self._stderr_path.read_text(errors="replace")[-4_000:]
