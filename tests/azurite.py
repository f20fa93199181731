"""Azurite, Microsoft's emulator of Azure blobs, for tests: `make test-azure` installs it by npm."""

import base64
import hashlib
import hmac
import os
import secrets
import shutil
import signal
import urllib.request
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from noetl.kernel.errors import ServerFailed
from noetl.servers.process import LOOPBACK, ChildProcess, Program, free_ports
from noetl.servers.server import Server

FOLDER = Path(__file__).resolve().parent.parent / ".venv" / "azurite"
_SCRIPT = FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"

ACCOUNT = "tests"
API_VERSION = "2023-11-03"
START_SECONDS_MAX = 60.0

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback needs no proxy


def why_not() -> str | None:
    """Why it cannot run here, if it cannot."""
    if shutil.which("node") is None:
        return "Azurite needs node"
    if not _SCRIPT.is_file():
        return "Azurite is not installed: make test-azure"
    return None


class AzuriteServer(Server):
    """Blobs in a folder, for one account whose key is made anew."""

    name = "azurite"
    port_taken_text = "EADDRINUSE"
    stop_seconds_max = 10.0

    def __init__(self, data_dir: Path) -> None:
        super().__init__()
        self._data_dir = data_dir
        self._key = secrets.token_bytes(32)
        self._port = 0

    @property
    def config(self) -> dict[str, str]:
        return {
            "endpoint": f"http://{LOOPBACK}:{self._port}/{ACCOUNT}",
            "account_name": ACCOUNT,
            "account_key": base64.b64encode(self._key).decode(),
        }

    def create_container(self, name: str) -> None:
        """The client library knows only blobs, so this request is signed here."""
        date = format_datetime(datetime.now(UTC), usegmt=True)
        headers = f"x-ms-date:{date}\nx-ms-version:{API_VERSION}\n"
        resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        text = "PUT" + "\n" * 12 + headers + resource
        digest = hmac.digest(self._key, text.encode(), hashlib.sha256)
        request = urllib.request.Request(
            f"{self.config['endpoint']}/{name}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": API_VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
            },
        )
        with _DIRECT.open(request, timeout=START_SECONDS_MAX):
            return

    def _prepare(self) -> None:
        self._data_dir.mkdir(parents=True, exist_ok=True)

    def _clean_up(self) -> None:
        """It leaves nothing outside its folder."""

    def _leave_ports(self) -> None:
        self._port = 0

    def _serve(self) -> ChildProcess:
        node = shutil.which("node")
        if node is None:
            raise ServerFailed("azurite", "needs node")
        if not self._port:
            (self._port,) = free_ports(1)
        process = ChildProcess(
            Program(
                name="azurite",
                command=[
                    node,
                    str(_SCRIPT),
                    *("--blobHost", LOOPBACK, "--blobPort", str(self._port)),
                    *("--location", str(self._data_dir)),
                    *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
                ],
                log_path=self._data_dir / "azurite.log",
                environment={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self._data_dir),
                    "AZURITE_ACCOUNTS": f"{ACCOUNT}:{self.config['account_key']}",
                },
                stop_signal=signal.SIGTERM,
                orphan_signal=signal.SIGKILL,
            )
        )
        process.wait_until_ready(self._is_ready, timeout_seconds=START_SECONDS_MAX)
        return process

    def _is_ready(self) -> bool:
        """A stranger that took the port would not know the key."""
        try:
            self.create_container(f"ready-{secrets.token_hex(4)}")
        except OSError:
            return False
        return True
