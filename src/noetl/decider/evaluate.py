"""Templates on the control plane: values that may be recorded, and guards."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from noetl.decider.answers import Incomplete
from noetl.domain.execution.names import WRITES_BYTES_MAX
from noetl.domain.playbook.values import Assignment, Condition
from noetl.kernel import canonical_json
from noetl.kernel.errors import EventInvalid
from noetl.templates.bindings import Bindings
from noetl.templates.errors import Need, TemplateFailed
from noetl.templates.layered import Layered, PipelineResult, StoredResult, plain_result
from noetl.templates.reference import Reference
from noetl.templates.render import Needs, Verdict, judge, render
from noetl.templates.secret import masked
from noetl.templates.table_rows import TableRows


def evaluated(value: Any, bindings: Bindings) -> Any:
    """Plain data that may be recorded. Raises TemplateError, or Incomplete for what is missing."""
    return _recordable(_rendered(value, bindings))


def evaluated_or_table(value: Any, bindings: Bindings) -> Any:
    """The same; but a stored table stays where it lies, as the rows that say so."""
    rendered = _rendered(value, bindings)
    worth = rendered.whole if isinstance(rendered, Layered) else rendered
    is_stored = isinstance(worth, TableRows) and worth.reference is not None
    return worth if is_stored else _recordable(rendered)


def _rendered(value: Any, bindings: Bindings) -> Any:
    rendered = render(value, bindings)
    if isinstance(rendered, Needs):
        raise Incomplete(rendered)
    return rendered.value


def _recordable(value: Any) -> Any:
    plain = masked(_plain(value))
    try:
        canonical_json.check_plain(plain)
    except EventInvalid as error:
        raise TemplateFailed(f"gives a value that cannot be recorded: {error}") from error
    return plain


def holds(when: Condition, bindings: Bindings) -> bool:
    """Raises TemplateError when the guard cannot be judged."""
    if isinstance(when, bool):
        return when
    judged = judge(when, bindings)
    if isinstance(judged, Needs):
        raise Incomplete(judged)
    if judged.verdict is Verdict.RAISED and judged.error is not None:
        raise judged.error
    return judged.verdict is Verdict.HOLDS


def check_writes(writes: Mapping[str, Any]) -> None:
    """A value that grows with the data must not grow with every event."""
    size = len(msgspec.json.encode(writes)) if writes else 0
    if size > WRITES_BYTES_MAX:
        largest = max(writes, key=lambda name: len(msgspec.json.encode(writes[name])))
        raise TemplateFailed(
            f"`set` writes {size} bytes, mostly to {largest!r}; at most {WRITES_BYTES_MAX} fit."
            " Leave large values in the step's result and read them by the step's name"
        )


def targets_of(assignments: Iterable[Assignment]) -> Iterable[tuple[str, Any]]:
    """Outside a pipeline every scope means the execution's own names."""
    return ((assignment.name, assignment.value) for assignment in assignments)


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:  # a million of them may stand in a collection
        return value
    if isinstance(value, Reference):
        raise Incomplete(Needs(frozenset({Need(value.payload, value.path)})))
    if isinstance(value, Layered):
        return _plain(value.whole)
    if isinstance(value, PipelineResult | StoredResult):
        return _plain(plain_result(value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.listed() if isinstance(value, TableRows) else value
