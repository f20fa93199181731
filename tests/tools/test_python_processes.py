"""Code runs in warm processes apart: what it breaks is its own, and nothing of it stays."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetl.kernel.scope import Scope
from noetl.ports.tool import ToolFailed
from noetl.tools import python_process
from noetl.tools.python import PythonTool
from tests.servers.processes import parent_of, survivors
from tests.tools.calls import call, services
from tests.tools.families import alive, family_from

PID = "import os; result = os.getpid()"
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

ToolMaker = Callable[..., PythonTool]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[ToolMaker]:
    made: list[PythonTool] = []

    def maker(**given: Any) -> PythonTool:
        options: dict[str, Any] = {"environment": {"PATH": "/usr/bin:/bin"}, "processes_max": 1}
        made.append(PythonTool(services(tmp_path, **(options | given))))
        return made[-1]

    yield maker
    for tool in made:
        await tool.close()


async def run(tool: PythonTool, code: str, given: Any = None, **options: Any) -> Any:
    parameters = {"code": code, **options.pop("parameters", {})}
    return (await tool.run(call("python", parameters, input=given or {}, **options))).value


async def test_a_process_is_used_again(make: ToolMaker) -> None:
    tool = make()

    assert len({await run(tool, PID) for _ in range(5)}) == 1


async def test_a_process_starts_when_it_is_first_needed(make: ToolMaker) -> None:
    make()

    assert psutil.Process().children() == []


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
    assert len(psutil.Process().children()) == 1


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


async def test_t1_a_crash_is_noticed_while_a_fork_of_the_code_lives(make: ToolMaker) -> None:
    tool = make()
    code = "import os, time\nif os.fork() == 0: time.sleep(600)\nos._exit(5)"

    with pytest.raises(ToolFailed, match="exit status 5"):
        await run(tool, code)

    assert psutil.Process().children(recursive=True) == []


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


async def test_t4_the_environment_holds_what_was_given_and_nothing_of_ours(
    make: ToolMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOETL_SECRET_KEY", "of the server")
    tool = make(environment={"LANGUAGE": "en"})
    code = "import os; result = dict(os.environ)"

    added = await run(tool, code, parameters={"env": {"MINE": 1, "ON": True, "OFF": None}})
    after = await run(tool, code)

    assert {"LANGUAGE": "en", "MINE": "1", "ON": "true"}.items() <= added.items()
    assert "OFF" not in added
    assert "MINE" not in after
    assert not {"NOETL_SECRET_KEY", "HOME", "PATH"} & added.keys()


async def test_t4_nothing_that_we_hold_open_reaches_the_code(
    make: ToolMaker, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    code = (
        "import os\n"
        "links = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd')]\n"
        "result = [os.readlink(link) for link in links if os.path.lexists(link)]"
    )
    with secret.open("w"):
        assert str(secret) not in await run(make(), code)


async def test_t5_calls_do_not_see_what_earlier_ones_changed(
    make: ToolMaker, tmp_path: Path
) -> None:
    tool = make()
    disturb = (
        "import os, sys, signal\n"
        "os.environ['LEFT'] = 'x'; os.chdir('/'); sys.path.append('/left'); sys.argv.append('x')\n"
        "sys.stdout = None; left = 1; signal.alarm(600)\n"
        "result = os.getpid()"
    )
    look = (
        "import os, sys, signal\n"
        "print('still works')\n"
        "result = [os.getpid(), os.environ.get('LEFT'), os.getcwd(), '/left' in sys.path,\n"
        "          'x' in sys.argv, 'left' in globals(), signal.alarm(0)]"
    )

    pid = await run(tool, disturb)

    assert await run(tool, look) == [pid, None, str(tmp_path), False, False, False, 0]


async def test_t5_a_stream_that_code_closed_does_not_trouble_the_next(make: ToolMaker) -> None:
    tool = make()
    await run(tool, "import sys; sys.stdout.close(); result = 1")

    assert await run(tool, "print('hello'); result = 2") == 2


async def test_t5_output_of_an_earlier_call_is_not_told_of_a_later_one(make: ToolMaker) -> None:
    tool = make()
    await run(tool, "print('a secret of the first')")

    with pytest.raises(ToolFailed) as raised:
        await run(tool, "print('mine'); 1 / 0")

    assert raised.value.py is not None
    assert raised.value.py["output"] == "mine\n"


async def test_t5_calls_run_side_by_side(make: ToolMaker, tmp_path: Path) -> None:
    """Each waits for the other: one after the other they would never end."""
    tool = make(processes_max=2)
    code = (
        "from pathlib import Path\n"
        "import os, time\n"
        "Path(mine).touch()\n"
        "while not Path(other).exists(): time.sleep(0.01)\n"
        "result = os.getpid()"
    )
    a, b = str(tmp_path / "a"), str(tmp_path / "b")

    pids = await asyncio.gather(
        run(tool, code, {"mine": a, "other": b}, timeout_seconds=60),
        run(tool, code, {"mine": b, "other": a}, timeout_seconds=60),
    )

    assert len(set(pids)) == 2


async def test_t5_many_calls_share_few_processes(make: ToolMaker) -> None:
    tool = make(processes_max=2)
    code = "import os; result = [n, os.getpid()]"

    answers = await asyncio.gather(*(run(tool, code, {"n": n}) for n in range(50)))

    assert [n for n, _ in answers] == list(range(50))
    assert len({pid for _, pid in answers}) <= 2


async def test_a_fork_that_comes_back_does_not_answer(make: ToolMaker) -> None:
    tool = make()
    code = "import os\nchild = os.fork()\nif child: os.waitpid(child, 0)\nresult = bool(child)"

    assert [await run(tool, code) for _ in range(3)] == [True] * 3


async def test_noise_does_not_reach_the_answer(make: ToolMaker) -> None:
    code = (
        "import os, subprocess, sys\n"
        "print('x' * 300_000)\n"
        "os.write(1, b'{\"value\": 7}'); os.write(2, b'noise')\n"
        "subprocess.run(['echo', 'noise'])\n"
        "print('noise', file=sys.stderr)\n"
        "result = sys.stdin.read()"
    )

    assert await run(make(), code) == ""


async def test_output_is_kept_up_to_a_bound(make: ToolMaker) -> None:
    with pytest.raises(ToolFailed) as raised:
        await run(make(), "print('x' * 300_000); print('end'); 1 / 0")

    assert raised.value.py is not None
    output = raised.value.py["output"]
    assert output.startswith(f"[the first {300_005 - python_process.OUTPUT_BYTES_MAX} bytes")
    assert output.endswith("end\n")


async def test_large_data_goes_in_and_comes_out(make: ToolMaker) -> None:
    rows = [{"id": n, "name": f"patient {n}", "value": n / 3} for n in range(250_000)]

    assert await run(make(), "result = rows", {"rows": rows}) == rows


async def test_code_runs_in_the_folder_asked_for(make: ToolMaker, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    code = "import os; result = os.getcwd()"

    assert await run(make(), code, parameters={"cwd": str(place)}) == str(place)
