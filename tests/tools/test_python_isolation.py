"""One call's code sees nothing of ours and nothing of another call's, whatever either does."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from noetl.ports.tool import ToolFailed
from noetl.tools import python_process
from tests.tools.python_runs import ToolMaker, making, run


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[ToolMaker]:
    async with making(tmp_path) as maker:
        yield maker


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


async def test_t4_other_processes_cannot_be_looked_into(make: ToolMaker) -> None:
    if not _can_confine():
        pytest.skip("this kernel has no Landlock")
    code = "import os; result = open(f'/proc/{os.getppid()}/%s', 'rb').read(1) is not None"
    for secret in ("environ", "mem"):
        with pytest.raises(ToolFailed, match="Permission denied"):
            await run(make(), code % secret)


def _can_confine() -> bool:
    script = "from noetl.tools import python_confinement as it; import sys"
    asked = [sys.executable, "-c", f"{script}; sys.exit(not it.confine())"]
    return subprocess.run(asked, check=False).returncode == 0


async def test_t4_nothing_that_we_hold_open_reaches_the_code_or_what_it_starts(
    make: ToolMaker, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    code = (
        "import os\n"
        "os.system('ls -l /proc/$$/fd > below')\n"
        "links = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd')]\n"
        "own = [os.readlink(link) for link in links if os.path.lexists(link)]\n"
        "result = [own, open('below').read()]"
    )
    with secret.open("w"):
        own, below = await run(make(), code)

    assert str(secret) not in own
    assert any(link.startswith("socket:") for link in own)
    assert "socket:" not in below


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
