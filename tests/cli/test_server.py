"""A server holds the home: commands become its clients, and remote workers work for it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shells import HELLO, LOOP, NEEDS_FILE, SLOW, Shell, ended, interrupt

pytestmark = pytest.mark.servers


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def server(shell: Shell) -> Iterator["subprocess.Popen[str]"]:
    process = shell.begin("dev", "--port", "0", "--json")
    assert process.stdout is not None
    shell.address = json.loads(process.stdout.readline())["address"]
    yield process
    process.terminate()
    code, _, err = ended(process)
    assert code == 0
    assert "Traceback" not in err


@pytest.mark.usefixtures("server")
def test_run_becomes_a_client_of_the_holder(shell: Shell) -> None:
    done = shell.noetl("run", shell.write("loop.yaml", LOOP), "--set", "rows=3")
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert "✓ each  3 rows" in done.stderr
    answer = shell.json("run", shell.write("hello.yaml", HELLO))
    assert (answer["status"], answer["result"]) == ("COMPLETED", {"greeting": "hello world!"})
    assert answer["events"] > 5
    assert shell.noetl("executions", "list").stdout.count("COMPLETED") == 2
    held = [check for check in shell.json("doctor")["checks"] if check["name"] == "home"]
    assert shell.address in held[0]["message"]


@pytest.mark.usefixtures("server")
def test_a_server_is_named_by_its_address(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    elsewhere = Shell(tmp_path / "elsewhere")
    elsewhere.write("hello.yaml", HELLO)
    answer = elsewhere.json("run", "hello.yaml", "--server", shell.address)
    assert answer["result"] == {"greeting": "hello world!"}
    assert not (tmp_path / "elsewhere" / ".noetl").exists()
    unknown = elsewhere.noetl("run", "guides/nowhere", "--server", shell.address)
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("entry_not_found: ")
    assert shell.json("executions", "show", answer["execution_id"])["status"] == "COMPLETED"


@pytest.mark.usefixtures("server")
def test_executions_of_the_server_are_steered_through_it(shell: Shell, tmp_path: Path) -> None:
    shell.write("needs.yaml", NEEDS_FILE)
    failed = shell.json("run", "needs.yaml", "--set", f"file={tmp_path}/ready")
    execution = failed["execution_id"]
    assert failed["error"]["step"] == "looks"
    (tmp_path / "ready").touch()
    retried = shell.noetl("executions", "retry", execution)
    assert retried.returncode == 0
    assert "✓ looks" in retried.stderr
    assert "start" not in retried.stderr
    detached = shell.json("executions", "retry", execution, "--from", "start", "--detach")
    assert detached == {"execution_id": execution, "status": "RUNNING"}
    assert shell.json("executions", "watch", execution)["status"] == "COMPLETED"
    over = shell.noetl("executions", "cancel", execution, "--yes")
    assert over.returncode == 1
    assert over.stderr.startswith("state_refuses: ")


@pytest.mark.usefixtures("server")
def test_an_interrupt_of_the_client_cancels_on_the_server(shell: Shell, tmp_path: Path) -> None:
    shell.write("slow.yaml", SLOW)
    client = shell.begin("run", "slow.yaml", "--set", f"file={tmp_path}/begun", "--json")
    shell.until("begun")
    interrupt(client)
    code, out, _ = ended(client)
    assert (code, json.loads(out)["status"]) == (1, "CANCELLED")


def test_what_a_stopped_server_left_goes_on_with_the_next(
    shell: Shell, server: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    shell.write("slow.yaml", SLOW)
    left = shell.noetl(
        "run", "slow.yaml", "--set", f"file={tmp_path}/begun", "--timeout", "2", "--json"
    )
    assert left.returncode == 3
    assert "the server goes on with it" in left.stderr
    execution = json.loads(left.stdout)["execution_id"]
    interrupt(server)
    assert server.wait(60) == 0
    (tmp_path / "begun.go").touch()
    assert shell.json("executions", "resume", execution)["result"] == "went"


@pytest.mark.usefixtures("server")
def test_a_remote_worker_works_for_the_server_and_leaves_politely(shell: Shell) -> None:
    settings = {"NOETL_LOG_FORMAT": "text"}
    order = ("worker", "--server", shell.address, "--slots", "2")
    worker = shell.begin(*order, environment=settings)
    assert worker.stderr is not None
    assert worker.stderr.readline() == f"working for {shell.address}; stop with Ctrl-C\n"
    assert f"connected (server {shell.address})" in worker.stderr.readline()
    assert shell.json("run", shell.write("loop.yaml", LOOP))["result"] == 6
    interrupt(worker)
    code, _, err = ended(worker)
    assert code == 0
    assert err == "stopped\n"


def test_a_second_server_of_one_home_is_refused(
    shell: Shell, server: "subprocess.Popen[str]"
) -> None:
    second = shell.noetl("dev", "--port", "0")
    assert second.returncode == 3
    assert f"process {server.pid} at {shell.address}" in second.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("dev", "--host", "0.0.0.0"), 2, "NOETL_API_KEY"),
        (("run", "guides/hello", "--server", "http://127.0.0.1:1"), 3, "does not answer"),
        (("run", "guides/hello", "--server", "nonsense"), 2, "is no address"),
    ],
)
def test_servers_that_cannot_be_are_explained(
    shell: Shell, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = shell.noetl(*arguments)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
