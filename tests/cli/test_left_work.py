"""Work that a run leaves is handed back whole; others leave it alone until somebody asks for it."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shells import HEAD, HELLO, Shell, ended, interrupt

ROWS = f"""{HEAD}metadata: {{name: rows, path: guides/rows}}
workload: {{folder: .}}
workflow:
  - step: each
    loop: {{in: [0, 1, 2, 3, 4, 5], iterator: row, spec: {{mode: sequential}}}}
    tool:
      kind: shell
      cmds:
        - echo {{{{ iter.row }}}} >> {{{{ workload.folder }}}}/seen
        - test {{{{ iter.row }}}} != 2 || touch {{{{ workload.folder }}}}/begun
        - |
          test {{{{ iter.row }}}} = 2 || exit 0
          until test -e {{{{ workload.folder }}}}/go; do sleep 0.05; done
"""
DETACHED = f"""{HEAD}metadata: {{name: parent, path: guides/parent}}
workload: {{folder: .}}
workflow:
  - step: starts
    tool:
      kind: playbook
      path: guides/rows
      wait: false
      input: {{folder: "{{{{ workload.folder }}}}"}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write("rows.yaml", ROWS)
    shell.write("hello.yaml", HELLO)
    return shell


def seen(shell: Shell) -> list[str]:
    return (shell.folder / "seen").read_text().split()


def counts(shell: Shell, execution: str) -> dict[str, int]:
    lines = shell.noetl("executions", "events", execution, "--all", "--json").stdout.splitlines()
    types = [json.loads(line)["envelope"]["event_type"] for line in lines]
    return {each: types.count(each) for each in types}


def left(shell: Shell, *more: str, stop: Any = None, go: bool = True) -> tuple[str, str]:
    """The execution that a run has left, and what it said."""
    order = ("run", "rows.yaml", "--set", f"folder={shell.folder}", "--json", *more)
    running = shell.begin(*order, environment={"NOETL_DRAIN_SECONDS": "30" if go else "0.2"})
    shell.until("begun")
    if stop is not None:
        stop(running)
    if go:
        (shell.folder / "go").touch()
    code, out, err = ended(running)
    answer = json.loads(out)
    assert (code, answer["status"]) == (3, "RUNNING"), err
    assert "Traceback" not in err
    return answer["execution_id"], err


def test_a_row_that_runs_when_sigterm_comes_ends_and_is_committed(shell: Shell) -> None:
    execution, err = left(shell, stop=lambda running: running.send_signal(signal.SIGTERM))
    assert seen(shell) == ["0", "1", "2"]
    assert err.splitlines()[-2:] == [
        f"left: execution {execution} has not ended; no process runs it now",
        f"next: noetl executions resume {execution}",
    ]
    told = counts(shell, execution)
    assert (told["frame.committed"], told.get("frame.abandoned")) == (1, None)

    assert shell.noetl("run", "hello.yaml").returncode == 0
    assert counts(shell, execution) == told  # it is none of the other one's business

    assert shell.noetl("executions", "resume", execution).returncode == 0
    assert seen(shell) == ["0", "1", "2", "3", "4", "5"]


def test_a_row_that_takes_too_long_is_handed_back_and_not_lost(shell: Shell) -> None:
    execution, _ = left(shell, stop=lambda running: running.send_signal(signal.SIGTERM), go=False)
    lines = shell.noetl(
        "executions", "events", execution, "--type", "frame.abandoned", "--json"
    ).stdout.splitlines()
    assert [json.loads(line)["event"]["handed_back"] for line in lines] == [True]
    (shell.folder / "go").touch()
    assert shell.noetl("executions", "resume", execution).returncode == 0
    assert seen(shell) == ["0", "1", "2", "2", "3", "4", "5"]  # row 2 was cut off and runs again


def test_sub_playbooks_that_nobody_waits_for_are_told_of(shell: Shell) -> None:
    shell.write("parent.yaml", DETACHED)
    order = ("run", "parent.yaml", "--with", "rows.yaml", "--set", f"folder={shell.folder}")
    done = shell.begin(*order, environment={"NOETL_DRAIN_SECONDS": "0.2"})
    code, _, err = ended(done)
    assert code == 0
    told = [line for line in err.splitlines() if line.startswith("next: ")]
    assert len(told) == 1
    (shell.folder / "go").touch()
    assert shell.noetl(*told[0].removeprefix("next: noetl ").split()).returncode == 0
    assert set(seen(shell)) == {"0", "1", "2", "3", "4", "5"}


def test_an_interrupted_run_is_cancelled_without_waiting_for_its_rows(shell: Shell) -> None:
    order = ("run", "rows.yaml", "--set", f"folder={shell.folder}", "--json")
    running = shell.begin(*order, environment={"NOETL_DRAIN_SECONDS": "600"})
    shell.until("begun")
    interrupt(running)
    code, out, _ = ended(running)
    assert (code, json.loads(out)["status"]) == (1, "CANCELLED")


def test_what_a_killed_run_left_goes_on_when_somebody_asks_for_it(shell: Shell) -> None:
    order = ("run", "rows.yaml", "--set", f"folder={shell.folder}")
    running = shell.begin(*order)
    shell.until("begun")
    running.kill()
    ended(running)
    (shell.folder / "go").touch()
    assert shell.noetl("run", "hello.yaml").returncode == 0
    assert seen(shell) == ["0", "1", "2"]
    execution = json.loads(
        shell.noetl("executions", "list", "--status", "running", "--json").stdout
    )["execution_id"]
    shown = shell.noetl("executions", "show", execution)
    assert shown.stderr == f"next: noetl executions resume {execution}\n"
    assert shell.noetl("executions", "resume", execution).returncode == 0
    assert seen(shell) == ["0", "1", "2", "2", "3", "4", "5"]
