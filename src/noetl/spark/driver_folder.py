"""The folder that a driver writes in: gone with it, at the latest when the next driver starts."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

LOG_BYTES_MAX = 50_000_000
LOG_TAIL_BYTES = 4_000
# Spark makes sockets in it, and the path of a socket has at most 107 characters.
PARENT_LENGTH_MAX = 40

_PREFIX = "noetl-spark-"


class DriverFolder:
    """Locked while we live, so that others can tell it from what a killed process left."""

    def __init__(self) -> None:
        parent = tempfile.gettempdir()
        if len(parent) > PARENT_LENGTH_MAX:
            parent = "/tmp"
        sweep(Path(parent))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self.log = self.path / "driver.log"
        self.log.touch(mode=0o600)
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def log_tail(self) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
                return log.read().decode(errors="replace").strip()
        except FileNotFoundError:
            return ""

    def bound_log(self) -> None:
        """Tasks print into it, too; what is too much is dropped."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_BYTES_MAX:
                os.truncate(self.log, 0)


def sweep(parent: Path) -> None:
    """Remove folders of ours whose owners are gone."""
    for place in parent.glob(f"{_PREFIX}*"):
        try:
            if place.stat().st_uid != os.getuid():
                continue
            lock = os.open(place / "lock", os.O_RDWR)
        except OSError:
            continue  # not ours, or being made, or being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
        except BlockingIOError:
            pass  # somebody works in it
        finally:
            os.close(lock)
