"""`noetl executions trace`: where a step's result came from, for people and for programs."""

import pytest

from tests.cli.shells import LOOP, Shell

PIPELINE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pipeline, path: guides/pipeline}
workflow:
  - step: start
    tool:
      - {name: read, kind: shell, command: "echo 1"}
      - {name: fails, kind: shell, command: "exit 3"}
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("trace"))


@pytest.fixture(scope="module")
def loop(shell: Shell) -> str:
    return str(shell.json("run", shell.write("loop.yaml", LOOP))["execution_id"])


def test_the_way_back_is_told_step_by_step(shell: Shell, loop: str) -> None:
    lines = shell.noetl("executions", "trace", loop, "finish").stdout.splitlines()

    assert [line for line in lines if not line.startswith("  ")] == [
        "finish visit 1: completed, entered from each visit 1",
        "each visit 1: completed, entered from start visit 1",
        "start visit 1: completed",
    ]
    assert any(line.startswith("  loop    6 of 6 rows, 0 failed, in ") for line in lines)
    assert sum("noetl://" in line for line in lines if line.startswith("  result")) == 3


def test_programs_get_all_of_it(shell: Shell, loop: str) -> None:
    told = shell.json("executions", "trace", loop, "finish")

    assert [visit["step"] for visit in told["visits"]] == ["finish", "each", "start"]
    assert told["visits"][1]["loop"]["rows"] == 6


def test_a_long_way_comes_in_pages(shell: Shell, loop: str) -> None:
    first = shell.noetl("executions", "trace", loop, "finish", "--limit", "2")

    assert "3 visits in all; more: --after 2" in first.stderr
    rest = shell.json("executions", "trace", loop, "finish", "--after", "2")
    assert [visit["step"] for visit in rest["visits"]] == ["start"]


def test_tasks_are_told_with_their_effects_and_failures(shell: Shell) -> None:
    shell.write("pipeline.yaml", PIPELINE)
    execution = shell.json("run", "pipeline.yaml")["execution_id"]

    told = shell.noetl("executions", "trace", execution, "start").stdout

    assert "start visit 1: failed" in told
    assert "task    read: noetl://" in told
    assert "task    fails: failed with " in told


def test_a_step_that_was_not_entered_is_refused(shell: Shell, loop: str) -> None:
    done = shell.noetl("executions", "trace", loop, "nowhere")

    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "request_invalid: no step 'nowhere' was entered; steps so far: start, each" in done.stderr
    )
