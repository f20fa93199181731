"""Instants are UTC, of one width, and sort as text exactly as they do in time."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from noetl.kernel import instant
from noetl.kernel.errors import TimeInvalid
from noetl.kernel.instant import Instant

NEW_YEAR = Instant("2026-01-01T00:00:00.000000Z")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00.000000Z"),
        (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), NEW_YEAR),
        (datetime(2025, 12, 31, 14, 15, tzinfo=timezone(timedelta(hours=-9.75))), NEW_YEAR),
        (datetime(2026, 11, 15, 21, 0, 0, 7, UTC), "2026-11-15T21:00:00.000007Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (datetime(999, 1, 1, tzinfo=UTC), "0999-01-01T00:00:00.000000Z"),
        (datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_any_zone_becomes_utc_in_the_one_form(moment: datetime, expected: str) -> None:
    made = instant.from_datetime(moment)
    assert made == expected
    assert instant.to_datetime(made) == moment
    instant.check(made)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(TimeInvalid, match="has no time zone"):
        instant.from_datetime(datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake under test
    with pytest.raises(TimeInvalid, match="has no time zone"):
        instant.parse("2026-01-01T00:00:00")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_utc_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(TimeInvalid, match="outside the years 1 to 9999"):
        instant.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:30:00.000+01:30",
        "20260101T000000Z",
        "2026-01-01 00:00:00.000000000Z",
        "2026-W01-4T00:00:00.000000Z",
    ],
)
def test_other_iso_forms_are_parsed_but_are_no_instants(text: str) -> None:
    assert instant.parse(text) == NEW_YEAR
    with pytest.raises(TimeInvalid, match=f"not in canonical form; use {NEW_YEAR}"):
        instant.check(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "2026-13-01T00:00:00.000000Z", "2026-02-30T00:00:00.000000Z",
        "2026-01-01T24:00:00.000001Z", "2026-01-01T00:00:60.000000Z",
        "2026-01-01T00:00:00,00000xZ", "202\uff16-01-01T00:00:00.000000Z",
    ],
)  # fmt: skip
def test_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(TimeInvalid):
        instant.parse(text)
    with pytest.raises(TimeInvalid):
        instant.check(text)


@pytest.mark.parametrize("value", [None, 1_767_225_600, datetime(2026, 1, 1, tzinfo=UTC)])
def test_what_is_not_text_is_refused_with_advice(value: Any) -> None:
    with pytest.raises(TimeInvalid, match=r"build it with instant\.from_datetime"):
        instant.check(value)


def test_an_instant_passes_its_own_check() -> None:
    instant.check(NEW_YEAR)


def test_text_order_is_time_order() -> None:
    start = datetime(9, 12, 31, 23, 59, 59, 999_999, UTC)
    steps = [timedelta(microseconds=1), timedelta(seconds=1), timedelta(days=400_000)]
    moments = [start + step * count for step in steps for count in range(1, 5)]

    rising = [instant.from_datetime(moment) for moment in sorted(moments)]

    assert all(earlier < later for earlier, later in pairwise(rising))
    assert {len(each) for each in rising} == {27}


def test_milliseconds_are_exact_however_late_they_are() -> None:
    assert instant.from_millis(1_767_225_600_000) == NEW_YEAR
    assert instant.from_millis(253_402_300_799_999) == "9999-12-31T23:59:59.999000Z"
    assert instant.from_millis(-1) == "1969-12-31T23:59:59.999000Z"


def test_adding_and_taking_away_agree() -> None:
    later = instant.plus(NEW_YEAR, seconds=90.5)
    assert later == "2026-01-01T00:01:30.500000Z"
    assert instant.seconds_between(NEW_YEAR, later) == 90.5
    assert instant.seconds_between(later, NEW_YEAR) == -90.5
