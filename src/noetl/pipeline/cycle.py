"""One run of one task for one row: its name, its tries, and what is recorded of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from noetl.domain.events.values import Failure, Result
from noetl.domain.playbook.task import Action
from noetl.kernel import canonical_json
from noetl.pipeline.plan import TaskPlan
from noetl.pipeline.timing import TaskTime
from noetl.templates.layered import Outcome
from noetl.templates.recorded import error_names

WRITE_BYTES_MAX: Final = 8 * 1024
"""A larger value for later tasks of the row is not recorded, but made again from the result."""

TRACEBACK_CHARS_MAX: Final = 1_000

_KEPT: Final = ("http", "pg", "py")
"""What rules may ask of a result besides its value, and is kept with it."""


@dataclass(slots=True)
class Cycle:
    """`key` is the idempotency key: the same whenever this cycle runs again."""

    plan: TaskPlan
    run: int
    key: str
    spent: TaskTime  # by all runs of the task
    note: str | None = None  # fired or repeated; None: it had no effect so far
    after: tuple[str, int] | None = None  # the task and run whose result came before
    is_refused: bool = False  # in doubt, and not to be repeated
    writes: dict[str, Any] = field(default_factory=dict)  # `ctx.total` -> value

    def kept_writes(self) -> dict[str, Any]:
        return {key: value for key, value in self.writes.items() if _is_kept(key, value)}


class Tried(msgspec.Struct, frozen=True):
    """How one try ended; `given` is the input that rules and `set` may look at."""

    outcome: Outcome
    failure: Failure | None
    attempt: int
    given: Mapping[str, Any]
    duration_ms: int = 0

    @property
    def has_result(self) -> bool:
        """An error may bring a result along: the body of a response, the output of a program."""
        return self.failure is None or self.outcome.result is not None


class Ending(msgspec.Struct, frozen=True):
    """What the row does next, and why it fails if it does."""

    action: Action
    failure: Failure | None = None


def outcome_of_result(result: Result, value: Any, meta: Mapping[str, Any]) -> Outcome:
    """A recorded result as rules see it."""
    kept = {part: result.context.get(part) for part in _KEPT}
    return Outcome(result=value, meta=meta, http=kept["http"], pg=kept["pg"])


def outcome_of_failure(failure: Failure, value: Any, meta: Mapping[str, Any]) -> Outcome:
    """A recorded failure as rules see it."""
    kept = {part: failure.detail.get(part) for part in _KEPT}
    return Outcome(
        result=value,
        status="error",
        error=error_names(failure),
        meta=meta,
        http=kept["http"],
        pg=kept["pg"],
        py=kept["py"],
    )


def with_envelope(result: Result, outcome: Outcome) -> Result:
    kept = _envelope(outcome)
    return msgspec.structs.replace(result, context={**result.context, **kept}) if kept else result


def without_envelope(result: Result) -> Result:
    bare = {name: part for name, part in result.context.items() if name not in _KEPT}
    return msgspec.structs.replace(result, context=bare)


def with_detail(failure: Failure, outcome: Outcome) -> Failure:
    kept = _envelope(outcome)
    return msgspec.structs.replace(failure, detail={**failure.detail, **kept}) if kept else failure


def _envelope(outcome: Outcome) -> dict[str, Any]:
    """Small and plain: of a response its status alone, of a program what it raised."""
    kept: dict[str, Any] = {}
    if outcome.http is not None and isinstance(outcome.http.get("status"), int):
        kept["http"] = {"status": outcome.http["status"]}
    if outcome.pg is not None:
        texts = {key: text for key, text in outcome.pg.items() if isinstance(text, str | int)}
        kept["pg"] = texts
    if outcome.py is not None and isinstance(outcome.py.get("exception"), str):
        kept["py"] = {"exception": outcome.py["exception"], **_end_of_traceback(outcome.py)}
    return kept


def _end_of_traceback(py: Mapping[str, Any]) -> dict[str, str]:
    """The last lines, which name the place: whoever mends the code needs no more."""
    text = py.get("traceback")
    if not isinstance(text, str):
        return {}
    lines = text[-TRACEBACK_CHARS_MAX:].splitlines()
    whole = lines if len(text) <= TRACEBACK_CHARS_MAX else lines[1:]
    return {"traceback": "\n".join(whole)} if whole else {}


def _is_kept(key: str, value: Any) -> bool:
    """What is written to `ctx` always is: it has a bound of its own."""
    is_private = key.startswith(("task.", "iter."))
    if not is_private or isinstance(value, bool | int | float | None):
        return True
    return len(canonical_json.encode(value)) <= WRITE_BYTES_MAX
