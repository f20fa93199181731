"""Ctrl-C: once cancels, twice leaves."""

import json
from pathlib import Path

import pytest

from tests.cli.shells import SLOW, Shell, ended, interrupt


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write("slow.yaml", SLOW)
    return shell


def test_one_interrupt_cancels_the_execution(shell: Shell) -> None:
    running = shell.begin("run", "slow.yaml", "--set", f"file={shell.folder}/begun", "--json")
    shell.until("begun")
    interrupt(running)
    code, out, err = ended(running)
    assert code == 1
    answer = json.loads(out)
    assert answer["status"] == "CANCELLED"
    assert "cancelling; Ctrl-C again leaves at once" in err
    assert "cancelled: step start: Ctrl-C" in err
    assert "Traceback" not in err
    assert shell.json("executions", "show", answer["execution_id"])["status"] == "CANCELLED"


def test_waiting_for_the_home_can_be_given_up(shell: Shell) -> None:
    running = shell.begin("run", "slow.yaml", "--set", f"file={shell.folder}/begun")
    shell.until("begun")
    waiting = shell.begin("run", "slow.yaml")
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith("waiting: ")
    interrupt(waiting)
    code, _, err = ended(waiting)
    assert code == 1
    assert err.splitlines()[-1] == "stopped"
    (shell.folder / "begun.go").touch()
    assert ended(running)[0] == 0
