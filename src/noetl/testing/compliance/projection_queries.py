"""What a ProjectionStore promises about queries (P4), as tests; a part of its suite."""

from abc import ABC, abstractmethod
from typing import Any

import pytest

from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.projection_store import ProjectionStore
from noetl.testing.projections import (
    FIRST,
    NOT_MADE_BY_A_LOG,
    OTHER_ORGANIZATION,
    OTHER_TENANT,
    SECOND,
    ids,
    query,
    record,
)


class ProjectionQueryCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def projection_store(self) -> ProjectionStore: ...

    async def test_p4_a_query_stays_in_its_scope_and_type(
        self, projection_store: ProjectionStore
    ) -> None:
        here = record()
        elsewhere = [
            record(scope=OTHER_TENANT),
            record(scope=OTHER_ORGANIZATION),
            record(scope=Scope(OTHER_TENANT.tenant_id, OTHER_ORGANIZATION.organization_id)),
            record(projection_type="stage"),
        ]
        await projection_store.save([*elsewhere, here])

        assert await projection_store.query(query()) == [here]
        assert await projection_store.query(query(where={"status": "RUNNING"})) == [here]
        assert await projection_store.query(query(execution_id=FIRST)) == [here]
        for each in elsewhere:
            asked = query(scope=each.scope, projection_type=each.projection_type)
            assert await projection_store.query(asked) == [each]

    async def test_p4_pages_cover_everything_once_in_order_of_code_points(
        self, projection_store: ProjectionStore
    ) -> None:
        names = ["10", "9", "B", "Z", "_", "a", "a b", "aa", "z", "é", "z\u0301", "\uffee", "🌍"]
        await projection_store.save([record(projection_id=name) for name in reversed(names)])

        seen: list[str] = []
        for _ in range(len(names)):
            page = await projection_store.query(query(after_id=seen[-1] if seen else "", limit=4))
            seen += ids(page)
            if not page:
                break

        assert seen == sorted(names)

    async def test_p4_pages_from_the_newest_on_cover_everything_once(
        self, projection_store: ProjectionStore
    ) -> None:
        names = ["10", "9", "B", "_", "a", "a b", "aa", "z", "é", "\uffee", "🌍"]
        await projection_store.save(
            [
                record({"status": ("A", "B")[number % 2]}, projection_id=name)
                for number, name in enumerate(names)
            ]
        )

        seen: list[str] = []
        for _ in range(len(names)):
            after = seen[-1] if seen else ""
            page = await projection_store.query(query(after_id=after, limit=4, newest_first=True))
            seen += ids(page)
            if not page:
                break
        found = await projection_store.query(
            query(where={"status": "B"}, after_id="a b", newest_first=True)
        )

        assert seen == sorted(names, reverse=True)
        assert ids(found) == ["_", "9"]

    async def test_p4_a_query_by_execution_finds_its_records(
        self, projection_store: ProjectionStore
    ) -> None:
        await projection_store.save(
            [
                record(projection_id=f"{number:02}", execution_id=(FIRST, SECOND)[number % 2])
                for number in range(10)
            ]
        )

        page = await projection_store.query(query(execution_id=SECOND, after_id="01", limit=3))

        assert ids(page) == ["03", "05", "07"]

    @pytest.mark.parametrize("execution", NOT_MADE_BY_A_LOG)
    async def test_p4_an_id_that_no_log_made_matches_nothing(
        self, projection_store: ProjectionStore, execution: ExecutionId
    ) -> None:
        await projection_store.save([record()])
        assert await projection_store.query(query(execution_id=execution)) == []

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            ({"status": "DONE"}, ["a", "b"]),
            ({"status": "DONE", "step": "load"}, ["a"]),
            ({"status": "done"}, []),
            ({"step": "it's \"x\" %_' OR 1=1 --"}, ["b"]),
            ({"attempt": "1"}, ["d"]),
            ({"context": '{"a":1}'}, []),
            ({"context": "[1]"}, []),
            ({"context": "null"}, []),
            ({"flag": "true"}, []),
            ({"missing": ""}, []),
        ],
    )
    async def test_p4_fields_match_exactly_and_as_text(
        self, projection_store: ProjectionStore, where: dict[str, str], found: list[str]
    ) -> None:
        states: dict[str, dict[str, Any]] = {
            "a": {"status": "DONE", "step": "load", "attempt": 1},
            "b": {"status": "DONE", "step": "it's \"x\" %_' OR 1=1 --", "flag": True},
            "c": {"status": "OPEN", "context": {"a": 1}},
            "d": {"attempt": "1", "context": [1], "nested": {"status": "DONE"}},
            "e": {"context": None},
        }
        await projection_store.save(
            [record(state, projection_id=name) for name, state in states.items()]
        )

        assert ids(await projection_store.query(query(where=where))) == found
        paged = [
            ids(await projection_store.query(query(where=where, limit=1, after_id=after)))
            for after in ["", *found]
        ]
        assert [name for page in paged for name in page] == found
