"""A SQLite file as an end of a transfer."""

import sqlite3
from typing import cast

from noetl.ports.tool import ToolFailed
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed
from noetl.tools.transfer_embedded import Connection, EmbeddedEndpoints, Engine
from noetl.tools.transfer_plan import Place

BUSY_SECONDS_MAX = 10.0


def endpoints(services: ToolServices) -> EmbeddedEndpoints:
    def opened(place: Place) -> Connection:
        database = place.text("database") or place.text("db_path")
        if database is None:
            raise place.mistake("needs `database`: the SQLite file")
        path = services.base / database  # a whole path is itself
        if not path.exists():  # opening would make an empty one, with no table to use
            raise failed(
                "not_found", f"there is no SQLite file {database!r}; make its tables first"
            )
        connection = sqlite3.connect(
            path,
            timeout=BUSY_SECONDS_MAX,
            isolation_level=None,
            check_same_thread=False,  # one thread at a time, but not always the same
        )
        if place.side == "source":
            # Nothing that a source says may change what it reads from.
            connection.execute("PRAGMA query_only = ON")
        return cast(Connection, connection)

    return EmbeddedEndpoints(
        Engine(
            open=opened,
            errors=(sqlite3.Error, sqlite3.Warning, OverflowError),
            failure=_failure,
            begin="BEGIN IMMEDIATE",
            begin_reading="BEGIN",
            takes=(str, int, float, bytes, type(None)),
        )
    )


def _failure(error: Exception, place: Place) -> ToolFailed:
    told = f"SQLite refused the {place.side} of the transfer: {error}"
    if isinstance(error, sqlite3.IntegrityError):
        return failed("db_constraint", f"{told}; check the rows against the table's constraints")
    if "locked" in str(error) or "busy" in str(error):
        return failed("db_deadlock", f"{told}; another writer holds the file, try again")
    if isinstance(error, sqlite3.OperationalError):
        return failed("schema", f"{told}; check the table, its columns and the query")
    return failed("transform", f"{told}; check the values of the rows")
