"""Where the work of a worker stands among the spans of its execution."""

from noetl.domain.work import CommandWork, Work
from noetl.kernel.ids import WorkerId
from noetl.ports.telemetry import Attribute, Attributes, SpanKey, SpanKind, SpanPlace, step_key


def work_place(work: Work) -> SpanPlace:
    """Below its step: as the work says, or by name when it came without."""
    kind: SpanKind = "command" if isinstance(work, CommandWork) else "frame"
    key: SpanKey
    if isinstance(work, CommandWork):
        key = (kind, work.command_id, str(work.claim))
    else:
        key = (kind, work.frame_id, str(work.attempt))
    above = step_key(work.step, work.visit)
    name = f"{kind} {work.step}"
    return SpanPlace(kind, name, work.execution_id, key, above, work.traceparent)


def work_names(work: Work, worker: WorkerId) -> Attributes:
    names: dict[str, Attribute] = {
        "noetl.step": work.step,
        "noetl.visit": work.visit,
        "noetl.worker": worker,
    }
    if isinstance(work, CommandWork):
        return {**names, "noetl.command_id": work.command_id, "noetl.claim": work.claim}
    rows = {"noetl.rows": work.row_count, "noetl.first_row": work.first_index}
    return {**names, **rows, "noetl.frame_id": work.frame_id, "noetl.attempt": work.attempt}
