"""What a task yields while it runs, on its way to whoever passes it on."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec

from noetl.kernel.canonical_json import check_plain
from noetl.kernel.errors import EventInvalid
from noetl.pipeline.cycle import Cycle
from noetl.pipeline.failures import failed
from noetl.pipeline.sensitive import SecretsSeen
from noetl.ports.tool import ToolCall


@dataclass(frozen=True, slots=True)
class MadeChunk:
    """Plain data, and nothing in it shows a secret."""

    task: str
    run: int
    index: int
    has_more: bool
    value: Any


Passing = Callable[[MadeChunk], Awaitable[None]]
"""Returns when the chunk is durable and the next one may be made. Raises ClaimLost."""


def passing_on(call: ToolCall, cycle: Cycle, passing: Passing, secrets: SecretsSeen) -> ToolCall:
    """The call with a way out for chunks; every try counts them from the first."""
    indexes, task = count(), cycle.plan.name

    async def pass_on(value: Any, has_more: bool) -> None:
        index = next(indexes)
        try:
            check_plain(value, f"chunk {index} of {task}")
        except EventInvalid as error:
            raise failed("schema", str(error)) from error
        await passing(MadeChunk(task, cycle.run, index, has_more, secrets.scrub(value)))

    return msgspec.structs.replace(call, pass_on=pass_on)
