"""Values of databases as plain data, and the one shape of results."""

import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from noetl.kernel.canonical_json import check_plain, encode
from noetl.tools.sql_results import change_outcome, combined, interval, plain, rows_outcome
from noetl.tools.sql_statements import POSTGRES, split


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**64, "18446744073709551616"),
        (-(2**63), -(2**63)),
        (Decimal("1.50"), 1.5),
        (Decimal("100.00"), 100),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("NaN"), "NaN"),
        (float("-inf"), "-Infinity"),
        (b"\x00\xff", "AP8="),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02T03:04:05+00:00"),
        (datetime.fromisoformat("2024-01-02T00:00"), "2024-01-02T00:00:00"),
        (date(2024, 1, 2), "2024-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=-1, seconds=1), "-1 days 00:00:01"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: (Decimal(1), {b"a"})}, {"1": [1, ["YQ=="]]}),
    ],
)
def test_values_become_what_json_can_carry(value: Any, expected: Any) -> None:
    found = plain(value)
    assert (found, type(found)) == (expected, type(expected))
    check_plain(found)
    encode(found)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((0, 0, 0), "00:00:00"),
        ((14, 3, 14_706_500_000), "1 year 2 mons 3 days 04:05:06.5"),
        ((-14, 0, -1), "-1 years -2 mons -00:00:00.000001"),
        ((0, 1, 0), "1 day"),
    ],
)
def test_intervals_are_written_as_postgresql_does(parts: tuple[int, int, int], text: str) -> None:
    assert interval(*parts) == text


def test_the_last_statement_is_the_result_and_each_has_its_own() -> None:
    rows = rows_outcome(["a", "b"], [(1, 2)])
    change = change_outcome(3, "INSERT 0 3")
    done = change_outcome(0, "COMMIT")

    value = combined(split("SELECT 1; INSERT", POSTGRES), [rows, change])
    assert value == change | {"statement_count": 2, "command_0": rows, "command_1": change}

    value = combined(split("SELECT 1; COMMIT", POSTGRES), [rows, done])
    assert value["rows"] == [{"a": 1, "b": 2}]
    assert value["command_1"]["message"] == "COMMIT"

    value = combined(split("SELECT 1; INSERT", POSTGRES), [rows, change], prefer_rows=True)
    assert value["columns"] == ["a", "b"]

    assert combined(split("COMMIT", POSTGRES), [done])["message"] == "COMMIT"
