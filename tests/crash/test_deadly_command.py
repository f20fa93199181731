"""A command that kills whoever runs it is given up, and takes nothing along for ever."""

import signal
from pathlib import Path

import pytest

from tests.cli.shells import HEAD, Shell

pytestmark = pytest.mark.crash

DEADLY = f"""{HEAD}
metadata: {{name: deadly, path: tests/deadly}}
workflow:
  - step: start
    tool: {{kind: shell, cmds: "kill -9 $PPID; sleep 60"}}
"""


def test_a_command_that_kills_its_process_is_given_up(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["NOETL_ATTEMPTS_MAX"] = "2"
    first = shell.noetl("run", shell.write("deadly.yaml", DEADLY))
    assert first.returncode == -signal.SIGKILL, first.stderr
    left = shell.json("executions", "list")
    execution = left["execution_id"]
    second = shell.noetl("executions", "resume", execution)
    assert second.returncode == -signal.SIGKILL, second.stderr
    third = shell.noetl("executions", "resume", execution)
    assert third.returncode == 1, third.stderr
    shown = shell.json("executions", "show", execution)
    assert shown["status"] == "FAILED"
    assert shown["error"] == "2 workers in turn took the command and went quiet"
