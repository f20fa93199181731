"""A child process ends when it should, with all it started, and says why it failed."""

import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from noetl.kernel.errors import ServerFailed
from noetl.servers.process import LOOPBACK, ChildProcess, Program, free_ports
from tests.servers.processes import family_of, parent_of, survivors

WAIT = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAIT}"
WITH_ESCAPED_CHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
{WAIT}
"""
PARENT = f"""
import signal, sys
from pathlib import Path
from noetl.servers.process import ChildProcess, Program
child = ChildProcess(Program(
    name="sleeper", command=[sys.executable, "-c", {WAIT!r}], log_path=Path(sys.argv[1]),
    environment={{}}, stop_signal=signal.SIGTERM, orphan_signal=signal.SIGKILL,
))
child.wait_until_ready(lambda: "up" in child.log_tail(), timeout_seconds=20)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


def start(code: str, log_path: Path) -> ChildProcess:
    return ChildProcess(
        Program(
            name="child",
            command=[sys.executable, "-c", code],
            log_path=log_path,
            environment={},
            stop_signal=signal.SIGTERM,
            orphan_signal=signal.SIGKILL,
        )
    )


def start_and_wait(code: str, log_path: Path) -> ChildProcess:
    child = start(code, log_path)
    child.wait_until_ready(lambda: "up" in child.log_tail(), timeout_seconds=20)
    return child


def test_a_child_that_ends_early_is_reported_with_its_last_lines(log_path: Path) -> None:
    log_path.write_text("a line of an earlier run\n")
    child = start("print('no disk left'); raise SystemExit(3)", log_path)

    with pytest.raises(ServerFailed, match="ended before it was ready") as raised:
        child.wait_until_ready(lambda: False, timeout_seconds=20)

    assert raised.value.log_tail == "no disk left"


def test_a_child_that_is_never_ready_is_ended(log_path: Path) -> None:
    child = start(WAIT, log_path)
    family = family_of(child.pid)

    with pytest.raises(ServerFailed, match=r"not ready after 0\.1 seconds"):
        child.wait_until_ready(lambda: False, timeout_seconds=0.1)

    assert survivors(family) == []


def test_a_readiness_check_that_raises_leaves_no_child(log_path: Path) -> None:
    child = start(WAIT, log_path)
    family = family_of(child.pid)

    with pytest.raises(ZeroDivisionError):
        child.wait_until_ready(lambda: bool(1 / 0), timeout_seconds=20)

    assert survivors(family) == []


def test_a_program_that_cannot_be_started_says_so(log_path: Path) -> None:
    child = ChildProcess(
        Program(
            name="child",
            command=["/nowhere/at-all"],
            log_path=log_path,
            environment={},
            stop_signal=signal.SIGTERM,
            orphan_signal=signal.SIGKILL,
        )
    )

    with pytest.raises(ServerFailed, match="cannot run /nowhere/at-all: No such file"):
        child.wait_until_done(timeout_seconds=20)


def test_stop_forces_a_child_that_does_not_listen(log_path: Path) -> None:
    child = start_and_wait(STUBBORN, log_path)
    family = family_of(child.pid)

    child.stop(timeout_seconds=0.1)

    assert not child.is_running
    assert survivors(family) == []


def test_kill_reaches_children_that_left_the_process_group(log_path: Path) -> None:
    child = start_and_wait(WITH_ESCAPED_CHILD, log_path)
    family = family_of(child.pid)
    assert len({os.getpgid(member.pid) for member in family}) == 2

    child.kill()

    assert survivors(family) == []


def test_a_child_outlives_the_thread_that_asked_for_it(log_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        child = pool.submit(start_and_wait, WAIT, log_path).result()

    with pytest.raises(ServerFailed, match="was not done"):  # no signal came at the thread's end
        child.wait_until_done(timeout_seconds=0.2)


@pytest.mark.crash
def test_a_child_of_a_killed_parent_dies(log_path: Path) -> None:
    with parent_of(PARENT, log_path) as (parent, [child_pid]):
        family = family_of(child_pid)
        parent.kill()

    assert survivors(family) == []


def test_ports_differ_and_nobody_listens_on_them() -> None:
    ports = free_ports(20, companion_offset=10_000)

    assert len(set(ports)) == 20
    for port in [*ports, *(port + 10_000 for port in ports)]:
        with socket.create_server((LOOPBACK, port)):
            pass
