"""Whether a collection that came to nothing is a name that nobody has given."""

import re
from typing import Any

from noetl.decider.evaluate import holds
from noetl.templates.bindings import Bindings
from noetl.templates.errors import TemplateFailed

_PATH = re.compile(r"\{\{\s*([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)\s*\}\}")
_GIVEN_BY_NAME = frozenset({"workload", "ctx", "iter", "steps"})


def check_is_given(template: Any, bindings: Bindings) -> None:
    """Nothing to go over: no rows when the data say so, a mistake when the name does not exist.

    What lies deeper in a result is data, which may be absent today. Raises TemplateFailed.
    """
    found = _PATH.fullmatch(template.strip()) if isinstance(template, str) else None
    missing = None if found is None else _missing(found[1], found[2].split(".")[1:], bindings)
    if missing is not None:
        raise TemplateFailed(
            f"there is no {missing} to loop over; correct the name, or write"
            f" `{{{{ {missing} | default([]) }}}}` if it may be missing"
        ).locate(template, None)


def _missing(root: str, parts: list[str], bindings: Bindings) -> str | None:
    if not holds(f"{{{{ {root} is defined }}}}", bindings):
        return root
    is_name = len(parts) == 1 or (bool(parts) and root in _GIVEN_BY_NAME)
    if is_name and not holds(f"{{{{ {root}.{parts[0]} is defined }}}}", bindings):
        return f"{root}.{parts[0]}"
    return None
