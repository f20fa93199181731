"""`noetl executions stages` and `frames`: what was handed out, for people and for programs."""

import json

import pytest

from tests.cli.shells import LOOP, Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("stages"))


@pytest.fixture(scope="module")
def loop(shell: Shell) -> str:
    text = LOOP.replace("mode: parallel", "mode: parallel, frame: {max_rows: 2}")
    return str(shell.json("run", shell.write("loop.yaml", text))["execution_id"])


def test_stages_are_told_with_their_frames_and_rows(shell: Shell, loop: str) -> None:
    told = shell.noetl("executions", "stages", loop)
    heads, row = told.stdout.splitlines()

    assert heads.split() == [
        "STAGE", "STEP", "KIND", "STATUS", "FRAMES", "LOST", "FAILED", "ROWS", "STARTED", "SECONDS",
        "PARENT",
    ]  # fmt: skip
    assert row.split()[1:4] == ["each", "loop", "CLOSED"]
    assert row.split()[7] == "6"
    assert row.split()[-1] == "-"
    assert f"next: noetl executions frames {loop} --stage " in told.stderr


def test_frames_are_told_with_their_holders_and_parents(shell: Shell, loop: str) -> None:
    (stage,) = lines(shell, "stages", loop)
    found = lines(shell, "frames", loop, "--stage", str(stage["stage_id"]))

    assert sum(int(str(row["row_count"])) for row in found) == 6
    assert len(found) == stage["frame_count"] == 3
    assert [row.get("parent_frame_id") for row in found] == [
        None,
        *(row["frame_id"] for row in found[:-1]),
    ]
    times = [
        *(stage["started_at"], found[0]["created_at"], found[0]["started_at"]),
        *(found[0]["completed_at"], stage["ended_at"]),
    ]
    assert times == sorted(map(str, times))
    head, first, *_ = shell.noetl("executions", "frames", loop).stdout.splitlines()
    assert head.split()[-2:] == ["OWNER", "PARENT"]
    assert first.split()[-2:] == ["local", "-"]


def test_frames_come_in_pages_and_by_their_status(shell: Shell, loop: str) -> None:
    assert "more: --after " in shell.noetl("executions", "frames", loop, "--limit", "1").stderr
    assert lines(shell, "frames", loop, "--status", "running") == []
    assert lines(shell, "frames", loop, "--status", "completed")


def test_an_execution_without_loops_has_no_stages(shell: Shell) -> None:
    text = LOOP[: LOOP.index("workflow:")] + "workflow: [{step: start, tool: {kind: noop}}]\n"
    execution = str(shell.json("run", shell.write("plain.yaml", text))["execution_id"])

    assert "only loops have them" in shell.noetl("executions", "stages", execution).stderr


def lines(shell: Shell, *command: str) -> list[dict[str, object]]:
    told = shell.noetl("executions", *command, "--json").stdout.splitlines()
    return [json.loads(line) for line in told]
