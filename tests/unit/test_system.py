"""The real clock tells UTC, and real ids rise and never meet."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from noetl.adapters.system.clock import utc_now
from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel import instant
from noetl.kernel.snowflake import decompose, minted_at


def test_the_clock_tells_utc_in_canonical_form() -> None:
    before = instant.from_datetime(datetime.now(UTC))
    now = utc_now()
    instant.check(now)
    assert before <= now <= instant.from_datetime(datetime.now(UTC))


def test_an_id_names_its_node_and_its_time() -> None:
    before = utc_now()
    made = SnowflakeIds(node=7).new_id()
    assert decompose(made).node == 7
    assert -0.002 < instant.seconds_between(before, minted_at(made)) < 60


def test_ids_of_many_threads_rise_and_never_meet() -> None:
    ids = SnowflakeIds(node=1)

    def make(_: int) -> list[int]:
        return [int(ids.new_id()) for _ in range(5_000)]

    with ThreadPoolExecutor(max_workers=8) as threads:
        made = list(threads.map(make, range(8)))

    assert all(each == sorted(each) for each in made)
    assert len({number for each in made for number in each}) == 40_000
