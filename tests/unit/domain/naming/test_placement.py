"""The key of an object follows from its name; nothing is looked up and no clock is read."""

import msgspec
import pytest

from noetl.domain.naming.fnv import fnv1a64
from noetl.domain.naming.placement import (
    CellPlacement,
    PhysicalKey,
    check_same_placement,
    dataset_key,
    execution_prefix,
    parse_physical_key,
    physical_key,
    shard_of,
)
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.domain.naming.segment import PART_LENGTH_MAX, escape, shortened
from noetl.kernel.errors import NameInvalid, PlacementMismatch
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import Parts, compose
from noetl.ports import object_store

PLACEMENT = CellPlacement("dev", "eu-1", "blue")
LATE = 1_794_787_199_999  # the last millisecond of 2026-11-15 in UTC
EXECUTION = ExecutionId(compose(Parts(LATE, 7, 1)))
NAME = ResultName(
    tenant="acme", project="research", execution_id=EXECUTION, step=StepName("load"), frame=3, row=4
)
DATASET = DatasetName(
    tenant="acme", project="research", execution_id=EXECUTION, step=StepName("load")
)
SHARD = fnv1a64(f"acme/research/{EXECUTION}".encode()) % 256
PREFIX = (
    f"noetl/env=dev/region=eu-1/cell=blue/shard={SHARD:04d}/tenant=acme/project=research"
    f"/date=2026-11-15/execution={EXECUTION}/"
)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0xCBF29CE484222325),
        (b"a", 0xAF63DC4C8601EC8C),
        (b"foobar", 0x85944171F73967E8),
        (b"hello", 0xA430D84680AABD0B),
    ],
)
def test_the_hash_is_the_published_one(data: bytes, value: int) -> None:
    assert fnv1a64(data) == value


def test_a_key_names_cell_shard_owner_day_and_coordinates() -> None:
    assert physical_key(NAME, PLACEMENT, "feather") == f"{PREFIX}results/load/3/4/1.feather"


def test_the_day_is_that_of_the_id_also_a_millisecond_before_midnight() -> None:
    after = ExecutionId(compose(Parts(LATE + 1, 0, 0)))
    scope = Scope("acme", "research")
    assert "/date=2026-11-15/" in execution_prefix(scope, EXECUTION, PLACEMENT)
    assert "/date=2026-11-16/" in execution_prefix(scope, after, PLACEMENT)


def test_a_later_visit_is_another_file() -> None:
    again = ResultName(
        tenant="acme",
        project="research",
        execution_id=EXECUTION,
        step=StepName("load"),
        task="fetch",
        run=3,
        attempt=2,
        visit=5,
    )
    key = f"{PREFIX}results/load%3Afetch%233/0/0/2.v5.json"
    assert physical_key(again, PLACEMENT, "json") == key
    assert parse_physical_key(key) == PhysicalKey(
        env="dev", region="eu-1", cell="blue", shard=SHARD, name=again, extension="json"
    )


def test_the_manifest_of_a_stage_lies_beside_its_frames() -> None:
    later = DatasetName(
        tenant="acme", project="research", execution_id=EXECUTION, step=StepName("load"), visit=2
    )
    assert dataset_key(DATASET, PLACEMENT) == f"{PREFIX}results/load/dataset.json"
    assert dataset_key(later, PLACEMENT) == f"{PREFIX}results/load/dataset.v2.json"
    found = parse_physical_key(dataset_key(later, PLACEMENT))
    assert found is not None
    assert found.name == later


def test_everything_of_an_execution_is_below_its_prefix() -> None:
    prefix = execution_prefix(NAME.scope, EXECUTION, PLACEMENT)
    assert prefix == PREFIX
    assert physical_key(NAME, PLACEMENT, "json").startswith(prefix)
    assert dataset_key(DATASET, PLACEMENT).startswith(prefix)


def test_names_that_climb_stay_where_they_are() -> None:
    climbing = ResultName(
        tenant="..", project="a/b", execution_id=EXECUTION, step=StepName("../../up")
    )
    key = physical_key(climbing, PLACEMENT, "json")
    assert "/tenant=%2E%2E/project=a%2Fb/" in key
    assert "/results/%2E%2E%2F%2E%2E%2Fup/0/0/1.json" in key
    found = parse_physical_key(key)
    assert found is not None
    assert found.name == climbing


@pytest.mark.parametrize("count", [1, 2, 256, 10_000])
def test_a_shard_is_below_the_count(count: int) -> None:
    for number in range(50):
        assert 0 <= shard_of("acme", "research", ExecutionId(str(number)), count) < count


KEY = physical_key(NAME, PLACEMENT, "feather")


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "acme/research/b9/4d/b94d",
        PREFIX,
        KEY + "/",
        "/" + KEY,
        KEY.replace("noetl/", "other/", 1),
        KEY.replace("env=dev", "env=d.v"),
        KEY.replace("env=", "stage="),
        KEY.replace(f"shard={SHARD:04d}", f"shard={SHARD}x"),
        KEY.replace("shard=0", "shard="),
        KEY.replace("shard=0", "shard=00"),
        KEY.replace("2026-11-15", "2026-11-14"),
        KEY.replace("/results/", "/archive/"),
        KEY.replace("/load/", "/l.oad/"),
        KEY.replace("/3/4/", "/3/"),
        KEY.replace("/3/4/", "/3/04/"),
        KEY.replace("/1.feather", "/0.feather"),
        KEY.replace("/1.feather", "/1.v1.feather"),
        KEY.replace("/1.feather", "/dataset.feather"),
        KEY.replace("1.feather", "1"),
        KEY.replace("1.feather", "1.feather.tmp"),
        KEY.replace(f"execution={EXECUTION}", "execution=one"),
        KEY.replace("tenant=acme", "tenant="),
    ],
)
def test_a_key_that_we_did_not_write_has_no_coordinates(foreign: str) -> None:
    assert parse_physical_key(foreign) is None


def test_a_key_that_we_wrote_has() -> None:
    found = parse_physical_key(KEY)
    assert found is not None
    assert (found.name, found.extension, found.shard) == (NAME, "feather", SHARD)


@pytest.mark.parametrize("execution", ["one", "-1", "01", "٣", str(1 << 63), "1" * 25])
def test_an_id_without_a_day_has_no_key(execution: str) -> None:
    with pytest.raises(NameInvalid, match="snowflake"):
        execution_prefix(Scope("a", "b"), ExecutionId(execution), PLACEMENT)


@pytest.mark.parametrize("extension", ["", ".json", "JSON", "a/b", "tar.gz", "x" * 17])
def test_an_extension_is_one_plain_word(extension: str) -> None:
    with pytest.raises(NameInvalid, match="extension"):
        physical_key(NAME, PLACEMENT, extension)


@pytest.mark.parametrize("place", ["", "a/b", "a b", "..", "-a", "x" * 64, "a\n", "ü"])
def test_places_have_plain_names(place: str) -> None:
    for names in ((place, "r", "c"), ("e", place, "c"), ("e", "r", place)):
        with pytest.raises(NameInvalid, match="letters, digits"):
            CellPlacement(*names)


@pytest.mark.parametrize("count", [0, -1, 10_001])
def test_shards_have_at_most_four_digits(count: int) -> None:
    with pytest.raises(NameInvalid, match="shard_count"):
        CellPlacement("e", "r", "c", count)


def test_a_worker_with_another_placement_is_told_both() -> None:
    check_same_placement(PLACEMENT, CellPlacement("dev", "eu-1", "blue", 256))
    with pytest.raises(PlacementMismatch) as raised:
        check_same_placement(PLACEMENT, CellPlacement("dev", "eu-1", "green", 128))
    assert "cell=blue shard_count=256" in str(raised.value)
    assert "cell=green shard_count=128" in str(raised.value)
    assert raised.value.server == str(PLACEMENT)


@pytest.mark.parametrize(
    "other",
    [
        CellPlacement("prod", "eu-1", "blue"),
        CellPlacement("dev", "eu-2", "blue"),
        CellPlacement("dev", "eu-1", "green"),
        CellPlacement("dev", "eu-1", "blue", 255),
    ],
    ids=str,
)
def test_one_difference_is_enough_to_miss_each_other(other: CellPlacement) -> None:
    with pytest.raises(PlacementMismatch):
        check_same_placement(PLACEMENT, other)


def test_a_shard_of_nobody_is_not_counted() -> None:
    with pytest.raises(NameInvalid, match="tenant is empty"):
        shard_of("", "b", EXECUTION)


LONG = StepName("загрузить_все_страницы_заказов_из_внешней_системы")


def test_a_part_of_a_key_is_as_long_as_every_store_takes() -> None:
    assert PART_LENGTH_MAX == object_store.PART_LENGTH_MAX
    name = msgspec.structs.replace(NAME, step=LONG, task="записать")
    assert object_store.is_key(physical_key(name, PLACEMENT, "feather"))
    assert object_store.is_key(dataset_key(msgspec.structs.replace(DATASET, step=LONG), PLACEMENT))


def test_long_names_with_one_beginning_have_keys_of_their_own() -> None:
    steps = [LONG, StepName(f"{LONG}2"), StepName(f"{LONG}3")]
    names = [msgspec.structs.replace(NAME, step=step) for step in steps]
    keys = {physical_key(name, PLACEMENT, "json") for name in names}
    assert len(keys) == len(names)


def test_no_step_can_be_called_like_a_shortened_one() -> None:
    short = shortened(escape(LONG))
    assert len(short) <= PART_LENGTH_MAX
    assert short not in (escape(short), shortened(escape(short)))
    key = physical_key(msgspec.structs.replace(NAME, step=LONG), PLACEMENT, "json")
    assert short in key
    assert parse_physical_key(key) is None
