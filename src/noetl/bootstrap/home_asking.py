"""Ask the process that holds the home and does not listen, and wait for what it says."""

from http import HTTPStatus
from pathlib import Path

import msgspec

from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.home import Home
from noetl.bootstrap.home_requests import (
    FOLDER,
    LOOK_SECONDS,
    HomeAnswer,
    HomeRequest,
    write_whole,
)
from noetl.bootstrap.settings import Settings
from noetl.client.problems import error_of
from noetl.kernel.errors import HomeInUse

ANSWER_SECONDS_MAX = 60.0
"""A holder that is alive and busy answers far sooner; one that was stopped does not."""


async def asked_of_holder(settings: Settings, request: HomeRequest) -> HomeAnswer | None:
    """None when there is nobody to ask: the home is free, or its holder listens.

    Raises what the holder raised, and HomeInUse when it does not answer.
    """
    home, clock = Home(Path(settings.home)), SystemClock()
    holder = home.holder()
    if holder is None or holder.address is not None:
        return None
    folder = Path(settings.home) / FOLDER
    name = new_uuid()
    asked, answered = folder / f"{name}.asked", folder / f"{name}.answered"
    write_whole(asked, msgspec.json.encode(request))
    until = clock.monotonic() + ANSWER_SECONDS_MAX
    try:
        while not answered.exists():
            if home.holder() != holder:
                return None
            if clock.monotonic() >= until:
                raise HomeInUse(settings.home, f"process {holder.pid}, which does not answer")
            await clock.sleep(LOOK_SECONDS)
        answer = msgspec.json.decode(answered.read_bytes(), type=HomeAnswer)
    finally:
        asked.unlink(missing_ok=True)
        answered.unlink(missing_ok=True)
    if answer.code is not None:
        problem = msgspec.json.encode({"code": answer.code, "detail": answer.detail})
        raise error_of(settings.home, HTTPStatus.CONFLICT, problem)
    return answer
