"""What an append costs: one trip to the server when nothing stands against it."""

import pytest

from noetl.domain.log import Append, Appended, StreamHead
from noetl.testing.histories import History, execution_ids
from tests.postgres.conftest import OpenLog
from tests.postgres.cutting_proxy import cutting_proxy
from tests.postgres.streams import sealed_append, steps

pytestmark = pytest.mark.servers


def head_after(append: Append) -> StreamHead:
    last = append.events[-1].envelope
    return StreamHead(last.stream_version, last.event_id)


async def test_beginning_continuing_and_following_in_one_group_is_one_request(
    open_log: OpenLog, postgres_dsn: str
) -> None:
    old, new, *others = [History(execution) for execution in execution_ids(4)]
    async with cutting_proxy(postgres_dsn) as (proxy, dsn):
        log = await open_log(dsn=dsn)
        begun = sealed_append(old.execution, steps(old, 2))
        continued = sealed_append(old.execution, steps(old, 2), head_after(begun))
        await log.append([begun])  # makes the partition and prepares the one statement
        await log.append([continued])  # prepares the other one
        begins = sealed_append(new.execution, steps(new, 1))
        group = [
            sealed_append(old.execution, steps(old, 2), head_after(continued)),
            begins,
            sealed_append(new.execution, steps(new, 1), head_after(begins)),
            *(sealed_append(each.execution, steps(each, 3)) for each in others),
        ]
        before = proxy.requests

        outcomes = await log.append(group)

        assert proxy.requests - before == 1
        assert outcomes == [
            Appended(6, 5, 6),
            Appended(1, 7, 7),
            Appended(2, 8, 8),
            Appended(3, 9, 11),
            Appended(3, 12, 14),
        ]
        await log.close()
