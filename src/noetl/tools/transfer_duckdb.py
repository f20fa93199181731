"""A DuckDB database as an end of a transfer."""

from datetime import date, time, timedelta
from decimal import Decimal
from typing import cast
from uuid import UUID

import duckdb

from noetl.ports.tool import ToolFailed
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed
from noetl.tools.transfer_embedded import Connection, EmbeddedEndpoints, Engine
from noetl.tools.transfer_plan import Place

_KINDS: tuple[tuple[type[Exception], str, str], ...] = (
    (duckdb.ConstraintException, "db_constraint", "check the rows against the constraints"),
    (duckdb.ConversionException, "transform", "check the values against the columns' types"),
    (duckdb.TransactionException, "db_deadlock", "somebody else is writing, try again"),
    (duckdb.CatalogException, "schema", "check the name of the table"),
    (duckdb.BinderException, "schema", "check the columns and the query"),
    (duckdb.ParserException, "schema", "check the query"),
    (duckdb.IOException, "storage_access", "check the file, and that no other process has it"),
)


def endpoints(services: ToolServices) -> EmbeddedEndpoints:
    def opened(place: Place) -> Connection:
        database = place.text("database") or place.text("db_path")
        if database is None:
            raise place.mistake("needs `database`: the DuckDB file")
        path = database if database == ":memory:" else str(services.folder / database)
        return cast(Connection, duckdb.connect(path))

    return EmbeddedEndpoints(
        Engine(
            open=opened,
            errors=(duckdb.Error,),
            failure=_failure,
            begin="BEGIN TRANSACTION",
            begin_reading="BEGIN TRANSACTION",
            takes=(str, int, float, bytes, type(None), Decimal, date, time, timedelta, UUID),
        )
    )


def _failure(error: Exception, place: Place) -> ToolFailed:
    told = f"DuckDB refused the {place.side} of the transfer: {error}"
    for kind_of_error, kind, advice in _KINDS:
        if isinstance(error, kind_of_error):
            return failed(kind, f"{told}; {advice}")
    return failed("unknown", told)
