"""How an execution ended: the answer on stdout, and what to do next on stderr."""

from typing import Any

from noetl.cli.output import count, print_json, print_value, seconds_shown, shown, tell
from noetl.cli.runs import GoesOn, Runs
from noetl.kernel.ids import ExecutionId
from noetl.runtime.executions import Outcome

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TRY_AGAIN = 3
TRACEBACK_LINES_MAX = 12


def report(outcome: Outcome, *, as_json: bool, is_quiet: bool) -> int:
    """Returns the exit code."""
    if as_json:
        print_json(_plain(outcome))
    elif outcome.result is not None:
        print_value(outcome.result)
    if outcome.status == "COMPLETED":
        if not is_quiet:
            tell(_completed(outcome))
        return EXIT_DONE
    _explain(outcome)
    return EXIT_FAILED


def left(execution: ExecutionId, status: str, goes_on: GoesOn, *, as_json: bool) -> int:
    """It has not ended; we leave it. The object has the fields of one that has ended."""
    if as_json:
        print_json(_plain(Outcome(execution_id=execution, status=status)))
    tell(f"left: execution {execution} has not ended; {goes_on.words}")
    tell(f"next: noetl {goes_on.command} {execution}")
    return EXIT_TRY_AGAIN


async def leave_the_rest(runs: Runs, execution: ExecutionId) -> None:
    """Sub-playbooks that nobody waited for: what has not ended by now is left, and told."""
    if runs.also_open():
        await runs.leave(execution)
    for each in runs.also_open():
        left(each, "RUNNING", runs.goes_on, as_json=False)


def _plain(outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    return {
        "execution_id": outcome.execution_id,
        "status": outcome.status,
        "result": outcome.result,
        "error": None if error is None else {"step": outcome.step, **_error(outcome)},
        "events": outcome.events or None,
        "duration_seconds": outcome.duration_seconds,
    }


def _error(outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    assert error is not None
    return {
        "kind": error.kind,
        "message": error.message,
        "code": error.code,
        "detail": error.detail,
    }


def _completed(outcome: Outcome) -> str:
    spent = (
        "" if outcome.duration_seconds is None else f", {seconds_shown(outcome.duration_seconds)}"
    )
    return f"completed: execution {outcome.execution_id}, {count(outcome.events, 'event')}{spent}"


def _traceback(outcome: Outcome) -> list[str]:
    """Where in the author's code it happened: the end of it, which names the line."""
    py = {} if outcome.error is None else outcome.error.detail.get("py") or {}
    lines = str(py.get("traceback") or "").splitlines()
    return lines if len(lines) <= TRACEBACK_LINES_MAX else ["…", *lines[-TRACEBACK_LINES_MAX:]]


def _explain(outcome: Outcome) -> None:
    status = outcome.status.lower()
    where = "" if outcome.step is None else f"step {shown(outcome.step)}: "
    error = outcome.error
    kind = "" if error is None or error.kind == status else f"{shown(error.kind)}: "
    why = "" if error is None else f"{where}{kind}{shown(error.message)}"
    tell(f"{status}: {why}" if why else f"{status}: execution {outcome.execution_id}")
    for line in _traceback(outcome):
        tell(f"  {shown(line)}")
    tell(f"next: noetl executions show {outcome.execution_id}")
    tell(f"      noetl executions retry {outcome.execution_id}")
