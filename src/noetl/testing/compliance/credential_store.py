"""The CredentialStore's promises as tests, for an adapter that gives the four fixtures."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest

from noetl.domain.credential import NewCredential, OpenCredential
from noetl.kernel.errors import CredentialUnreadable, ValueNotPlain
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.credential_store import CredentialStore

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
OTHER_SCOPES = [Scope("acme", "default"), Scope("default", "research"), Scope("acme", "research")]
SECRET = "hunter2-correct-horse"
UNSEEN = [SECRET.encode(), b"password", b"db.internal"]

Reopen = Callable[[bytes], Awaitable[CredentialStore]]
"""Open the same store with this key, as another process would."""


class AtRest(Protocol):
    """What someone sees and can do who has the store's disk, and not the key."""

    async def contents(self) -> bytes: ...

    async def locked(self, scope: Scope, name: str) -> bytes:
        """The stored bytes of a credential's data."""
        ...

    async def overwrite(self, scope: Scope, name: str, locked: bytes) -> None: ...


def new_credential(name: str = "main-db", **fields: Any) -> NewCredential:
    given: dict[str, Any] = {
        "name": name,
        "type": "postgres",
        "data": {"host": "db.internal", "password": SECRET},
    }
    return NewCredential(**given | fields)


def opened(credential: NewCredential) -> OpenCredential:
    return OpenCredential(name=credential.name, type=credential.type, data=credential.data)


class CredentialStoreCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def credential_store(self) -> CredentialStore:
        """Empty, and opened with KEY."""

    @pytest.fixture
    @abstractmethod
    def reopen(self) -> Reopen: ...

    @pytest.fixture
    @abstractmethod
    def at_rest(self) -> AtRest: ...

    @pytest.mark.parametrize(
        "data",
        [
            {},
            {"password": SECRET},
            {"": "Grüße, 'мир' \" \0 🌍", "n": [0, -1, 2**63, 1.5, -0.0, None, True, {"x": []}]},
            {"service_account": "x" * 100_000},
        ],
        ids=["nothing", "plain", "odd", "large"],
    )
    async def test_k1_what_was_put_is_given_by_name_and_by_id(
        self, credential_store: CredentialStore, data: dict[str, Any]
    ) -> None:
        new = new_credential(name="Größe/'x\"; --", data=data)
        entry = await credential_store.put(DEFAULT_SCOPE, new)
        await credential_store.put(DEFAULT_SCOPE, new_credential("other"))

        for asked in (new.name, entry.id):
            assert await credential_store.get(DEFAULT_SCOPE, asked) == opened(new)

    @pytest.mark.parametrize("asked", ["", "main", "MAIN-DB", "main-db\0", "9" * 30, "1"])
    async def test_k1_a_name_or_id_that_nobody_put_is_none(
        self, credential_store: CredentialStore, asked: str
    ) -> None:
        await credential_store.put(DEFAULT_SCOPE, new_credential())

        assert await credential_store.get(DEFAULT_SCOPE, asked) is None
        assert await credential_store.remove(DEFAULT_SCOPE, asked) is False

    async def test_k1_a_name_goes_before_an_id_that_looks_the_same(
        self, credential_store: CredentialStore
    ) -> None:
        first = await credential_store.put(DEFAULT_SCOPE, new_credential("first"))
        confusing = new_credential(first.id, data={"token": "of the confusing one"})
        second = await credential_store.put(DEFAULT_SCOPE, confusing)

        assert await credential_store.get(DEFAULT_SCOPE, first.id) == opened(confusing)
        assert await credential_store.remove(DEFAULT_SCOPE, first.id) is True
        assert await credential_store.get(DEFAULT_SCOPE, second.id) is None
        assert await credential_store.get(DEFAULT_SCOPE, first.id) == opened(
            new_credential("first")
        )

    @pytest.mark.parametrize("data", [{"key": b"bytes"}, {"key": ("a",)}, {"key": {1: "a"}}])
    async def test_k1_data_that_would_come_back_changed_is_refused(
        self, credential_store: CredentialStore, data: dict[str, Any]
    ) -> None:
        with pytest.raises(ValueNotPlain, match=r"data\.key"):
            await credential_store.put(DEFAULT_SCOPE, new_credential(data=data))

        assert await credential_store.list(DEFAULT_SCOPE) == []

    async def test_k1_what_a_caller_does_with_an_answer_changes_nothing(
        self, credential_store: CredentialStore
    ) -> None:
        data, meta = {"password": SECRET}, {"team": "one"}
        entry = await credential_store.put(DEFAULT_SCOPE, new_credential(data=data, meta=meta))
        data["password"] = meta["team"] = entry.meta["team"] = "changed"

        found = await credential_store.get(DEFAULT_SCOPE, "main-db")
        assert found is not None
        assert found.data == {"password": SECRET}
        (listed,) = await credential_store.list(DEFAULT_SCOPE)
        assert listed.meta == {"team": "one"}

    async def test_k2_nothing_of_the_data_can_be_read_at_rest(
        self, credential_store: CredentialStore, at_rest: AtRest
    ) -> None:
        await credential_store.put(DEFAULT_SCOPE, new_credential())
        await credential_store.put(DEFAULT_SCOPE, new_credential(data={"password": "replaced"}))
        await credential_store.put(DEFAULT_SCOPE, new_credential("gone"))
        await credential_store.remove(DEFAULT_SCOPE, "gone")

        stored = await at_rest.contents()

        assert b"main-db" in stored  # we look where it would be
        assert [word for word in [*UNSEEN, b"replaced"] if word in stored] == []

    async def test_k2_equal_data_does_not_look_equal(
        self, credential_store: CredentialStore, at_rest: AtRest
    ) -> None:
        """Or rows would tell who shares a password, and when it was last changed."""
        seen = set()
        for _ in range(2):
            for name in ("one", "two"):
                await credential_store.put(DEFAULT_SCOPE, new_credential(name))
                seen.add(await at_rest.locked(DEFAULT_SCOPE, name))

        assert len(seen) == 4

    @pytest.mark.parametrize("kept", [slice(0), slice(12), slice(-1), slice(1, None)])
    async def test_k2_damaged_bytes_do_not_open(
        self, credential_store: CredentialStore, at_rest: AtRest, kept: slice
    ) -> None:
        await credential_store.put(DEFAULT_SCOPE, new_credential())
        locked = await at_rest.locked(DEFAULT_SCOPE, "main-db")

        await at_rest.overwrite(DEFAULT_SCOPE, "main-db", locked[kept])

        with pytest.raises(CredentialUnreadable):
            await credential_store.get(DEFAULT_SCOPE, "main-db")

    async def test_k2_another_key_is_said_and_never_an_empty_credential(
        self, credential_store: CredentialStore, reopen: Reopen
    ) -> None:
        entry = await credential_store.put(DEFAULT_SCOPE, new_credential())
        stranger = await reopen(OTHER_KEY)

        for asked in ("main-db", entry.id):
            with pytest.raises(CredentialUnreadable, match="main-db"):
                await stranger.get(DEFAULT_SCOPE, asked)

        assert await stranger.list(DEFAULT_SCOPE) == [entry]
        assert await credential_store.get(DEFAULT_SCOPE, "main-db") == opened(new_credential())

    async def test_k2_a_credential_put_again_opens_with_the_new_key(
        self, credential_store: CredentialStore, reopen: Reopen
    ) -> None:
        await credential_store.put(DEFAULT_SCOPE, new_credential())
        stranger = await reopen(OTHER_KEY)

        await stranger.put(DEFAULT_SCOPE, new_credential())

        assert await stranger.get(DEFAULT_SCOPE, "main-db") == opened(new_credential())
        with pytest.raises(CredentialUnreadable):
            await credential_store.get(DEFAULT_SCOPE, "main-db")

    @pytest.mark.parametrize(
        ("scope", "name"),
        [(DEFAULT_SCOPE, "mine"), *((scope, "main-db") for scope in OTHER_SCOPES)],
    )
    async def test_k2_bytes_moved_to_another_name_or_scope_do_not_open(
        self, credential_store: CredentialStore, at_rest: AtRest, scope: Scope, name: str
    ) -> None:
        await credential_store.put(DEFAULT_SCOPE, new_credential())
        await credential_store.put(scope, new_credential(name, data={"password": "my own"}))

        await at_rest.overwrite(scope, name, await at_rest.locked(DEFAULT_SCOPE, "main-db"))

        with pytest.raises(CredentialUnreadable, match=name):
            await credential_store.get(scope, name)
        found = await credential_store.get(DEFAULT_SCOPE, "main-db")
        assert found == opened(new_credential())

    async def test_k3_putting_again_replaces_all_but_id_and_time_of_making(
        self, credential_store: CredentialStore
    ) -> None:
        first = await credential_store.put(
            DEFAULT_SCOPE, new_credential(description="old", tags=("a",), meta={"n": 1})
        )
        newer = new_credential(type="http", data={"token": "t"}, tags=("b", "c"), meta={"m": 2})

        second = await credential_store.put(DEFAULT_SCOPE, newer)

        assert (second.id, second.created_at) == (first.id, first.created_at)
        assert second.updated_at > first.updated_at
        assert (second.type, second.description) == ("http", None)
        assert (second.tags, second.meta) == (("b", "c"), {"m": 2})
        assert await credential_store.get(DEFAULT_SCOPE, first.id) == opened(newer)
        assert await credential_store.list(DEFAULT_SCOPE) == [second]

    async def test_k3_twenty_who_put_at_once_leave_one_whole_credential(
        self, credential_store: CredentialStore
    ) -> None:
        racers = [new_credential(data={"n": n}, meta={"n": n}) for n in range(20)]

        made = await asyncio.gather(*(credential_store.put(DEFAULT_SCOPE, each) for each in racers))

        assert len({(each.id, each.created_at) for each in made}) == 1
        (kept,) = await credential_store.list(DEFAULT_SCOPE)
        found = await credential_store.get(DEFAULT_SCOPE, "main-db")
        assert found is not None
        assert found.data == kept.meta

    async def test_k4_other_scopes_see_and_remove_nothing(
        self, credential_store: CredentialStore
    ) -> None:
        entry = await credential_store.put(DEFAULT_SCOPE, new_credential())

        for scope in OTHER_SCOPES:
            assert await credential_store.list(scope) == []
            for asked in ("main-db", entry.id):
                assert await credential_store.get(scope, asked) is None
                assert await credential_store.remove(scope, asked) is False
        assert await credential_store.list(DEFAULT_SCOPE) == [entry]

    async def test_k4_each_scope_has_its_own_credential_of_a_name(
        self, credential_store: CredentialStore
    ) -> None:
        scopes = [DEFAULT_SCOPE, *OTHER_SCOPES]
        for number, scope in enumerate(scopes):
            await credential_store.put(scope, new_credential(data={"n": number}))

        assert await credential_store.remove(DEFAULT_SCOPE, "main-db") is True

        found = [await credential_store.get(scope, "main-db") for scope in scopes]
        assert [None if each is None else each.data["n"] for each in found] == [None, 1, 2, 3]

    async def test_k5_entries_are_in_order_of_names_and_hold_no_data(
        self, credential_store: CredentialStore
    ) -> None:
        names = ["A", "a", "a b", "a-b", "b", "Ä", "é", "🌍"]
        for name in reversed(names):
            kind = "http" if name.isascii() else "postgres"
            await credential_store.put(DEFAULT_SCOPE, new_credential(name, type=kind))

        listed = await credential_store.list(DEFAULT_SCOPE)

        assert [each.name for each in listed] == names
        assert SECRET not in repr(listed)
        http = await credential_store.list(DEFAULT_SCOPE, type="http")
        assert [each.name for each in http] == names[:5]
        assert await credential_store.list(DEFAULT_SCOPE, type="nats") == []

    async def test_k5_what_was_removed_is_neither_listed_nor_given(
        self, credential_store: CredentialStore
    ) -> None:
        entry = await credential_store.put(DEFAULT_SCOPE, new_credential())
        await credential_store.put(DEFAULT_SCOPE, new_credential("other"))

        assert await credential_store.remove(DEFAULT_SCOPE, entry.id) is True

        assert [each.name for each in await credential_store.list(DEFAULT_SCOPE)] == ["other"]
        assert await credential_store.get(DEFAULT_SCOPE, "main-db") is None
        assert await credential_store.remove(DEFAULT_SCOPE, "main-db") is False

    async def test_k6_everything_put_survives_the_process(
        self, credential_store: CredentialStore, reopen: Reopen
    ) -> None:
        new = new_credential(description="d", tags=("a",), meta={"n": 1})
        entry = await credential_store.put(DEFAULT_SCOPE, new)

        again = await reopen(KEY)

        assert await again.list(DEFAULT_SCOPE) == [entry]
        assert await again.get(DEFAULT_SCOPE, "main-db") == opened(new)
