"""Names for the strings that travel everywhere, so a type checker can tell them apart.

Snowflakes are 64-bit numbers, but JSON readers in other languages lose digits past 2^53: they are
decimal strings everywhere except in the integer columns of a database.
"""

from typing import NewType

from noetl.kernel.scope import Scope

EventId = NewType("EventId", str)
ExecutionId = NewType("ExecutionId", str)
StageId = NewType("StageId", str)
FrameId = NewType("FrameId", str)

CommandId = NewType("CommandId", str)
"""The coordinates of a command as text: `execution/step/visit/iteration/try`."""

LoopId = NewType("LoopId", str)
"""One pass of a loop: `<step>@<visit>`."""

StepName = NewType("StepName", str)
WorkerId = NewType("WorkerId", str)


def loop_id(step: StepName, visit: int, attempt: int = 1) -> LoopId:
    """A person's retry of the visit is a loop of its own, at a higher attempt."""
    return LoopId(f"{step}@{visit}" if attempt == 1 else f"{step}@{visit}.{attempt}")


def object_key(kind: str, identifier: str) -> str:
    """`<kind>/<id>`; a slash in the kind is escaped, so that no two objects share a key."""
    return f"{kind.replace('%', '%25').replace('/', '%2F')}/{identifier}"


def stream_id(execution: ExecutionId) -> str:
    """One stream per execution; the prefix leaves room for streams of other things."""
    return f"execution/{execution}"


def idempotency_key(scope: Scope, coordinates: str, event_type: str, claim: int) -> str:
    """The key of a transition that its sender may repeat; the coordinates begin with the execution.

    The same report has the same key however often it is sent, and another claim has another.
    """
    return f"{scope.tenant_id}/{scope.organization_id}/{coordinates}/{event_type}/{claim}"
