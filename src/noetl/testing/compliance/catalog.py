"""The Catalog's promises as tests. An adapter passes by giving a `catalog` and a `reopen`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from noetl.domain.catalog import CatalogEntry, NewCatalogEntry
from noetl.kernel import canonical_json
from noetl.kernel.errors import ValueNotPlain
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.catalog import Catalog

RACERS = 20
OTHER_SCOPES = [Scope("acme", "default"), Scope("default", "research"), Scope("acme", "research")]
# In order of code points, which is not the order of any dictionary.
PATHS = ["A/z", "a", "a b", "a-b", "a/b", "a/b/c", "b", "Ä", "é", "жар", "🌍"]

Reopen = Callable[[], Awaitable[Catalog]]


def text_of(number: int) -> str:
    """The digest of a text: another number, another text."""
    return canonical_json.sha256_hex(b"text %d" % number)


def new_entry(number: int = 1, **fields: Any) -> NewCatalogEntry:
    given: dict[str, Any] = {
        "path": "demo/one",
        "kind": "Playbook",
        "digest": text_of(number),
        "name": "one",
    }
    return NewCatalogEntry(**given | fields)


def numbered(entries: list[CatalogEntry]) -> list[tuple[str, int]]:
    return [(entry.path, entry.version) for entry in entries]


async def all_pages(catalog: Catalog, limit: int) -> list[CatalogEntry]:
    found: list[CatalogEntry] = []
    after = ("", 0)
    while page := await catalog.list(DEFAULT_SCOPE, after=after, limit=limit):
        assert len(page) <= limit
        found += page
        after = (page[-1].path, page[-1].version)
    return found


class CatalogCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def catalog(self) -> Catalog: ...

    @pytest.fixture
    @abstractmethod
    def reopen(self) -> Reopen:
        """Open the same catalogue as another process would."""

    async def test_c1_versions_count_from_one_in_the_order_of_registration(
        self, catalog: Catalog
    ) -> None:
        made = [await catalog.register(DEFAULT_SCOPE, new_entry(number)) for number in (7, 3, 5)]

        assert [each.version for each in made] == [1, 2, 3]
        assert [each.digest for each in made] == [text_of(7), text_of(3), text_of(5)]
        assert len({each.catalog_id for each in made}) == 3
        assert await catalog.find(DEFAULT_SCOPE, "demo/one") == made[-1]

    async def test_c1_each_path_and_each_scope_counts_for_itself(self, catalog: Catalog) -> None:
        for scope in (DEFAULT_SCOPE, *OTHER_SCOPES):
            for path in ("a", "b"):
                made = await catalog.register(scope, new_entry(path=path))
                assert made.version == 1

    async def test_c1_twenty_who_register_at_once_leave_no_gap_and_no_double(
        self, catalog: Catalog
    ) -> None:
        racers = (
            catalog.register(DEFAULT_SCOPE, new_entry(number)) for number in range(1, RACERS + 1)
        )
        made = await asyncio.gather(*racers)

        assert sorted(each.version for each in made) == list(range(1, RACERS + 1))
        listed = await catalog.list(DEFAULT_SCOPE, path="demo/one")
        assert listed == sorted(made, key=lambda each: each.version)

    async def test_c1_two_who_opened_it_apart_share_one_count(
        self, catalog: Catalog, reopen: Reopen
    ) -> None:
        both = [catalog, await reopen()]
        racers = (
            both[number % 2].register(DEFAULT_SCOPE, new_entry(number))
            for number in range(1, RACERS + 1)
        )
        made = await asyncio.gather(*racers)

        assert sorted(each.version for each in made) == list(range(1, RACERS + 1))
        assert len({each.catalog_id for each in made}) == RACERS

    async def test_c2_the_newest_text_again_is_the_same_entry(self, catalog: Catalog) -> None:
        await catalog.register(DEFAULT_SCOPE, new_entry(1))
        newest = await catalog.register(DEFAULT_SCOPE, new_entry(2))

        again = await catalog.register(DEFAULT_SCOPE, new_entry(2))

        assert again == newest
        assert len(await catalog.list(DEFAULT_SCOPE)) == 2

    async def test_c2_an_older_text_is_a_new_version(self, catalog: Catalog) -> None:
        for number in (1, 2, 1):
            made = await catalog.register(DEFAULT_SCOPE, new_entry(number))

        assert (made.version, made.digest) == (3, text_of(1))

    async def test_c2_twenty_who_register_one_text_make_one_version(self, catalog: Catalog) -> None:
        racers = (catalog.register(DEFAULT_SCOPE, new_entry()) for _ in range(RACERS))

        made = await asyncio.gather(*racers)

        assert await catalog.list(DEFAULT_SCOPE) == [made[0]]
        assert made == [made[0]] * RACERS

    async def test_c3_what_was_registered_is_what_is_found(self, catalog: Catalog) -> None:
        new = new_entry(
            path="ä/🌍/'x\"; --",
            name="Größe",
            description='two\nlines, "мир"',
            meta={"tags": ["x"], "labels": {"n": 2**53 + 1, "f": -0.0, "nul": "\0"}, "none": None},
        )
        made = await catalog.register(DEFAULT_SCOPE, new)
        for number in (2, 3):
            await catalog.register(DEFAULT_SCOPE, new_entry(number, path=new.path))

        for name in NewCatalogEntry.__struct_fields__:
            assert getattr(made, name) == getattr(new, name)
        assert await catalog.find(DEFAULT_SCOPE, new.path, 1) == made
        assert await catalog.find_by_id(DEFAULT_SCOPE, made.catalog_id) == made
        assert (await catalog.list(DEFAULT_SCOPE))[0] == made

    async def test_c3_what_a_caller_does_with_an_answer_changes_nothing(
        self, catalog: Catalog
    ) -> None:
        labels = {"team": "one"}
        made = await catalog.register(DEFAULT_SCOPE, new_entry(meta={"labels": labels}))
        labels["team"] = "two"
        made.meta["labels"]["team"] = "three"

        found = await catalog.find(DEFAULT_SCOPE, "demo/one")

        assert found is not None
        assert found.meta == {"labels": {"team": "one"}}

    async def test_c3_meta_that_would_come_back_changed_is_refused(self, catalog: Catalog) -> None:
        with pytest.raises(ValueNotPlain, match=r"meta\.at"):
            await catalog.register(DEFAULT_SCOPE, new_entry(meta={"at": b"bytes"}))

        assert await catalog.list(DEFAULT_SCOPE) == []

    @pytest.mark.parametrize(
        "path", ["demo", "demo/one/", "DEMO/ONE", "", "demo/one\0", "x" * 9000]
    )
    async def test_c3_another_path_is_not_found(self, catalog: Catalog, path: str) -> None:
        await catalog.register(DEFAULT_SCOPE, new_entry())

        assert await catalog.find(DEFAULT_SCOPE, path) is None
        assert await catalog.list(DEFAULT_SCOPE, path=path) == []

    @pytest.mark.parametrize("version", [-1, 0, 2, 2**62])
    async def test_c3_another_version_is_not_found(self, catalog: Catalog, version: int) -> None:
        await catalog.register(DEFAULT_SCOPE, new_entry())

        assert await catalog.find(DEFAULT_SCOPE, "demo/one", version) is None

    @pytest.mark.parametrize("name", ["", "abc", "9" * 30, "1", "demo/one"])
    async def test_c3_an_id_that_nobody_made_is_not_found(
        self, catalog: Catalog, name: str
    ) -> None:
        await catalog.register(DEFAULT_SCOPE, new_entry())

        assert await catalog.find_by_id(DEFAULT_SCOPE, name) is None

    async def test_c4_other_scopes_see_nothing(self, catalog: Catalog) -> None:
        made = await catalog.register(DEFAULT_SCOPE, new_entry())

        for scope in OTHER_SCOPES:
            assert await catalog.find(scope, "demo/one") is None
            assert await catalog.find(scope, "demo/one", 1) is None
            assert await catalog.find_by_id(scope, made.catalog_id) is None
            assert await catalog.list(scope) == []

    async def test_c5_entries_are_listed_by_path_then_version(self, catalog: Catalog) -> None:
        for number in range(1, 12):
            for path in reversed(PATHS[:2]):
                await catalog.register(DEFAULT_SCOPE, new_entry(number, path=path))
        for path in reversed(PATHS[2:]):
            await catalog.register(DEFAULT_SCOPE, new_entry(path=path))
        await catalog.register(OTHER_SCOPES[0], new_entry(path="a"))

        counts = {path: 11 if path in PATHS[:2] else 1 for path in PATHS}
        expected = [(path, version) for path in PATHS for version in range(1, counts[path] + 1)]
        assert numbered(await catalog.list(DEFAULT_SCOPE)) == expected
        for limit in (1, 4, 10**9):
            assert numbered(await all_pages(catalog, limit)) == expected

    async def test_c5_the_versions_of_one_path_come_in_pages_too(self, catalog: Catalog) -> None:
        for number in range(1, 6):
            await catalog.register(DEFAULT_SCOPE, new_entry(number))
            await catalog.register(DEFAULT_SCOPE, new_entry(number, path="demo/two"))

        first = await catalog.list(DEFAULT_SCOPE, path="demo/one", limit=3)
        rest = await catalog.list(DEFAULT_SCOPE, path="demo/one", after=("demo/one", 3), limit=3)

        assert numbered(first + rest) == [("demo/one", version) for version in range(1, 6)]

    async def test_c6_everything_registered_survives_the_process(
        self, catalog: Catalog, reopen: Reopen
    ) -> None:
        made = [
            await catalog.register(DEFAULT_SCOPE, new_entry(number, meta={"n": number}))
            for number in (1, 2)
        ]

        opened = await reopen()

        assert await opened.list(DEFAULT_SCOPE) == made
        assert (await opened.register(DEFAULT_SCOPE, new_entry(3))).version == 3
