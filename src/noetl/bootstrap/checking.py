"""Check a playbook as this installation would run it: with the tools of other packages too."""

from noetl.dsl import check as dsl_check
from noetl.dsl.check import Checked


def check(text: str | bytes) -> Checked:
    return dsl_check.check(text, is_other_kind)


def is_other_kind(kind: str) -> bool:
    """Asked only about kinds that the language does not know, so looking may take a moment."""
    from noetl.tools.registry import tool_factories  # noqa: PLC0415 - see above

    return kind in tool_factories()
