"""Run another playbook, and unless told otherwise wait for its end.

The child is asked for under the cycle's name: a cycle that runs again finds the same child.
"""

from collections.abc import Mapping
from typing import Any

from noetl.domain.events.values import Failure
from noetl.domain.playbook.wording import shown
from noetl.domain.work import ChildOutcome, ChildRequest
from noetl.kernel.errors import (
    EntryNotFound,
    LogUnavailable,
    PlaybookInvalid,
    RequestInvalid,
    StoreUnavailable,
)
from noetl.kernel.ids import ExecutionId, StepName
from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import RETRYABLE_BY_KIND, failed
from noetl.tools.stored_values import result_value

WAIT_SECONDS = 30.0
AWAY_SECONDS = 1.0
START_TRIES_MAX = 60
"""Between two questions to a desk that does not answer. Whoever lost the lease is cancelled."""

_NEWEST = ("", "latest", "newest")


class PlaybookTool:
    waits = True

    def __init__(self, services: ToolServices) -> None:
        self._desk = services.desk
        self._clock = services.clock
        self._results = services.results

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        del parameters
        return False  # asked for again by the same cycle, it is the same child

    async def run(self, call: ToolCall) -> ToolResult:
        request = _request(call)
        try:
            child = await self._started(request)
            if call.parameters.get("wait") is False:
                return ToolResult(value={"status": "started", "execution_id": child})
            outcome = await self._end_of(child, call)
        except (RequestInvalid, PlaybookInvalid, LogUnavailable, StoreUnavailable) as error:
            raise _refused(request, error) from error
        if outcome.status != "COMPLETED":
            raise _child_failed(_words(call), outcome)
        return ToolResult(value=await self._value(call, outcome))

    async def close(self) -> None:
        """Children go on without us."""

    async def _started(self, request: ChildRequest) -> ExecutionId:
        """Asking again is safe: one cycle has one child. A server that starts anew is back soon."""
        for _ in range(START_TRIES_MAX - 1):
            try:
                return await self._desk.start_child(request)
            except (LogUnavailable, StoreUnavailable):
                await self._clock.sleep(AWAY_SECONDS)
        return await self._desk.start_child(request)

    async def _end_of(self, child: ExecutionId, call: ToolCall) -> ChildOutcome:
        limit = call.timeout_seconds
        deadline = None if limit is None else self._clock.monotonic() + limit
        while True:
            left = None if deadline is None else deadline - self._clock.monotonic()
            if left is not None and left <= 0:
                raise failed(
                    "timeout",
                    f"{_words(call)} has not ended after {limit:g} seconds; execution {child} goes"
                    " on: give the task more `timeout`, or cancel it",
                    detail={"execution_id": child},
                )
            wait = WAIT_SECONDS if left is None else min(left, WAIT_SECONDS)
            try:
                outcome = await self._desk.await_child(child, wait_seconds=wait)
            except (LogUnavailable, StoreUnavailable):  # it comes back, and the child with it
                await self._clock.sleep(min(wait, AWAY_SECONDS))
                continue
            if outcome is not None:
                return outcome

    async def _value(self, call: ToolCall, outcome: ChildOutcome) -> dict[str, Any]:
        facts = {"status": outcome.status, "execution_id": outcome.execution_id}
        step = call.parameters.get("return_step")
        named = outcome.step_results.get(StepName(str(step))) if step else outcome.result
        # A step that the child did not reach has no result: then its end is all there is to tell.
        if named is None or call.parameters.get("return_result") is False:
            return facts
        value = await result_value(named, self._results, call.scope)
        return {**facts, **value} if isinstance(value, dict) else {**facts, "result": value}


def _request(call: ToolCall) -> ChildRequest:
    path, catalog_id = call.parameters.get("path"), call.parameters.get("catalog_id")
    if not path and not catalog_id:
        raise failed("client_error", "a playbook task needs `path`, or `catalog_id`")
    given = call.parameters.get("input") or {}
    if not isinstance(given, dict):
        raise failed(
            "client_error",
            f"the input of {_words(call)} must be a mapping, not {type(given).__name__}",
        )
    return ChildRequest(
        execution_id=call.execution_id,
        command_id=call.command_id,
        stage_id=call.stage_id,
        cycle=_cycle(call),
        path=str(path) if path else None,
        catalog_id=str(catalog_id) if catalog_id else None,
        version=_version(call.parameters.get("version")),
        payload={**call.input, **given},
    )


def _cycle(call: ToolCall) -> str:
    """Each try has a child of its own: asking for one that failed again would find it failed."""
    of_visit, _, tried = str(call.command_id or "").rpartition("/")
    tried = tried if of_visit else str(call.visit_attempt)
    marks = [f"try {tried}"] if tried != "1" else []
    marks += [f"attempt {call.attempt}"] if call.attempt > 1 else []
    return "/".join([call.idempotency_key, *marks])


def _version(given: Any) -> int | None:
    if given is None or str(given).strip().lower() in _NEWEST:
        return None
    try:
        return int(given)
    except (TypeError, ValueError) as error:
        raise failed(
            "client_error",
            f"the version {shown(given)!r} is no number; leave it out for the newest",
        ) from error


def _words(call: ToolCall) -> str:
    named = call.parameters.get("path") or call.parameters.get("catalog_id")
    return f"the playbook {shown(named)!r}"


def _refused(request: ChildRequest, error: Exception) -> ToolFailed:
    kind = "client_error"
    if isinstance(error, EntryNotFound):
        kind = "not_found"
    elif isinstance(error, PlaybookInvalid):
        kind = "schema"
    elif isinstance(error, LogUnavailable | StoreUnavailable):
        kind = "connection"
    named = request.path or request.catalog_id
    return failed(kind, f"the playbook {shown(named)!r} could not be started: {error}")


def _child_failed(words: str, outcome: ChildOutcome) -> ToolFailed:
    was_cancelled = outcome.status == "CANCELLED"
    error = outcome.error or Failure(
        kind="cancelled" if was_cancelled else "unknown",
        message="it was cancelled" if was_cancelled else "it left no error",
    )
    return failed(
        error.kind if error.kind in RETRYABLE_BY_KIND else "unknown",
        f"{words}, execution {outcome.execution_id}, ended as {outcome.status}: {error.message}",
        code=error.code,
        # Asked for again it is the same child, which has ended.
        retryable=False,
        detail={"execution_id": outcome.execution_id, "status": outcome.status},
    )
