"""One process holds the embedded home; others learn who it is and where it listens."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from noetl.kernel.errors import HomeInUse, SettingInvalid

LOCK_FILE = "lock"
HOLDER_FILE = "holder.json"
PRIVATE = 0o700
"""Logs and results are for nobody else on the machine."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    address: str | None = None  # None: it does not listen (yet)
    api_key: str | None = None


class Home:
    """The lock goes with the process: a killed holder leaves no lock behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def held(self) -> Iterator["Home"]:
        """Raises HomeInUse when another process holds it."""
        try:
            self._folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            file = os.open(self._folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise home_refused(self._folder, error) from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HomeInUse(str(self._folder), _words(self.holder())) from None
            self.announce(Holder(pid=os.getpid()))
            yield self
            (self._folder / HOLDER_FILE).unlink(missing_ok=True)
        finally:
            os.close(file)

    def announce(self, holder: Holder) -> None:
        """Say where the holder listens. Whole or not at all: readers may come at any moment."""
        path = self._folder / HOLDER_FILE
        draft = path.with_suffix(f".{holder.pid}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(holder))
        draft.replace(path)

    def holder(self) -> Holder | None:
        """Who holds it now; None when nobody does."""
        if not self.is_held():
            return None
        try:
            return msgspec.json.decode((self._folder / HOLDER_FILE).read_bytes(), type=Holder)
        except (OSError, msgspec.DecodeError, json.JSONDecodeError):
            return None

    def is_held(self) -> bool:
        try:
            file = os.open(self._folder / LOCK_FILE, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False


def home_refused(folder: Path, error: OSError) -> SettingInvalid:
    why = error.strerror or str(error)
    return SettingInvalid(
        f"NOETL_HOME {folder} cannot be written to: {why}; set it to a folder of your own"
    )


def check_writable(file: Path) -> None:
    """Even looking at a log needs this: readers leave their locks beside it."""
    for path in (file, file.parent):
        if not os.access(path, os.W_OK):
            raise SettingInvalid(
                f"{path} is read-only for you, and readers of a log leave locks beside it; copy"
                " the home to a folder of your own and set NOETL_HOME to that"
            )


def _words(holder: Holder | None) -> str:
    if holder is None:
        return "another process"
    where = "" if holder.address is None else f" at {holder.address}"
    return f"process {holder.pid}{where}"
