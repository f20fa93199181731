"""A DuckDB file as an end of a transfer: the same file that the duckdb tool would open."""

import threading
from datetime import date, time, timedelta
from decimal import Decimal
from typing import cast
from uuid import UUID

import duckdb

from noetl.ports.tool import ToolFailed
from noetl.ports.tool_services import ToolServices
from noetl.tools.credential_fields import secrets_of
from noetl.tools.duckdb import MEMORY, database_path
from noetl.tools.duckdb_failures import duckdb_failure, is_locked_elsewhere
from noetl.tools.duckdb_session import CONFIGURATION, LOCK_SECONDS, LOCK_TRIES_MAX
from noetl.tools.failures import failed
from noetl.tools.transfer_embedded import Connection, EmbeddedEndpoints, Engine
from noetl.tools.transfer_plan import Place


def endpoints(services: ToolServices) -> EmbeddedEndpoints:
    def opened(place: Place) -> Connection:
        database = place.text("database") or place.text("db_path")
        path = database_path(services, place.call.execution_id, database)
        in_memory = database == MEMORY and place.side == "source"  # a query over files
        if not in_memory and not path.exists():
            raise failed("not_found", f"there is no DuckDB file {path}; make its tables first")
        return cast(Connection, _patiently(MEMORY if in_memory else str(path)))

    return EmbeddedEndpoints(
        Engine(
            open=opened,
            errors=(duckdb.Error,),
            failure=_failure,
            begin="BEGIN",
            begin_reading="BEGIN",
            takes=(str, int, float, bytes, type(None), Decimal, date, time, timedelta, UUID),
        )
    )


def _patiently(path: str) -> duckdb.DuckDBPyConnection:
    """Waits for whoever else has the file open, but not for ever. Blocks: for threads."""
    pause = threading.Event()
    for _ in range(LOCK_TRIES_MAX - 1):
        try:
            # One process opens a file with one configuration: that of the duckdb tool.
            return duckdb.connect(path, config=CONFIGURATION)
        except duckdb.Error as error:
            if not is_locked_elsewhere(error):
                raise
            pause.wait(LOCK_SECONDS)
    return duckdb.connect(path, config=CONFIGURATION)


def _failure(error: Exception, place: Place) -> ToolFailed:
    if is_locked_elsewhere(error):
        return failed(
            "db_connection",
            f"somebody else has the {place.side} of the transfer open; try again when it is done",
        )
    return duckdb_failure(error, secrets_of(place.call))
