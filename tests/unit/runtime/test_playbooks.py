"""Playbooks are checked, stored and found by path, version, id and digest."""

import asyncio

import pytest

from noetl.adapters.memory.catalog import MemoryCatalog
from noetl.domain.catalog import CatalogEntry
from noetl.domain.payload import PayloadReference, StoredPayload, reference_to
from noetl.dsl.load import playbook_digest
from noetl.kernel.errors import (
    EntryNotFound,
    InvariantBroken,
    PayloadMissing,
    PlaybookInvalid,
    RequestInvalid,
)
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.catalog import Catalog
from noetl.ports.payload_store import PayloadStore
from noetl.runtime.playbooks import PARSED_MAX, Playbooks
from noetl.testing.histories import execution_ids
from tests.memory_payloads import MemoryPayloadStore

OTHER = Scope("acme", "default")
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
STEPS = "workflow:\n  - {step: start, tool: {kind: noop}}\n"


def text_of(path: str = "demo/one", more: str = "", steps: str = STEPS) -> str:
    return f"{HEAD}metadata: {{name: one, path: {path}{more}}}\n{steps}"


@pytest.fixture
def catalog() -> Catalog:
    ids = iter(execution_ids(1000))
    return MemoryCatalog(lambda: Instant("2026-01-01T00:00:00.000000Z"), ids.__next__)


@pytest.fixture
def payloads() -> PayloadStore:
    return MemoryPayloadStore()


@pytest.fixture
def playbooks(catalog: Catalog, payloads: PayloadStore) -> Playbooks:
    return Playbooks(catalog, payloads)


@pytest.mark.parametrize(
    "text",
    [text_of(), text_of().encode(), "\ufeff" + text_of(), text_of() + "# Größe 🌍\r\n"],
    ids=["text", "bytes", "with a mark", "beyond ASCII"],
)
async def test_a_registered_text_is_given_back_exactly(
    playbooks: Playbooks, text: str | bytes
) -> None:
    made = await playbooks.register(DEFAULT_SCOPE, text)

    assert (made.entry.path, made.entry.version, made.is_new) == ("demo/one", 1, True)
    assert made.entry.digest == playbook_digest(text)
    given_back = await playbooks.text(DEFAULT_SCOPE, made.entry)
    assert given_back == (text if isinstance(text, str) else text.decode())


async def test_the_entry_says_what_the_metadata_says(playbooks: Playbooks) -> None:
    more = ", description: Says so, version: 3, tags: [a, b], labels: {team: x}, agent: true"
    made = await playbooks.register(DEFAULT_SCOPE, text_of(more=more))

    entry = made.entry
    assert (entry.kind, entry.name, entry.description) == ("Playbook", "one", "Says so")
    assert entry.meta == {
        "version": "3",
        "tags": ["a", "b"],
        "labels": {"team": "x"},
        "agent": True,
    }


async def test_without_a_path_the_name_is_the_key(playbooks: Playbooks) -> None:
    made = await playbooks.register(DEFAULT_SCOPE, f"{HEAD}metadata: {{name: alone}}\n{STEPS}")

    assert (made.entry.path, made.entry.meta) == ("alone", {})


async def test_the_same_text_again_is_not_new(playbooks: Playbooks) -> None:
    first = await playbooks.register(DEFAULT_SCOPE, text_of())
    again = await playbooks.register(DEFAULT_SCOPE, text_of())
    changed = await playbooks.register(DEFAULT_SCOPE, text_of() + "\n")
    back = await playbooks.register(DEFAULT_SCOPE, text_of())

    assert again.entry == first.entry
    assert [each.is_new for each in (first, again, changed, back)] == [True, False, True, True]
    assert [changed.entry.version, back.entry.version] == [2, 3]


async def test_warnings_come_with_the_entry(playbooks: Playbooks) -> None:
    steps = "workflow:\n  - {step: start, command: ls}\n"

    made = await playbooks.register(DEFAULT_SCOPE, text_of(steps=steps))

    (warning,) = made.warnings
    assert (warning.severity, warning.line) == ("warning", 5)
    assert made.is_new


async def test_an_unsound_text_is_refused_with_all_its_problems_and_leaves_nothing(
    playbooks: Playbooks, catalog: Catalog, payloads: PayloadStore
) -> None:
    steps = "workflow:\n  - {step: start, next: nowhere}\n  - {step: two, next: gone}\n"

    with pytest.raises(PlaybookInvalid) as raised:
        await playbooks.register(DEFAULT_SCOPE, text_of(steps=steps))

    assert raised.value.problems[0] == (
        "5:25: error: the arc of step 'start' leads to the step 'nowhere', which does not"
        " exist; use an existing step, or `end`: start, two or end"
    )
    assert "6:23: error: " in str(raised.value)
    assert await catalog.list(DEFAULT_SCOPE) == []
    assert await payloads.list_stored(DEFAULT_SCOPE) == []


@pytest.mark.parametrize("path", ["x" * 251, '"a\\0b"', '"a\\nb"'])
async def test_a_path_that_no_catalogue_should_hold_is_refused(
    playbooks: Playbooks, payloads: PayloadStore, path: str
) -> None:
    with pytest.raises(PlaybookInvalid, match=r"metadata\.path"):
        await playbooks.register(DEFAULT_SCOPE, text_of(path))

    assert await payloads.list_stored(DEFAULT_SCOPE) == []


async def test_the_text_is_stored_before_the_entry_names_it(
    catalog: Catalog, payloads: PayloadStore
) -> None:
    class Failing(MemoryPayloadStore):
        async def put(self, scope: Scope, data: object, media_type: str) -> PayloadReference:
            assert media_type == "application/yaml"
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await Playbooks(catalog, Failing()).register(DEFAULT_SCOPE, text_of())

    assert await catalog.list(DEFAULT_SCOPE) == []


async def test_a_store_that_keeps_other_bytes_stops_the_registration(catalog: Catalog) -> None:
    class Wrong(MemoryPayloadStore):
        async def put(self, scope: Scope, data: object, media_type: str) -> PayloadReference:
            return await super().put(scope, b"other", media_type)

    with pytest.raises(InvariantBroken):
        await Playbooks(catalog, Wrong()).register(DEFAULT_SCOPE, text_of())

    assert await catalog.list(DEFAULT_SCOPE) == []


async def test_a_playbook_is_loaded_by_its_digest_in_another_process(
    playbooks: Playbooks, catalog: Catalog, payloads: PayloadStore
) -> None:
    made = await playbooks.register(DEFAULT_SCOPE, text_of())
    await playbooks.register(DEFAULT_SCOPE, text_of() + "# newer\n")
    other = Playbooks(catalog, payloads)

    loaded = await other.load(DEFAULT_SCOPE, made.entry.digest)

    assert loaded.metadata.path == "demo/one"
    assert loaded == await playbooks.load(DEFAULT_SCOPE, made.entry.digest)
    assert await other.load(DEFAULT_SCOPE, made.entry.digest) is loaded


async def test_a_loaded_playbook_is_not_fetched_again(
    playbooks: Playbooks, payloads: PayloadStore
) -> None:
    entry = (await playbooks.register(DEFAULT_SCOPE, text_of())).entry
    (stored,) = await payloads.list_stored(DEFAULT_SCOPE)
    await _forget(payloads, entry)

    assert stored.sha256 == entry.digest
    assert (await playbooks.load(DEFAULT_SCOPE, entry.digest)).metadata.path == "demo/one"
    with pytest.raises(PayloadMissing):
        await playbooks.text(DEFAULT_SCOPE, entry)


async def test_the_least_recently_used_playbook_makes_room(
    playbooks: Playbooks, payloads: PayloadStore
) -> None:
    entries = [
        (await playbooks.register(DEFAULT_SCOPE, text_of(f"demo/{number}"))).entry
        for number in range(PARSED_MAX)
    ]
    for entry in entries:
        await _forget(payloads, entry)
    await playbooks.load(DEFAULT_SCOPE, entries[0].digest)

    await playbooks.register(DEFAULT_SCOPE, text_of("demo/last"))

    await playbooks.load(DEFAULT_SCOPE, entries[0].digest)
    await playbooks.load(DEFAULT_SCOPE, entries[2].digest)
    with pytest.raises(PayloadMissing):
        await playbooks.load(DEFAULT_SCOPE, entries[1].digest)


async def test_another_scope_loads_nothing_even_if_it_knows_the_digest(
    playbooks: Playbooks,
) -> None:
    entry = (await playbooks.register(DEFAULT_SCOPE, text_of())).entry

    with pytest.raises(PayloadMissing):
        await playbooks.load(OTHER, entry.digest)
    with pytest.raises(PayloadMissing):
        await playbooks.text(OTHER, entry)


async def test_a_stored_text_that_is_no_playbook_says_what_is_wrong(
    playbooks: Playbooks, payloads: PayloadStore
) -> None:
    stored = await payloads.put(DEFAULT_SCOPE, b"- no\n- playbook\n", "application/yaml")

    with pytest.raises(PlaybookInvalid):
        await playbooks.load(DEFAULT_SCOPE, stored.sha256)


async def test_many_who_load_at_once_get_equal_playbooks(
    playbooks: Playbooks, catalog: Catalog, payloads: PayloadStore
) -> None:
    entry = (await playbooks.register(DEFAULT_SCOPE, text_of())).entry
    other = Playbooks(catalog, payloads)

    loaded = await asyncio.gather(*(other.load(DEFAULT_SCOPE, entry.digest) for _ in range(8)))

    assert loaded == [await playbooks.load(DEFAULT_SCOPE, entry.digest)] * 8


async def test_entries_are_found_by_path_version_and_id(playbooks: Playbooks) -> None:
    first = (await playbooks.register(DEFAULT_SCOPE, text_of())).entry
    second = (await playbooks.register(DEFAULT_SCOPE, text_of() + "\n")).entry

    assert await playbooks.find(DEFAULT_SCOPE, "demo/one") == second
    assert await playbooks.find(DEFAULT_SCOPE, "demo/one", 1) == first
    assert await playbooks.find(DEFAULT_SCOPE, catalog_id=first.catalog_id) == first
    assert await playbooks.find(DEFAULT_SCOPE, "demo/one", catalog_id=first.catalog_id) == first


async def test_a_path_that_is_not_there_names_the_nearest(playbooks: Playbooks) -> None:
    for path in ("demo/one", "reports/weekly"):
        await playbooks.register(DEFAULT_SCOPE, text_of(path))

    with pytest.raises(EntryNotFound, match=r"'demo/oen' \(did you mean 'demo/one'\?\)"):
        await playbooks.find(DEFAULT_SCOPE, "demo/oen")
    with pytest.raises(EntryNotFound, match=r"no playbook 'else'; register it"):
        await playbooks.find(DEFAULT_SCOPE, "else")
    with pytest.raises(EntryNotFound, match=r"no playbook 'demo/oen'; register it"):
        await playbooks.find(OTHER, "demo/oen")


async def test_a_version_that_is_not_there_names_the_newest(playbooks: Playbooks) -> None:
    await playbooks.register(DEFAULT_SCOPE, text_of())

    with pytest.raises(EntryNotFound, match=r"version 7 of playbook 'demo/one' .*newest is 1"):
        await playbooks.find(DEFAULT_SCOPE, "demo/one", 7)


async def test_what_cannot_be_looked_for_is_said(playbooks: Playbooks) -> None:
    entry = (await playbooks.register(DEFAULT_SCOPE, text_of())).entry

    with pytest.raises(RequestInvalid, match="give its path or its catalog_id"):
        await playbooks.find(DEFAULT_SCOPE)
    with pytest.raises(EntryNotFound, match="playbook with the id 12"):
        await playbooks.find(DEFAULT_SCOPE, catalog_id="12")
    with pytest.raises(RequestInvalid, match="'demo/one', not of 'demo/two'"):
        await playbooks.find(DEFAULT_SCOPE, "demo/two", catalog_id=entry.catalog_id)


async def _forget(payloads: PayloadStore, entry: CatalogEntry) -> None:
    stored = StoredPayload(entry.digest, 0)
    await payloads.delete(reference_to(DEFAULT_SCOPE, stored, "application/yaml"))
