"""What commands say on stderr while they serve and work."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from noetl.servers.process import free_ports
from tests.cli.shells import HELLO, Shell, ended, interrupt

pytestmark = pytest.mark.servers


class Owner(Shell):
    """Ends what it began, whatever a test says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.begun: list[subprocess.Popen[str]] = []

    def begin(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        self.begun.append(super().begin(*arguments, environment=environment))
        return self.begun[-1]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    owner = Owner(tmp_path)
    yield owner
    for process in owner.begun:
        if process.poll() is None:
            process.kill()
            process.communicate()


def next_line(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stderr is not None
    line: dict[str, Any] = json.loads(process.stderr.readline())
    return line


def test_a_worker_says_at_once_that_nobody_answers_and_later_that_somebody_does(
    shell: Shell,
) -> None:
    [port] = free_ports(1)
    shell.environment["NOETL_INTERNAL_KEY"] = "for-workers-only"
    worker = shell.begin("worker", "--server", f"http://127.0.0.1:{port}", "--label", "zone=a")
    alone = next_line(worker)
    assert alone["level"] == "warning"
    assert f"http://127.0.0.1:{port} does not answer" in alone["message"]
    assert alone["message"].endswith("is the server running?; trying again")

    server = shell.begin("dev", "--port", str(port))
    assert next_line(worker)["message"] == "connected again"
    interrupt(worker)
    assert ended(worker)[:2] == (0, "")
    interrupt(server)
    code, out, err = ended(server)
    assert (code, out) == (0, "")
    told = [json.loads(line) for line in err.splitlines()]
    messages = [line["message"] for line in told]
    assert messages.count("worker registered") == 2
    assert messages.count("worker signed off") >= 1
    started = told[messages.index("server started")]
    assert started["address"] == f"http://127.0.0.1:{port}"
    assert "server stops" in messages


def test_a_run_is_quiet_and_debug_is_not(shell: Shell) -> None:
    file = shell.write("hello.yaml", HELLO)
    quiet = shell.noetl("run", file, "--quiet")
    assert quiet.stderr == ""
    shell.environment |= {"NOETL_LOG_LEVEL": "info", "NOETL_LOG_FORMAT": "json"}
    told = shell.noetl("run", file, "--quiet")
    assert told.stdout == quiet.stdout
    messages = [json.loads(line)["message"] for line in told.stderr.splitlines()]
    ended = ["execution completed", "worker signed off"]
    assert messages == ["worker registered", "execution accepted", *ended]


def test_a_caller_without_a_key_is_worth_a_warning(shell: Shell) -> None:
    [port] = free_ports(1)
    settings = {"NOETL_API_KEY": "0123456789"}
    server = shell.begin("dev", "--port", str(port), environment=settings)
    while next_line(server)["message"] != "server started":
        pass
    with pytest.raises(HTTPError) as refusal:
        urlopen(f"http://127.0.0.1:{port}/api/executions", timeout=60)
    refusal.value.close()
    line = next_line(server)
    interrupt(server)
    _, _, err = ended(server)
    assert (line["level"], line["message"]) == ("warning", "request refused: key_missing")
    assert line["path"] == "/api/executions"
    assert settings["NOETL_API_KEY"] not in err


def test_explain_asks_the_server_which_knows_its_workers(shell: Shell) -> None:
    server = shell.begin("dev", "--port", "0", "--json")
    assert server.stdout is not None
    server.stdout.readline()
    execution = shell.json("run", shell.write("hello.yaml", HELLO))["execution_id"]
    told = shell.json("explain", execution)
    interrupt(server)
    ended(server)
    assert told["status"] == "COMPLETED"
    assert told == shell.json("explain", execution)
