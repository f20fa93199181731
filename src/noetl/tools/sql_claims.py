"""What the claims of all databases have in common: which SQL may claim, and which rows it gave."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from noetl.ports.cursor import ClaimRequest
from noetl.ports.tool import ToolCall
from noetl.tools.failures import failed
from noetl.tools.sql_parameters import BoundStatement, bound_statements
from noetl.tools.sql_results import Outcome
from noetl.tools.sql_statements import Dialect, controls_transaction

CLAIMS_TABLE: Final = "noetl_cursor_claims"
"""Where databases inside a file keep the names of committed claims, beside the rows themselves."""


FORGOTTEN_MAX = 500
"""Names that one claim drops; the next one drops more."""


def forgotten(request: ClaimRequest, names: Iterable[str]) -> list[str]:
    """Those of earlier claims that nobody will ask for any more."""
    over = request.over
    return [] if over is None else [name for name in names if over.has(name)][:FORGOTTEN_MAX]


async def claiming_statements(call: ToolCall, dialect: Dialect) -> list[BoundStatement]:
    statements = await bound_statements(call.parameters, dialect)
    if any(controls_transaction(item.statement) for item in statements):
        raise failed(
            "schema",
            "a claim runs in a transaction of ours, which ends when its rows are written down;"
            " take BEGIN, COMMIT and ROLLBACK out of `claim`",
        )
    return statements


def claimed_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The rows of the last statement that gave some."""
    for outcome in reversed(outcomes):
        if "rows" in outcome:
            rows: list[dict[str, Any]] = outcome["rows"]
            return rows
    raise failed(
        "schema", "the claim gave no rows to work on; end it with SELECT, or with RETURNING"
    )
