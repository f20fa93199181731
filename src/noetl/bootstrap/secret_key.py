"""The key of the credentials: given by a setting, or kept in a file of the home."""

import base64
import binascii
import hashlib
import hmac
import os
import stat
from contextlib import suppress
from pathlib import Path

from noetl.adapters.encryption.vault import KEY_BYTES
from noetl.adapters.system.chance import random_bytes
from noetl.kernel.errors import SettingInvalid

SETTING = "NOETL_SECRET_KEY"
FILE_NAME = "secret.key"

_MAKE = "make one with: openssl rand -base64 32"
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TEXT_BYTES_MAX = 1_000  # whoever points at another file gets an answer, not all of its bytes


def load_key(home: Path, given: str | None) -> bytes:
    """The key that is given, or that of the home, which is made when there is none yet."""
    if given is not None:
        return _key(given.encode("ascii", "replace"), SETTING)
    path = home / FILE_NAME
    try:
        with suppress(FileNotFoundError):
            return _read(path)
        _make(path)
        return _read(path)  # which may be that of another process that was quicker
    except OSError as error:
        raise SettingInvalid(
            f"the key {path} can be neither read nor made: {error.strerror};"
            f" check the home's permissions, or set {SETTING}"
        ) from error


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & _FOR_OTHERS:
            raise SettingInvalid(
                f"the key {path} is open to other users (mode {mode:04o});"
                f" close it: chmod 600 {path}"
            )
        return _key(file.read(_TEXT_BYTES_MAX), str(path))


def _make(path: Path) -> None:
    """Under its name it is whole or not there, and it never replaces one that is."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{random_bytes(8).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(base64.b64encode(random_bytes(KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Without its entry on disk the key would go with the power, and the credentials with it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _key(text: bytes, where: str) -> bytes:
    """From base64 in either alphabet; no message repeats any of it."""
    standard = text.strip().replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        key = base64.b64decode(standard + b"=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        raise SettingInvalid(f"{where} is not base64; {_MAKE}") from None
    if len(key) != KEY_BYTES:
        raise SettingInvalid(f"{where} has {len(key)} bytes, a key has {KEY_BYTES}; {_MAKE}")
    return key


def internal_key(home: Path, secret: str | None) -> str:
    """What workers show when no key was set for them: whoever may read the home can make it."""
    return _derived(load_key(home, secret))


def known_internal_key(home: Path, secret: str | None) -> str | None:
    """The same for a worker, which makes no key: without one it must be told."""
    if secret is None and not (home / FILE_NAME).is_file():
        return None
    return internal_key(home, secret)


def _derived(key: bytes) -> str:
    return hmac.new(key, b"noetl internal api", hashlib.sha256).hexdigest()
