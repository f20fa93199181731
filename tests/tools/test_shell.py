"""Commands run in order, stop at the first that fails, and leave nothing running."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools.shell import OUTPUT_BYTES_MAX, ShellTool
from tests.servers.processes import parent_of, survivors
from tests.tools.calls import call, services
from tests.tools.families import alive, family_from

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
PARENT = """
import asyncio, sys
from pathlib import Path
from noetl.tools.shell import ShellTool
from tests.tools.calls import call, services

async def main():
    pids = Path(sys.argv[1]) / "pids"
    script = f"sleep 600 & echo $$ $! > {pids}.part; mv {pids}.part {pids}; wait"
    tool = ShellTool(services(Path(sys.argv[1])))
    running = asyncio.ensure_future(tool.run(call("shell", {"cmds": script})))
    while not pids.exists():
        await asyncio.sleep(0.01)
    print(pids.read_text(), flush=True)
    await running

asyncio.run(main())
"""


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[ShellTool]:
    tool = ShellTool(services(tmp_path, environment=PATH))
    yield tool
    await tool.close()


async def test_commands_run_in_order_and_each_has_a_row(tool: ShellTool) -> None:
    value = (await tool.run(call("shell", {"cmds": ["echo one", "echo two >&2"]}))).value

    assert value["returncode"] == 0
    assert value["stdout"] == "one\n"
    assert value["stderr"] == "two\n"
    assert value["commands"] == [
        {"command": "echo one", "returncode": 0, "stdout": "one\n", "stderr": ""},
        {"command": "echo two >&2", "returncode": 0, "stdout": "", "stderr": "two\n"},
    ]
    assert isinstance(value["duration_ms"], int)


async def test_a_text_runs_as_one_script(tool: ShellTool) -> None:
    value = (await tool.run(call("shell", {"cmds": "word=hello\necho $word"}))).value

    assert value["stdout"] == "hello\n"
    assert len(value["commands"]) == 1


async def test_t1_the_first_command_that_fails_stops_the_rest(
    tool: ShellTool, tmp_path: Path
) -> None:
    commands = ["echo begun", "echo 'no disk left' >&2; exit 7", f"touch {tmp_path}/third"]

    with pytest.raises(ToolFailed, match=r"command 2 of 3 .* 7: no disk left$") as raised:
        await tool.run(call("shell", {"cmds": commands}))

    assert raised.value.failure.kind == "unknown"
    assert raised.value.failure.code == "7"
    assert raised.value.value["returncode"] == 7
    assert raised.value.value["stdout"] == "begun\n"
    assert not (tmp_path / "third").exists()


async def test_t1_a_command_that_is_killed_says_by_what(tool: ShellTool) -> None:
    with pytest.raises(ToolFailed, match=r"command 1 of 1 ended with SIGSEGV$"):
        await tool.run(call("shell", {"cmds": "kill -SEGV $$"}))


@pytest.mark.parametrize("commands", [None, "", [], [" "], [1], {"a": "b"}])
async def test_t1_what_is_not_a_command_is_refused(tool: ShellTool, commands: object) -> None:
    with pytest.raises(ToolFailed, match="cmds must be") as raised:
        await tool.run(call("shell", {"cmds": commands}))

    assert raised.value.failure.kind == "client_error"


async def test_t1_a_folder_that_is_not_there_is_named(tool: ShellTool) -> None:
    with pytest.raises(ToolFailed, match="/no/such/folder") as raised:
        await tool.run(call("shell", {"cmds": "true", "cwd": "/no/such/folder"}))

    assert raised.value.failure.kind == "not_found"


async def test_t1_a_shell_that_is_not_there_is_named(tool: ShellTool) -> None:
    with pytest.raises(ToolFailed, match="nushell"):
        await tool.run(call("shell", {"cmds": "true", "shell": "nushell"}))


async def test_t1_an_environment_that_is_no_map_is_refused(tool: ShellTool) -> None:
    with pytest.raises(ToolFailed, match="env must be a map"):
        await tool.run(call("shell", {"cmds": "true", "env": "A=1"}))


async def test_commands_run_where_relative_paths_begin(tmp_path: Path) -> None:
    tool = ShellTool(services(tmp_path, environment=PATH))

    value = (await tool.run(call("shell", {"cmds": "pwd"}))).value

    assert value["stdout"].strip() == str(tmp_path)


async def test_t1_a_zero_byte_is_refused(tool: ShellTool) -> None:
    with pytest.raises(ToolFailed, match="cannot be passed on"):
        await tool.run(call("shell", {"cmds": "true \0"}))


async def test_the_folder_and_the_shell_are_the_ones_asked_for(
    tool: ShellTool, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()

    value = (
        await tool.run(call("shell", {"cmds": "pwd; echo $0", "cwd": str(place), "shell": "sh"}))
    ).value

    assert value["stdout"].splitlines()[0] == str(place)
    assert value["stdout"].splitlines()[1].endswith("sh")


async def test_t4_the_environment_holds_what_was_given_and_nothing_of_ours(
    tool: ShellTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_SECRET_KEY", "of the server")

    value = (await tool.run(call("shell", {"cmds": "env", "env": {"MINE": 1, "ON": True}}))).value

    lines = value["stdout"].splitlines()
    assert "MINE=1" in lines
    assert "ON=true" in lines
    assert f"PATH={PATH['PATH']}" in lines
    assert "NOETL_SECRET_KEY" not in value["stdout"]


async def test_t3_a_call_that_takes_too_long_is_stopped_with_all_it_started(
    tool: ShellTool, tmp_path: Path
) -> None:
    script = f"sleep 600 & setsid sleep 600 & echo started; echo $$ > {tmp_path}/pid; wait"
    running = asyncio.ensure_future(
        tool.run(call("shell", {"cmds": ["true", script]}, timeout_seconds=3))
    )
    family = await family_from(tmp_path / "pid", children=2)

    with pytest.raises(ToolFailed, match=r"command 2 of 2 was stopped.* 3 seconds") as raised:
        await running

    assert raised.value.failure.kind == "timeout"
    assert raised.value.failure.retryable
    assert raised.value.value["stdout"] == "started\n"
    assert survivors(family) == []


async def test_t3_a_cancelled_call_leaves_nothing_running(tool: ShellTool, tmp_path: Path) -> None:
    script = f"set -m; sleep 600 & echo $$ > {tmp_path}/pid; wait"
    running = asyncio.ensure_future(tool.run(call("shell", {"cmds": script, "shell": "bash"})))
    family = await family_from(tmp_path / "pid", children=1)

    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    assert running.cancelled()
    assert survivors(family) == []


async def test_t3_what_a_command_leaves_in_the_background_ends_with_it(
    tool: ShellTool, tmp_path: Path
) -> None:
    value = (await tool.run(call("shell", {"cmds": "sleep 600 & echo $!"}))).value

    assert survivors(alive(int(value["stdout"]))) == []


async def test_t3_commands_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    with parent_of(PARENT, tmp_path) as (parent, pids):
        family = [psutil.Process(pid) for pid in pids]
        parent.kill()
        parent.wait()

    assert len(family) == 2
    assert survivors(family) == []


async def test_long_output_is_cut_and_says_so(tool: ShellTool) -> None:
    count = 3 * OUTPUT_BYTES_MAX
    script = f"head -c {count} /dev/zero | tr '\\0' x; echo; echo end"

    row = (await tool.run(call("shell", {"cmds": script}))).value["commands"][0]

    first, *_, last = row["stdout"].splitlines()
    assert first == f"[the first {count + 5 - OUTPUT_BYTES_MAX} bytes were cut]"
    assert last == "end"
    assert len(row["stdout"]) < OUTPUT_BYTES_MAX + 100


async def test_t5_calls_run_side_by_side(tool: ShellTool, tmp_path: Path) -> None:
    """Each waits for the other: one after the other they would never end."""
    pair = [
        f"touch {tmp_path}/{mine}; while [ ! -e {tmp_path}/{other} ]; do sleep 0.01; done"
        for mine, other in (("a", "b"), ("b", "a"))
    ]

    answers = await asyncio.gather(
        *(tool.run(call("shell", {"cmds": script}, timeout_seconds=60)) for script in pair)
    )

    assert [answer.value["returncode"] for answer in answers] == [0, 0]


async def test_commands_are_taken_to_have_effects(tool: ShellTool) -> None:
    assert tool.has_effect({"cmds": "true"})
    assert not tool.waits
