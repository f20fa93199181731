"""A read model's record proves what it says, and a query can ask only for what is safe."""

from typing import Any

import pytest

from noetl.domain.projection import (
    QUERY_RECORDS_MAX,
    ProjectionKey,
    check_record,
    key_of,
    projection_checksum,
)
from noetl.kernel import canonical_json
from noetl.kernel.errors import InvariantBroken, NotFinite
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.testing.projections import query, record


def test_a_record_gives_back_its_state() -> None:
    state = {"status": "DONE", "counts": {"rows": 12}}
    assert record(state).state == state


def test_a_record_is_known_by_scope_type_and_id() -> None:
    expected = ProjectionKey(DEFAULT_SCOPE, "stage", "42")
    assert key_of(record(projection_type="stage", projection_id="42", version=7)) == expected


def test_the_checksum_depends_on_the_state_and_not_on_its_order() -> None:
    checksum = projection_checksum({"a": 1, "b": [1, 2]})
    assert checksum == projection_checksum({"b": [1, 2], "a": 1})
    assert checksum == "8baa73198470c7bb4c3ce142a8fd651affc0310d878bb9bd159e37a573fb4874"
    assert checksum != projection_checksum({"a": 1, "b": [2, 1]})


def test_a_state_that_json_cannot_carry_has_no_checksum() -> None:
    with pytest.raises(NotFinite):
        projection_checksum({"rate": float("nan")})


@pytest.mark.parametrize("state", [{}, {"a": None}, {"é": ["\u0000", 1.5, True]}])
def test_a_record_whose_bytes_match_is_accepted(state: dict[str, Any]) -> None:
    check_record(record(state))


def test_a_record_whose_bytes_do_not_match_is_refused() -> None:
    with pytest.raises(InvariantBroken, match="command a at version 4 has checksum 00"):
        check_record(record(version=4, checksum="00" * 32))


@pytest.mark.parametrize("canonical", [b"", b"{", b"[]", b"null", b'"a"', b'{"a":"\xff"}', b"{}x"])
def test_a_state_that_is_not_an_object_is_refused(canonical: bytes) -> None:
    checksum = canonical_json.sha256_hex(canonical)
    with pytest.raises(InvariantBroken, match="not an object"):
        check_record(record(canonical=canonical, checksum=checksum))


@pytest.mark.parametrize("limit", [-1, 0, QUERY_RECORDS_MAX + 1])
def test_a_query_is_bounded(limit: int) -> None:
    with pytest.raises(ValueError, match=f"limit is {limit}"):
        query(limit=limit)


@pytest.mark.parametrize("limit", [1, QUERY_RECORDS_MAX])
def test_a_query_may_ask_for_whole_pages(limit: int) -> None:
    assert query(limit=limit).limit == limit


@pytest.mark.parametrize("name", ["status", "_a", "loop_id2", "A"])
def test_a_query_filters_by_plain_names(name: str) -> None:
    assert query(where={name: "x"}).where == {name: "x"}


@pytest.mark.parametrize(
    "name", ["", "1a", "a.b", "a[0]", 'a"', "a' OR 1=1 --", "a b", "$", "a\n", "é", "a-b"]
)
def test_a_query_refuses_names_that_could_mean_more(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a field"):
        query(where={"status": "DONE", name: "x"})
