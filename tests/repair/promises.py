"""What holds of repair wherever the objects lie; a class per kind of store gives the scene."""

from abc import ABC, abstractmethod

import pytest

from tests.repair.scene import FIRED, Scene

EFFECTS = "its pipeline has effects, which are never fired again"
TIME = "running it again gave other bytes: it depends on time or on other data"
NO_COPY = "nobody has another copy, and it does not follow from the log"

COMES_BACK = {
    "text/0/0/1@1": "run",
    "table/0/0/1@1": "run",
    "loop.started application/json": "log",
    "each/0/0/1@1": "run",
    "each/2/0/1@1": "run",
    "each@1": "log",
    "pair%3Afirst/0/0/1@1": "step",
    "pair/0/0/1@1": "run",
    "piped/0/0/1@1": "run",
    "piped%3Amade/0/0/1@1": "run",
}
STAYS_LOST = {
    "playbook.initialized application/yaml": NO_COPY,
    "told/0/0/1@1": EFFECTS,
    "seen/0/0/1@1": TIME,
    "piped%3Arows/0/0/1@1": EFFECTS,
}


class RepairPromises(ABC):
    @pytest.fixture
    @abstractmethod
    def run(self) -> Scene: ...

    async def test_a_finished_run_is_whole(self, run: Scene) -> None:
        found = await run.verify()
        names = await run.named()

        assert found.is_sound
        assert found.verdicts == {"ok": len(names)}
        assert {*COMES_BACK, *STAYS_LOST} <= names.keys()
        assert run.trace.read_text() == FIRED

    @pytest.mark.parametrize("name", COMES_BACK)
    async def test_a_deleted_object_comes_back_byte_for_byte(self, run: Scene, name: str) -> None:
        lost = (await run.named())[name]
        before = await run.bytes_of(lost)
        await run.delete(lost)

        told = await run.verify()
        assert [(each.uri, each.verdict) for each in told.findings] == [
            (lost.reference.uri, "missing")
        ]
        assert (told.is_sound, told.repaired) == (False, 0)

        repaired = await run.verify(repair=True)
        assert [(each.repaired, each.source) for each in repaired.findings] == [
            (True, COMES_BACK[name])
        ]
        assert repaired.is_sound
        assert await run.bytes_of(lost) == before
        assert run.trace.read_text() == FIRED

    @pytest.mark.parametrize("name", STAYS_LOST)
    async def test_what_cannot_come_back_is_said_and_why(self, run: Scene, name: str) -> None:
        lost = (await run.named())[name]
        before = await run.bytes_of(lost)
        await run.delete(lost)

        found = await run.verify(repair=True)
        still = await run.verify()
        await run.write(lost, before)

        assert [(each.uri, each.cannot) for each in found.findings] == [
            (lost.reference.uri, STAYS_LOST[name])
        ]
        assert [each.verdict for each in still.findings] == ["missing"]
        assert run.trace.read_text() == FIRED

    @pytest.mark.parametrize("name", ["text/0/0/1@1", "each/1/0/1@1", "each@1"])
    async def test_one_wrong_byte_is_found_and_put_right(self, run: Scene, name: str) -> None:
        damaged = (await run.named())[name]
        before = await run.bytes_of(damaged)
        middle = len(before) // 2
        wrong = before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :]
        await run.write(damaged, wrong)

        found = await run.verify()
        assert [(each.uri, each.verdict) for each in found.findings] == [
            (damaged.reference.uri, "corrupt")
        ]
        assert (await run.verify(repair=True)).is_sound
        assert await run.bytes_of(damaged) == before

    async def test_a_shorter_object_is_told_from_a_damaged_one(self, run: Scene) -> None:
        cut = (await run.named())["table/0/0/1@1"]
        before = await run.bytes_of(cut)
        await run.write(cut, before[:-1])

        assert [each.verdict for each in (await run.verify()).findings] == ["wrong_length"]
        assert (await run.verify(repair=True)).is_sound
        assert await run.bytes_of(cut) == before

    async def test_everything_that_can_come_back_does_so_at_once(self, run: Scene) -> None:
        """Inputs first: a frame needs its collection, which needs the table."""
        names = await run.named()
        lost = {name: named for name, named in names.items() if "pair" not in name}
        lost = {name: named for name, named in lost.items() if name not in STAYS_LOST}
        before = {name: await run.bytes_of(named) for name, named in lost.items()}
        await run.delete(*lost.values())

        found = await run.verify(repair=True)

        assert (found.is_sound, found.repaired) == (True, len(lost))
        assert {name: await run.bytes_of(named) for name, named in lost.items()} == before
        assert run.trace.read_text() == FIRED
