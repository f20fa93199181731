"""Executions are listed, shown, followed, stopped and run again."""

import json
from pathlib import Path

import pytest

from tests.cli.shells import HELLO, LOOP, NEEDS_FILE, ROW_WAITS, ROWS_NEED_FILE, SLOW, Shell, ended


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("executions"))


@pytest.fixture(scope="module")
def hello(shell: Shell) -> str:
    return str(shell.json("run", shell.write("hello.yaml", HELLO))["execution_id"])


@pytest.fixture(scope="module")
def loop(shell: Shell, hello: str) -> str:
    return str(shell.json("run", shell.write("loop.yaml", LOOP))["execution_id"])


def test_list_has_the_newest_first(shell: Shell, hello: str, loop: str) -> None:
    lines = shell.noetl("executions", "list").stdout.splitlines()
    ids = [line.split()[0] for line in lines[1:]]
    assert ids.index(loop) < ids.index(hello)
    only = shell.json("executions", "list", "--path", "guides/loop", "--status", "completed")
    assert (only["execution_id"], only["status"]) == (loop, "COMPLETED")
    assert len(shell.noetl("executions", "list", "--limit", "1").stdout.splitlines()) == 2


def test_show_says_how_far_it_is(shell: Shell, loop: str) -> None:
    shown = shell.noetl("executions", "show", loop).stdout
    assert "status     COMPLETED" in shown
    assert "6 of 6 rows, 0 failed (parallel)" in shown
    assert "start completed, each completed, finish completed" in shown
    assert shell.json("executions", "show", loop)["path"] == "guides/loop"


def test_events_come_page_by_page_and_by_type(shell: Shell, hello: str) -> None:
    first = shell.noetl("executions", "events", hello, "--limit", "2")
    assert [line.split()[2] for line in first.stdout.splitlines()] == [
        "playbook.initialized",
        "step.enter",
    ]
    assert "more: --after 2" in first.stderr
    exit_ = shell.json("executions", "events", hello, "--type", "step.exit")
    assert exit_["event"]["step"] == "start"
    assert exit_["envelope"]["event_type"] == "step.exit"


def test_all_events_are_had_in_one_go(shell: Shell, hello: str) -> None:
    page = shell.noetl("executions", "events", hello, "--limit", "3")
    assert page.stderr == "more: --after 3, or --all\n"
    whole = shell.noetl("executions", "events", hello, "--all", "--limit", "3", "--json")
    told = [json.loads(line)["envelope"] for line in whole.stdout.splitlines()]
    count = shell.json("executions", "show", hello)["event_count"]
    assert [envelope["stream_version"] for envelope in told] == list(range(1, count + 1))
    assert whole.stderr == ""


def test_explain_speaks_plainly(shell: Shell, hello: str) -> None:
    assert shell.noetl("explain", hello).stdout.startswith("It completed in step start")
    assert shell.json("explain", hello)["status"] == "COMPLETED"


def test_an_ended_execution_can_be_watched_again(shell: Shell, loop: str) -> None:
    done = shell.noetl("executions", "watch", loop)
    assert (done.returncode, done.stdout) == (0, "6\n")
    assert "✓ each  6 rows" in done.stderr


def test_a_failure_is_mended_and_retried(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("needs.yaml", NEEDS_FILE)
    failed = shell.json("run", "needs.yaml", "--set", f"file={tmp_path}/ready")
    execution = failed["execution_id"]
    shown = shell.noetl("executions", "show", execution)
    assert f"error      {failed['error']['kind']}: " in shown.stdout
    assert f"next: noetl executions retry {execution}" in shown.stderr
    (tmp_path / "ready").touch()
    retried = shell.noetl("executions", "retry", execution)
    assert retried.returncode == 0
    assert "✓ looks" in retried.stderr
    assert "start" not in retried.stderr
    again = shell.json("executions", "retry", execution, "--from", "start")
    assert again["status"] == "COMPLETED"
    assert shell.noetl("executions", "effects", execution).stdout.count("fired") == 3


def test_a_loop_that_is_retried_keeps_the_rows_that_ended_well(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("rows.yaml", ROWS_NEED_FILE)
    failed = shell.json("run", "rows.yaml", "--set", f"folder={tmp_path}")
    execution = failed["execution_id"]
    (tmp_path / "ready").touch()

    retried = shell.noetl("executions", "retry", execution)

    assert (retried.returncode, retried.stdout) == (0, "6\n")
    assert "✓ each  6 rows" in retried.stderr
    assert (tmp_path / "seen").read_text().split() == ["0", "1", "2", "3", "3", "4", "5"]
    effects = shell.noetl("executions", "effects", execution)
    assert "8 fired, 0 adopted by a later worker, 0 ran again, 0 in doubt" in effects.stderr


def test_watch_follows_what_another_process_runs(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("slow.yaml", SLOW)
    running = shell.begin("run", "slow.yaml", "--set", f"file={tmp_path}/begun", "--quiet")
    shell.until("begun")
    (execution,) = [
        json.loads(line)["event"]["execution_id"]
        for line in shell.noetl("log", "tail", "--json", "--limit", "1").stdout.splitlines()
    ]
    still = shell.noetl("executions", "watch", execution, "--timeout", "0")
    assert still.returncode == 3
    assert "it still runs" in still.stderr
    assert "runs on worker local" in shell.noetl("explain", execution).stdout
    held = shell.noetl("executions", "retry", execution, "--timeout", "0")
    assert held.returncode == 3
    assert f"home_in_use: {tmp_path}/.noetl is in use by process {running.pid}" in held.stderr
    watching = shell.begin("executions", "watch", execution, "--json")
    (tmp_path / "begun.go").touch()
    code, out, _ = ended(watching)
    assert (code, json.loads(out)["result"]) == (0, "went")
    assert ended(running)[0] == 0


def test_what_was_left_can_be_paused_resumed_and_cancelled(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("slow.yaml", SLOW)
    order = ("run", "slow.yaml", "--set", f"file={tmp_path}/begun", "--timeout", "2", "--json")
    execution = json.loads(shell.noetl(*order).stdout)["execution_id"]
    nobody = shell.noetl("executions", "watch", execution)
    assert nobody.returncode == 3
    assert "no process runs it" in nobody.stderr
    assert shell.json("executions", "pause", execution)["status"] == "PAUSED"
    assert shell.json("executions", "show", execution)["status"] == "PAUSED"
    claims = shell.noetl("executions", "events", execution, "--type", "command.claimed").stdout
    assert claims.count("\n") == 1, "pausing must start nothing"
    detached = shell.noetl("executions", "resume", execution, "--detach")
    assert detached.returncode == 2
    assert "needs a server" in detached.stderr
    assert shell.noetl("executions", "cancel", execution).returncode == 1
    answer = shell.json("executions", "cancel", execution, "--yes", "--reason", "enough")
    assert answer["cancelled"] == [execution]
    shown = shell.noetl("executions", "show", execution).stdout
    assert "reason     enough" in shown
    assert "None" not in shown
    over = shell.noetl("executions", "resume", execution)
    assert over.returncode == 1
    assert over.stderr.startswith("state_refuses: ")


@pytest.mark.parametrize(
    "command",
    [
        ("executions", "show", "1"),
        ("executions", "events", "1"),
        ("executions", "effects", "1"),
        ("executions", "watch", "1"),
        ("executions", "cancel", "1", "--yes"),
        ("executions", "retry", "1"),
        ("explain", "1"),
    ],
)
def test_an_unknown_execution_is_not_found(
    shell: Shell, hello: str, command: tuple[str, ...]
) -> None:
    done = shell.noetl(*command)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("execution_not_found: ")


def test_a_loop_that_is_resumed_counts_the_rows_that_were_done_before(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("rows.yaml", ROW_WAITS)
    running = shell.begin("run", "rows.yaml", "--set", f"folder={tmp_path}")
    shell.until("begun")
    running.kill()
    ended(running)
    (tmp_path / "ready").touch()
    execution = shell.json("executions", "list")["execution_id"]
    resumed = shell.noetl("executions", "resume", execution)
    assert resumed.returncode == 0, resumed.stderr
    assert "✓ each  6 rows" in resumed.stderr
