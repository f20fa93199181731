"""The shortest way to a rendered value in a test."""

from collections.abc import Mapping
from typing import Any

from noetl.templates.bindings import Bindings
from noetl.templates.render import Needs, Rendered, render


def rendered(value: Any, bindings: Bindings | Mapping[str, Any] | None = None) -> Any:
    outcome = render(value, {} if bindings is None else bindings)
    assert isinstance(outcome, Rendered), outcome
    return outcome.value


def needed(value: Any, bindings: Mapping[str, Any]) -> set[tuple[str | int, ...]]:
    """The paths that have to be fetched."""
    outcome = render(value, bindings)
    assert isinstance(outcome, Needs), outcome
    return {need.path for need in outcome.needs}
