"""From a name to places: healthy first, then near, then the primary; only it is written to."""

import pytest

from noetl.domain.naming.acceptance import ACCEPTANCES, how_named
from noetl.domain.naming.access_plan import Asking, Placed, resolve
from noetl.domain.naming.cells import Cell, CellRegistry, Replica
from noetl.domain.naming.locator import Locality
from noetl.domain.naming.placement import CellPlacement, dataset_key, physical_key
from noetl.domain.naming.result_name import parse_dataset_name, parse_result_name
from noetl.kernel.errors import NameInvalid

URI = "noetl://acme/research/results/7012345678901234567/load/2/0/1@1"
DATASET = "noetl://acme/research/results/7012345678901234567/load@1"
EAST = Replica(provider="s3", url="s3://east", region="us-east")
WEST = Replica(provider="gs", url="gs://west", region="us-west")
CELL = Cell(name="blue", provider="s3", url="s3://home", region="eu", replicas=(EAST, WEST))
PLACED = Placed(CellPlacement("prod", "eu", "blue"), CellRegistry((CELL,)))


def order(asking: Asking, failed: frozenset[str] = frozenset()) -> list[str]:
    return [each.url for each in resolve(URI, PLACED, asking, failed).locations]


def test_a_plan_is_computed_from_the_name_alone() -> None:
    plan = resolve(URI, PLACED)
    name = parse_result_name(URI)
    assert plan.uri == URI
    assert plan.cell == "blue"
    assert plan.keys == (
        physical_key(name, PLACED.placement, "feather"),
        physical_key(name, PLACED.placement, "json"),
    )
    assert [each.replica_state for each in plan.locations] == [
        "primary",
        "async_replica",
        "async_replica",
    ]


def test_a_dataset_has_one_key() -> None:
    plan = resolve(DATASET, PLACED)
    assert plan.keys == (dataset_key(parse_dataset_name(DATASET), PLACED.placement),)


@pytest.mark.parametrize(
    ("asking", "first"),
    [
        (Asking(), "s3://home"),
        (Asking(Locality(region="us-west")), "gs://west"),
        (Asking(preferred_region="us-east"), "s3://east"),
        (Asking(Locality(region="us-west"), preferred_region="us-east"), "s3://east"),
        (Asking(Locality(region="nowhere")), "s3://home"),
    ],
)
def test_the_preferred_region_comes_first_then_ones_own(asking: Asking, first: str) -> None:
    assert order(asking)[0] == first
    assert len(order(asking)) == 3


def test_what_failed_lately_comes_last_wherever_it_is() -> None:
    asking = Asking(Locality(region="us-east"))
    assert order(asking, frozenset({"s3://east"})) == ["s3://home", "gs://west", "s3://east"]
    failed = resolve(URI, PLACED, asking, frozenset({"s3://east"})).locations[-1]
    assert not failed.healthy


def test_only_the_primary_is_written_to() -> None:
    asking = Asking(Locality(region="us-east"), "write", "us-east")
    assert order(asking, frozenset({"s3://home"})) == ["s3://home"]


def test_what_is_no_name_has_no_plan() -> None:
    with pytest.raises(NameInvalid):
        resolve("noetl://acme/research/playbooks/x@1", PLACED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": "s3", "url": "gs://x", "region": "eu"},
        {"provider": "s3", "url": "s3://key:secret@x", "region": "eu"},
        {"provider": "s3", "url": "s3://x?secret_access_key=hush", "region": "eu"},
        {"provider": "s3", "url": "s3://x", "region": "e u"},
        {"provider": "s3", "url": "s3://x", "region": "eu", "endpoint": "ftp://x"},
    ],
)
def test_a_replica_is_checked_as_a_cell_is(wrong: dict[str, str]) -> None:
    with pytest.raises(NameInvalid):
        Replica(**wrong)  # type: ignore[arg-type]


def test_no_place_is_named_twice() -> None:
    again = Replica(provider="s3", url="s3://home", region="eu")
    with pytest.raises(NameInvalid, match="twice"):
        Cell(name="blue", provider="s3", url="s3://home", region="eu", replicas=(again,))


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        (URI, "canonical"),
        (DATASET, "canonical"),
        ("noetl://acme/research/results/7012345678901234567/load/2/1@1", "variant"),
        (f"noetl://tenant/acme/org/research/payload/{'a' * 64}", "payload"),
        ("noetl://execution/7012345678901234567/result/load/abc", "legacy"),
        ("noetl://acme/research/results/x", "malformed"),
        ("s3://bucket/key", "malformed"),
        ("", "malformed"),
    ],
)
def test_every_name_in_a_report_is_of_one_kind(uri: str, expected: str) -> None:
    assert how_named(uri) == expected
    assert expected in ACCEPTANCES
