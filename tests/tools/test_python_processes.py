"""Code runs in warm processes apart: what it breaks is its own, and nothing of it stays."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from noetl.kernel.scope import Scope
from noetl.ports.tool import ToolFailed
from noetl.tools import python_process
from tests.servers.processes import parent_of, survivors
from tests.tools.families import alive, family_from
from tests.tools.python_runs import PID, ToolMaker, making, run

ENDLESS = """
import os, subprocess
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "600"], start_new_session=True)
print("begun")
with open(place, "w") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    pass
"""
PARENT = f"""
import asyncio, sys
from pathlib import Path
from noetl.tools.python import PythonTool
from tests.tools.calls import call, services
from tests.tools.families import family_from

async def main():
    place = Path(sys.argv[1]) / "pid"
    tool = PythonTool(services(Path(sys.argv[1]), environment={{"PATH": "/usr/bin:/bin"}}))
    idle = (await tool.run(call("python", {{"code": {PID!r}}}))).value
    code = {ENDLESS!r}.replace(", start_new_session=True", "")
    given = {{"place": str(place)}}
    busy = [
        asyncio.ensure_future(tool.run(call("python", {{"code": text}}, input=given)))
        for text in (code, "import time; time.sleep(600)")
    ]
    family = await family_from(place, children=2)
    print(*(process.pid for process in family), flush=True)
    await asyncio.gather(*busy)

asyncio.run(main())
"""


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[ToolMaker]:
    async with making(tmp_path) as maker:
        yield maker


async def test_a_process_is_used_again(make: ToolMaker) -> None:
    tool = make()

    assert len({await run(tool, PID) for _ in range(5)}) == 1


def code_processes() -> list[psutil.Process]:
    """Children of ours that run code; servers of other tests are children, too."""
    children = psutil.Process().children()
    return [child for child in children if any("python_child" in word for word in child.cmdline())]


async def test_a_process_starts_when_it_is_first_needed(make: ToolMaker) -> None:
    make()

    assert code_processes() == []


async def test_a_process_is_replaced_after_enough_calls(
    make: ToolMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_process, "CALLS_MAX", 2)
    tool = make()

    first, second, third = [await run(tool, PID) for _ in range(3)]

    assert first == second != third
    assert survivors(alive(first)) == []


async def test_tenants_do_not_share_a_process(make: ToolMaker) -> None:
    tool = make()
    await run(tool, "import json; json.left_behind = 'secret'", scope=Scope("acme", "sales"))

    code = "result = hasattr(json, 'left_behind')"
    assert await run(tool, code, scope=Scope("acme", "sales")) is True
    assert await run(tool, code, scope=Scope("other", "sales")) is False
    assert len(code_processes()) == 1


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("print('last words', flush=True)\nimport os; os._exit(3)", "exit status 3"),
        ("print('last words')\nimport ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("print('last words')\nimport os; os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
async def test_t1_a_crash_is_a_failure_that_names_it_and_the_next_call_works(
    make: ToolMaker, code: str, ending: str
) -> None:
    tool = make()

    with pytest.raises(ToolFailed, match=f"ended with {ending} before") as raised:
        await run(tool, code)

    assert raised.value.failure.kind == "unknown"
    assert raised.value.failure.code == ending.removeprefix("exit status ")
    assert raised.value.py is not None
    assert raised.value.py["output"].startswith("last words\n")
    assert await run(tool, "result = 1") == 1


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.closerange(3, 99)",
        "import os, sys; os.write(int(sys.argv[1]), b'x' * 100)",
        "import os, sys; os.write(int(sys.argv[1]), (4).to_bytes(8, 'big') + b'nope')",
        "import os, sys; os.write(int(sys.argv[1]), (4).to_bytes(8, 'big') + b'too long')",
        "import os, sys; os.write(int(sys.argv[1]), b'nope'); os._exit(0)",
    ],
)
async def test_t1_code_that_breaks_the_connection_harms_only_itself(
    make: ToolMaker, code: str
) -> None:
    tool = make()

    with pytest.raises(ToolFailed, match="the process that ran the code ended") as raised:
        await run(tool, code)

    assert raised.value.failure.kind == "unknown"
    assert await run(tool, "result = 1") == 1


async def test_t1_a_crash_is_noticed_while_a_fork_of_the_code_lives(
    make: ToolMaker, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    while not os.path.exists(stop): time.sleep(0.01)\n"
        "os._exit(5)"
    )

    with pytest.raises(ToolFailed, match="exit status 5"):
        await run(make(), code, {"stop": str(stop)}, timeout_seconds=30)

    stop.touch()


async def test_a_process_that_died_while_idle_is_replaced(make: ToolMaker) -> None:
    tool = make()
    [process] = alive(await run(tool, PID))

    process.kill()
    assert await asyncio.to_thread(survivors, [process]) == []

    assert await run(tool, PID) != process.pid


async def test_t1_memory_has_a_limit(make: ToolMaker) -> None:
    tool = make(memory_bytes_max=256 * 1024**2)
    before = await run(tool, PID)

    with pytest.raises(ToolFailed, match="more than the 256 MB it may have") as raised:
        await run(tool, "x = bytearray(500_000_000)")

    assert raised.value.failure.kind == "unknown"
    assert await run(tool, PID) != before


async def test_t3_code_that_takes_too_long_is_stopped_with_all_it_started(
    make: ToolMaker, tmp_path: Path
) -> None:
    tool = make()
    place = tmp_path / "pid"
    running = asyncio.ensure_future(run(tool, ENDLESS, {"place": str(place)}, timeout_seconds=3))
    family = await family_from(place, children=2)

    with pytest.raises(ToolFailed, match="stopped after 3 seconds") as raised:
        await running

    assert raised.value.failure.kind == "timeout"
    assert raised.value.failure.retryable
    assert raised.value.py is not None
    assert raised.value.py["output"] == "begun\n"
    assert survivors(family) == []
    assert await run(tool, "result = 1") == 1


async def test_t3_a_cancelled_call_leaves_nothing_running(make: ToolMaker, tmp_path: Path) -> None:
    tool = make()
    place = tmp_path / "pid"
    running = asyncio.ensure_future(run(tool, ENDLESS, {"place": str(place)}))
    family = await family_from(place, children=2)

    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running

    assert running.cancelled()
    assert survivors(family) == []
    assert await run(tool, "result = 1") == 1


async def test_t3_closing_ends_busy_and_idle_processes(make: ToolMaker, tmp_path: Path) -> None:
    tool = make(processes_max=2)
    place = tmp_path / "pid"
    running = asyncio.ensure_future(run(tool, ENDLESS, {"place": str(place)}))
    family = await family_from(place, children=2) + alive(await run(tool, PID))

    await tool.close()

    with pytest.raises(ToolFailed, match="SIGKILL"):
        await running
    assert len(family) == 4
    assert survivors(family) == []


async def test_t3_processes_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    with parent_of(PARENT, tmp_path) as (parent, pids):
        family = [psutil.Process(pid) for pid in pids]
        parent.kill()
        parent.wait()

    assert len(family) >= 2
    assert survivors(family) == []


async def test_t3_what_code_leaves_running_ends_with_the_call(make: ToolMaker) -> None:
    tool = make()
    thread = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()"
    child = "import subprocess; result = subprocess.Popen(['sleep', '600']).pid"
    first = await run(tool, PID)

    await run(tool, thread)
    second = await run(tool, PID)
    left = alive(await run(tool, child))

    assert second != first
    assert survivors(left) == []
