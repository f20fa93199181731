"""A partition is a month of execution ids, made on demand."""

from datetime import UTC, datetime

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.adapters.postgres.partitions import partition_of
from noetl.domain.log import Appended, AtPosition
from noetl.kernel.ids import ExecutionId
from noetl.kernel.snowflake import Parts, compose, minted_at
from noetl.testing.histories import History, execution_ids
from tests.postgres.conftest import OpenLog
from tests.postgres.streams import check_chains, sealed_append, steps, whole_log

ID_MAX = 2**63 - 1


def id_at(year: int, month: int, day: int = 1) -> int:
    millis = int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)
    return int(compose(Parts(millis, 1, 1)))


@given(st.integers(0, ID_MAX))
def test_an_id_is_held_by_the_partition_of_its_month(execution: int) -> None:
    partition = partition_of(execution)
    assert partition.holds(execution)
    year, month = minted_at(str(execution))[:4], minted_at(str(execution))[5:7]
    assert partition.name == f"event_{year}_{month}"


@given(st.integers(0, ID_MAX))
def test_partitions_meet_without_gap_or_overlap(execution: int) -> None:
    partition = partition_of(execution)
    assert partition_of(partition.first_id) == partition_of(partition.last_id) == partition
    if partition.first_id > 0:
        assert partition_of(partition.first_id - 1).last_id == partition.first_id - 1
    if partition.last_id < ID_MAX:
        assert partition_of(partition.last_id + 1).first_id == partition.last_id + 1


@pytest.mark.servers
async def test_a_group_may_span_partitions_from_first_to_last(
    open_log: OpenLog, sql: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    log = await open_log()
    months = [0, id_at(2024, 2, 29), id_at(2025, 12, 31), id_at(2026, 1), ID_MAX]
    executions = [ExecutionId(str(number)) for number in months]
    histories = [History(execution) for execution in executions]
    for _ in range(2):
        group = [
            sealed_append(execution, steps(history, 2), await log.head(execution))
            for execution, history in zip(executions, histories, strict=True)
        ]
        outcomes = await log.append(group)
        assert all(isinstance(outcome, Appended) for outcome in outcomes), outcomes

    events = await whole_log(log)
    assert [event.position for event in events] == list(range(1, 21))
    check_chains(events)
    names = await sql.fetch(
        """SELECT DISTINCT relname FROM noetl.event
        JOIN pg_class ON pg_class.oid = event.tableoid ORDER BY 1"""
    )
    assert [row[0] for row in names] == [
        "event_2024_01",
        "event_2024_02",
        "event_2025_12",
        "event_2026_01",
        "event_2093_09",
    ]
    assert await log.version_at(executions[-1], AtPosition(15)) == 2


@pytest.mark.servers
async def test_a_partition_that_was_dropped_is_made_again(
    open_log: OpenLog, sql: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    log = await open_log()
    old, new = execution_ids(2)
    await log.append([sealed_append(old, steps(History(old), 3))])
    await sql.execute("DROP TABLE noetl.event_2026_01")  # its time was over

    (outcome,) = await log.append([sealed_append(new, steps(History(new), 2))])

    assert outcome == Appended(2, 4, 5)  # positions are not given out twice
    assert await log.read(old) == []
