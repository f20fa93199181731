"""What DuckDB says, in the words of our failures."""

import re
from collections.abc import Iterable
from typing import Final

import duckdb

from noetl.ports.tool import ToolFailed
from noetl.templates.secret import Secret, scrub
from noetl.tools.failures import failed

# The first that fits: a class before the ones it is made from.
_KINDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (duckdb.ConstraintException, "db_constraint"),
    (duckdb.TransactionException, "db_deadlock"),
    (duckdb.HTTPException, "connection"),
    (duckdb.ConnectionException, "db_connection"),
    (duckdb.OutOfMemoryException, "storage_quota"),
    (duckdb.IOException, "storage_access"),
    (duckdb.PermissionException, "storage_access"),
    (duckdb.ResourceInUseException, "db_deadlock"),
    (duckdb.InvalidInputException, "transform"),
    (duckdb.InvalidTypeException, "transform"),
    (duckdb.SerializationException, "transform"),
    (duckdb.SequenceException, "transform"),
    (duckdb.DataError, "transform"),
    (duckdb.IntegrityError, "db_constraint"),
    (duckdb.DependencyException, "schema"),
    (duckdb.ProgrammingError, "schema"),
    (duckdb.NotSupportedError, "schema"),
)
_ADVICE: Final = {
    "connection": "try again",
    "db_connection": "try again",
    "db_constraint": "check the values against the table's constraints",
    "db_deadlock": "another call changed the same rows; try again",
    "schema": "check the SQL against the tables",
    "storage_access": "check the path and who may read it",
    "storage_quota": "ask for less at once",
    "transform": "check the values and their types",
    "unknown": "see what DuckDB says",
}
_EXTENSION = re.compile(
    r"extension [\"'](?:[^\"'\s]*/)?(\w+?)(?:\.duckdb_extension)?[\"':\s]", re.I
)
_MISSING = ("INSTALL", "install", "not found")
_LOCKED = "Could not set lock"
_ATTACHED = "is already attached"


def is_locked_elsewhere(error: Exception) -> bool:
    """Another process has the file open, or this one has it in a database of another file."""
    if isinstance(error, duckdb.ResourceInUseException):
        return _ATTACHED in str(error)
    return isinstance(error, duckdb.IOException) and _LOCKED in str(error)


def locked_too_long(path: str) -> ToolFailed:
    return failed(
        "db_connection",
        f"another process, or another call of this one, has {path} open; try again when it is done",
    )


def extension_missing(name: str) -> ToolFailed:
    return failed(
        "client_error",
        f"DuckDB's extension {name!r} is not installed on this machine, and nothing is downloaded"
        f' while a playbook runs; install it beforehand: python -c "import duckdb;'
        f" duckdb.install_extension('{name}')\"",
        code="extension_missing",
    )


def duckdb_failure(
    error: Exception, secrets: Iterable[Secret], statement: int | None = None
) -> ToolFailed:
    words = str(error)
    extension = _EXTENSION.search(words)
    if extension and any(word in words for word in _MISSING):
        return extension_missing(extension[1])
    kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), "unknown")
    advice = _ADVICE[kind]
    if is_locked_elsewhere(error):
        kind, advice = "db_connection", "try again when whoever has the file open is done"
    where = "" if statement is None else f" in statement {statement + 1}"
    return failed(
        kind,
        str(scrub(f"DuckDB said{where}: {words}; {advice}", secrets)),
        code=type(error).__name__,
        detail={} if statement is None else {"statement": statement},
    )
