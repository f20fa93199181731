"""An execution that `noetl run` runs in another process can be paused, resumed and cancelled."""

import json
from pathlib import Path

import pytest

from tests.cli.shells import ROW_WAITS, Shell, ended


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write("waits.yaml", ROW_WAITS)
    return shell


def only_execution(shell: Shell) -> str:
    line = shell.noetl("executions", "list", "--json").stdout
    return str(json.loads(line)["execution_id"])


def test_it_pauses_and_goes_on_where_it_runs(shell: Shell) -> None:
    running = shell.begin("run", "waits.yaml", "--set", f"folder={shell.folder}", "--json")
    shell.until("begun")
    execution = only_execution(shell)
    assert shell.json("executions", "pause", execution)["status"] == "PAUSED"
    (shell.folder / "ready").touch()
    assert shell.json("executions", "show", execution)["status"] == "PAUSED"
    unknown = shell.noetl("executions", "pause", "7")
    assert (unknown.returncode, unknown.stderr.split(":")[0]) == (1, "execution_not_found")

    resumed = shell.json("executions", "resume", execution)
    assert (resumed["execution_id"], resumed["status"]) == (execution, "COMPLETED")

    code, out, err = ended(running)
    assert (code, json.loads(out)["status"]) == (0, "COMPLETED")
    assert f"  paused; go on with: noetl executions resume {execution}\n  resumed\n" in err
    assert list((shell.folder / ".noetl/requests").iterdir()) == []


def test_it_is_cancelled_where_it_runs(shell: Shell) -> None:
    running = shell.begin("run", "waits.yaml", "--set", f"folder={shell.folder}", "--json")
    shell.until("begun")
    execution = only_execution(shell)
    done = shell.noetl("executions", "cancel", execution, "--reason", "enough", "--yes")
    assert (done.returncode, done.stderr) == (0, f"cancelled: execution {execution}\n")
    code, out, _ = ended(running)
    answer = json.loads(out)
    assert (code, answer["status"], answer["error"]["message"]) == (1, "CANCELLED", "enough")
