"""Old events are lifted one version at a time, and a registry is known by its digest."""

from typing import Any

import pytest

from noetl.domain.events import StepEntered
from noetl.domain.execution.fold import fold
from noetl.kernel.canonical_json import checksum
from noetl.kernel.errors import EventUnreadable, UpcasterRefused
from noetl.kernel.ids import StepName
from noetl.testing.given import given, stored
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import open_stored
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import Body, Upcaster, UpcasterRegistry
from tests.unit.wire.rows import rewritten

EXECUTION = execution_ids(1)[0]
STEP = StepName("load")
SCHEMA = "noetl.step.enter"


def renamed(old: str, new: str) -> Any:
    def lift(body: Body) -> Body:
        return {new if name == old else name: value for name, value in body.items()}

    return lift


def upcaster(from_version: int, to_version: int, schema: str = SCHEMA) -> Upcaster:
    return Upcaster(schema, from_version, to_version, lambda body: body)


NODE_TO_PLACE = Upcaster(SCHEMA, 1, 2, renamed("node", "place"))
PLACE_TO_STEP = Upcaster(SCHEMA, 2, 3, renamed("place", "step"))


def written_as(version: int, body: Body) -> Any:
    (row,) = stored([History(EXECUTION).draft(StepEntered(step=STEP))], source_of(EXECUTION))
    return rewritten(row, schema_version=version, body=body)


@pytest.fixture
def at_version_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEntered, "VERSION", 3)


@pytest.mark.parametrize(
    ("version", "body"),
    [(1, {"node": "load"}), (2, {"place": "load"}), (3, {"step": "load"})],
)
@pytest.mark.usefixtures("at_version_three")
def test_an_event_of_any_age_opens_as_this_build_knows_it(version: int, body: Body) -> None:
    registry = UpcasterRegistry([PLACE_TO_STEP, NODE_TO_PLACE])

    opened = open_stored(written_as(version, body), registry)

    assert opened.event == StepEntered(step=STEP)
    assert opened.envelope.schema_version == version
    assert fold([opened]) == given(StepEntered(step=STEP)).state


@pytest.mark.usefixtures("at_version_three")
def test_a_gap_in_the_registry_is_named() -> None:
    with pytest.raises(EventUnreadable, match="at version 2, this build reads 3"):
        open_stored(written_as(1, {"node": "load"}), UpcasterRegistry([NODE_TO_PLACE]))


@pytest.mark.usefixtures("at_version_three")
def test_an_upcaster_that_leaves_a_wrong_body_is_noticed() -> None:
    nothing = Upcaster(SCHEMA, 2, 3, lambda _: {"step": 7})
    with pytest.raises(EventUnreadable, match="Expected `str`, got `int`"):
        open_stored(written_as(2, {"place": "load"}), UpcasterRegistry([nothing]))


def test_an_event_of_this_version_is_not_lifted_further() -> None:
    broken = Upcaster(SCHEMA, 1, 2, lambda _: {})
    opened = open_stored(written_as(1, {"step": "load"}), UpcasterRegistry([broken]))
    assert opened.event == StepEntered(step=STEP)


def test_lifting_tells_how_far_it_came() -> None:
    registry = UpcasterRegistry([NODE_TO_PLACE, PLACE_TO_STEP])
    assert registry.lift(SCHEMA, 1, {"node": "load"}) == (3, {"step": "load"})
    assert registry.lift(SCHEMA, 3, {"step": "load"}) == (3, {"step": "load"})
    assert registry.lift("noetl.other", 1, {"node": 1}) == (1, {"node": 1})


@pytest.mark.parametrize(("from_version", "to_version"), [(1, 1), (2, 1), (1, 3), (0, 1), (-1, 0)])
def test_an_upcaster_that_does_not_lift_by_one_is_refused(
    from_version: int, to_version: int
) -> None:
    with pytest.raises(UpcasterRefused, match="lifts by exactly one"):
        UpcasterRegistry([upcaster(from_version, to_version)])


def test_two_upcasters_for_one_step_are_refused() -> None:
    with pytest.raises(UpcasterRefused, match="registered twice"):
        UpcasterRegistry([upcaster(1, 2), upcaster(2, 3), upcaster(1, 2)])
    UpcasterRegistry([upcaster(1, 2), upcaster(1, 2, "noetl.other")])


def test_the_digest_does_not_depend_on_the_order_of_registration() -> None:
    upcasters = [upcaster(1, 2), upcaster(2, 3), upcaster(1, 2, "noetl.call.done")]
    digests = {UpcasterRegistry(upcasters).digest, UpcasterRegistry(reversed(upcasters)).digest}
    assert digests == {checksum([["noetl.call.done", 1], [SCHEMA, 1], [SCHEMA, 2]])}


def test_registries_with_other_transitions_have_other_digests() -> None:
    registries = [
        UpcasterRegistry(),
        UpcasterRegistry([upcaster(1, 2)]),
        UpcasterRegistry([upcaster(2, 3)]),
        UpcasterRegistry([upcaster(1, 2), upcaster(2, 3)]),
        UpcasterRegistry([upcaster(1, 2, "noetl.call.done")]),
    ]
    assert len({registry.digest for registry in registries}) == len(registries)


def test_no_upcaster_has_been_released_yet() -> None:
    assert RELEASED.digest == UpcasterRegistry().digest == checksum([])
