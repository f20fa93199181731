"""What PostgreSQL and its driver say, in the words of our failures."""

from collections.abc import Iterable
from typing import Any, Final

import asyncpg
from asyncpg import exceptions

from noetl.kernel.errors.reaching import reason_away
from noetl.ports.tool import ToolFailed
from noetl.templates.secret import Secret, scrub
from noetl.tools.failures import failed

DRIVER_ERRORS: Final = (
    exceptions.PostgresError,
    exceptions.InterfaceError,
    exceptions.InternalClientError,
    OSError,
    OverflowError,  # a date beyond the years that Python knows
    ValueError,  # or before them; bytes that are no text
)

_BY_CODE: Final = {
    "40001": "db_deadlock",  # serialization_failure
    "40P01": "db_deadlock",
    "55P03": "db_deadlock",  # lock_not_available: somebody else holds it, for now
    "57014": "db_timeout",  # query_canceled
    "25P03": "db_timeout",  # idle_in_transaction_session_timeout
    "42501": "auth",  # insufficient_privilege
    "53100": "storage_quota",  # disk_full
}
_BY_FAMILY: Final = {
    "08": "db_connection",
    "3D": "not_found",  # no such database
    "22": "transform",
    "23": "db_constraint",
    "28": "auth",
    "42": "schema",
    "53": "db_connection",  # too many connections, out of memory
    "57": "db_connection",  # shutting down, starting up
    "58": "db_connection",
}
_ADVICE: Final = {
    "auth": "check the user, the password and the privileges",
    "db_connection": "check the address, or try again",
    "db_constraint": "check the values against the table's constraints",
    "db_deadlock": "try again",
    "db_timeout": "raise `timeout`, or make the query faster",
    "not_found": "check the name of the database",
    "schema": "check the SQL against the tables",
    "storage_quota": "free space on the server",
    "transform": "check the values and their types",
    "unknown": "see what the server says",
}

_BY_CODE_ADVICE: Final = {
    "2D000": "a procedure that commits needs a task of its own: several statements of one task"
    " are one transaction",
}


def kind_of_sqlstate(sqlstate: str | None) -> str:
    code = sqlstate or ""
    return _BY_CODE.get(code) or _BY_FAMILY.get(code[:2], "unknown")


def postgres_failure(
    error: BaseException, secrets: Iterable[Secret], statement: int | None = None
) -> ToolFailed:
    """A failure with all the facts; `statement` counts from 0."""
    sqlstate = getattr(error, "sqlstate", None)
    kind = _kind(error, sqlstate)
    where = "" if statement is None else f" in statement {statement + 1}"
    hint = getattr(error, "hint", None)
    advice = hint or _BY_CODE_ADVICE.get(sqlstate or "") or _ADVICE[kind]
    who = "PostgreSQL cannot be reached" if isinstance(error, OSError) else "PostgreSQL said"
    words = f"{who}{where}: {reason_away(error)}; {advice}"
    facts = {
        "code": sqlstate,
        "sqlstate": sqlstate,
        "constraint": getattr(error, "constraint_name", None),
        "table": getattr(error, "table_name", None),
        "column": getattr(error, "column_name", None),
    }
    detail: dict[str, Any] = {} if statement is None else {"statement": statement}
    return failed(kind, scrub(words, secrets), code=sqlstate, detail=detail, pg=facts)


def _kind(error: BaseException, sqlstate: str | None) -> str:
    if isinstance(error, asyncpg.DataError | OverflowError | ValueError):
        return "transform"
    if isinstance(error, exceptions.ClientConfigurationError):
        return "auth"  # such as a server that wants TLS
    if isinstance(error, exceptions.PostgresError) and sqlstate:
        return kind_of_sqlstate(sqlstate)
    if isinstance(error, exceptions.InterfaceError | OSError):
        return "db_connection"
    return "unknown"
