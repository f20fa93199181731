"""A server that is killed under a running writer comes back with all it acknowledged."""

import asyncio
import os
import signal
import time
from random import Random

import psutil
import pytest

from noetl.servers.postgres import PostgresServer
from tests.crash.checks import Acknowledged, check_log
from tests.crash.victims import Victims

KILLS = 6
APPENDS_HEARD_MAX = 30
APPENDS_AFTERWARDS = 16  # two of each appender: all of them found the server again
LINGER_SECONDS_MAX = 0.02
GONE_SECONDS_MAX = 60.0
POLL_SECONDS = 0.01

pytestmark = [pytest.mark.crash, pytest.mark.servers]


def test_the_writer_goes_on_and_nothing_is_lost(
    mortal_server: PostgresServer, victims: Victims, chance: Random
) -> None:
    acknowledged = Acknowledged()
    address = mortal_server.create_database("crash")
    events = 0
    for round_number in range(KILLS):
        victims.start("append", address=address, round=round_number)
        acknowledged.add(victims.hear(chance.randint(1, APPENDS_HEARD_MAX)))
        time.sleep(chance.uniform(0, LINGER_SECONDS_MAX))
        if round_number % 2:
            mortal_server.kill()
        else:
            kill_postmaster(mortal_server)
        mortal_server.start()
        assert mortal_server.database_dsn("crash") == address
        acknowledged.add(victims.hear(APPENDS_AFTERWARDS))
        acknowledged.add(victims.kill())
        before, events = events, asyncio.run(check_log(address, acknowledged))
        assert events > before
    print(f"{KILLS} kills: {acknowledged.events} events of {events} were acknowledged")


def kill_postmaster(server: PostgresServer) -> None:
    """Only the first process: the others notice and go by themselves."""
    others = psutil.Process(server.pid).children(recursive=True)
    os.kill(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + GONE_SECONDS_MAX
    while any(runs(process) for process in others):
        assert time.monotonic() < deadline, "the server's processes outlive it"
        time.sleep(POLL_SECONDS)
    server.stop()  # it is gone; what is left is its entry in the process table


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
